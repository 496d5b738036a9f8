//! Objects of the store that a fault emptied, cut or removed: found by reading them, and written again from a repository that
//! still has them.
//!
//! git does not write an object again while a file has its name. So a damaged file is moved away first.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::bufread::ZlibDecoder;
use rustix::io::Errno;

use super::names::Oid;
use super::run::{GitError, GitResultExt as _, SLOW};
use super::store::{ObjectCheck, Store, quote_alternate_path};
use super::store_repair::ASIDE;

/// Of the newest objects the content is read: of a fault, the last things written suffer. Of the others, the size.
const READ_COUNT_MAX: usize = 20_000;
const READ_BYTES_MAX: u64 = 256 << 20; // unpacked, about a second

/// More than this is no accident: the state folder is to be restored from a copy.
const RESTORED_MAX: usize = 10_000;

/// What was wrong with the objects of a store, and what came of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ObjectRepairs {
    /// Written again.
    pub restored: Vec<Oid>,
    /// In none of the repositories that were asked.
    pub lost: Vec<Oid>,
    /// Objects of the base were missing and have been copied from the user's repository.
    pub is_base_completed: bool,
}

/// A file of the store that holds one object.
struct LooseObject {
    oid: Oid,
    path: PathBuf,
    size: u64,
    modified: SystemTime,
}

impl Store {
    /// Finds damaged objects and writes them again from these object folders, the first of which is the user's.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn repair_objects(&self, sources: &[PathBuf]) -> Result<ObjectRepairs, GitError> {
        let doing = || format!("look for damaged objects in `{}`", self.dir().display());
        let damaged = find_damaged(&self.objects_dir()).with_context(doing)?;
        let mut repairs = ObjectRepairs::default();
        for object in damaged.into_iter().take(RESTORED_MAX) {
            let aside = self.dir().join(ASIDE);
            std::fs::create_dir_all(&aside).with_context(doing)?;
            match std::fs::rename(&object.path, aside.join(object.oid.as_str())) {
                Err(error) if is_gone(&error) => continue,
                moved => moved.with_context(doing)?,
            }
            match self.restore_object(&object.oid, sources)? {
                true => repairs.restored.push(object.oid),
                false => repairs.lost.push(object.oid),
            }
        }
        if let (Some(base), Some(of_user)) = (self.read_base()?, sources.first())
            && !self.has_files_of(&base)?
        {
            // It fails if the user's repository does not have the base either: then nothing has changed.
            repairs.is_base_completed =
                self.fetch_objects_from(of_user, &base, &[], ObjectCheck::Hash).is_ok();
        }
        Ok(repairs)
    }

    /// Whether every folder and file of a commit is there.
    fn has_files_of(&self, commit: &Oid) -> Result<bool, GitError> {
        let call = self.prepare_call("look for the files of the base");
        let args = ["rev-list", "--objects", "--quiet", "--no-walk", "--end-of-options", commit.as_str()];
        Ok(call.args(args).timeout(SLOW).run()?.code == 0)
    }

    /// Writes an object again from the first folder that has it. Its id is computed anew, so a wrong content is not taken.
    fn restore_object(&self, oid: &Oid, sources: &[PathBuf]) -> Result<bool, GitError> {
        for source in sources {
            let call = |doing: &str| {
                self.prepare_call(format!("{doing} {oid}"))
                    .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quote_alternate_path(source))
            };
            let kind = call("find").args(["cat-file", "-t", oid.as_str()]).run()?;
            let kind = String::from_utf8_lossy(&kind.stdout).trim().to_owned();
            if !matches!(kind.as_str(), "commit" | "tree" | "blob" | "tag") {
                continue;
            }
            let content = call("read").args(["cat-file", &kind, oid.as_str()]).timeout(SLOW).run()?;
            if content.code != 0 {
                continue;
            }
            let write = self.write_call(format!("write {oid} again"));
            let written = write.args(["hash-object", "-w", "--literally", "--stdin", "-t", &kind]);
            let written = written.input(content.stdout).timeout(SLOW).output()?;
            if Oid::from_line(&written).as_ref() == Some(oid) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a file is there no more: another process may pack the objects meanwhile.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The loose objects in this folder that cannot be read as a whole.
fn find_damaged(objects: &Path) -> io::Result<Vec<LooseObject>> {
    let mut loose = list_loose(objects)?;
    loose.sort_by_key(|object| std::cmp::Reverse(object.modified));
    let mut left = READ_BYTES_MAX;
    let mut damaged = Vec::new();
    for (count, object) in loose.into_iter().enumerate() {
        let is_read = count < READ_COUNT_MAX && left > 0;
        if object.size == 0 || (is_read && !is_whole_file(&object.path, &mut left)?) {
            damaged.push(object);
        }
    }
    Ok(damaged)
}

fn list_loose(objects: &Path) -> io::Result<Vec<LooseObject>> {
    let mut loose = Vec::new();
    for folder in std::fs::read_dir(objects)? {
        let folder = folder?;
        let begin = folder.file_name().to_string_lossy().into_owned();
        if begin.len() != 2 || !folder.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let files = match std::fs::read_dir(folder.path()) {
            Err(error) if is_gone(&error) => continue,
            files => files?,
        };
        for file in files {
            let file = file?;
            let Ok(oid) = format!("{begin}{}", file.file_name().to_string_lossy()).parse::<Oid>() else {
                continue; // a draft of a git that was killed
            };
            let meta = match file.metadata() {
                Err(error) if is_gone(&error) => continue,
                meta => meta?,
            };
            if meta.is_file() {
                let (size, modified) = (meta.len(), meta.modified()?);
                loose.push(LooseObject { oid, path: file.path(), size, modified });
            }
        }
    }
    Ok(loose)
}

/// Whether a file holds a whole object. Of `left`, the bytes that may still be unpacked, it takes what it unpacks.
fn is_whole_file(path: &Path, left: &mut u64) -> io::Result<bool> {
    let is_whole = match File::open(path) {
        Ok(file) => is_whole(BufReader::new(file), left),
        Err(error) => Err(error),
    };
    match is_whole {
        Err(error) if is_gone(&error) => Ok(true), // nothing to mend
        Err(error) if is_damage(&error) => Ok(false),
        is_whole => is_whole,
    }
}

/// Whether reading failed because of what the disk holds there. Everything else, such as too many open files, passes.
fn is_damage(error: &io::Error) -> bool {
    match error.raw_os_error() {
        // What the decoder says of bytes that are no zlib stream, or end too early.
        None => true,
        // A bad sector, and a checksum or a structure of the file system that is wrong.
        Some(code) => {
            [Errno::IO, Errno::BADMSG, Errno::UCLEAN].iter().any(|errno| errno.raw_os_error() == code)
        }
    }
}

/// Whether an object can be unpacked and is as long as it says. The checksum of zlib finds changed bytes. Of an object that is
/// longer than what is `left`, only the header is read.
fn is_whole(file: impl io::BufRead, left: &mut u64) -> io::Result<bool> {
    const HEADER_MAX: usize = 32; // a kind, a size and a NUL
    let mut content = ZlibDecoder::new(file);
    let mut header = Vec::new();
    while header.last() != Some(&0) {
        let mut byte = [0];
        if header.len() == HEADER_MAX || content.read(&mut byte)? == 0 {
            return Ok(false);
        }
        header.push(byte[0]);
    }
    let header = String::from_utf8_lossy(&header).into_owned();
    let size = header.trim_end_matches('\0').rsplit(' ').next().and_then(|word| word.parse::<u64>().ok());
    let Some(size) = size else { return Ok(false) };
    if size > *left {
        return Ok(true);
    }
    // One byte more than there should be shows that the header lies, and reads the checksum behind the last one.
    let found = io::copy(&mut content.take(size + 1), &mut io::sink())?;
    *left = left.saturating_sub(found);
    Ok(found == size)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn pack_object(object: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(object).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn an_object_is_whole_if_it_is_as_long_as_it_says() {
        let mut flipped = pack_object(b"blob 3\0abc");
        *flipped.last_mut().expect("a checksum") ^= 1;
        let table: [(&[u8], bool, u64, &str); 7] = [
            (&pack_object(b"blob 3\0abc"), true, 97, "as it should be"),
            (&pack_object(b"blob 4\0abc"), false, 97, "shorter"),
            (&pack_object(b"blob 2\0abc"), false, 97, "longer"),
            (&pack_object(b"blob x\0abc"), false, 100, "no size"),
            (&flipped, false, 100, "a changed byte"),
            (b"abc", false, 100, "no zlib stream"),
            (&pack_object(b"blob 101\0abc"), true, 100, "beyond what is left, the size is believed"),
        ];
        for (file, wanted, wanted_left, why) in table {
            let mut left = 100;
            let found = is_whole(file, &mut left);
            let found = found.or_else(|error| if is_damage(&error) { Ok(false) } else { Err(error) });
            assert_eq!((found.expect("read"), left), (wanted, wanted_left), "{why}");
        }
    }

    #[test]
    fn an_object_that_says_little_and_unpacks_to_much_is_not_read_to_its_end() {
        let mut object = b"blob 3\0".to_vec();
        object.resize(64 << 20, 0);
        let mut left = READ_BYTES_MAX;
        assert!(!is_whole(pack_object(&object).as_slice(), &mut left).expect("read"));
        assert_eq!(left, READ_BYTES_MAX - 4);
    }

    #[test]
    fn a_bad_sector_is_damage_and_a_shortage_is_not() {
        let is_damage = |errno: Errno| super::is_damage(&errno.into());
        assert!(is_damage(Errno::IO));
        assert!(!is_damage(Errno::MFILE) && !is_damage(Errno::NOMEM));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_cannot_be_read_is_not_whole() {
        // Nothing is mapped where it begins: reading there is an input/output error.
        let is_whole = is_whole_file(Path::new("/proc/self/mem"), &mut READ_BYTES_MAX.clone());
        assert!(!is_whole.expect("it is damage"));
    }
}

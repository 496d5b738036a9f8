//! The file that an agent keeps of its session beside what it writes out.

use std::path::{Path, PathBuf};

/// The end of the newest file below `root` whose name ends with `suffix`.
pub(crate) fn read_newest_tail(root: &Path, suffix: &str) -> Option<Vec<u8>> {
    find_newest_file(root, suffix).and_then(|path| read_line_tail(&path).ok())
}

/// The newest file below `root` whose name ends with `suffix`.
fn find_newest_file(root: &Path, suffix: &str) -> Option<PathBuf> {
    const DEPTH_MAX: usize = 5; // year, month, day and a little more
    const ENTRIES_MAX: usize = 20_000; // a year of sessions
    let mut found: Option<(std::time::SystemTime, PathBuf)> = None;
    let mut folders = vec![(root.to_owned(), 0)];
    let mut entries = 0;
    while let Some((folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            entries += 1;
            if entries > ENTRIES_MAX {
                return found.map(|(_, path)| path);
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && entry.file_name().to_string_lossy().ends_with(suffix) {
                let Some(at) = entry.metadata().ok().and_then(|meta| meta.modified().ok()) else { continue };
                if found.as_ref().is_none_or(|(newest, _)| at > *newest) {
                    found = Some((at, entry.path()));
                }
            }
        }
    }
    found.map(|(_, path)| path)
}

/// The end of a file, from the beginning of a line.
fn read_line_tail(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    use std::os::unix::fs::OpenOptionsExt as _;
    // Agents can write there: a link or a pipe in its place is not followed, and not waited for.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file =
        std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let length = meta.len();
    let from = length.saturating_sub(ASIDE_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(ASIDE_MAX).read_to_end(&mut bytes)?;
    let start =
        if from == 0 { 0 } else { bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
    Ok(bytes.split_off(start))
}

const ASIDE_MAX: u64 = 4 << 20; // the end of a file an agent keeps: the last events are what matters

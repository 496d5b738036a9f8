//! Which mount a checkout was last used on, so that a checkout which went through a power cut can be told from one that did
//! not.
//!
//! Content that nobody synced survives the end of a process, but not the end of the machine or of the mount. A record names
//! both. It is written without a sync: if a power cut takes the record, the checkout is not trusted, which is right.
//! Whoever ends in order syncs the whole file system and leaves a clean mark, and the next one may trust what was recorded
//! under the same identity as the mark.

use std::io;
use std::path::Path;

use crate::disk;

/// The name of the record in the folder that belongs to one checkout.
const RECORD: &str = "mount";

/// The name of the clean mark in the folder of all checkouts.
const CLEAN_MARK: &str = ".clean";

/// One mount of one file system in one start of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountIdentity {
    /// The kernel's id of this start of the machine.
    pub boot: String,
    /// The device of the file system.
    pub device: u64,
    /// The id of the mount.
    pub mount: u64,
    /// Whether no other mount in this start of the machine has had that id. Kernels before 6.8 reuse an id after an unmount.
    /// Every record says yes, so that an identity without this promise equals no record: only clean marks count there.
    pub is_unique: bool,
}

impl MountIdentity {
    /// The identity of the mount that holds `path`.
    ///
    /// # Errors
    /// When the system cannot tell. Then nothing can be trusted that was not marked clean.
    #[cfg(target_os = "linux")]
    pub fn of_path(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        // `STATX_MNT_ID_UNIQUE`: never used twice in one start of the machine. Older kernels do not return the bit.
        const UNIQUE: u32 = 0x4000;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::from_bits_retain(UNIQUE);
        let stat = statx(CWD, path, AtFlags::empty(), wanted)?;
        Ok(Self {
            boot: disk::boot_id()?,
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            mount: stat.stx_mnt_id,
            is_unique: stat.stx_mask & UNIQUE != 0,
        })
    }

    /// The identity of the mount that holds `path`. Not known on this system.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn of_path(_path: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What `folder` says about the mount that its checkout was last used on. None if it says nothing that can be read.
    #[must_use]
    pub fn recorded_in(folder: &Path) -> Option<Self> {
        Self::read(&folder.join(RECORD))
    }

    /// Records in `folder` that its checkout is used on this mount.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn record_in(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join(RECORD), self.to_text())
    }

    /// The identity under which the checkouts in `folder` were last marked clean.
    #[must_use]
    pub fn clean_mark_of(folder: &Path) -> Option<Self> {
        Self::read(&folder.join(CLEAN_MARK))
    }

    /// Syncs the file systems that hold `folders`, then marks the checkouts in them as clean. Only for whoever knows that
    /// nobody writes in them any more.
    ///
    /// # Errors
    /// When the sync fails, or a mark cannot be written.
    #[cfg(target_os = "linux")]
    pub fn mark_clean(folders: &[&Path]) -> io::Result<()> {
        let mut synced: Vec<u64> = Vec::new();
        for folder in folders {
            let identity = Self::of_path(folder)?;
            if !synced.contains(&identity.device) {
                rustix::fs::syncfs(std::fs::File::open(folder)?)?;
                synced.push(identity.device);
            }
            // The mark itself needs no sync: without it the checkouts are not trusted.
            std::fs::write(folder.join(CLEAN_MARK), identity.to_text())?;
        }
        Ok(())
    }

    /// Not possible on this system: there is nothing to compare the mark with.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn mark_clean(_folders: &[&Path]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes the clean mark away before the checkouts in `folder` are used. Durable: a mark that came back after a power
    /// cut would vouch for content that was written after it.
    ///
    /// # Errors
    /// When the mark cannot be removed.
    pub fn clear_clean_mark(folder: &Path) -> io::Result<()> {
        match std::fs::remove_file(folder.join(CLEAN_MARK)) {
            Ok(()) => disk::sync_dir(folder),
            // Whoever removed it may have been killed before the sync.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match folder.is_dir() {
                true => disk::sync_dir(folder),
                false => Ok(()),
            },
            Err(error) => Err(error),
        }
    }

    fn to_text(&self) -> String {
        format!("boot {}\ndevice {}\nmount {}\nend\n", self.boot, self.device, self.mount)
    }

    fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let mut lines = text.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let boot = field("boot")?.to_owned();
        let device = field("device")?.parse().ok()?;
        let mount = field("mount")?.parse().ok()?;
        // The last line shows that the record is whole.
        (lines.next() == Some("end") && !boot.is_empty()).then_some(Self {
            boot,
            device,
            mount,
            is_unique: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::MountIdentity;

    #[test]
    fn a_record_is_read_back_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = MountIdentity::of_path(folder.path()).expect("Linux can tell");
        assert_eq!(MountIdentity::recorded_in(folder.path()), None, "nothing is recorded yet");
        here.record_in(folder.path()).expect("it can be written");
        assert_eq!(MountIdentity::recorded_in(folder.path()), Some(here.clone()));
        let record = folder.path().join("mount");
        let whole = std::fs::read(&record).expect("it is there");
        for length in 0..whole.len() - 1 {
            std::fs::write(&record, &whole[..length]).expect("it can be cut");
            assert_eq!(MountIdentity::recorded_in(folder.path()), None, "cut after {length} bytes");
            let mut zeroed = whole.clone();
            zeroed[length..].fill(0);
            std::fs::write(&record, &zeroed).expect("it can be zeroed");
            assert_eq!(MountIdentity::recorded_in(folder.path()), None, "zeroed after {length} bytes");
        }
    }

    #[test]
    fn an_identity_whose_id_may_be_reused_equals_no_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = MountIdentity::of_path(folder.path()).expect("Linux can tell");
        let reusable = MountIdentity { is_unique: false, ..here };
        reusable.record_in(folder.path()).expect("it can be written");
        let recorded = MountIdentity::recorded_in(folder.path()).expect("it is whole");
        assert_ne!(recorded, reusable, "another mount may have that id now");
        MountIdentity::mark_clean(&[folder.path()]).expect("it can be synced");
        assert_eq!(MountIdentity::clean_mark_of(folder.path()), Some(recorded), "a clean mark counts");
    }

    #[test]
    fn a_clean_mark_names_the_mount_until_it_is_cleared() {
        let folder = tempfile::tempdir().expect("a folder");
        let here = MountIdentity::of_path(folder.path()).expect("Linux can tell");
        MountIdentity::clear_clean_mark(folder.path()).expect("no mark is fine");
        MountIdentity::mark_clean(&[folder.path()]).expect("it can be synced");
        assert_eq!(MountIdentity::clean_mark_of(folder.path()), Some(here));
        MountIdentity::clear_clean_mark(folder.path()).expect("it can be removed");
        assert_eq!(MountIdentity::clean_mark_of(folder.path()), None);
    }
}

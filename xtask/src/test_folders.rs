//! Where the tests lay out their projects. ext4 gives no inode away again for minutes: whoever creates a file looks at each one
//! that was deleted lately in its part of the disk. Tests create and delete hundreds of thousands of files, and all folders of
//! one parent share a part: creating a file then takes fifty times as long as on an idle disk. The flag for tops of folder
//! hierarchies gives each folder inside a part of its own. Other file systems do not know the flag and do not need it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use crate::test::target_folder;

/// The folder for temporary files of one run; removed when dropped.
pub struct TestFolders {
    temporary: PathBuf,
}

impl TestFolders {
    /// Makes the folders. The one for temporary files is outside of this repository, and its name is short: sockets lie below.
    pub fn new() -> Result<Self> {
        let temporary = std::env::temp_dir().join(format!("landfall-t{}", std::process::id()));
        fs::create_dir_all(&temporary).with_context(|| format!("create {}", temporary.display()))?;
        let folders = Self { temporary };
        spread_folders_inside(&folders.temporary);
        let projects = target_folder()?.join("../tmp"); // `tests_folder` of the test kit
        fs::create_dir_all(&projects).with_context(|| format!("create {}", projects.display()))?;
        spread_folders_inside(&projects);
        Ok(folders)
    }

    /// The value of `TMPDIR`.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }
}

impl Drop for TestFolders {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.temporary); // what stays is in the folder for temporary files
    }
}

fn spread_folders_inside(folder: &Path) {
    let spread = || -> rustix::io::Result<()> {
        let folder = File::open(folder).map_err(|_| rustix::io::Errno::NOENT)?;
        ioctl_setflags(&folder, ioctl_getflags(&folder)? | IFlags::TOPDIR)
    };
    spread().ok(); // another file system: only the speed depends on it
}

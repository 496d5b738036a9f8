//! Where the tests lay out their projects. ext4 gives no inode away again for minutes: whoever creates a file looks at each one
//! that was deleted lately in its part of the disk. Tests create and delete hundreds of thousands of files, and all folders of
//! one parent share a part: creating a file then takes fifty times as long as on an idle disk. The flag for tops of folder
//! hierarchies gives each folder inside a part of its own. Other file systems do not know the flag and do not need it.
//!
//! The projects themselves lie in memory where that is possible: then no file is searched for at all. What depends on a disk
//! still meets one. The tests of power cuts mount their own, and chaos, the browser tests and whatever tests put into the folder
//! for temporary files stay on the disk of the machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use crate::test::target_folder;

/// Mounts a file system in memory at a folder, in a mount namespace that ends with the command that follows. A file in it
/// is memory that nothing can free but its deletion. With the limit, a test that writes without end gets "no space left", and
/// of [`MEMORY_MIN_KIB`] at least 7 GiB are left to the processes.
const IN_MEMORY: &str = "mount -t tmpfs -o size=3g,mode=755 landfall-tests \"$0\" && exec \"$@\"";

/// Less memory than this is left to the tests and the browser.
const MEMORY_MIN_KIB: u64 = 10 << 20;

/// The folder for temporary files of one run, removed when dropped, and the one for projects.
pub struct TestFolders {
    temporary: PathBuf,
    projects: PathBuf,
}

impl TestFolders {
    /// Makes the folders. The one for temporary files is outside of this repository, and its name is short: sockets lie below.
    pub fn new() -> Result<Self> {
        let temporary = std::env::temp_dir().join(format!("landfall-t{}", std::process::id()));
        fs::create_dir_all(&temporary).with_context(|| format!("create {}", temporary.display()))?;
        let projects = target_folder()?.join("../tmp"); // `tests_folder` of the test kit
        fs::create_dir_all(&projects).with_context(|| format!("create {}", projects.display()))?;
        let folders = Self { temporary, projects };
        spread_folders_inside(&folders.temporary);
        spread_folders_inside(&folders.projects);
        Ok(folders)
    }

    /// The same command with the projects in memory, or unchanged where nothing may be mounted or memory is short.
    pub fn keep_projects_in_memory(&self, command: Command) -> Command {
        let mut probe = self.in_memory(&Command::new("true"));
        probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let has_room = memory_available_kib().is_some_and(|kib| kib >= MEMORY_MIN_KIB);
        if has_room && probe.status().is_ok_and(|status| status.success()) {
            return self.in_memory(&command);
        }
        eprintln!(
            "the test projects are on disk: a file system in memory needs the right to mount and 10 GiB"
        );
        command
    }

    fn in_memory(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("unshare");
        wrapped.args(["--mount", "--propagation", "private", "sh", "-c", IN_MEMORY]).arg(&self.projects);
        wrapped.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        wrapped
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

/// None where the kernel does not say it.
fn memory_available_kib() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn spread_folders_inside(folder: &Path) {
    let spread = || -> rustix::io::Result<()> {
        let folder = File::open(folder).map_err(|_| rustix::io::Errno::NOENT)?;
        ioctl_setflags(&folder, ioctl_getflags(&folder)? | IFlags::TOPDIR)
    };
    spread().ok(); // another file system: only the speed depends on it
}

//! A small ext4 file system on a loop device, whose power can be cut: what was not synced is lost.

use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::processes::left_behind;

/// `EXT4_IOC_SHUTDOWN`, with the flag that also drops the log of the file system: nothing reaches the device any more.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
const SHUTDOWN_WITHOUT_LOG: u32 = 2;

/// How long processes may take to end and a device to be free, on a busy machine.
const SETTLE_MAX: Duration = Duration::from_secs(120);

/// A mounted file system in a file. Unmounted and removed when dropped, so drop whatever lies on it first.
pub struct LoopDisk {
    folder: tempfile::TempDir,
}

impl LoopDisk {
    /// Makes and mounts one. None where this is not allowed or the tools are missing: then one line on stderr says why, for
    /// the test runner to collect, and the caller returns.
    #[must_use]
    pub fn create(mib: u64) -> Option<Self> {
        match Self::try_create(mib) {
            Ok(disk) => Some(disk),
            Err(why) => {
                eprintln!("landfall-skip: no loop device with ext4: {}", why.replace('\n', " "));
                None
            }
        }
    }

    fn try_create(mib: u64) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("landfall-disk-").tempdir();
        let folder = folder.map_err(|error| format!("make a folder: {error}"))?;
        let disk = Self { folder };
        let image = std::fs::File::create(disk.image()).and_then(|file| file.set_len(mib << 20));
        image.map_err(|error| format!("make an image: {error}"))?;
        std::fs::create_dir(disk.path()).map_err(|error| format!("make a mount point: {error}"))?;
        run(Command::new("mkfs.ext4").arg("-q").arg(disk.image()))?;
        disk.mount()?;
        // A shutdown is what it is for: without the right to do that, there is no power cut.
        disk.shut_down().and_then(|()| disk.remount())?;
        Ok(disk)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    /// Cuts the power: content that was not synced is lost, every process that works on the disk ends at once, and the disk
    /// is mounted again as after a start of the machine.
    ///
    /// # Panics
    /// When the disk cannot be shut down or mounted again.
    pub fn cut_power(&self) {
        self.shut_down().expect("it could be shut down when it was made");
        self.remount().expect("it can be mounted again");
    }

    /// Writes everything to the device that was written so far, as time would.
    ///
    /// # Panics
    /// When the device fails.
    pub fn sync(&self) {
        run(Command::new("sync").arg("--file-system").arg(self.path())).expect("the device takes it");
    }

    fn shut_down(&self) -> Result<(), String> {
        let root = std::fs::File::open(self.path()).map_err(|error| format!("open the mount: {error}"))?;
        let flag = SHUTDOWN_WITHOUT_LOG;
        // SAFETY: the call reads one `u32` through the pointer, which outlives it.
        let code = unsafe { libc::ioctl(root.as_raw_fd(), SHUTDOWN, &raw const flag) };
        match code {
            0 => Ok(()),
            _ => Err(format!("shut the file system down: {}", std::io::Error::last_os_error())),
        }
    }

    fn remount(&self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            for process in left_behind(&self.path()) {
                let _ = run(Command::new("kill").args(["-9", &process.pid.to_string()])); // it has ended just now
            }
            match run(Command::new("umount").arg(self.path())) {
                Ok(()) => break,
                Err(why) if began.elapsed() > SETTLE_MAX => return Err(why),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        // A sandbox with mounts of its own has a copy of this mount, and with it the file system that was shut down: the
        // device is free when the last of them has ended, those of other tests included.
        while self.is_attached() {
            if began.elapsed() > SETTLE_MAX {
                return Err("the device is still in use".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.mount()
    }

    fn is_attached(&self) -> bool {
        let list = Command::new("losetup").arg("-j").arg(self.image()).output();
        list.is_ok_and(|list| !list.stdout.is_empty())
    }

    fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-t", "ext4", "-o", "loop"]).arg(self.image()).arg(self.path()))
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let path: &Path = &self.path();
        if run(Command::new("umount").arg(path)).is_err() {
            let _ = run(Command::new("umount").arg("--lazy").arg(path)); // a failed test may have left it busy
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let Output { status, stderr, .. } = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&stderr).trim())),
    }
}

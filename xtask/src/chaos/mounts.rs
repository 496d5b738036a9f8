//! File systems for a round: a plain folder, a small one in memory, or an ext4 on a loop device that can lose its power.

use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::FaultKind;

/// What a round works on. Unmounted when dropped.
pub struct RoundMount {
    path: PathBuf,
    image: Option<PathBuf>,
    is_mounted: bool,
}

const SMALL_BYTES: u64 = 160 << 20; // a run of these tasks takes about a third of it
const SMALL_INODES: u64 = 12_000;
const IMAGE_BYTES: u64 = 512 << 20;

impl RoundMount {
    /// The file system for a round of this kind.
    pub fn for_kind(folder: &Path, kind: FaultKind) -> Result<Self> {
        let path = folder.join("disk");
        std::fs::create_dir_all(&path)?;
        match kind {
            FaultKind::Power => {
                let image = folder.join("image");
                make_image(&image)?;
                mount_image(&image, &path)?;
                Ok(Self { path, image: Some(image), is_mounted: true })
            }
            FaultKind::Disk | FaultKind::Inodes => {
                mount_small(&path)?;
                Ok(Self { path, image: None, is_mounted: true })
            }
            FaultKind::Engine
            | FaultKind::Sitter
            | FaultKind::CheckSitter
            | FaultKind::Both
            | FaultKind::Stop
            | FaultKind::Pids
            | FaultKind::Files
            | FaultKind::Clock => Ok(Self { path, image: None, is_mounted: false }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything that was not synced is lost, and nothing more is written, as if the power were cut.
    pub fn cut_power(&self) -> Result<()> {
        const NO_LOG_FLUSH: u32 = 2;
        /// `EXT4_IOC_SHUTDOWN`: `_IOR('X', 125, __u32)`.
        const SHUTDOWN: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<u32>(b'X', 125);
        let folder = std::fs::File::open(&self.path).context("open the file system")?;
        let mut how = NO_LOG_FLUSH;
        // SAFETY: the kernel reads one `u32` through the pointer, which outlives the call.
        unsafe {
            let order = rustix::ioctl::Updater::<SHUTDOWN, u32>::new(&mut how);
            rustix::ioctl::ioctl(folder.as_fd(), order).context("shut the file system down")
        }
    }

    /// Mounts it again after a cut. Nothing may use it.
    pub fn restore_power(&self) -> Result<()> {
        let image = self.image.as_ref().context("only a loop device loses its power")?;
        unmount(&self.path)?;
        wait_for_release(image)?;
        mount_image(image, &self.path)
    }

    /// Keeps what is in it, to be looked at. The mount itself ends with our namespace, so it is copied.
    pub fn keep(mut self) -> Result<PathBuf> {
        let is_own = std::env::var_os(OWN_NAMESPACE).is_some();
        if self.is_mounted && is_own {
            let kept = self.path.with_file_name("kept");
            call("cp", &["-a", text(&self.path)?, text(&kept)?])?;
            return Ok(kept);
        }
        self.is_mounted = false;
        Ok(self.path.clone())
    }
}

impl Drop for RoundMount {
    fn drop(&mut self) {
        if self.is_mounted
            && let Err(error) = unmount(&self.path)
        {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// Set for the rounds that run in a mount namespace of their own.
const OWN_NAMESPACE: &str = "LANDFALL_CHAOS_NAMESPACE";

/// Starts this program again in a mount namespace of its own, whose mounts no other process can copy: a file system that was
/// shut down would stay mounted there. Returns if we are in it already, or if none can be had here.
pub fn enter_own_namespace(words: &[&str]) -> Result<()> {
    if std::env::var_os(OWN_NAMESPACE).is_some() {
        return Ok(());
    }
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "--"]);
        unshare
    };
    if !unshare().arg("true").output().is_ok_and(|done| done.status.success()) {
        eprintln!(
            "xtask: no mount namespace of our own can be had; other processes may copy the mounts of a round"
        );
        return Ok(());
    }
    let program = std::env::current_exe().context("find our own program")?;
    let failed = unshare().arg(program).arg("chaos").args(words).env(OWN_NAMESPACE, "1").exec();
    Err(failed).context("start the rounds in a mount namespace of their own")
}

/// Waits until a file system on this image is mounted nowhere. Its loop device goes with the last mount.
fn wait_for_release(image: &Path) -> Result<()> {
    const TRIES_MAX: u32 = 1_200; // a minute: a busy machine takes its time
    let mut device = loop_device(image)?;
    for _ in 0..TRIES_MAX {
        if device.is_none() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        device = loop_device(image)?;
    }
    let device = device.unwrap_or_default();
    let holders = find_holders(&device);
    bail!(
        "the file system that was shut down is still mounted, so it cannot be mounted anew and this round says nothing: {device} \
         is held by the mount namespace of {}; end them, or run chaos again without them",
        if holders.is_empty() { "a process that cannot be read".to_owned() } else { holders.join(", ") }
    )
}

fn loop_device(image: &Path) -> Result<Option<String>> {
    let mut losetup = Command::new("losetup");
    losetup.args(["--noheadings", "--output", "NAME", "--associated"]).arg(image);
    let listed = losetup.output().context("start losetup")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(listed.lines().next().map(|line| line.trim().to_owned()).filter(|name| !name.is_empty()))
}

/// The processes in whose mount namespace a device is mounted.
fn find_holders(device: &str) -> Vec<String> {
    let mut holders = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mounts = std::fs::read_to_string(entry.path().join("mounts")).unwrap_or_default();
        let is_holder = mounts.lines().any(|line| line.split(' ').next() == Some(device));
        if is_holder && name.bytes().all(|byte| byte.is_ascii_digit()) {
            let command = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            holders.push(format!("process {name} ({})", command.trim()));
        }
    }
    holders
}

fn call(program: &str, args: &[&str]) -> Result<()> {
    let done = Command::new(program).args(args).output().with_context(|| format!("start {program}"))?;
    ensure!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr).trim());
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of ours is text")
}

fn make_image(image: &Path) -> Result<()> {
    std::fs::File::create(image)?.set_len(IMAGE_BYTES)?;
    call("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1", text(image)?])
}

fn mount_image(image: &Path, path: &Path) -> Result<()> {
    call("mount", &["-o", "loop", text(image)?, text(path)?])
}

fn mount_small(path: &Path) -> Result<()> {
    let options = format!("size={SMALL_BYTES},nr_inodes={SMALL_INODES},mode=0755");
    call("mount", &["-t", "tmpfs", "-o", &options, "landfall-chaos", text(path)?])
}

/// Unmounts it. Whoever ended just now may hold it for a moment.
fn unmount(path: &Path) -> Result<()> {
    const TRIES_MAX: u32 = 100;
    let mut done = call("umount", &[text(path)?]);
    for _ in 0..TRIES_MAX {
        if done.is_ok() {
            return done;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        done = call("umount", &[text(path)?]);
    }
    done.with_context(|| format!("unmount {}", path.display()))
}

fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1).is_some_and(|at| Path::new(at) == path))
}

/// Removes the folder of a round, mounted or not.
pub fn clear(folder: &Path) -> Result<()> {
    let disk = folder.join("disk");
    if is_mounted(&disk) {
        unmount(&disk)?;
    }
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether a loop device with an ext4 can be had.
pub fn try_loop(folder: &Path) -> Result<()> {
    let trial = folder.join("trial");
    clear(&trial)?;
    std::fs::create_dir_all(&trial)?;
    let tried = RoundMount::for_kind(&trial, FaultKind::Power).and_then(|mount| mount.cut_power());
    clear(&trial)?;
    tried
}

/// Whether a small file system can be had.
pub fn try_small(folder: &Path) -> Result<()> {
    let trial = folder.join("trial");
    clear(&trial)?;
    std::fs::create_dir_all(&trial)?;
    let tried = RoundMount::for_kind(&trial, FaultKind::Disk).map(drop);
    clear(&trial)?;
    tried
}

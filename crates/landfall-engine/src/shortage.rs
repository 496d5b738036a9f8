//! Running out of processes, descriptors, memory, disk space or inodes: what is missing is noted once, nothing new is
//! started, and a look every few seconds finds out whether it is back. Work that could not be started is kept for then.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use landfall_host::memory;
use landfall_model::queue::QueueNews;
use landfall_model::resource::{
    MachineResource, ResourceFailure, blamed_for_failure, resource_for_errno, resource_in_text,
};
use rustix::io::Errno;

use crate::mail::EngineMessage;

/// What is missing, and the failure that showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// What there is none of.
    pub resource: MachineResource,
    /// The failure.
    pub detail: String,
}

/// Work of a thread that could not be started.
pub(crate) struct PostponedThread {
    what: &'static str,
    work: PostponedWork,
}

type PostponedWork = Box<dyn FnOnce() + Send>;

const PROBE_AGAIN: Duration = Duration::from_secs(1); // a try takes the very thing that others miss

/// What this machine has run out of, and the work that waits for it.
pub(crate) struct Shortages {
    /// The state folder, on the disk whose room matters.
    folder: PathBuf,
    mail: Sender<EngineMessage>,
    state: Mutex<ShortageState>,
}

#[derive(Default)]
struct ShortageState {
    current: Option<Shortage>,
    /// When it was last tried whether the resource is back.
    probed: Option<Instant>,
    postponed: Vec<PostponedThread>,
    /// The run is over: nothing is postponed any more.
    is_closed: bool,
}

impl ShortageState {
    /// Keeps work for later; returns it if the run is over.
    fn postpone_work(&mut self, work: PostponedThread) -> Option<PostponedThread> {
        if self.is_closed {
            return Some(work);
        }
        self.postponed.push(work);
        None
    }
}

impl Shortages {
    /// Nothing is missing yet.
    pub fn new(folder: &Path, mail: Sender<EngineMessage>) -> Self {
        Self { folder: folder.to_owned(), mail, state: Mutex::default() }
    }

    fn lock_state(&self) -> MutexGuard<'_, ShortageState> {
        self.state.lock().expect("no thread panics while it holds it")
    }

    /// Notes the resource that a failure is about. None: it is about something else.
    pub fn note_failure(&self, detail: &str) -> Option<MachineResource> {
        let resource = match resource_in_text(detail)? {
            MachineResource::Disk if self.has_no_inodes() => MachineResource::Inodes,
            named => named,
        };
        self.note_missing(resource, detail);
        Some(resource)
    }

    /// Notes that the kernel ended processes for lack of memory: nothing is started until there is some.
    pub fn note_oom_kills(&self, oom_kills: u64) {
        if oom_kills > 0 {
            let detail = format!("the kernel ended {oom_kills} processes to free memory (OOM killer)");
            self.note_missing(MachineResource::Memory, &detail);
        }
    }

    fn note_missing(&self, resource: MachineResource, detail: &str) {
        let mut state = self.lock_state();
        // The first failure stays: those that follow come from the same shortage.
        if state.current.is_none() {
            state.current = Some(Shortage { resource, detail: detail.to_owned() });
            // The engine may be waiting for news: it must start nothing more, and say why.
            let _ = self.mail.send(EngineMessage::Queue(Box::new(QueueNews::Look))); // it has left
        }
    }

    /// Tries what is missing and notes the resource that the model blames. Only for the end of an effect: a try takes the very
    /// thing that others miss.
    pub fn note_and_try(&self, detail: &str) -> Option<ResourceFailure> {
        let failure = blamed_for_failure(detail, &self.find_all())?;
        self.note_missing(failure.resource, detail);
        Some(failure)
    }

    /// What files cannot be read without, or git not be started, if it is missing now.
    pub fn missing_to_read(&self) -> Option<MachineResource> {
        const NEEDED: [MachineResource; 2] = [MachineResource::Descriptors, MachineResource::Processes];
        let known =
            self.current_shortage().map(|shortage| shortage.resource).filter(|known| NEEDED.contains(known));
        if known.is_some() {
            return known;
        }
        let missing = NEEDED.into_iter().find(|resource| !is_back(*resource, &self.folder))?;
        self.note_missing(missing, &error_of(missing).to_string());
        Some(missing)
    }

    /// What a run cannot begin without, if it is missing now.
    pub fn missing_to_start(&self) -> Option<MachineResource> {
        // A limit on the memory of this process ends it in the middle of things: Rust has no answer to a failed allocation.
        // Its threads reserve more than they use. This reserves as much, and touches none of it.
        const RESERVED: usize = 256 << 20;
        let mut reserved = Vec::<u8>::new();
        let has_memory = reserved.try_reserve_exact(RESERVED).is_ok();
        std::hint::black_box(&reserved); // an optimised build leaves out an allocation that nothing uses
        match has_memory {
            true => self.missing_to_read(),
            false => Some(MachineResource::Memory),
        }
    }

    /// What is missing now. What was missing and can be had again is not named any more.
    pub fn current_shortage(&self) -> Option<Shortage> {
        let shortage = {
            let mut state = self.lock_state();
            let shortage = state.current.clone()?;
            if state.probed.is_some_and(|at| at.elapsed() < PROBE_AGAIN) {
                return Some(shortage);
            }
            // Before the try: another thread that looks meanwhile does not try, too.
            state.probed = Some(Instant::now());
            shortage
        };
        // Without the lock, which a failing effect waits for: a try starts threads and writes files.
        if !is_back(shortage.resource, &self.folder) {
            return Some(shortage);
        }
        self.lock_state().current = None;
        None
    }

    /// What is missing right now, found out by trying to have it.
    pub fn find_missing_resource(&self) -> Option<MachineResource> {
        MachineResource::ALL.into_iter().find_map(|resource| self.missing_for(resource))
    }

    fn find_all(&self) -> Vec<MachineResource> {
        let mut missing: Vec<_> =
            MachineResource::ALL.into_iter().filter_map(|resource| self.missing_for(resource)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// What the number of the error says is missing, if a resource cannot be had. Another error, as of a folder that is gone, is
    /// no shortage.
    fn missing_for(&self, resource: MachineResource) -> Option<MachineResource> {
        let error = try_to_have(resource, &self.folder).err()?;
        match resource_for_errno(error.raw_os_error()?)? {
            MachineResource::Disk if self.has_no_inodes() => Some(MachineResource::Inodes),
            named => Some(named),
        }
    }

    /// Starts a thread. If none can be had, its work is kept until [`Shortages::start_postponed`].
    pub fn start_thread(&self, what: &'static str, work: PostponedWork) {
        // The closure of a thread that did not start is lost: the work is handed over beside it.
        let slot = Arc::new(Mutex::new(Some(work)));
        let handed = slot.clone();
        let take = |slot: &Mutex<Option<PostponedWork>>| slot.lock().expect("held only to take it").take();
        let started = std::thread::Builder::new().name(what.to_owned()).spawn(move || {
            if let Some(work) = take(&handed) {
                work();
            }
        });
        if let Err(error) = started
            && let Some(work) = take(&slot)
        {
            self.note_failure(&format!("start a thread: {error}"));
            let refused = self.lock_state().postpone_work(PostponedThread { what, work });
            drop(refused); // without the lock: it may hold the context that holds this
        }
    }

    /// Starts the work that was postponed.
    pub fn start_postponed(&self) {
        let postponed: Vec<PostponedThread> = std::mem::take(&mut self.lock_state().postponed);
        for PostponedThread { what, work } in postponed {
            self.start_thread(what, work);
        }
    }

    /// Drops the work that was postponed, and what follows: it holds the context that holds this, and neither would be freed.
    pub fn drop_postponed(&self) {
        let mut state = self.lock_state();
        state.is_closed = true;
        let postponed = std::mem::take(&mut state.postponed);
        drop(state);
        drop(postponed); // without the lock
    }

    fn has_no_inodes(&self) -> bool {
        const NONE: u64 = 16; // a few may be freed between the failure and the look
        self.free_inodes().is_some_and(|free| free < NONE)
    }

    /// Files that can still be made, on the fuller of the two disks that agents can fill. None where inodes are not counted.
    pub fn free_inodes(&self) -> Option<u64> {
        let places = [self.folder.clone(), std::env::temp_dir()];
        places.iter().filter_map(|place| landfall_host::disk::free_inodes(place).ok().flatten()).min()
    }
}

/// Why no run begins while files cannot be read.
pub(crate) fn too_few_to_start(resource: MachineResource) -> String {
    let limit = match resource {
        MachineResource::Descriptors => "`ulimit -n`",
        MachineResource::Processes => "`ulimit -u`, `ulimit -v` and the limits of the control group",
        MachineResource::Memory => "`ulimit -v` and `free`",
        MachineResource::Disk | MachineResource::Inodes => "`landfall doctor`",
    };
    format!("this machine is out of {resource}; agents that run continue, but no run can begin: see {limit}")
}

/// The system error that names a resource.
pub(crate) fn error_of(resource: MachineResource) -> std::io::Error {
    let errno = match resource {
        MachineResource::Processes => Errno::AGAIN,
        MachineResource::Descriptors => Errno::MFILE,
        MachineResource::Memory => Errno::NOMEM,
        MachineResource::Disk | MachineResource::Inodes => Errno::NOSPC,
    };
    errno.into()
}

/// Whether so much of a resource can be had that the start of an agent or a check may succeed.
fn is_back(resource: MachineResource, folder: &Path) -> bool {
    try_to_have(resource, folder).is_ok()
}

/// Takes as much of a resource as the start of an agent or a check needs, and gives it back.
fn try_to_have(resource: MachineResource, folder: &Path) -> std::io::Result<()> {
    const THREADS: usize = 8; // a sitter, its agent, and what git starts
    const FILES: usize = 24;
    const BYTES: usize = 8 << 20;
    const MEMORY: u64 = 32 << 20;
    match resource {
        MachineResource::Processes => {
            let (hold, held) = std::sync::mpsc::channel::<()>();
            let held = Arc::new(Mutex::new(held));
            let start = |_| {
                let held = held.clone();
                std::thread::Builder::new().spawn(move || {
                    let _ = held.lock().map(|held| held.recv()); // until all have started
                })
            };
            let started: Vec<_> = (0..THREADS).map(start).collect();
            drop(hold);
            let mut all = Ok(());
            for thread in started {
                match thread {
                    Ok(thread) => {
                        let _ = thread.join(); // they only wait
                    }
                    Err(error) => all = Err(error),
                }
            }
            all
        }
        MachineResource::Descriptors => {
            let open = |_| std::fs::File::open("/dev/null");
            (0..FILES).map(open).collect::<std::io::Result<Vec<_>>>().map(|_| ())
        }
        // The kernel promises more memory than there is, so an allocation alone shows nothing.
        MachineResource::Memory => {
            let is_there = memory::available_bytes().is_none_or(|bytes| bytes >= MEMORY);
            let mut reserved = Vec::<u8>::new();
            let has_room = reserved.try_reserve_exact(BYTES).is_ok();
            std::hint::black_box(&reserved); // as in [`Shortages::missing_to_start`]
            if is_there && has_room { Ok(()) } else { Err(error_of(MachineResource::Memory)) }
        }
        MachineResource::Disk | MachineResource::Inodes => try_to_write(folder, FILES, BYTES / FILES),
    }
}

/// Writes so many files of so many bytes; they are removed again.
fn try_to_write(folder: &Path, files: usize, bytes: usize) -> std::io::Result<()> {
    use std::io::Write as _;
    let name = |place: usize| folder.join(format!(".probe-{}-{place}", std::process::id()));
    let chunk = vec![0; bytes];
    let write = |place: usize| -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(name(place))?;
        file.write_all(&chunk)
    };
    let all = (0..files).try_for_each(write);
    for place in 0..files {
        let _ = std::fs::remove_file(name(place)); // it may not have come to be
    }
    all
}

/// A file that takes room of the state folder, so that there is some to write down the end of a run on a full disk.
pub(crate) struct DiskReserve {
    path: std::path::PathBuf,
}

impl DiskReserve {
    const BYTES: u64 = 4 << 20; // the last facts of a few hundred tasks

    /// The reserve of a state folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { path: folder.join("reserve") }
    }

    /// Makes it, if it is not there and the disk has plenty of room.
    pub fn create_if_missing(&self) {
        let is_there = std::fs::metadata(&self.path).is_ok_and(|meta| meta.len() == Self::BYTES);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let plenty = || landfall_host::disk::free_bytes(folder).is_ok_and(|free| free > 4 * Self::BYTES);
        if !is_there && plenty() && landfall_host::disk::allocate_file(&self.path, Self::BYTES).is_err() {
            self.release(); // a part of it helps nobody
        }
    }

    /// Gives its room back.
    pub fn release(&self) {
        let _ = std::fs::remove_file(&self.path); // it was not there
    }
}

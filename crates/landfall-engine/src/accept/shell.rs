//! Commands of an issue, and programs that look at pages: run by a sitter, in the sandbox, on a checkout that is thrown away, with
//! nothing secret in their environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use landfall_host::git::{Oid, Repo};

use super::{CheckEvidence, fail_with_evidence, pass_with_evidence, uncertain_because};
use crate::confine::{self, ConfinementScope};
use crate::consult::{self, ScratchFolder};
use crate::environment::{extend_environment, safe_environment};
use crate::errand::{self, UserCommand, UserCommandResult};
use crate::folder::StateFolder;
use crate::settings::RunSettings;

/// What it takes to run something.
pub struct ShellContext<'a> {
    /// How things are confined.
    pub settings: &'a RunSettings,
    /// The state of the project, which nothing that runs may see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: &'a Path,
    /// Every environment variable. Only those that hold nothing secret are handed on.
    pub environment: &'a [(OsString, OsString)],
    /// The root of the project, for the client of a forge: it reads there which repository is meant.
    pub root: &'a Path,
    /// Where it runs.
    pub checkout: CommandCheckout<'a>,
}

/// Where commands run.
pub enum CommandCheckout<'a> {
    /// In this folder, which they may write to.
    At(PathBuf),
    /// In a checkout of this commit, made when it is needed and thrown away.
    Of(&'a Repo, &'a Oid),
}

/// A shell, and what was made for it on the way.
pub(super) struct ShellWorkspace<'a> {
    shell: &'a ShellContext<'a>,
    made: OnceLock<Result<ScratchCheckout, String>>,
    number: AtomicU64,
}

struct ScratchCheckout {
    scratch: ScratchFolder,
    work: PathBuf,
    read: Vec<PathBuf>,
}

/// What a program said.
pub(super) struct ProgramOutput {
    pub ran: UserCommandResult,
    pub out: Vec<u8>,
}

const GRACE_MS: u64 = 2_000; // nobody waits for what an issue started
const OUT_BYTES_MAX: u64 = 8 << 20; // a page as a browser sees it

impl<'a> ShellWorkspace<'a> {
    pub fn new(shell: &'a ShellContext<'a>) -> Self {
        Self { shell, made: OnceLock::new(), number: AtomicU64::new(1) }
    }

    /// Where to look for a program of the person's.
    pub fn on_path(&self, names: &[&str]) -> Option<PathBuf> {
        let path = self.shell.environment.iter().find(|(key, _)| key == "PATH").map(|(_, path)| path)?;
        names.iter().find_map(|name| {
            let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
            folders.map(|folder| folder.join(name)).find(|program| {
                program.is_file() && rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
            })
        })
    }

    /// A folder that what runs may write to.
    pub fn tmp_folder(&self) -> Result<PathBuf, String> {
        Ok(self.ensure_checkout()?.scratch.tmp_path())
    }

    fn ensure_checkout(&self) -> Result<&ScratchCheckout, String> {
        let make = || {
            let scratch =
                ScratchFolder::create().map_err(|error| format!("make a scratch folder: {error}"))?;
            let (work, read) = match &self.shell.checkout {
                CommandCheckout::At(folder) => (folder.clone(), Vec::new()),
                CommandCheckout::Of(repo, commit) => {
                    scratch.prepare_work_folder(consult::ConsultWorkspace::Checkout(repo, commit))?
                }
            };
            Ok(ScratchCheckout { scratch, work, read })
        };
        self.made.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// Runs a command line of an issue. An error is that it could not be run at all.
    pub fn run_bash(&self, line: &str, limit_ms: u64) -> Result<UserCommandResult, String> {
        self.run(errand::bash_arguments(line), limit_ms).map(|said| said.ran)
    }

    /// Runs a program.
    pub fn run(&self, argv: Vec<OsString>, limit_ms: u64) -> Result<ProgramOutput, String> {
        let made = self.ensure_checkout()?;
        let tmp = made.scratch.tmp_path();
        let env = safe_environment(self.shell.environment, &[]);
        // One for each: several run at once.
        let room = CacheChanges(made.scratch.run_path().join(format!("caches{}", self.next_number())));
        let settings = self.shell.settings;
        let caches =
            confine::prepare_run_caches(settings, self.shell.folder, &env, settings.sandbox, &room.0)
                .map_err(|error| format!("make the caches ready: {error}"))?;
        let reach = ConfinementScope {
            confinement: settings.sandbox,
            checkout: vec![self.shell.root.to_owned()],
            work: made.work.clone(),
            tmp: tmp.clone(),
            own: Vec::new(),
            read: made.read.clone(),
            caches,
        };
        let sandbox =
            confine::build_sandbox_from_settings(settings, self.shell.folder, self.shell.environment, &reach);
        let env = extend_environment(&env, reach.caches.env);
        self.run_command(UserCommand {
            argv,
            cwd: made.work.clone(),
            env: extend_environment(&env, vec![("TMPDIR".into(), tmp.into_os_string())]),
            stdin: Vec::new(),
            sandbox,
            limit_ms,
            grace_ms: GRACE_MS,
        })
    }

    /// Runs a program of the person's as the person would. Only for the client of a forge, which needs their login; its words are
    /// understood before.
    pub fn run_outside(&self, argv: Vec<OsString>, limit_ms: u64) -> Result<ProgramOutput, String> {
        self.run_command(UserCommand {
            argv,
            cwd: self.shell.root.to_owned(),
            env: self.shell.environment.to_vec(),
            stdin: Vec::new(),
            sandbox: None,
            limit_ms,
            grace_ms: GRACE_MS,
        })
    }

    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    fn run_command(&self, errand: UserCommand) -> Result<ProgramOutput, String> {
        let made = self.ensure_checkout()?;
        let dir = made.scratch.run_path().join(format!("c{}", self.next_number()));
        let ran = errand::run_with_output_cap(self.shell.program, &dir, &errand, OUT_BYTES_MAX)?;
        let out = std::fs::read(dir.join("out.log")).unwrap_or_default(); // none is as good as empty
        let _ = std::fs::remove_dir_all(&dir); // the scratch folder goes in the end
        Ok(ProgramOutput { ran, out })
    }
}

/// The changes that one command made to caches, given up at its end.
struct CacheChanges(PathBuf);

impl Drop for CacheChanges {
    fn drop(&mut self) {
        let _ = landfall_host::disk::remove_tree(&self.0); // the scratch folder goes in the end
    }
}

/// Whether a condition holds. Whatever goes wrong: it does not.
pub(super) fn condition_holds(shop: &ShellWorkspace<'_>, when: &str) -> bool {
    const WHEN_MS: u64 = 10_000;
    shop.run_bash(when, WHEN_MS).is_ok_and(|ran| ran.is_well())
}

/// Whether a command ends with 0.
pub(super) fn check_command(shop: &ShellWorkspace<'_>, line: &str, limit_ms: u64) -> CheckEvidence {
    match shop.run_bash(line, limit_ms) {
        Err(why) => uncertain_because(format!("it could not be run: {why}")),
        Ok(ran) if ran.is_well() => {
            pass_with_evidence(format!("it ended with 0 after {:.1} s", ran.took_ms as f64 / 1_000.0))
        }
        // The shell itself is missing, or the sandbox would not be put up: that says nothing about the work.
        Ok(ran) if ran.exit.is_none() && !ran.timed_out => {
            uncertain_because(format!("it {}", ran.describe_failure()))
        }
        Ok(ran) => fail_with_evidence(format!("it {}", ran.describe_failure())),
    }
}

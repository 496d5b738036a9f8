//! What a machine can run out of, and what it takes to go on.

use std::fmt;

use crate::queue::QueueNews;
use crate::{AgentExit, EndedRun, News};

/// A resource of the machine that processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MachineResource {
    /// Processes and threads of this user, or of the control group.
    Processes,
    /// Open files of the process, or of the system.
    Descriptors,
    /// Memory.
    Memory,
    /// Room on the disk.
    Disk,
    /// Inodes: files that the disk can still name, however much room it has.
    Inodes,
}

impl MachineResource {
    /// Every resource.
    pub const ALL: [Self; 5] = [Self::Processes, Self::Descriptors, Self::Memory, Self::Disk, Self::Inodes];

    /// What there is none of, in words.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Descriptors => "open files",
            Self::Memory => "memory",
            Self::Disk => "disk space",
            Self::Inodes => "inodes",
        }
    }
}

impl fmt::Display for MachineResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The numbers of system errors that are about a resource.
const NUMBERS: [(i32, MachineResource); 6] = [
    (11, MachineResource::Processes), // EAGAIN: of fork and clone alone does it reach us
    (12, MachineResource::Memory),    // ENOMEM
    (23, MachineResource::Descriptors), // ENFILE
    (24, MachineResource::Descriptors), // EMFILE
    (28, MachineResource::Disk),      // ENOSPC
    (122, MachineResource::Disk),     // EDQUOT
];

/// Which resource a system error is about.
#[must_use]
pub fn resource_for_errno(errno: i32) -> Option<MachineResource> {
    NUMBERS.iter().find(|(number, _)| *number == errno).map(|(_, resource)| *resource)
}

/// Which resource the text of a failed system call or of git is about. Of a full disk it cannot tell whether room or
/// inodes are missing.
///
/// The errors of this program end with the number of the system error; those of git with its English text.
#[must_use]
pub fn resource_in_text(text: &str) -> Option<MachineResource> {
    const TEXTS: [(&str, MachineResource); 8] = [
        ("Resource temporarily unavailable", MachineResource::Processes),
        ("unable to create thread", MachineResource::Processes),
        ("Cannot allocate memory", MachineResource::Memory),
        ("Out of memory", MachineResource::Memory),
        ("Too many open files", MachineResource::Descriptors),
        ("No space left on device", MachineResource::Disk),
        ("Disk quota exceeded", MachineResource::Disk),
        ("no room to write to the journal", MachineResource::Disk),
    ];
    let by_words = || TEXTS.iter().find(|(words, _)| text.contains(words)).map(|(_, resource)| *resource);
    named_by_number(text).or_else(by_words)
}

/// Which resource the number of a system error in a text is about.
fn named_by_number(text: &str) -> Option<MachineResource> {
    let number = NUMBERS.iter().find(|(number, _)| text.contains(&format!("(os error {number})")));
    number.map(|(_, resource)| *resource)
}

/// Decides which resource a failure is about. `missing` is what could not be had when it was tried right after the failure.
///
/// A number of a system error names a resource for certain. The words of git depend on its version and on what translates
/// them: they only choose among what is missing, or name a resource that is back already.
#[must_use]
pub fn blamed_for_failure(detail: &str, missing: &[MachineResource]) -> Option<ResourceFailure> {
    let has_none = |resource: MachineResource| missing.contains(&resource);
    let named = match resource_in_text(detail) {
        Some(MachineResource::Disk) if has_none(MachineResource::Inodes) => Some(MachineResource::Inodes),
        named => named,
    };
    let is_certain = named_by_number(detail).is_some();
    match (named, missing.first()) {
        (Some(named), _) if is_certain || has_none(named) => {
            Some(ResourceFailure { resource: named, is_missing: has_none(named) })
        }
        (_, Some(found)) => Some(ResourceFailure { resource: *found, is_missing: true }),
        (Some(named), None) => Some(ResourceFailure { resource: named, is_missing: false }),
        (None, None) => None,
    }
}

/// What the failure of an effect says about a resource, and what was found out about it afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceFailure {
    /// What the failure is about.
    pub resource: MachineResource,
    /// Whether there was still none of it right after the failure.
    pub is_missing: bool,
}

/// The text of a failure in which a missing resource would be named; none if the news is no such failure.
#[must_use]
pub fn failure_text(news: &News) -> Option<&str> {
    match news {
        News::MachineFailed { detail, hopeless: false, .. } => Some(detail),
        News::AgentEnded(run) => match &run.exit {
            AgentExit::NotStarted { detail, hopeless: false } => Some(detail),
            _ => None,
        },
        _ => None,
    }
}

/// What such news is once it is known to be about a resource. An agent that could not be started for lack of one has not
/// run: this is no end of a run.
#[must_use]
pub fn to_resource_news(news: News, failure: ResourceFailure) -> News {
    let ResourceFailure { resource, is_missing } = failure;
    match news {
        News::MachineFailed { attempt, detail, hopeless: false } => {
            News::Exhausted { attempt, resource, is_missing, detail }
        }
        News::AgentEnded(run) => match run.exit {
            AgentExit::NotStarted { detail, hopeless: false } => {
                News::Exhausted { attempt: run.attempt, resource, is_missing, detail }
            }
            exit => News::AgentEnded(EndedRun { exit, ..run }),
        },
        news => news,
    }
}

/// The same of the landing queue: what its members came to is not decided while the resource is missing.
#[must_use]
pub fn to_queue_resource_news(news: QueueNews, failure: ResourceFailure) -> QueueNews {
    match news {
        QueueNews::Failed { batch, detail } if failure.is_missing => QueueNews::Exhausted { batch, detail },
        news => news,
    }
}

/// The resource that a red check must be blamed on, and not the work. `missing` was missing when the check had failed,
/// `missing_afterwards` once its files were removed: if that ended the shortage, the check had caused it, and it is red, because
/// nothing else would ever end such a shortage.
#[must_use]
pub fn resource_behind_red_check(
    missing: Option<MachineResource>,
    missing_afterwards: Option<MachineResource>,
) -> Option<MachineResource> {
    missing.filter(|_| missing_afterwards.is_some())
}

/// What the kernel had ended for lack of memory when a run began, in one start of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomKillCount {
    /// The start of the machine.
    pub boot: String,
    /// Processes since then.
    pub kills: u64,
}

/// The resource that the end of the last engine is blamed on. `last` is its mark, which an orderly end removes.
#[must_use]
pub fn resource_behind_lost_engine(
    last: Option<&OomKillCount>,
    now: &OomKillCount,
) -> Option<MachineResource> {
    last.filter(|last| last.boot == now.boot && now.kills > last.kills).map(|_| MachineResource::Memory)
}

/// How often a check is run again that failed while the kernel ended processes for lack of memory.
const OOM_RETRIES_MAX: u32 = 2;

/// The resource that a red check must be blamed on, and not the work: `oom_kills` processes were ended for lack of memory while
/// it ran, and that is so for the same check of the same files `earlier` times already. Files whose check needs more memory
/// than there is would wait for ever, so after a few times the check is believed.
#[must_use]
pub fn resource_behind_oom_kills(oom_kills: u64, earlier: u32) -> Option<MachineResource> {
    (oom_kills > 0 && earlier < OOM_RETRIES_MAX).then_some(MachineResource::Memory)
}

#[cfg(test)]
mod tests {
    use super::{
        MachineResource, OomKillCount, ResourceFailure, blamed_for_failure, failure_text,
        resource_behind_lost_engine, resource_behind_oom_kills, resource_behind_red_check, resource_in_text,
        to_queue_resource_news, to_resource_news,
    };
    use crate::queue::QueueNews;
    use crate::{Attempt, BatchId, News};

    #[test]
    fn only_a_failure_that_may_pass_is_about_a_resource() {
        let failed =
            |hopeless| News::MachineFailed { attempt: Attempt(2), detail: "write".to_owned(), hopeless };
        assert_eq!(failure_text(&failed(false)), Some("write"));
        assert_eq!(failure_text(&failed(true)), None);
        let failure = ResourceFailure { resource: MachineResource::Disk, is_missing: true };
        let expected = News::Exhausted {
            attempt: Attempt(2),
            resource: MachineResource::Disk,
            is_missing: true,
            detail: "write".to_owned(),
        };
        assert_eq!(to_resource_news(failed(false), failure), expected);
        assert_eq!(to_resource_news(failed(true), failure), failed(true));
    }

    #[test]
    fn a_batch_waits_only_while_the_resource_is_missing() {
        let failed = || QueueNews::Failed { batch: BatchId(1), detail: "merge".to_owned() };
        let failure = |is_missing| ResourceFailure { resource: MachineResource::Processes, is_missing };
        let waits = QueueNews::Exhausted { batch: BatchId(1), detail: "merge".to_owned() };
        assert_eq!(to_queue_resource_news(failed(), failure(true)), waits);
        assert_eq!(to_queue_resource_news(failed(), failure(false)), failed());
    }

    #[test]
    fn a_check_that_ends_the_shortage_by_its_own_end_is_red() {
        let disk = Some(MachineResource::Disk);
        assert_eq!(resource_behind_red_check(None, None), None, "nothing is missing");
        assert_eq!(resource_behind_red_check(disk, disk), disk, "somebody else took it");
        assert_eq!(resource_behind_red_check(disk, None), None, "the check took it");
    }

    #[test]
    fn an_engine_that_did_not_end_in_order_may_have_been_ended_for_memory() {
        let mark = |boot: &str, kills| OomKillCount { boot: boot.to_owned(), kills };
        let blamed = |last: Option<OomKillCount>| {
            resource_behind_lost_engine(last.as_ref(), &mark("this", 5)).is_some()
        };
        assert!(!blamed(None), "it ended in order");
        assert!(!blamed(Some(mark("this", 5))), "nothing was ended for memory since");
        assert!(blamed(Some(mark("this", 4))));
        assert!(!blamed(Some(mark("earlier", 1))), "the machine was started anew: a power cut perhaps");
    }

    #[test]
    fn a_check_that_runs_out_of_memory_is_run_again_and_believed_in_the_end() {
        assert_eq!(resource_behind_oom_kills(0, 0), None);
        let tries: Vec<bool> =
            (0..4).map(|earlier| resource_behind_oom_kills(1, earlier).is_some()).collect();
        assert_eq!(tries, [true, true, false, false]);
    }

    #[test]
    fn a_shortage_is_found_whatever_git_says() {
        use MachineResource::{Descriptors, Disk, Inodes, Processes};
        let blamed = |detail: &str, missing: &[MachineResource]| {
            blamed_for_failure(detail, missing).map(|failure| (failure.resource, failure.is_missing))
        };
        let foreign =
            "git ended with 128: Schwerwiegender Fehler: Auf dem Gerät ist kein Speicherplatz mehr frei";
        let english = "git ended with 128: fatal: write error: No space left on device";
        for said in [foreign, "git ended with 128: ", "git ended with 134: BUG: unexpected", ""] {
            for resource in MachineResource::ALL {
                assert_eq!(blamed(said, &[resource]), Some((resource, true)), "{said}");
            }
            assert_eq!(blamed(said, &[]), None, "{said}");
        }
        assert_eq!(blamed(english, &[Processes, Disk]), Some((Disk, true)), "the words choose");
        assert_eq!(blamed(english, &[Inodes]), Some((Inodes, true)));
        assert_eq!(
            blamed(english, &[Descriptors]),
            Some((Descriptors, true)),
            "the words may be of another machine"
        );
        assert_eq!(blamed(english, &[]), Some((Disk, false)), "there is room again");
        let number = "start the sitter: Resource temporarily unavailable (os error 11)";
        assert_eq!(blamed(number, &[]), Some((Processes, false)));
        assert_eq!(blamed(number, &[Disk]), Some((Processes, false)), "the number is certain");
        assert_eq!(blamed("write: (os error 28)", &[Inodes]), Some((Inodes, true)));
    }

    #[test]
    fn a_failure_names_the_resource_that_is_missing() {
        for (text, expected) in [
            (
                "start the sitter: Resource temporarily unavailable (os error 11)",
                Some(MachineResource::Processes),
            ),
            (
                "fatal: unable to create thread: Resource temporarily unavailable",
                Some(MachineResource::Processes),
            ),
            ("make a folder: Too many open files (os error 24)", Some(MachineResource::Descriptors)),
            (
                "make a folder: Too many open files in system (os error 23)",
                Some(MachineResource::Descriptors),
            ),
            ("git could not be started: Cannot allocate memory (os error 12)", Some(MachineResource::Memory)),
            ("git ended with 128: fatal: Out of memory, malloc failed", Some(MachineResource::Memory)),
            ("write the prompt: No space left on device (os error 28)", Some(MachineResource::Disk)),
            (
                "git ended with 128: error: unable to write file a: Disk quota exceeded",
                Some(MachineResource::Disk),
            ),
            ("open it: No such file or directory (os error 2)", None),
            ("lock it: Address already in use (os error 112)", None),
            ("the workspace is gone", None),
        ] {
            assert_eq!(resource_in_text(text), expected, "{text}");
        }
    }
}

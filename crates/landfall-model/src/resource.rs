//! What a machine can run out of, and what it takes to go on.

use std::fmt;

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
    pub fn word(self) -> &'static str {
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
        f.write_str(self.word())
    }
}

/// Which resource the text of a failed system call or of git is about. Of a full disk it cannot tell whether room or
/// inodes are missing.
///
/// The errors of this program end with the number of the system error; those of git with its English text.
#[must_use]
pub fn named_in(text: &str) -> Option<MachineResource> {
    const NUMBERS: [(i32, MachineResource); 6] = [
        (11, MachineResource::Processes), // EAGAIN: of fork and clone alone does it reach us
        (12, MachineResource::Memory),    // ENOMEM
        (23, MachineResource::Descriptors), // ENFILE
        (24, MachineResource::Descriptors), // EMFILE
        (28, MachineResource::Disk),      // ENOSPC
        (122, MachineResource::Disk),     // EDQUOT
    ];
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
    let number = NUMBERS.iter().find(|(number, _)| text.contains(&format!("(os error {number})")));
    let by_number = number.map(|(_, resource)| *resource);
    by_number.or_else(|| TEXTS.iter().find(|(words, _)| text.contains(words)).map(|(_, resource)| *resource))
}

#[cfg(test)]
mod tests {
    use super::{MachineResource, named_in};

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
            assert_eq!(named_in(text), expected, "{text}");
        }
    }
}

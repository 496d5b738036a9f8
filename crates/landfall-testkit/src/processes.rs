//! Who is still alive: processes that belong to a scratch project.

use std::path::{Path, PathBuf};

/// A process that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// What it was started as.
    pub command: String,
}

/// Processes that work in `root`, were started from it or carry it in their environment or arguments, without this
/// one and its parents.
#[must_use]
pub fn left_behind(root: &Path) -> Vec<Process> {
    let needle = root.as_os_str().as_encoded_bytes();
    let own = lineage();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if own.contains(&pid) {
            continue;
        }
        let path = entry.path();
        let within =
            |link: &str| std::fs::read_link(path.join(link)).is_ok_and(|to: PathBuf| to.starts_with(root));
        let mentions = |file: &str| {
            std::fs::read(path.join(file))
                .is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle))
        };
        let gone = std::fs::read_to_string(path.join("stat"))
            .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')));
        if !gone && (within("cwd") || mentions("environ") || mentions("cmdline")) {
            let bytes = std::fs::read(path.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned();
            found.push(Process { pid, command });
        }
    }
    found
}

fn lineage() -> Vec<i32> {
    let mut pids = Vec::new();
    let mut pid = i32::try_from(std::process::id()).expect("process ids are small");
    while pid > 0 && pids.len() < 64 {
        pids.push(pid);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        pid = parent.unwrap_or(0);
    }
    pids
}

//! A log of JSON lines that never grows beyond its bound: when it is full it becomes `name.1`, and the one before that
//! is gone.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

const BYTES_MAX: u64 = 1 << 20; // thousands of lines; with the one before it twice as much

/// The log.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    bytes_max: u64,
    /// Held while a line is written: lines never mix.
    writing: Mutex<()>,
}

impl LogFile {
    /// The log at `path`. It is made with its first line.
    #[must_use]
    pub fn at_path(path: PathBuf) -> Self {
        Self { path, bytes_max: BYTES_MAX, writing: Mutex::default() }
    }

    /// Adds a line. A log that cannot be written is not worth stopping for.
    pub fn append_line(&self, line: &serde_json::Value) {
        let _held = self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = self.write(&format!("{line}\n")); // there is nobody better to tell
    }

    fn write(&self, line: &str) -> std::io::Result<()> {
        let size = std::fs::metadata(&self.path).map_or(0, |meta| meta.len());
        if size > 0 && size + line.len() as u64 > self.bytes_max {
            let mut before = self.path.clone().into_os_string();
            before.push(".1");
            std::fs::rename(&self.path, before)?;
        }
        let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        file.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::LogFile;

    #[test]
    fn a_full_log_makes_room_and_keeps_the_one_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hooks.jsonl");
        let log = LogFile { bytes_max: 100, ..LogFile::at_path(path.clone()) };
        for number in 0..50 {
            log.append_line(&serde_json::json!({ "number": number, "said": "something or other" }));
        }
        let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("it is there");
        let (now, before) = (read(&path), read(&folder.path().join("hooks.jsonl.1")));
        assert!(now.len() <= 100 && before.len() <= 100);
        assert!(now.ends_with("{\"number\":49,\"said\":\"something or other\"}\n"), "{now}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 2);
        log.append_line(&serde_json::json!("x".repeat(500)));
        assert_eq!(read(&path).lines().count(), 1, "a line longer than the bound stands alone");
    }
}

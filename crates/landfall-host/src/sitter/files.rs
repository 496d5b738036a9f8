//! The files in a sitter's folder, as written: their names, their versions, and the way to and from our own types.

use super::ended::{ChildExit, Containment, EndCause, SitterEnd, SpoolSummary};
use super::sitting::SitterProcess;
use super::spec::{SignalSpec, SitterSpec};
use crate::sandbox::{CacheLayer, LayerChanges, ProcessLimits, Sandbox, SandboxLevel};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

pub(super) const SPEC: &str = "spec.json";
pub(super) const SPEC_TMP: &str = "spec.tmp";
pub(super) const LOCK: &str = "lock";
pub(super) const SITTER: &str = "sitter.json";
pub(super) const EXIT: &str = "exit.json";
pub(super) const EXIT_TMP: &str = "exit.tmp";
pub(super) const PAUSE: &str = "paused_until";
pub(super) const PAUSE_PART: &str = "paused_until.tmp";
pub(super) const OUT: &str = "out.log";
pub(super) const ERR: &str = "err.log";
pub(super) const SIGNALS: &str = "signals.jsonl";
pub(super) const COMPLAINT: &str = "sitter.err";

const FORMAT: u32 = 1;
/// Of `spec.json`. The second has a sandbox: a sitter that knows only the first must refuse it, not overlook it.
const SPEC_FORMAT: u32 = 2;

/// Text of the system, which need not be UTF-8: a string where it is, else its bytes.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SystemText {
    Plain(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for SystemText {
    fn from(text: &OsStr) -> SystemText {
        match text.to_str() {
            Some(plain) => SystemText::Plain(plain.to_owned()),
            None => SystemText::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<SystemText> for OsString {
    fn from(text: SystemText) -> OsString {
        match text {
            SystemText::Plain(plain) => plain.into(),
            SystemText::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SpecFile {
    v: u32,
    argv: Vec<SystemText>,
    cwd: SystemText,
    env: Vec<(SystemText, SystemText)>,
    stdin: Option<SystemText>,
    deadline_ms: u64,
    grace_ms: u64,
    out_cap: u64,
    marker: String,
    cgroup: Option<SystemText>,
    nofile: Option<u64>,
    #[serde(default)]
    sandbox: Option<SandboxRecord>,
    #[serde(default)]
    signal: Option<SignalSpecRecord>,
}

#[derive(Serialize, Deserialize)]
struct SandboxRecord {
    level: SandboxLevelRecord,
    write: Vec<SystemText>,
    hide: Vec<SystemText>,
    read: Vec<SystemText>,
    #[serde(default)]
    private: Vec<SystemText>,
    /// None in orders from before there was a difference: then all of `write`.
    #[serde(default)]
    exclusive: Option<Vec<SystemText>>,
    #[serde(default)]
    layers: Vec<CacheLayerRecord>,
    processes: u64,
    files: u64,
    file_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CacheLayerRecord {
    Overlay { path: SystemText, upper: SystemText, work: SystemText },
    Copy { path: SystemText, folder: SystemText },
}

impl From<&CacheLayer> for CacheLayerRecord {
    fn from(layer: &CacheLayer) -> CacheLayerRecord {
        let text = |path: &PathBuf| path.as_os_str().into();
        let path = text(&layer.path);
        match &layer.changes {
            LayerChanges::Overlay { upper, work } => {
                CacheLayerRecord::Overlay { path, upper: text(upper), work: text(work) }
            }
            LayerChanges::Copy(folder) => CacheLayerRecord::Copy { path, folder: text(folder) },
        }
    }
}

impl From<CacheLayerRecord> for CacheLayer {
    fn from(words: CacheLayerRecord) -> CacheLayer {
        let path_of = |text: SystemText| PathBuf::from(OsString::from(text));
        match words {
            CacheLayerRecord::Overlay { path, upper, work } => CacheLayer {
                path: path_of(path),
                changes: LayerChanges::Overlay { upper: path_of(upper), work: path_of(work) },
            },
            CacheLayerRecord::Copy { path, folder } => {
                CacheLayer { path: path_of(path), changes: LayerChanges::Copy(path_of(folder)) }
            }
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SandboxLevelRecord {
    Write,
    Isolated,
    Strict,
}

impl From<SandboxLevel> for SandboxLevelRecord {
    fn from(level: SandboxLevel) -> SandboxLevelRecord {
        match level {
            SandboxLevel::Write => SandboxLevelRecord::Write,
            SandboxLevel::Isolated => SandboxLevelRecord::Isolated,
            SandboxLevel::Strict => SandboxLevelRecord::Strict,
        }
    }
}

impl From<SandboxLevelRecord> for SandboxLevel {
    fn from(word: SandboxLevelRecord) -> SandboxLevel {
        match word {
            SandboxLevelRecord::Write => SandboxLevel::Write,
            SandboxLevelRecord::Isolated => SandboxLevel::Isolated,
            SandboxLevelRecord::Strict => SandboxLevel::Strict,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SignalSpecRecord {
    socket: SystemText,
    key: String,
}

fn sandbox_out(sandbox: &Sandbox) -> SandboxRecord {
    let Sandbox { level, write, hide, read, private, exclusive, layers, limits } = sandbox;
    let ProcessLimits { processes, files, file_bytes } = limits;
    let texts = |paths: &[PathBuf]| paths.iter().map(|path| path.as_os_str().into()).collect();
    SandboxRecord {
        level: (*level).into(),
        write: texts(write),
        hide: texts(hide),
        read: texts(read),
        private: texts(private),
        exclusive: Some(texts(exclusive)),
        layers: layers.iter().map(CacheLayerRecord::from).collect(),
        processes: *processes,
        files: *files,
        file_bytes: *file_bytes,
    }
}

fn sandbox_in(words: SandboxRecord) -> Sandbox {
    let SandboxRecord { level, write, hide, read, private, exclusive, layers, processes, files, file_bytes } =
        words;
    let paths = |texts: Vec<SystemText>| -> Vec<PathBuf> {
        texts.into_iter().map(|text| OsString::from(text).into()).collect()
    };
    let write = paths(write);
    Sandbox {
        level: level.into(),
        exclusive: exclusive.map_or_else(|| write.clone(), paths),
        write,
        hide: paths(hide),
        read: paths(read),
        private: paths(private),
        layers: layers.into_iter().map(CacheLayer::from).collect(),
        limits: ProcessLimits { processes, files, file_bytes },
    }
}

/// A spec with what only the engine knows about where it starts.
pub(super) struct LaunchOrder {
    pub(super) spec: SitterSpec,
    /// The engine's own control group, below which one for the child may be made.
    pub(super) cgroup: Option<PathBuf>,
    /// The limit on open files that the child shall have, if the engine raised its own.
    pub(super) nofile: Option<u64>,
}

pub(super) fn write_order(order: &LaunchOrder) -> Vec<u8> {
    let LaunchOrder { spec, cgroup, nofile } = order;
    let file = SpecFile {
        v: SPEC_FORMAT,
        argv: spec.argv.iter().map(|arg| arg.as_os_str().into()).collect(),
        cwd: spec.cwd.as_os_str().into(),
        env: spec.env.iter().map(|(key, value)| (key.as_os_str().into(), value.as_os_str().into())).collect(),
        stdin: spec.stdin.as_ref().map(|path| path.as_os_str().into()),
        deadline_ms: spec.deadline_ms,
        grace_ms: spec.grace_ms,
        out_cap: spec.out_cap,
        marker: spec.marker.clone(),
        cgroup: cgroup.as_ref().map(|path| path.as_os_str().into()),
        nofile: *nofile,
        sandbox: spec.sandbox.as_ref().map(sandbox_out),
        signal: spec.signal.as_ref().map(|signal| SignalSpecRecord {
            socket: signal.socket.as_os_str().into(),
            key: signal.key.clone(),
        }),
    };
    serde_json::to_vec(&file).expect("strings and numbers only")
}

pub(super) fn read_order(text: &[u8]) -> Result<LaunchOrder, String> {
    let file: SpecFile = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if file.v != SPEC_FORMAT {
        return Err(format!("format version {}, this program knows {SPEC_FORMAT}", file.v));
    }
    let spec = SitterSpec {
        argv: file.argv.into_iter().map(OsString::from).collect(),
        cwd: OsString::from(file.cwd).into(),
        env: file.env.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        stdin: file.stdin.map(|path| OsString::from(path).into()),
        deadline_ms: file.deadline_ms,
        grace_ms: file.grace_ms,
        out_cap: file.out_cap,
        marker: file.marker,
        sandbox: file.sandbox.map(sandbox_in),
        signal: file
            .signal
            .map(|signal| SignalSpec { socket: OsString::from(signal.socket).into(), key: signal.key }),
    };
    Ok(LaunchOrder { spec, cgroup: file.cgroup.map(|path| OsString::from(path).into()), nofile: file.nofile })
}

#[derive(Serialize, Deserialize)]
struct SitterFile {
    v: u32,
    pid: i32,
    started: u64,
    boot: String,
    #[serde(default)]
    sandbox: Option<SandboxLevelRecord>,
}

pub(super) fn write_identity(sitting: &SitterProcess) -> Vec<u8> {
    let SitterProcess { pid, started, boot, sandbox } = sitting.clone();
    serde_json::to_vec(&SitterFile { v: FORMAT, pid, started, boot, sandbox: sandbox.map(Into::into) })
        .expect("strings and numbers only")
}

/// The sitter named in `sitter.json`.
pub(super) fn read_identity(text: &[u8]) -> Result<SitterProcess, String> {
    let file: SitterFile = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    known_version(file.v)?;
    let SitterFile { v: _, pid, started, boot, sandbox } = file;
    Ok(SitterProcess { pid, started, boot, sandbox: sandbox.map(Into::into) })
}

#[derive(Serialize, Deserialize)]
struct ExitFile {
    v: u32,
    exit: ChildExitRecord,
    cause: EndCauseRecord,
    began_ms: i64,
    ended_ms: i64,
    out: SpoolSummaryRecord,
    err: SpoolSummaryRecord,
    swept: u32,
    left: u32,
    contained: ContainedWord,
    #[serde(default)]
    sandbox: Option<SandboxLevelRecord>,
    #[serde(default)]
    oom_kills: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChildExitRecord {
    Code(i32),
    Signal(i32),
    NotStarted { message: String, missing: bool, denied: bool, errno: i32 },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndCauseRecord {
    Own,
    Deadline,
    Asked,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ContainedWord {
    Cgroup,
    Subreaper,
}

#[derive(Serialize, Deserialize)]
struct SpoolSummaryRecord {
    bytes: u64,
    kept: u64,
    left_out: u64,
    cut_at: Option<u64>,
}

pub(super) fn write_ended(ended: &SitterEnd) -> Vec<u8> {
    let file = ExitFile {
        v: FORMAT,
        exit: match &ended.exit {
            ChildExit::Code(code) => ChildExitRecord::Code(*code),
            ChildExit::Signal(signal) => ChildExitRecord::Signal(*signal),
            ChildExit::NotStarted { message, missing, denied, errno } => ChildExitRecord::NotStarted {
                message: message.clone(),
                missing: *missing,
                denied: *denied,
                errno: *errno,
            },
        },
        cause: match ended.cause {
            EndCause::Own => EndCauseRecord::Own,
            EndCause::Deadline => EndCauseRecord::Deadline,
            EndCause::Asked => EndCauseRecord::Asked,
        },
        began_ms: ended.began_ms,
        ended_ms: ended.ended_ms,
        out: spool_out(&ended.out),
        err: spool_out(&ended.err),
        swept: ended.swept,
        left: ended.left,
        contained: match ended.contained {
            Containment::Cgroup => ContainedWord::Cgroup,
            Containment::Subreaper => ContainedWord::Subreaper,
        },
        sandbox: ended.sandbox.map(Into::into),
        oom_kills: ended.oom_kills,
    };
    serde_json::to_vec(&file).expect("strings and numbers only")
}

pub(super) fn read_ended(text: &[u8]) -> Result<SitterEnd, String> {
    let file: ExitFile = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    known_version(file.v)?;
    Ok(SitterEnd {
        exit: match file.exit {
            ChildExitRecord::Code(code) => ChildExit::Code(code),
            ChildExitRecord::Signal(signal) => ChildExit::Signal(signal),
            ChildExitRecord::NotStarted { message, missing, denied, errno } => {
                ChildExit::NotStarted { message, missing, denied, errno }
            }
        },
        cause: match file.cause {
            EndCauseRecord::Own => EndCause::Own,
            EndCauseRecord::Deadline => EndCause::Deadline,
            EndCauseRecord::Asked => EndCause::Asked,
        },
        began_ms: file.began_ms,
        ended_ms: file.ended_ms,
        out: spool_in(&file.out),
        err: spool_in(&file.err),
        swept: file.swept,
        left: file.left,
        contained: match file.contained {
            ContainedWord::Cgroup => Containment::Cgroup,
            ContainedWord::Subreaper => Containment::Subreaper,
        },
        sandbox: file.sandbox.map(Into::into),
        oom_kills: file.oom_kills,
    })
}

/// The end on record in `dir`. A damaged record is none: it was renamed into place whole, so only a power cut can have
/// done it, and then we know nothing.
pub(super) fn ended_in(dir: &Path) -> io::Result<Option<SitterEnd>> {
    match fs::read(dir.join(EXIT)) {
        Ok(text) => Ok(read_ended(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn spool_out(spool: &SpoolSummary) -> SpoolSummaryRecord {
    let SpoolSummary { bytes, kept, left_out, cut_at } = *spool;
    SpoolSummaryRecord { bytes, kept, left_out, cut_at }
}

fn spool_in(words: &SpoolSummaryRecord) -> SpoolSummary {
    let SpoolSummaryRecord { bytes, kept, left_out, cut_at } = *words;
    SpoolSummary { bytes, kept, left_out, cut_at }
}

fn known_version(v: u32) -> Result<(), String> {
    if v == FORMAT { Ok(()) } else { Err(format!("format version {v}, this program knows {FORMAT}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_the_file_even_where_it_is_not_utf8() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'/']);
        let order = LaunchOrder {
            spec: SitterSpec {
                argv: vec!["sh".into(), odd.clone()],
                cwd: PathBuf::from(odd.clone()),
                env: vec![("K".into(), odd)],
                stdin: Some("p".into()),
                deadline_ms: u64::MAX,
                grace_ms: 1,
                out_cap: 2,
                marker: "m".into(),
                sandbox: Some(Sandbox {
                    level: SandboxLevel::Strict,
                    write: vec!["/w".into()],
                    hide: vec!["/h".into()],
                    read: vec!["/r".into()],
                    private: vec!["/p".into()],
                    exclusive: vec!["/w".into()],
                    layers: vec![
                        CacheLayer {
                            path: "/c".into(),
                            changes: LayerChanges::Overlay { upper: "/u".into(), work: "/o".into() },
                        },
                        CacheLayer { path: "/d".into(), changes: LayerChanges::Copy("/y".into()) },
                    ],
                    limits: ProcessLimits { processes: 1, files: 2, file_bytes: 3 },
                }),
                signal: Some(SignalSpec { socket: "/s".into(), key: "k".into() }),
            },
            cgroup: None,
            nofile: Some(1024),
        };
        let back = read_order(&write_order(&order)).expect("reads what it wrote");
        assert_eq!(back.spec, order.spec);
        assert_eq!(back.nofile, order.nofile);
    }

    /// A sample of the format as first shipped: it must be readable for ever.
    #[test]
    fn the_first_exit_format_is_still_read() {
        let sample = br#"{"v":1,"exit":{"not_started":{"message":"run `x`: gone","missing":true,"denied":false,"errno":2}},
            "cause":"own","began_ms":1,"ended_ms":2,"out":{"bytes":9,"kept":5,"left_out":4,"cut_at":3},
            "err":{"bytes":0,"kept":0,"left_out":0,"cut_at":null},"swept":7,"left":0,"contained":"subreaper"}"#;
        let ended = read_ended(sample).expect("a shipped format");
        assert_eq!(
            ended.exit,
            ChildExit::NotStarted { message: "run `x`: gone".into(), missing: true, denied: false, errno: 2 }
        );
        assert_eq!(ended.out, SpoolSummary { bytes: 9, kept: 5, left_out: 4, cut_at: Some(3) });
        assert_eq!(read_ended(&write_ended(&ended)).expect("reads what it wrote"), ended);
        assert!(read_ended(br#"{"v":2}"#).is_err());
    }
}

//! One tiny prompt through a profile, for real: whether its agent answers. It is asked as in `consult`, in a scratch folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_model::{AgentUsage, Verdict};

use crate::consult::{self, ConsultRequest, ConsultWorkspace};
use crate::folder::StateFolder;
use crate::settings::{ProfileSettings, Settings};

/// What to probe, and where.
pub struct ProbeRequest<'a> {
    /// The settings of the project.
    pub settings: &'a Settings,
    /// The profile.
    pub profile: &'a ProfileSettings,
    /// The root of the project.
    pub root: &'a Path,
    /// The state of the project, which the agent must not see.
    pub folder: &'a StateFolder,
    /// Our own executable.
    pub program: PathBuf,
    /// Every environment variable.
    pub environment: &'a [(OsString, OsString)],
    /// How long it may take.
    pub limit: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeResult {
    /// What we make of it: [`Verdict::Continue`] is an answer.
    pub verdict: Verdict,
    /// The last it said.
    pub words: String,
    /// The last line of its errors.
    pub complaint: String,
    /// The model it used.
    pub model: Option<String>,
    /// What it used.
    pub usage: AgentUsage,
    /// How long it took.
    pub took_ms: u64,
}

/// What it is asked.
const PROMPT: &str = "Answer with the word landfall and nothing else. Use no tools, change no files.\n";

const OUT_CAP: u64 = 4 << 20; // a word and what a protocol says around it
const WORDS_MAX: usize = 300; // a line or two for a person

/// Runs the tiny prompt.
///
/// # Errors
/// Why it could not even be tried.
pub fn probe_agent(asked: &ProbeRequest<'_>) -> Result<ProbeResult, String> {
    let question = ConsultRequest {
        settings: asked.settings,
        profile: asked.profile,
        root: asked.root,
        folder: asked.folder,
        program: &asked.program,
        environment: asked.environment,
        ground: ConsultWorkspace::Empty,
        about: "probe",
        round: 1,
        limit: asked.limit,
        budgets: Vec::new(), // the one prompt is the budget
        out_cap: OUT_CAP,
        is_stopped: &|| false, // it is over soon
    };
    let reply = consult::consult_agent(&question, &|_| Ok(PROMPT.to_owned()))?;
    Ok(ProbeResult {
        verdict: reply.verdict,
        words: reply.words.trim().chars().take(WORDS_MAX).collect(),
        complaint: reply.complaint,
        model: reply.model,
        usage: reply.usage,
        took_ms: reply.took_ms,
    })
}

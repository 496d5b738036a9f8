//! Problems: what each code means and what to do about it. Every problem the engine tells links here.

use askama::Template;
use landfall_api::{Problem, ProblemCode};

use super::{PageContext, RenderedPage};

pub(super) fn draw_problems_page(_: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let entries = ProblemCode::ALL.into_iter().map(|code| {
        let (means, todo) = explain_code(code);
        ProblemEntry { word: code.word(), status: code.http_status(), means, todo }
    });
    RenderedPage::new("Problems", &ProblemsPage { entries: entries.collect() })
}

#[derive(Template)]
#[template(path = "problems.html")]
struct ProblemsPage {
    entries: Vec<ProblemEntry>,
}

struct ProblemEntry {
    word: String,
    status: u16,
    means: &'static str,
    todo: &'static str,
}

/// What a code means, and what to do.
fn explain_code(code: ProblemCode) -> (&'static str, &'static str) {
    match code {
        ProblemCode::NothingMatches => (
            "No task fits what was chosen, so nothing was done.",
            "Look at the tasks there are, and choose others.",
        ),
        ProblemCode::NotARepository => (
            "The folder is in no git repository. Landfall works on a repository: it clones it, and lands on one of its branches.",
            "Go to the repository, or make one with `git init` and a first commit. Then `landfall init`.",
        ),
        ProblemCode::BareRepository => (
            "The repository has no working tree, so there is no place for `landfall.toml` and nothing to look at.",
            "Clone it, and use the clone.",
        ),
        ProblemCode::NoCommits => (
            "The repository has no commit yet. Work starts from a commit and lands on top of it.",
            "Commit something first; an empty README is enough.",
        ),
        ProblemCode::DetachedHead => (
            "HEAD is on no branch, and the settings name none. So nobody knows which branch work should land on.",
            "Check out the branch, or write its name as `base` into the section `[project]` of `landfall.toml`.",
        ),
        ProblemCode::SettingsBroken => (
            "`landfall.toml` cannot be used: a word is unknown, a value is of the wrong kind, or two of them do not fit together. The message names the line.",
            "Mend that line. `landfall doctor` checks the whole file, and the settings page lists every key with its default.",
        ),
        ProblemCode::NotTrusted => (
            "`landfall.toml` has settings that run commands outside of the sandbox, open it, or name credentials or hosts, and nobody has trusted them. They do not count until somebody has.",
            "Type `landfall trust` in the project: it shows them and asks. Any change of these settings asks again.",
        ),
        ProblemCode::UnknownFlow => (
            "No flow has this name, neither among those that come with Landfall nor in `.landfall/flows/` of the project.",
            "`landfall project flow list` names those there are.",
        ),
        ProblemCode::FlowBroken => (
            "A flow file cannot be used: it names a step that is not there, leaves a result without a way on, or can go round without end.",
            "The message names file and line. `landfall project flow check FILE` tells all that is wrong at once.",
        ),
        ProblemCode::Cycle => (
            "The needs of these tasks would close a circle: each would wait for the other, and none could start. Nothing was changed.",
            "Take one need out of the circle that the message shows, or split a task in two.",
        ),
        ProblemCode::UnknownTask => (
            "No task has this id. Ids are never given twice, so it was mistyped, or belongs to another project.",
            "`landfall list` and the backlog page show the tasks there are.",
        ),
        ProblemCode::UnknownRun => ("No run has this id.", "`landfall report` names the runs there were."),
        ProblemCode::UnknownSprint => {
            ("No sprint has this id.", "`landfall sprint list` names the sprints there were.")
        }
        ProblemCode::UnknownCheckpoint => (
            "No checkpoint has this name. It may have been dropped, or its time is over.",
            "The checkpoints page lists those there are.",
        ),
        ProblemCode::BadInput => (
            "The request was understood as a request, but a word in it cannot be used: it is missing, too long, or not one of those allowed. Nothing was changed.",
            "The message names the word and what is known instead. Correct it and send it again.",
        ),
        ProblemCode::NotNow => (
            "This is possible, but not in the state the task or the run is in at the moment: a landed task cannot be stopped, and a task at work cannot be tried again.",
            "Look at the task: its first sentence says where it is. Often the page was a moment old; look again and decide anew.",
        ),
        ProblemCode::EngineBusy => (
            "Another Landfall process holds this project, and only one may drive it. Or the engine is about to start or to end.",
            "The message names the process. Talk to it (every command does so by itself), or wait until it has ended.",
        ),
        ProblemCode::DiskFull => (
            "There is too little room on the disk that holds the state folder. Agents at work are not hurt; nothing new begins.",
            "Make room. The fleet page shows what Landfall can give back, each only where nothing is lost.",
        ),
        ProblemCode::ReadOnly => (
            "The state folder cannot be written: its owner, its mode or the file system does not allow it.",
            "Check who owns the folder that the message names, and whether the disk is mounted read-only.",
        ),
        ProblemCode::Corrupt => (
            "Something in the state folder cannot be right: a checksum does not fit, or the journal contradicts itself. Landfall would rather stop than guess.",
            "Keep a copy of the state folder, then let `landfall doctor` say what is wrong. Your repository and what has landed in it are not touched by this.",
        ),
        ProblemCode::GitFailed => (
            "git was asked to do something and said no. The message holds its words.",
            "Most often a lock was left behind, or a remote was out of reach. Mend that and try again.",
        ),
        ProblemCode::AgentMissing => (
            "The program of the agent is not on this machine, or not in the PATH of the engine.",
            "Install it, or name another program in the profile. `landfall agents` shows what each profile would run.",
        ),
        ProblemCode::AgentFailed => (
            "The agent was asked something and no answer came that can be used: it ended early, is logged out, or wrote nonsense.",
            "`landfall agents --probe` asks it a small question. If it wants a login, log in as the user that runs Landfall.",
        ),
        ProblemCode::Internal => (
            "A fault of Landfall itself, or of the way between the client and the engine. It is not your fault, and nothing is lost: what was journalled is kept.",
            "Try once more. If it happens again, please report it with the message and what `landfall doctor` says.",
        ),
        ProblemCode::Unauthorized => (
            "Nobody said who asks, or the token is not the one of this project. This is asked on your own machine, too: other programs and web pages can reach it.",
            "Sign in with the token that `landfall project token` prints, or with a link that `landfall project pair` makes.",
        ),
        ProblemCode::Forbidden => (
            "Whoever asks is known but may not do this. Agents read and suggest; they do not approve, land, spend or change settings. Requests from pages of other sites are never taken.",
            "Let a person do it. From a browser, use the pages of Landfall itself.",
        ),
        ProblemCode::NotFound => (
            "Nothing is at this address.",
            "Start from the board, or search with Ctrl-K. Programs find every address at /api.",
        ),
        ProblemCode::MethodNotAllowed => (
            "There is something at this address, but it is not asked for with this method.",
            "The answer names the methods in its `Allow` header.",
        ),
        ProblemCode::TooLarge => (
            "The request is longer than Landfall takes.",
            "Send it in parts: fewer tasks at once, or a shorter text. Long material belongs into a file of the repository.",
        ),
        ProblemCode::UnsupportedMediaType => (
            "The request is of a kind that is not taken here.",
            "Operations take `application/json`; forms of the pages take what browsers send.",
        ),
        ProblemCode::Misdirected => (
            "The request names a host by which this server does not know itself. This protects you: a foreign web page could otherwise bring your browser to talk to Landfall under its own name.",
            "Use the address that `landfall serve` printed, or add the name: `landfall serve --host NAME:PORT`.",
        ),
        ProblemCode::TooMany => (
            "Too many ask at once, or one asks too often.",
            "Wait a moment. If you wrote the program that asks, follow the stream of events instead of asking again and again.",
        ),
        ProblemCode::KeyReused => (
            "The same idempotency key came with a different request before. A key stands for one request, so that sending it twice does it once.",
            "Make a new key for a new request.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_in_sentences_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for code in ProblemCode::ALL {
            let (means, todo) = explain_code(code);
            assert!(means.ends_with('.') && todo.ends_with('.'), "{code:?}");
            assert!(seen.insert(means) && seen.insert(todo), "{code:?} says what another says");
        }
    }
}

//! The styles a story is told in. A story is a function that takes a style; `in_styles!` makes a test of it for each that
//! is named. Which behaviour holds in which style, and why not in another, is a table of design 0011.
//!
//! Where an agent runs a loop of its own, the story is another one: a walk, told by `walks.rs` in the styles `self` and
//! `dispatch`.

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

/// How the scripted agent is driven from one run to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Every run is a new process that remembers nothing.
    Fresh,
    /// Each run goes on with the session of the one before.
    Session,
}

/// Makes a test of a story for each style; `story::fresh`, `story::session`.
macro_rules! in_styles {
    ($story:ident: $($style:ident),+ $(,)?) => {
        mod $story {
            $(
                #[test]
                fn $style() {
                    super::$story(crate::styles::told(stringify!($style)));
                }
            )+
        }
    };
}
pub(crate) use in_styles;

/// A style by the word of its test.
pub fn told<S: Told>(word: &str) -> S {
    S::of(word)
}

/// What a story can be told in.
pub trait Told {
    /// By its word.
    fn of(word: &str) -> Self;
}

impl Told for Style {
    fn of(word: &str) -> Self {
        match word {
            "fresh" => Self::Fresh,
            "session" => Self::Session,
            other => panic!("`{other}` is no style of a run"),
        }
    }
}

impl Style {
    /// A place whose agent is driven so.
    pub fn scratch(self) -> ScratchProject {
        let scratch = ScratchProject::new(LANDFALL);
        self.set(&scratch);
        scratch
    }

    /// From now on the agent is driven so.
    pub fn set(self, scratch: &ScratchProject) {
        if self == Self::Session {
            let path = scratch.project().join("landfall.toml");
            let before = std::fs::read_to_string(path).expect("the settings can be read");
            let kind = "kind = \"script\"\n";
            assert!(before.contains(kind), "the agent is scripted: {before}");
            scratch.settings(&before.replacen(kind, &format!("{kind}style = \"session\"\n"), 1));
        }
    }

    /// The script of an agent that says which session it has.
    pub fn script(self, script: &str) -> String {
        match self {
            Self::Fresh | Self::Session => format!("session = \"s-1\"\n{script}"),
        }
    }

    /// Whoever worked went on with its session, or had none, as the style says. A judge never does.
    #[track_caller]
    pub fn was_kept(self, scratch: &ScratchProject, task: &str) {
        self.was_kept_but(0, scratch, task);
    }

    /// The same, but so often a session was left behind for a reason.
    #[track_caller]
    pub fn was_kept_but(self, left: usize, scratch: &ScratchProject, task: &str) {
        let detail = scratch.detail(task);
        let (mut worked, mut resumed) = (0, 0);
        for attempt in detail["attempts"].as_array().expect("attempts") {
            let judges = attempt["step"].as_str().is_some_and(|step| step.starts_with("check"));
            for run in attempt["runs"].as_array().into_iter().flatten() {
                if judges {
                    assert_eq!(run["resumed"], false, "a judge begins anew: {attempt}");
                } else {
                    worked += 1;
                    resumed += usize::from(run["resumed"] == true);
                }
            }
        }
        assert!(worked > 1 + left, "{worked} runs show nothing of a style");
        let expected = if self == Self::Session { worked - 1 - left } else { 0 };
        assert_eq!(resumed, expected, "of {worked} runs of whoever worked");
    }
}

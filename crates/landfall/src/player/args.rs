//! What the player is asked to be: the agent itself, or one of the processes it starts.

use std::ffi::OsString;
use std::path::PathBuf;

/// One of the parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlayerRole {
    /// The agent.
    Agent {
        /// Its script.
        script: PathBuf,
        /// Which of its iterations, from 1.
        iteration: u32,
        /// The step of the flow, and which run in it.
        step: Option<(String, u32)>,
    },
    /// A process of the agent's.
    Child(RogueProcess),
}

/// A process that the agent starts when it misbehaves. All of them end by themselves at `until_ms`, in milliseconds
/// since 1970, so that a machine survives when nobody ends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RogueProcess {
    /// Replaces itself by another of its kind, again and again.
    Bomb {
        /// Its end.
        until_ms: u64,
    },
    /// Begins a session of its own, starts a [`RogueProcess::Scribble`] in it and ends.
    Detach {
        /// The file for the other.
        file: PathBuf,
        /// The end of the other.
        until_ms: u64,
    },
    /// Writes to a file every 50 ms.
    Scribble {
        /// The file.
        file: PathBuf,
        /// Its end.
        until_ms: u64,
    },
    /// Is there, and holds the agent's output open.
    Linger {
        /// Its end.
        until_ms: u64,
    },
}

/// Reads the arguments after `play`; `None` if they are not ours.
pub(super) fn read(mut args: impl Iterator<Item = OsString>) -> Option<PlayerRole> {
    let first = args.next()?;
    let part = if first == "--child" {
        PlayerRole::Child(read_child(&mut args)?)
    } else {
        let (mut iteration, mut step, mut run) = (1, None, 1);
        while let Some(flag) = args.next() {
            match flag.to_str()? {
                "--iteration" => iteration = parse_number(args.next()?)?,
                "--step" => step = Some(args.next()?.into_string().ok()?),
                "--step-run" => run = parse_number(args.next()?)?,
                _ => return None,
            }
        }
        PlayerRole::Agent { script: first.into(), iteration, step: step.map(|step| (step, run)) }
    };
    args.next().is_none().then_some(part)
}

fn read_child(args: &mut impl Iterator<Item = OsString>) -> Option<RogueProcess> {
    match args.next()?.to_str()? {
        "bomb" => Some(RogueProcess::Bomb { until_ms: parse_number(args.next()?)? }),
        "detach" => {
            Some(RogueProcess::Detach { file: args.next()?.into(), until_ms: parse_number(args.next()?)? })
        }
        "scribble" => {
            Some(RogueProcess::Scribble { file: args.next()?.into(), until_ms: parse_number(args.next()?)? })
        }
        "linger" => Some(RogueProcess::Linger { until_ms: parse_number(args.next()?)? }),
        _ => None,
    }
}

fn parse_number<T: std::str::FromStr>(word: OsString) -> Option<T> {
    word.to_str()?.parse().ok()
}

impl RogueProcess {
    /// The arguments that ask for it.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let (name, file, until_ms) = match self {
            Self::Bomb { until_ms } => ("bomb", None, until_ms),
            Self::Detach { file, until_ms } => ("detach", Some(file), until_ms),
            Self::Scribble { file, until_ms } => ("scribble", Some(file), until_ms),
            Self::Linger { until_ms } => ("linger", None, until_ms),
        };
        let head = ["play", "--child", name].map(OsString::from);
        head.into_iter().chain(file.map(OsString::from)).chain([until_ms.to_string().into()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{PlayerRole, RogueProcess, read};

    fn part(words: &[&str]) -> Option<PlayerRole> {
        read(words.iter().map(Into::into))
    }

    #[test]
    fn the_agent_is_asked_for_by_its_script() {
        let agent = |iteration| Some(PlayerRole::Agent { script: "a.toml".into(), iteration, step: None });
        assert_eq!(part(&["a.toml"]), agent(1));
        assert_eq!(part(&["a.toml", "--iteration", "3"]), agent(3));
        let step = Some(("plan".to_owned(), 2));
        let asked = part(&["a.toml", "--iteration", "3", "--step", "plan", "--step-run", "2"]);
        assert_eq!(asked, Some(PlayerRole::Agent { script: "a.toml".into(), iteration: 3, step }));
        for wrong in
            [&[][..], &["a", "b"], &["a", "--iteration"], &["a", "--iteration", "x"], &["--child", "no"]]
        {
            assert_eq!(part(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn children_are_asked_for_as_they_are_read() {
        for child in [
            RogueProcess::Bomb { until_ms: 1 },
            RogueProcess::Detach { file: "a b".into(), until_ms: 2 },
            RogueProcess::Scribble { file: "a".into(), until_ms: 3 },
            RogueProcess::Linger { until_ms: 4 },
        ] {
            assert_eq!(read(child.to_args().into_iter().skip(1)), Some(PlayerRole::Child(child)));
        }
    }
}

//! What the model does: a list of turns, one for each request of an agent at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

/// The turns of one agent, in order. When they have run out the model says that it has nothing to add.
#[derive(Debug, Clone, Default)]
pub struct Play {
    pub(super) turns: Vec<PlayTurn>,
}

impl<T: IntoIterator<Item = PlayTurn>> From<T> for Play {
    fn from(turns: T) -> Self {
        Self { turns: turns.into_iter().collect() }
    }
}

/// One answer of the model, or the lack of one.
#[derive(Debug, Clone)]
pub struct PlayTurn {
    pub(super) act: PlayAct,
    pub(super) text: String,
    pub(super) times: Times,
    pub(super) before: PlayDelay,
    pub(super) headers: Vec<(String, String)>,
    pub(super) tokens: Tokens,
    pub(super) thoughts: Option<Thoughts>,
}

/// Thoughts that are streamed before an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thoughts {
    /// How long.
    pub span: Duration,
    /// Between two pieces.
    pub every: Duration,
}

/// What is done with the request.
#[derive(Debug, Clone)]
pub(super) enum PlayAct {
    /// The text, and the end of the model's turn.
    Say,
    /// The shortest text of the request that begins and ends so, said back: what the prompt told it to say.
    Quote { from: String, to: String },
    /// A command for the shell tool the agent offers.
    Shell(String),
    /// A tool of an MCP server.
    Tool { server: String, name: String, input: Value },
    /// An answer that the token limit has cut off.
    TooLong,
    /// An HTTP error.
    Error { status: u16, kind: String, body: Option<Value> },
    /// No answer, until the agent goes away.
    Hang,
    /// Half an answer, then nothing, until the agent goes away.
    Stall,
    /// The beginning of an answer, then keep-alives, until the agent goes away.
    Ping {
        /// Between two of them.
        every: Duration,
    },
    /// Half an answer, then the connection ends.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Count(u32),
    Always,
}

/// What comes before the answer.
#[derive(Debug, Clone)]
pub(super) enum PlayDelay {
    Nothing,
    Wait(Duration),
    Gate(PlayGate),
}

/// What a turn costs, as the provider tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens read that no cache held.
    pub fresh: u64,
    /// Tokens read from a cache.
    pub cached: u64,
    /// Tokens written.
    pub out: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { fresh: 1000, cached: 0, out: 50 }
    }
}

/// A door that a test opens: turns behind it wait until then.
#[derive(Debug, Clone, Default)]
pub struct PlayGate {
    open: Arc<AtomicBool>,
}

impl PlayGate {
    /// A closed one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything behind it go on.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}

impl PlayTurn {
    fn new(act: PlayAct, text: &str) -> Self {
        Self {
            act,
            text: text.to_owned(),
            times: Times::Count(1),
            before: PlayDelay::Nothing,
            headers: Vec::new(),
            tokens: Tokens::default(),
            thoughts: None,
        }
    }

    /// The model says this and is done.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self::new(PlayAct::Say, text)
    }

    /// The model repeats the shortest text of the request that begins with `from` and ends with `to`.
    #[must_use]
    pub fn quote(from: &str, to: &str) -> Self {
        Self::new(PlayAct::Quote { from: from.to_owned(), to: to.to_owned() }, "")
    }

    /// The model has the agent run this in a shell.
    #[must_use]
    pub fn shell(command: &str) -> Self {
        Self::new(PlayAct::Shell(command.to_owned()), "")
    }

    /// The model uses a tool of an MCP server, under the name that the agent gives it. Some agents offer such tools only
    /// to models that search for them; then the model is taken to have done so.
    #[must_use]
    pub fn tool(server: &str, name: &str, input: Value) -> Self {
        Self::new(PlayAct::Tool { server: server.to_owned(), name: name.to_owned(), input }, "")
    }

    /// The answer grows too long and ends in the middle.
    #[must_use]
    pub fn too_long(text: &str) -> Self {
        Self::new(PlayAct::TooLong, text)
    }

    /// The provider refuses. `kind` is its own word for the error, `message` its sentence.
    #[must_use]
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Self::new(PlayAct::Error { status, kind: kind.to_owned(), body: None }, message)
    }

    /// The provider refuses with a body of its own making.
    #[must_use]
    pub fn refuse(status: u16, body: Value) -> Self {
        Self::new(PlayAct::Error { status, kind: String::new(), body: Some(body) }, "")
    }

    /// The request is taken and never answered.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(PlayAct::Hang, "")
    }

    /// The answer begins and does not go on; the connection stays.
    #[must_use]
    pub fn stall(text: &str) -> Self {
        Self::new(PlayAct::Stall, text)
    }

    /// The answer begins; then there are keep-alives and nothing else.
    #[must_use]
    pub fn ping(every: Duration) -> Self {
        Self::new(PlayAct::Ping { every }, "It begins and then")
    }

    /// The answer begins and the connection ends.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        Self::new(PlayAct::Cut, text)
    }

    /// Words that go along with a command.
    #[must_use]
    pub fn with_words(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }

    /// The same for so many requests.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.times = Times::Count(count);
        self
    }

    /// The same for every request from now on.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = Times::Always;
        self
    }

    /// After so long.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.before = PlayDelay::Wait(wait);
        self
    }

    /// After thoughts that are streamed for so long, a piece every 50 milliseconds.
    #[must_use]
    pub fn after_thoughts(mut self, span: Duration) -> Self {
        self.thoughts = Some(Thoughts { span, every: Duration::from_millis(50) });
        self
    }

    /// Not before the gate is open.
    #[must_use]
    pub fn behind(mut self, gate: &PlayGate) -> Self {
        self.before = PlayDelay::Gate(gate.clone());
        self
    }

    /// With one more header in the answer.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// At this price.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }
}

//! When to ask for what. Nothing is asked twice at once, and what takes long is asked less often.

/// What is asked again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollTopic {
    /// How the project stands.
    Status,
    /// What happened since the last look.
    Journal,
    /// The landing queue.
    Queue,
    /// The complaints that have a name.
    Reviews,
    /// What waits for a person.
    Inbox,
    /// Every task.
    Backlog,
    /// The sprint.
    Sprint,
    /// The task that is open.
    Open,
}

impl PollTopic {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Journal,
        Self::Status,
        Self::Inbox,
        Self::Reviews,
        Self::Queue,
        Self::Sprint,
        Self::Open,
        Self::Backlog,
    ];
}

/// When each is due.
#[derive(Debug, Clone)]
pub struct Polls {
    lines: [PollLine; PollTopic::ALL.len()],
}

#[derive(Debug, Clone, Copy, Default)]
struct PollLine {
    due_ms: i64,
    answered_ms: i64,
    took_ms: i64,
    under_way: bool,
}

/// Asking may take one part in so many of the time, so that a large project does not keep a processor busy.
const SHARE: i64 = 20;

impl Polls {
    /// All are due at once.
    pub fn new() -> Self {
        Self { lines: [PollLine::default(); PollTopic::ALL.len()] }
    }

    fn poll_line(&mut self, poll: PollTopic) -> &mut PollLine {
        let place = PollTopic::ALL.iter().position(|it| *it == poll).expect("every poll is in the list");
        &mut self.lines[place]
    }

    /// Takes it up if it is due.
    pub fn take(&mut self, poll: PollTopic, now_ms: i64) -> bool {
        let line = self.poll_line(poll);
        let take = !line.under_way && line.due_ms <= now_ms;
        line.under_way |= take;
        take
    }

    /// It was answered, in so much time, and is wanted again so much later.
    pub fn note_answer(&mut self, poll: PollTopic, took_ms: u64, again_ms: i64, now_ms: i64) {
        let line = self.poll_line(poll);
        let took_ms = i64::try_from(took_ms).unwrap_or(i64::MAX / SHARE);
        let pause = again_ms.max(took_ms.saturating_mul(SHARE));
        *line =
            PollLine { due_ms: now_ms.saturating_add(pause), answered_ms: now_ms, took_ms, under_way: false };
    }

    /// Something has changed: it is wanted as soon as its pace allows.
    pub fn hasten_poll(&mut self, poll: PollTopic, pace_ms: i64) {
        let line = self.poll_line(poll);
        let soonest = line.answered_ms.saturating_add(pace_ms.max(line.took_ms.saturating_mul(SHARE)));
        line.due_ms = line.due_ms.min(soonest);
    }

    /// A person waits for it.
    pub fn request_now(&mut self, poll: PollTopic) {
        self.poll_line(poll).due_ms = 0;
    }

    /// When the next one is due.
    pub fn next_ms(&self) -> i64 {
        let waiting = self.lines.iter().filter(|line| !line.under_way);
        waiting.map(|line| line.due_ms).min().unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{PollTopic, Polls};

    #[test]
    fn what_takes_long_is_asked_less_often_and_nothing_twice_at_once() {
        let mut polls = Polls::new();
        assert!(polls.take(PollTopic::Status, 0) && !polls.take(PollTopic::Status, 0));
        polls.note_answer(PollTopic::Status, 200, 1_000, 10);
        assert!(!polls.take(PollTopic::Status, 1_010), "200 ms of work are worth four seconds of rest");
        polls.hasten_poll(PollTopic::Status, 300);
        assert!(!polls.take(PollTopic::Status, 1_010), "also when something has changed");
        polls.request_now(PollTopic::Status);
        assert!(polls.take(PollTopic::Status, 1_010), "unless a person waits");
        polls.note_answer(PollTopic::Status, 1, 1_000, 1_020);
        polls.hasten_poll(PollTopic::Status, 300);
        assert!(!polls.take(PollTopic::Status, 1_319) && polls.take(PollTopic::Status, 1_320));
    }
}

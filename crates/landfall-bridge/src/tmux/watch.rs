//! What is new on the screen: the agent's messages, and lines for a person to read.

use std::collections::VecDeque;

use landfall_agents::tmux::{ScreenState, TerminalAgentKind, TerminalScreen, TmuxNote, visible_messages};

use crate::say;

pub(super) struct ScreenWatch {
    cli: TerminalAgentKind,
    /// Messages that were told, or stood there before.
    told: Vec<String>,
    heard: bool,
    /// Lines that were told of late.
    lines: VecDeque<String>,
}

/// Messages remembered: more than a screen holds.
const TOLD_MAX: usize = 200;
/// Lines remembered: some screens.
const LINES_KEPT: usize = 300;

impl ScreenWatch {
    pub(super) fn new(cli: TerminalAgentKind) -> Self {
        Self { cli, told: Vec::new(), heard: false, lines: VecDeque::new() }
    }

    /// The prompt is about to be typed: what stands there is old.
    pub(super) fn begin_prompt(&mut self, screen: &TerminalScreen, messages: Vec<String>) {
        self.told = messages;
        self.lines = screen.lines.iter().map(|line| line.trim().to_owned()).collect();
    }

    /// Whether the agent has said anything since.
    pub(super) fn has_heard(&self) -> bool {
        self.heard
    }

    /// A look at the agent at work.
    pub(super) fn observe_screen(&mut self, seen: &ScreenState, screen: &TerminalScreen) {
        let mut now = visible_messages(self.cli, screen);
        // The last message grows while the agent works.
        if !matches!(seen, ScreenState::Idle | ScreenState::Ask(_)) {
            now.pop();
        }
        self.report_new_messages(now);
        self.report_new_lines(screen);
    }

    /// The last look.
    pub(super) fn close(&mut self, screen: &TerminalScreen) {
        self.report_new_messages(visible_messages(self.cli, screen));
        self.report_new_lines(screen);
    }

    /// Those that follow on what was told: old ones leave the screen at its top.
    fn report_new_messages(&mut self, now: Vec<String>) {
        let most = now.len().min(self.told.len());
        let known = (0..=most).rev().find(|known| self.told.ends_with(&now[..*known])).unwrap_or(0);
        for text in now.into_iter().skip(known) {
            self.heard = true;
            say::line(&TmuxNote::Said { text: text.clone() }.line());
            self.told.push(text);
        }
        let over = self.told.len().saturating_sub(TOLD_MAX);
        self.told.drain(..over);
    }

    /// Lines that were not there before. Clocks and what blinks are no news: a program that hangs has them too.
    fn report_new_lines(&mut self, screen: &TerminalScreen) {
        let mut fresh = Vec::new();
        for line in screen.lines.iter().filter(|line| is_news(line)) {
            let words = line.trim_matches(|letter: char| letter == ' ' || "●•*".contains(letter));
            if !self.lines.iter().any(|old| old == words) {
                fresh.push(line.clone());
                self.lines.push_back(words.to_owned());
            }
        }
        while self.lines.len() > LINES_KEPT {
            self.lines.pop_front();
        }
        if !fresh.is_empty() {
            say::line(&TmuxNote::Lines { lines: fresh }.line());
        }
    }
}

fn is_news(line: &str) -> bool {
    let line = line.trim();
    let spins =
        |letter: char| "✻✽✢✳✶∗*·◐◓◑◒◦⏵⏸".contains(letter) || ('\u{2800}'..='\u{28ff}').contains(&letter);
    let drawn = line.chars().all(|letter| ('\u{2500}'..='\u{259f}').contains(&letter) || letter == ' ');
    !drawn && !line.starts_with(spins) && !line.contains("esc to interrupt")
}

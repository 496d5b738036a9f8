//! The keys: one table that is both obeyed and shown by `?`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key means where nothing is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCommand {
    /// One down.
    Down,
    /// One up.
    Up,
    /// A screenful down.
    PageDown,
    /// A screenful up.
    PageUp,
    /// To the first.
    First,
    /// To the last.
    Last,
    /// To the next panel, or the next page of a task.
    Next,
    /// To the one before.
    Before,
    /// Opens what is chosen.
    Open,
    /// Goes back.
    Back,
    /// Chooses the agent of this slot, from 1.
    Agent(u8),
    /// Filters, or looks for words.
    Search,
    /// The list of keys.
    Help,
    /// Autopilot on or off.
    Autopilot,
    /// Starts or stops the run.
    Run,
    /// Pauses the run, or lets it go on.
    Pause,
    /// Picks the chosen task, in semi-automatic mode.
    Pick,
    /// The next thing to look at.
    Review,
    /// Answers or approves.
    Answer,
    /// Sends work back.
    Changes,
    /// Puts a look off.
    Defer,
    /// Stops a task.
    StopTask,
    /// Says something to the agent of a task.
    Message,
    /// Keeps a task from going on, or lets it go on.
    Hold,
    /// Says that a task cannot go on.
    Block,
    /// Lets a task try again.
    Retry,
    /// The log of the chosen task.
    Log,
    /// What the agent of the chosen task prints.
    Output,
    /// The diff of the chosen task.
    Diff,
    /// The landing queue.
    Queue,
    /// What agents found out.
    Discoveries,
    /// The settings, and whether everything is well.
    Doctor,
    /// The sprint.
    Sprint,
    /// Gives the terminal to the shell for a while.
    Suspend,
    /// Leaves. The run goes on.
    Quit,
}

/// A line of the table.
pub struct Binding {
    /// What it is called in the list of keys.
    pub shown: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// What it stands with in the list.
    pub group: KeyGroup,
    keys: &'static [(KeyCode, KeyModifiers)],
    command: KeyCommand,
}

/// What keys are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyGroup {
    /// Moving around.
    Moving,
    /// The run.
    Run,
    /// The chosen task.
    Task,
    /// Screens.
    Screens,
}

impl KeyGroup {
    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Moving => "Moving",
            Self::Run => "The run",
            Self::Task => "The chosen task",
            Self::Screens => "Screens",
        }
    }
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

macro_rules! bindings {
    ($($group:ident $shown:literal [$($code:expr, $with:expr);+] $command:expr, $about:literal;)*) => {
        /// Every key there is, except digits, which choose an agent.
        pub const BINDINGS: &[Binding] = &[$(Binding {
            shown: $shown,
            about: $about,
            group: KeyGroup::$group,
            keys: &[$(($code, $with)),+],
            command: $command,
        }),*];
    };
}

use KeyCode::Char as C;

bindings! {
    Moving "j ↓" [C('j'), NONE; KeyCode::Down, NONE] KeyCommand::Down, "one down";
    Moving "k ↑" [C('k'), NONE; KeyCode::Up, NONE] KeyCommand::Up, "one up";
    Moving "PgDn ^f" [KeyCode::PageDown, NONE; C('f'), CTRL] KeyCommand::PageDown, "a screenful down";
    Moving "PgUp ^b" [KeyCode::PageUp, NONE; C('b'), CTRL] KeyCommand::PageUp, "a screenful up";
    Moving "g Home" [C('g'), NONE; KeyCode::Home, NONE] KeyCommand::First, "to the first";
    Moving "G End" [C('G'), NONE; KeyCode::End, NONE] KeyCommand::Last, "to the last; a log follows";
    Moving "Tab →" [KeyCode::Tab, NONE; KeyCode::Right, NONE] KeyCommand::Next, "next panel or page";
    Moving "⇧Tab ←" [KeyCode::BackTab, NONE; KeyCode::Left, NONE] KeyCommand::Before, "the one before";
    Moving "Enter" [KeyCode::Enter, NONE] KeyCommand::Open, "opens what is chosen";
    Moving "Esc" [KeyCode::Esc, NONE] KeyCommand::Back, "back; ends a filter";
    Moving "1–9" [C('1'), NONE] KeyCommand::Agent(1), "the agent in that slot";
    Moving "/" [C('/'), NONE] KeyCommand::Search, "filters, or looks for words";
    Run "Space" [C(' '), NONE] KeyCommand::Autopilot, "autopilot on or off";
    Run "s" [C('s'), NONE] KeyCommand::Run, "starts or stops the run";
    Run "p" [C('p'), NONE] KeyCommand::Pause, "pauses it, or goes on";
    Run "n" [C('n'), NONE] KeyCommand::Pick, "picks the chosen task";
    Task "a" [C('a'), NONE] KeyCommand::Answer, "answers or approves it";
    Task "c" [C('c'), NONE] KeyCommand::Changes, "sends it back to be changed";
    Task "d" [C('d'), NONE] KeyCommand::Defer, "puts the look at it off";
    Task "m" [C('m'), NONE] KeyCommand::Message, "says something to its agent";
    Task "h" [C('h'), NONE] KeyCommand::Hold, "holds it, or lets it go on";
    Task "b" [C('b'), NONE] KeyCommand::Block, "says that it cannot go on";
    Task "x" [C('x'), NONE] KeyCommand::StopTask, "stops it; its work is kept";
    Task "r" [C('r'), NONE] KeyCommand::Retry, "lets it try again";
    Task "l" [C('l'), NONE] KeyCommand::Log, "its log";
    Task "o" [C('o'), NONE] KeyCommand::Output, "what its agent prints";
    Task "D" [C('D'), NONE] KeyCommand::Diff, "what it changes";
    Screens "R" [C('R'), NONE] KeyCommand::Review, "the next thing to look at";
    Screens "M" [C('M'), NONE] KeyCommand::Queue, "the landing queue";
    Screens "L" [C('L'), NONE] KeyCommand::Discoveries, "what agents found out";
    Screens "T" [C('T'), NONE] KeyCommand::Sprint, "the sprint and its target";
    Screens "S" [C('S'), NONE] KeyCommand::Doctor, "whether everything is well";
    Screens "?" [C('?'), NONE] KeyCommand::Help, "this list";
    Screens "^z" [C('z'), CTRL] KeyCommand::Suspend, "to the shell; `fg` returns";
    Screens "q ^c" [C('q'), NONE; C('c'), CTRL] KeyCommand::Quit, "leaves; the run goes on";
}

/// What a key means; none when it means nothing.
pub fn key_command(key: KeyEvent) -> Option<KeyCommand> {
    if let C(digit @ '1'..='9') = key.code
        && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    {
        return Some(KeyCommand::Agent(digit as u8 - b'0'));
    }
    // Shift is in the letter already, and terminals differ in whether they tell it besides.
    let with = key.modifiers - KeyModifiers::SHIFT;
    let found = BINDINGS.iter().find(|binding| binding.keys.contains(&(key.code, with)));
    found.map(|binding| binding.command)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::BINDINGS;

    #[test]
    fn every_key_has_one_meaning_and_every_meaning_a_line() {
        let keys: Vec<_> = BINDINGS.iter().flat_map(|binding| binding.keys).collect();
        let different: HashSet<_> = keys.iter().collect();
        assert_eq!(keys.len(), different.len());
        let commands: Vec<_> = BINDINGS.iter().map(|binding| binding.command).collect();
        for (at, command) in commands.iter().enumerate() {
            assert!(!commands[..at].contains(command), "{command:?} stands there twice");
        }
    }
}

//! What a screen means: one table for each program we know, and one for all others.
//!
//! A screen is judged by its frame alone, that is by what the program draws around its input: the last lines, the
//! title, and the dialog that stands where the input would be. What an agent says or shows above its frame means
//! nothing here, whatever it looks like.

use super::TerminalAgentKind;
use super::deny::is_destructive;
use super::screen::{TerminalScreen, is_rule, text_after_mark};

/// What a screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenState {
    /// Nothing that we know. It may be starting, or drawing.
    Unknown,
    /// It waits for something to do.
    Idle,
    /// It works.
    Busy,
    /// It asks.
    Ask(ScreenPrompt),
    /// The account is used up: the line that says so.
    Limit(String),
    /// It wants a login: the line that says so.
    Login(String),
}

/// A question on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenPrompt {
    /// What kind it is.
    pub why: ScreenPromptKind,
    /// What stands there.
    pub text: String,
    /// The next key toward the answer; none: only a person may answer.
    pub key: Option<ScreenKey>,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenPromptKind {
    /// Leave to run something.
    Permission,
    /// Leave to write a file. What is in it may be anything: only the sandbox says where it can be.
    Edit,
    /// Whether the folder is trusted: it is our own clone.
    Trust,
    /// Something a program asks when it is new to a machine.
    FirstRun,
    /// An offer to change something that we did not choose.
    Offer,
    /// Yes or no.
    YesNo,
    /// Whether to go on.
    Continue,
    /// Anything else.
    Question,
}

impl ScreenPromptKind {
    /// In a word.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Permission | Self::Edit => "permission",
            Self::Trust => "trust",
            Self::FirstRun => "first-run",
            Self::Offer => "offer",
            Self::YesNo => "yes-no",
            Self::Continue => "continue",
            Self::Question => "question",
        }
    }
}

/// What is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenKey {
    /// Enter.
    Enter,
    /// To the option above.
    Up,
    /// To the option below.
    Down,
    /// A word, and Enter.
    Line(&'static str),
}

impl ScreenState {
    /// In a word.
    #[must_use]
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Ask(ask) => ask.why.wire_name(),
            Self::Limit(_) => "limit",
            Self::Login(_) => "login",
        }
    }
}

/// What this screen of this program shows.
#[must_use]
pub fn read_screen(cli: TerminalAgentKind, screen: &TerminalScreen) -> ScreenState {
    match cli {
        TerminalAgentKind::Claude => read_claude_screen(screen),
        TerminalAgentKind::Codex => read_codex_screen(screen),
        TerminalAgentKind::Other => read_unknown_screen(screen),
    }
}

/// Lines of the frame that are looked at: dialogs are short.
const DIALOG_MAX: usize = 40;

fn read_claude_screen(screen: &TerminalScreen) -> ScreenState {
    let full = screen.nonblank_lines();
    let Some((last_at, last)) = full.last().copied() else { return ScreenState::Unknown };
    let footer = last.trim();
    // Dialogs close with what Enter and Esc do. They stand instead of the input box.
    if footer.starts_with("Enter to confirm") || footer.starts_with("Esc to cancel") {
        // A dialog begins with a rule. Without it we do not see all of it, or it is none.
        let above = &screen.lines[last_at.saturating_sub(DIALOG_MAX)..last_at];
        return match above.iter().rposition(|line| is_rule(line)) {
            Some(from) if indent_width(last) <= 2 => read_dialog(&above[from..], &CLAUDE_DIALOGS),
            Some(_) | None => ScreenState::Unknown,
        };
    }
    if full.len() < 60 && full.iter().any(|(_, line)| line.trim() == "Select login method:") {
        return ScreenState::Login("Select login method:".to_owned());
    }
    let rules: Vec<usize> = full.iter().filter(|(_, line)| is_rule(line)).map(|(at, _)| *at).collect();
    let [.., top, bottom] = rules.as_slice() else { return ScreenState::Unknown };
    let boxed = full.iter().any(|(at, line)| at > top && at < bottom && text_after_mark(line, "❯").is_some());
    if !boxed || last_at <= *bottom {
        return ScreenState::Unknown;
    }
    let below = || full.iter().filter(|(at, _)| at > bottom).map(|(_, line)| line.trim());
    if let Some(line) = below().find(|line| line.starts_with("⚠ Usage limit reached")) {
        return ScreenState::Limit(line.to_owned());
    }
    if let Some(line) =
        below().find(|line| line.starts_with("Not logged in") || line.starts_with("Please run /login"))
    {
        return ScreenState::Login(line.to_owned());
    }
    let spins = screen.title.starts_with(['◐', '◓', '◑', '◒']);
    if spins || below().any(|line| line.contains("esc to interrupt")) {
        return ScreenState::Busy;
    }
    ScreenState::Idle
}

fn read_codex_screen(screen: &TerminalScreen) -> ScreenState {
    let full = screen.nonblank_lines();
    let Some((last_at, last)) = full.last().copied() else { return ScreenState::Unknown };
    let footer = last.trim();
    let closes = ["enter continue", "enter/esc confirm", "enter select", "press enter to confirm"];
    if closes.iter().any(|close| footer.to_lowercase().starts_with(close)) {
        // The cursor of a dialog is in the first column, where nothing that the agent shows can be.
        let above = &screen.lines[last_at.saturating_sub(DIALOG_MAX)..last_at];
        let drawn = indent_width(last) <= 2 && above.iter().any(|line| text_after_mark(line, "›").is_some());
        return if drawn { read_dialog(above, &CODEX_DIALOGS) } else { ScreenState::Unknown };
    }
    if full.iter().any(|(_, line)| line.trim() == "Sign in with ChatGPT") {
        return ScreenState::Login("Sign in with ChatGPT".to_owned());
    }
    // The input is the last line that begins with its mark; what stands above it begins in the first column too.
    let Some((input_at, _)) = full.iter().rev().find(|(_, line)| text_after_mark(line, "›").is_some())
    else {
        return ScreenState::Unknown;
    };
    let above: Vec<&str> = full.iter().filter(|(at, _)| at < input_at).map(|(_, line)| *line).collect();
    let spins = screen.title.starts_with(|letter| ('\u{2800}'..='\u{28ff}').contains(&letter));
    let working =
        |line: &&&str| text_after_mark(line, "•").is_some_and(|rest| rest.ends_with("esc to interrupt)"));
    if spins || above.iter().rev().take(3).find(working).is_some() {
        return ScreenState::Busy;
    }
    if let Some(limit) = above.iter().rev().take(6).find(|line| {
        text_after_mark(line, "■")
            .is_some_and(|rest| rest.replace('’', "'").starts_with("You've hit your usage limit"))
    }) {
        return ScreenState::Limit((*limit).to_owned());
    }
    // The frame has at most two lines below the input. More, and it is the prompt that was typed before.
    if full.iter().filter(|(at, _)| at > input_at).count() > 3 {
        ScreenState::Unknown
    } else {
        ScreenState::Idle
    }
}

fn indent_width(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A dialog we know: what it asks, and the option to take.
struct KnownDialog {
    /// Part of its text.
    asks: &'static str,
    why: ScreenPromptKind,
    /// How the option begins.
    take: &'static str,
    /// Whether the question stands above what it is about.
    far: bool,
}

const CLAUDE_DIALOGS: [KnownDialog; 8] = [
    KnownDialog {
        asks: "Is this a project you created or one you trust?",
        why: ScreenPromptKind::Trust,
        take: "Yes, I trust this folder",
        far: false,
    },
    // The key is in the environment because the profile says so.
    KnownDialog {
        asks: "Do you want to use this API key?",
        why: ScreenPromptKind::FirstRun,
        take: "Yes",
        far: false,
    },
    // The mode was asked for in the profile's flags.
    KnownDialog {
        asks: "running in Bypass Permissions mode",
        why: ScreenPromptKind::FirstRun,
        take: "Yes, I accept",
        far: false,
    },
    KnownDialog {
        asks: "Try the new fullscreen renderer?",
        why: ScreenPromptKind::Offer,
        take: "Not now",
        far: false,
    },
    KnownDialog {
        asks: "Do you want to proceed?",
        why: ScreenPromptKind::Permission,
        take: "Yes",
        far: false,
    },
    KnownDialog { asks: "Do you want to create ", why: ScreenPromptKind::Edit, take: "Yes", far: false },
    KnownDialog { asks: "Do you want to overwrite ", why: ScreenPromptKind::Edit, take: "Yes", far: false },
    KnownDialog {
        asks: "Do you want to make this edit to ",
        why: ScreenPromptKind::Edit,
        take: "Yes",
        far: false,
    },
];

const CODEX_DIALOGS: [KnownDialog; 6] = [
    KnownDialog {
        asks: "Trust this folder?",
        why: ScreenPromptKind::Trust,
        take: "Trust and continue",
        far: false,
    },
    KnownDialog {
        asks: "Try new model",
        why: ScreenPromptKind::Offer,
        take: "Use existing model",
        far: false,
    },
    KnownDialog {
        asks: "Approaching rate limits",
        why: ScreenPromptKind::Offer,
        take: "Keep current model",
        far: false,
    },
    KnownDialog {
        asks: "Would you like to run the following command?",
        why: ScreenPromptKind::Permission,
        take: "Yes, proceed",
        far: true,
    },
    KnownDialog {
        asks: "Would you like to make the following edits?",
        why: ScreenPromptKind::Edit,
        take: "Yes, proceed",
        far: true,
    },
    KnownDialog {
        asks: "Would you like to grant these permissions?",
        why: ScreenPromptKind::Permission,
        take: "Yes",
        far: true,
    },
];

/// What these lines of a dialog ask, up to its last one. Its key is pressed only when the cursor of the dialog is where it
/// must be, so an option is never taken blindly.
fn read_dialog(lines: &[String], known: &[KnownDialog]) -> ScreenState {
    let options = parse_dialog_options(lines);
    let shown = |line: &&str| !line.is_empty() && !is_rule(line) && !line.starts_with("╌╌");
    let words: Vec<&str> = lines.iter().map(|line| line.trim()).filter(shown).collect();
    let text = words.join("\n");
    let Some(found) = known.iter().find(|it| it.is_asked(&words, &options)) else {
        return ScreenState::Ask(ScreenPrompt { why: ScreenPromptKind::Question, text, key: None });
    };
    let key = if found.why != ScreenPromptKind::Edit && is_destructive(&text) {
        None
    } else {
        options.key_toward(found.take)
    };
    ScreenState::Ask(ScreenPrompt { why: found.why, text, key })
}

impl KnownDialog {
    /// Whether this is what is asked. Leave is asked for right above the options: further up stands a command or a
    /// file, which may hold any words. Other dialogs explain themselves first, but have options of their own.
    fn is_asked(&self, words: &[&str], options: &DialogOptions<'_>) -> bool {
        let above = &words[..words.len().saturating_sub(options.lines)];
        let among = |lines: &[&str]| lines.join(" ").contains(self.asks);
        let has_option = || options.texts.iter().any(|(text, _)| text.starts_with(self.take));
        match self.why {
            ScreenPromptKind::Permission | ScreenPromptKind::Edit if self.far => has_option() && among(above),
            ScreenPromptKind::Permission | ScreenPromptKind::Edit => {
                among(&above[above.len().saturating_sub(2)..])
            }
            ScreenPromptKind::Offer => {
                has_option() && (among(above) || options.texts.iter().any(|(text, _)| *text == self.asks))
            }
            ScreenPromptKind::Trust
            | ScreenPromptKind::FirstRun
            | ScreenPromptKind::YesNo
            | ScreenPromptKind::Continue
            | ScreenPromptKind::Question => {
                // The shortest answer is no option of its own.
                let own = self.take.len() > 3 || among(&above[above.len().saturating_sub(1)..]);
                own && has_option() && among(above)
            }
        }
    }
}

/// The options of a dialog, from its end up.
struct DialogOptions<'a> {
    /// Each with whether the cursor is on it.
    texts: Vec<(&'a str, bool)>,
    /// Lines they take, those that go on included.
    lines: usize,
}

impl DialogOptions<'_> {
    /// The key that brings us to the option that begins so, or takes it.
    fn key_toward(&self, wanted: &str) -> Option<ScreenKey> {
        let at = self.texts.iter().position(|(_, chosen)| *chosen)?;
        // The shortest that begins so: `Yes` and not `Yes, and don't ask again`.
        let to = self
            .texts
            .iter()
            .enumerate()
            .filter(|(_, (text, _))| text.starts_with(wanted))
            .min_by_key(|(_, (text, _))| text.len())?
            .0;
        Some(match at.cmp(&to) {
            std::cmp::Ordering::Less => ScreenKey::Down,
            std::cmp::Ordering::Equal => ScreenKey::Enter,
            std::cmp::Ordering::Greater => ScreenKey::Up,
        })
    }
}

fn parse_dialog_options(lines: &[String]) -> DialogOptions<'_> {
    let full: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.trim().is_empty()).collect();
    // The cursor's line tells where options begin: the last that has a mark.
    let is_cursor = |line: &&str| line.trim_start().starts_with(['❯', '›']);
    let Some(cursor) = full.iter().rposition(is_cursor) else {
        return DialogOptions { texts: Vec::new(), lines: 0 };
    };
    let column = |line: &str| -> usize {
        let mark = line.trim_start().trim_start_matches(['❯', '›']);
        line.chars().count() - mark.trim_start().chars().count()
    };
    let indent = column(full[cursor]);
    let numbered = option_number(strip_cursor(full[cursor])).is_some();
    let is_option =
        |line: &str| column(line) == indent && (!numbered || option_number(strip_cursor(line)).is_some());
    // Upward only as far as options reach; a line that goes on is deeper.
    let mut first = cursor;
    while first > 0 && (is_option(full[first - 1]) || numbered && column(full[first - 1]) > indent) {
        if !numbered && strip_cursor(full[first - 1]).ends_with(['?', '.', ':']) {
            break;
        }
        first -= 1;
        if numbered && option_number(strip_cursor(full[first])) == Some(1) {
            break;
        }
    }
    let texts = full[first..]
        .iter()
        .enumerate()
        .filter(|(_, line)| is_option(line))
        .map(|(at, line)| (strip_option_number(strip_cursor(line)), first + at == cursor))
        .collect();
    DialogOptions { texts, lines: full.len() - first }
}

fn strip_cursor(line: &str) -> &str {
    line.trim_start().trim_start_matches(['❯', '›']).trim()
}

fn option_number(text: &str) -> Option<u32> {
    let (number, _) = text.split_once(". ")?;
    number.parse().ok()
}

fn strip_option_number(text: &str) -> &str {
    match text.split_once(". ") {
        Some((number, rest)) if number.parse::<u32>().is_ok() => rest.trim_start(),
        _ => text,
    }
}

/// Programs we do not know: only the line the cursor is in says something, and only with its end.
fn read_unknown_screen(screen: &TerminalScreen) -> ScreenState {
    let Some(line) = screen.lines.get(screen.cursor).map(|line| line.trim()) else {
        return ScreenState::Unknown;
    };
    let below = screen.lines.iter().skip(screen.cursor + 1).any(|line| !line.trim().is_empty());
    if line.is_empty() || below {
        return ScreenState::Unknown;
    }
    let lower = line.to_lowercase();
    let bare = lower.trim_end_matches([' ', ':', '?', '>']);
    let ask = |why: ScreenPromptKind, line: &'static str| {
        let from = screen.cursor.saturating_sub(8);
        let text = screen.lines[from..=screen.cursor].join("\n").trim().to_owned();
        let key = if is_destructive(&text) {
            None
        } else if line.is_empty() {
            Some(ScreenKey::Enter)
        } else {
            Some(ScreenKey::Line(line))
        };
        ScreenState::Ask(ScreenPrompt { why, text, key })
    };
    if ["(y/n)", "[y/n]"].iter().any(|end| bare.ends_with(end)) {
        return ask(ScreenPromptKind::YesNo, "y");
    }
    if ["do you want to proceed", "shall i continue"].iter().any(|end| bare.ends_with(end))
        && lower.ends_with('?')
    {
        return ask(ScreenPromptKind::YesNo, "yes");
    }
    if bare.ends_with("continue") && lower.ends_with("continue?") {
        return ask(ScreenPromptKind::Continue, "continue");
    }
    if ["press enter", "press enter to continue", "press return to continue"]
        .iter()
        .any(|end| lower.trim_end_matches(['.', '…', ':', ' ']).ends_with(end))
    {
        return ask(ScreenPromptKind::Continue, "");
    }
    // An input that is empty: a mark alone. A mark at the end of words is the end of words.
    if [">", "❯", "›", "»", ">>>", "$"].contains(&line) {
        return ScreenState::Idle;
    }
    ScreenState::Unknown
}

//! What must be answered before anything else: a text, or a choice. Whatever is dangerous comes through here.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use landfall_api::{Answer, Block, Hold, Message, Redo, Request, Retry, ReviewAsked, ReviewSaid, WireTaskId};

use super::{DashboardPanel, RequestSubject, Scroll, TuiAction, TuiState};
use crate::top::inbox;
use crate::top::line::{KeyOutcome, LineEditor};
use crate::top::views;

/// What must be answered before anything else.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one popup at a time")]
pub enum Popup {
    /// A text.
    Text(TextPopup),
    /// One of several ways, each with its key. Esc takes none.
    Choice {
        /// What it is about.
        title: String,
        /// What a person should know before.
        text: Vec<String>,
        /// The ways.
        ways: Vec<PopupChoice>,
    },
}

/// A way.
#[derive(Debug)]
pub struct PopupChoice {
    /// Its key.
    pub key: char,
    /// What happens.
    pub label: String,
    /// What follows.
    pub way: ChoiceAction,
}

/// What follows a choice.
#[derive(Debug)]
pub enum ChoiceAction {
    /// It is asked for.
    Send(Request),
    /// It is asked for after one word more.
    Confirm(Request),
    /// Something is to be said with it.
    Say(Box<TextPopup>),
}

/// A text that is being typed.
#[derive(Debug)]
pub struct TextPopup {
    /// What it is about.
    pub title: String,
    /// What a person should know before: the question, the reasons.
    pub text: Vec<String>,
    /// What was typed.
    pub line: LineEditor,
    /// What it is for.
    pub purpose: TextPurpose,
    /// Complaints, or answers, that suggest themselves: a name, its meaning, and whether it is meant.
    pub issues: Vec<(String, String, bool)>,
    /// Where the keys go: 0 is the text, the issues follow.
    pub field: usize,
    /// It was sent, and not answered yet.
    pub sending: bool,
    /// Why it was not taken.
    pub problem: Option<String>,
}

/// What a text is for.
#[derive(Debug, Clone, PartialEq)]
pub enum TextPurpose {
    /// The answer to a question.
    Answer(WireTaskId),
    /// A note with an approval.
    Approve(WireTaskId),
    /// What is to be changed.
    Changes(WireTaskId),
    /// What the agent should know this time.
    Retry(WireTaskId),
    /// What the agent of a task is told.
    Message(WireTaskId),
    /// Why a task does not go on for now.
    Hold(WireTaskId),
    /// Why a task cannot go on.
    Block(WireTaskId),
    /// What belongs into an action.
    Fill(landfall_api::Action),
    /// The filter of a panel; the second is what it was before.
    Filter(DashboardPanel, String),
    /// Words to look for in a page.
    Search,
}

impl TextPopup {
    /// With nothing typed yet.
    pub fn new(title: impl Into<String>, text: Vec<String>, purpose: TextPurpose) -> Self {
        Self {
            title: title.into(),
            text,
            line: LineEditor::default(),
            purpose,
            issues: Vec::new(),
            field: 0,
            sending: false,
            problem: None,
        }
    }

    /// Whether it stands in the last line of the screen, with everything else in sight.
    pub fn is_below(&self) -> bool {
        matches!(self.purpose, TextPurpose::Filter(..) | TextPurpose::Search)
    }

    /// What Enter asks for; or why it cannot.
    fn to_request(&self) -> Result<Request, &'static str> {
        let text = self.line.text().trim().to_owned();
        let chosen = self.issues.iter().filter(|(.., chosen)| *chosen);
        let issues: Vec<String> = chosen.map(|(name, ..)| name.clone()).collect();
        let review = |task: WireTaskId, said| Request::Review(ReviewAsked { tasks: vec![task], said });
        match self.purpose {
            TextPurpose::Answer(task) => {
                let parts = issues.into_iter().chain((!text.is_empty()).then_some(text));
                let text = parts.collect::<Vec<String>>().join("\n");
                if text.is_empty() {
                    return Err("say it in a few words");
                }
                Ok(Request::Answer(Answer { task, text }))
            }
            TextPurpose::Message(_) | TextPurpose::Block(_) if text.is_empty() => {
                Err("say it in a few words")
            }
            TextPurpose::Message(task) => {
                Ok(Request::Message(Message { task, text, now: !issues.is_empty() }))
            }
            TextPurpose::Block(task) => Ok(Request::Block(Block { tasks: vec![task], reason: text })),
            TextPurpose::Hold(task) => {
                let reason = (!text.is_empty()).then_some(text);
                Ok(Request::Hold(Hold { tasks: vec![task], reason }))
            }
            TextPurpose::Fill(ref action)
                if text.is_empty() && action.fill.as_ref().is_some_and(|fill| fill.required) =>
            {
                Err("say it in a few words")
            }
            TextPurpose::Fill(ref action) => inbox::action_request(action, &text)
                .ok_or("the engine is newer than this view, and means something else"),
            TextPurpose::Approve(task) => Ok(review(task, ReviewSaid::Approve { note: text })),
            TextPurpose::Changes(task) => {
                if text.is_empty() && issues.is_empty() {
                    return Err("say what is to be changed, or choose an issue with ↓ and Space");
                }
                Ok(review(task, ReviewSaid::Changes { issues, note: text, redo: Redo::Keep, hint: None }))
            }
            TextPurpose::Retry(task) => {
                let note = (!text.is_empty()).then_some(text);
                Ok(Request::Retry(Retry { tasks: vec![task], fresh: false, note }))
            }
            TextPurpose::Filter(..) | TextPurpose::Search => Err("nothing is sent"),
        }
    }
}

impl TuiState {
    pub(super) fn handle_popup_key(&mut self, key: KeyEvent) -> Vec<TuiAction> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return vec![TuiAction::Quit];
        }
        match &self.popup {
            Some(Popup::Text(_)) => self.handle_text_key(key),
            Some(Popup::Choice { .. }) => self.handle_choice_key(key),
            None => Vec::new(),
        }
    }

    pub(super) fn paste_into_popup(&mut self, text: &str) {
        if let Some(Popup::Text(popup)) = &mut self.popup {
            popup.line.paste_text(text);
            popup.field = 0;
            self.note_typing();
        }
    }

    fn handle_choice_key(&mut self, key: KeyEvent) -> Vec<TuiAction> {
        match self.popup.take() {
            Some(Popup::Choice { title, text, mut ways }) => {
                let place = ways.iter().position(|way| key.code == KeyCode::Char(way.key));
                match (place, key.code) {
                    (Some(place), _) => {
                        let PopupChoice { label, way, .. } = ways.swap_remove(place);
                        match way {
                            ChoiceAction::Send(request) => {
                                return vec![TuiAction::Call(RequestSubject::Order, request)];
                            }
                            ChoiceAction::Say(popup) => self.popup = Some(Popup::Text(*popup)),
                            ChoiceAction::Confirm(request) => {
                                let way = PopupChoice {
                                    key: 'y',
                                    label: label.clone(),
                                    way: ChoiceAction::Send(request),
                                };
                                self.popup =
                                    Some(Popup::Choice { title: format!("{label}?"), text, ways: vec![way] });
                            }
                        }
                    }
                    (None, KeyCode::Esc | KeyCode::Char('q')) => {}
                    // A key that was meant for something else must neither confirm nor dismiss.
                    (None, _) => self.popup = Some(Popup::Choice { title, text, ways }),
                }
            }
            other => self.popup = other,
        }
        Vec::new()
    }

    fn handle_text_key(&mut self, key: KeyEvent) -> Vec<TuiAction> {
        let Some(Popup::Text(popup)) = &mut self.popup else { return Vec::new() };
        match key.code {
            KeyCode::Esc => self.cancel_text(),
            KeyCode::Enter if !key.modifiers.contains(KeyModifiers::ALT) => return self.submit_text(),
            KeyCode::Up | KeyCode::BackTab => popup.field = popup.field.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => popup.field = (popup.field + 1).min(popup.issues.len()),
            KeyCode::Char(' ') if popup.field > 0 => popup.issues[popup.field - 1].2 ^= true,
            _ => {
                if popup.line.handle_key(key) == KeyOutcome::Taken {
                    popup.field = 0;
                    self.note_typing();
                }
            }
        }
        Vec::new()
    }

    /// A filter is seen to work while it is typed.
    fn note_typing(&mut self) {
        let Some(Popup::Text(popup)) = &mut self.popup else { return };
        popup.problem = None;
        if let TextPurpose::Filter(panel, _) = popup.purpose {
            let text = popup.line.text().to_owned();
            self.set_filter(panel, text);
        }
    }

    fn cancel_text(&mut self) {
        if let Some(Popup::Text(popup)) = self.popup.take()
            && let TextPurpose::Filter(panel, before) = popup.purpose
        {
            self.set_filter(panel, before);
        }
    }

    fn submit_text(&mut self) -> Vec<TuiAction> {
        let Some(Popup::Text(popup)) = &mut self.popup else { return Vec::new() };
        match popup.purpose {
            TextPurpose::Filter(..) => self.popup = None,
            TextPurpose::Search => {
                self.sought = popup.line.text().to_owned();
                self.popup = None;
                self.find_next();
            }
            _ if popup.sending => {}
            _ => match popup.to_request() {
                Ok(request) => {
                    popup.sending = true;
                    popup.problem = None;
                    return vec![TuiAction::Call(RequestSubject::Order, request)];
                }
                Err(problem) => popup.problem = Some(problem.to_owned()),
            },
        }
        Vec::new()
    }

    fn set_filter(&mut self, panel: DashboardPanel, text: String) {
        match panel {
            DashboardPanel::Log => {
                self.log_filter = text;
                self.entry = None;
            }
            DashboardPanel::Slots
            | DashboardPanel::Inbox
            | DashboardPanel::Queue
            | DashboardPanel::Backlog => {
                self.filter = text;
                self.filter_backlog();
            }
        }
    }

    /// Which tasks of the backlog are shown: open ones first, then what is over, newest first.
    pub(super) fn filter_backlog(&mut self) {
        let words = views::filter_words(&self.filter);
        let shown =
            self.backlog.iter().enumerate().filter(|(_, line)| views::backlog::matches_words(line, &words));
        let (open, mut over): (Vec<usize>, Vec<usize>) =
            shown.map(|(place, _)| place).partition(|place| !views::is_over(self.backlog[*place].status));
        over.reverse();
        self.backlog_shown = [open, over].concat();
    }

    /// The next line with what is sought, after the first one shown; from the start when there is none.
    fn find_next(&mut self) {
        if self.sought.is_empty() {
            return;
        }
        let here = match self.page_scroll() {
            Scroll::At(line) => line,
            Scroll::End => 0,
        };
        match views::find_text(self, &self.sought, here + 1)
            .or_else(|| views::find_text(self, &self.sought, 0))
        {
            Some(line) => self.set_scroll(Scroll::At(line)),
            None => {
                let text = format!("`{}` is not here", self.sought);
                self.add_toast(super::MessageTone::Warn, text);
            }
        }
    }
}

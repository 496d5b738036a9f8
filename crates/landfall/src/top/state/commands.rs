//! What each command does.

use landfall_api::{
    AutoAsked, DiscoveriesAsked, InboxItem, InboxKind, Mode, NextAsked, Nothing, PauseAsked, Release,
    Request, ReviewAsked, ReviewSaid, RunAsked, Status, StopAsked, WireTaskId,
};

use super::{
    ChoiceAction, DashboardPanel, MessageTone, OpenTask, Popup, PopupChoice, RequestSubject, Scroll,
    TaskView, TextPopup, TextPurpose, TuiAction, TuiOverlay, TuiState,
};
use crate::top::inbox;
use crate::top::keys::KeyCommand;
use crate::top::line::LineEditor;
use crate::top::polls::PollTopic;
use crate::top::views;

impl TuiState {
    pub(super) fn handle_command(&mut self, command: KeyCommand) -> Vec<TuiAction> {
        match command {
            KeyCommand::Down => self.move_selection(1),
            KeyCommand::Up => self.move_selection(-1),
            KeyCommand::PageDown => self.move_selection(self.screen_height()),
            KeyCommand::PageUp => self.move_selection(-self.screen_height()),
            KeyCommand::First => self.move_selection(isize::MIN / 2),
            KeyCommand::Last => self.move_selection(isize::MAX / 2),
            KeyCommand::Next => self.switch_panel(1),
            KeyCommand::Before => self.switch_panel(-1),
            KeyCommand::Back => self.go_back(),
            KeyCommand::Search => self.start_search(),
            KeyCommand::Open => self.open_selected(TaskView::About),
            KeyCommand::Log => self.open_selected(TaskView::Log),
            KeyCommand::Output => self.open_selected(TaskView::Output),
            KeyCommand::Diff => self.open_selected(TaskView::Diff),
            KeyCommand::Agent(number) => self.select_agent(number),
            KeyCommand::Review => self.go_to_next_review(),
            KeyCommand::Help => self.show_overlay(TuiOverlay::Help),
            KeyCommand::Queue => {
                self.show_overlay(TuiOverlay::Queue);
                self.polls.request_now(PollTopic::Queue);
            }
            KeyCommand::Sprint => {
                self.show_overlay(TuiOverlay::Sprint);
                self.polls.request_now(PollTopic::Sprint);
            }
            KeyCommand::Discoveries => {
                self.show_overlay(TuiOverlay::Discoveries);
                let asked = DiscoveriesAsked::default();
                return vec![TuiAction::Call(RequestSubject::Screen, Request::Discoveries(asked))];
            }
            KeyCommand::Doctor => {
                self.show_overlay(TuiOverlay::Doctor);
                return vec![TuiAction::Call(RequestSubject::Screen, Request::Doctor(Nothing {}))];
            }
            KeyCommand::Answer => self.open_answer_popup(),
            KeyCommand::Changes => self.open_changes_popup(),
            KeyCommand::Retry => self.open_retry_popup(),
            KeyCommand::Message => self.open_message_popup(),
            KeyCommand::Block => self.open_block_popup(),
            KeyCommand::StopTask => self.stop_task(),
            KeyCommand::Hold => return self.toggle_hold(),
            KeyCommand::Defer => return self.defer_review(),
            KeyCommand::Autopilot => return self.toggle_autopilot(),
            KeyCommand::Run => return self.run(),
            KeyCommand::Pause => return self.toggle_pause(),
            KeyCommand::Pick => return self.pick_task(),
            KeyCommand::Suspend => return vec![TuiAction::Suspend],
            KeyCommand::Quit => return vec![TuiAction::Quit],
        }
        Vec::new()
    }

    fn screen_height(&self) -> isize {
        isize::from(i16::try_from(self.size.1.saturating_sub(8).max(1)).unwrap_or(i16::MAX))
    }

    /// Up or down, wherever that is.
    fn move_selection(&mut self, by: isize) {
        if !self.screens.is_empty() {
            return self.step_page(by);
        }
        let to = |place: usize| place.saturating_add_signed(by);
        match self.focus {
            DashboardPanel::Slots => {
                let rows = self.active_tasks();
                self.slot.choose_index(&rows, to(self.slot.current_index(&rows)));
            }
            DashboardPanel::Inbox => {
                let rows = self.inbox_keys();
                self.item.choose_index(&rows, to(self.item.current_index(&rows)));
            }
            DashboardPanel::Queue => {
                let rows = self.queued_tasks();
                self.place.choose_index(&rows, to(self.place.current_index(&rows)));
            }
            DashboardPanel::Backlog => {
                let rows = self.backlog_tasks();
                self.task.choose_index(&rows, to(self.task.current_index(&rows)));
            }
            DashboardPanel::Log => {
                let seqs: Vec<u64> = self.shown_entries().iter().map(|entry| entry.seq).collect();
                let last = seqs.len().saturating_sub(1);
                let here = self.entry.and_then(|seq| seqs.iter().position(|it| *it == seq)).unwrap_or(last);
                let place = to(here).min(last);
                self.entry = if place == last && by > 0 { None } else { seqs.get(place).copied() };
            }
        }
    }

    fn step_page(&mut self, by: isize) {
        let last = views::lines_count(self).saturating_sub(views::page_rows(self));
        let here = match self.page_scroll() {
            Scroll::At(line) => line.min(last),
            Scroll::End => last,
        };
        let line = here.saturating_add_signed(by).min(last);
        let follows = matches!((self.screens.last(), &self.open), (Some(TuiOverlay::Task), Some(open)) if open.page.follows_end());
        self.set_scroll(if follows && line == last { Scroll::End } else { Scroll::At(line) });
    }

    /// How far down the page on top is.
    pub fn page_scroll(&self) -> Scroll {
        match (self.screens.last(), &self.open) {
            (Some(TuiOverlay::Task), Some(open)) => open.scroll,
            _ => self.scroll,
        }
    }

    pub(super) fn set_scroll(&mut self, scroll: Scroll) {
        match (self.screens.last(), &mut self.open) {
            (Some(TuiOverlay::Task), Some(open)) => open.scroll = scroll,
            _ => self.scroll = scroll,
        }
    }

    /// To the next panel, or page of a task.
    fn switch_panel(&mut self, by: isize) {
        let next =
            |place: Option<usize>, many: usize| (place.unwrap_or(0) + many).wrapping_add_signed(by) % many;
        match (self.screens.last(), &self.open) {
            (None, _) => {
                let place = DashboardPanel::ALL.iter().position(|panel| *panel == self.focus);
                self.focus = DashboardPanel::ALL[next(place, DashboardPanel::ALL.len())];
            }
            (Some(TuiOverlay::Task), Some(open)) => {
                let place = TaskView::ALL.iter().position(|page| *page == open.page);
                self.show_task_page(TaskView::ALL[next(place, TaskView::ALL.len())]);
            }
            (Some(_), _) => {}
        }
    }

    fn show_task_page(&mut self, page: TaskView) {
        let Some(open) = &mut self.open else { return };
        open.page = page;
        open.scroll = if page.follows_end() { Scroll::End } else { Scroll::At(0) };
        open.problem = None;
        self.page_old = true;
    }

    fn go_back(&mut self) {
        if self.screens.pop().is_some() {
            self.scroll = Scroll::At(0);
            if !self.screens.contains(&TuiOverlay::Task) {
                self.open = None;
            }
            return;
        }
        match self.focus {
            DashboardPanel::Log => self.log_filter.clear(),
            DashboardPanel::Slots
            | DashboardPanel::Inbox
            | DashboardPanel::Queue
            | DashboardPanel::Backlog => {
                self.filter.clear();
                self.filter_backlog();
            }
        }
        self.entry = None;
    }

    fn start_search(&mut self) {
        let (title, purpose, text) = match (self.screens.last(), self.focus) {
            (Some(_), _) => ("find", TextPurpose::Search, self.sought.clone()),
            (None, DashboardPanel::Log) => (
                "filter the log",
                TextPurpose::Filter(DashboardPanel::Log, self.log_filter.clone()),
                self.log_filter.clone(),
            ),
            (
                None,
                DashboardPanel::Slots
                | DashboardPanel::Inbox
                | DashboardPanel::Queue
                | DashboardPanel::Backlog,
            ) => {
                self.focus = DashboardPanel::Backlog;
                let purpose = TextPurpose::Filter(DashboardPanel::Backlog, self.filter.clone());
                ("filter the backlog", purpose, self.filter.clone())
            }
        };
        let mut popup = TextPopup::new(title, Vec::new(), purpose);
        popup.line = LineEditor::new(&text);
        self.popup = Some(Popup::Text(popup));
    }

    fn open_selected(&mut self, page: TaskView) {
        match self.selected_task() {
            Some(_) if self.screens.last() == Some(&TuiOverlay::Task) && page == TaskView::About => {} // it is open already
            Some(task) => self.open_task(task, page),
            None => self.add_toast(MessageTone::Info, "no task is chosen"),
        }
    }

    fn open_task(&mut self, task: WireTaskId, page: TaskView) {
        if self.open.as_ref().is_none_or(|open| open.task != task) {
            self.open = Some(OpenTask {
                task,
                page,
                scroll: Scroll::At(0),
                detail: None,
                why: None,
                diff: None,
                log: Vec::new(),
                output: None,
                problem: None,
            });
        }
        self.show_overlay(TuiOverlay::Task);
        self.show_task_page(page);
        self.polls.request_now(PollTopic::Open);
    }

    fn select_agent(&mut self, number: u8) {
        let rows = self.active_tasks();
        match rows.get(usize::from(number) - 1) {
            Some(task) => {
                self.focus = DashboardPanel::Slots;
                self.slot.choose_index(&rows, usize::from(number) - 1);
                let task = *task;
                self.screens.clear();
                self.open_task(task, TaskView::About);
            }
            None => self.add_toast(MessageTone::Info, format!("no agent is at work in slot {number}")),
        }
    }

    /// Goes to the next thing to look at, and shows what it changes.
    fn go_to_next_review(&mut self) {
        let items = self.inbox_items();
        let looks: Vec<usize> = (0..items.len()).filter(|place| inbox::is_look(items[*place].kind)).collect();
        let here = self.item.current_index(&self.inbox_keys());
        let inside = self.screens.last() == Some(&TuiOverlay::Task);
        let next = looks.iter().find(|place| if inside { **place > here } else { **place >= here });
        let Some(place) = next.or(looks.first()).copied() else {
            return self.add_toast(MessageTone::Info, "no review is pending");
        };
        self.screens.clear();
        self.focus = DashboardPanel::Inbox;
        let rows = self.inbox_keys();
        self.item.choose_index(&rows, place);
        if let Some(task) = self.inbox_items()[place].task {
            self.open_task(task, TaskView::Diff);
        }
    }

    /// What waits for a person because of the chosen task, or the item that is chosen.
    fn selected_request_item(&self) -> Option<&InboxItem> {
        if self.screens.is_empty() && self.focus == DashboardPanel::Inbox {
            return self.chosen_item();
        }
        let task = self.selected_task()?;
        self.inbox_items().iter().find(|item| item.task == Some(task))
    }

    /// Work that somebody is to look at.
    fn selected_review(&self) -> Option<(WireTaskId, &InboxItem)> {
        let item = self.selected_request_item().filter(|item| inbox::is_look(item.kind))?;
        Some((item.task?, item))
    }

    fn open_answer_popup(&mut self) {
        let Some(item) = self.selected_request_item() else {
            let text = match self.selected_task() {
                Some(task) => format!("{task} asks nothing and is not to be looked at"),
                None => "nothing is chosen that could be answered".to_owned(),
            };
            return self.add_toast(MessageTone::Info, text);
        };
        let about = inbox::describe_item(item);
        self.popup = Some(match (item.kind, item.task) {
            (InboxKind::Question, Some(task)) => {
                let mut popup = TextPopup::new(format!("Answer {task}"), about, TextPurpose::Answer(task));
                popup.issues =
                    item.choices.iter().map(|choice| (choice.clone(), String::new(), false)).collect();
                Popup::Text(popup)
            }
            (InboxKind::Review, Some(task)) => {
                let title = format!("Approve {task}: it lands next. A note, if you like");
                Popup::Text(TextPopup::new(title, about, TextPurpose::Approve(task)))
            }
            (InboxKind::Owed, Some(task)) => {
                let title = format!("Sign {task} off. A note, if you like");
                Popup::Text(TextPopup::new(title, about, TextPurpose::Approve(task)))
            }
            (
                InboxKind::Question
                | InboxKind::Review
                | InboxKind::Owed
                | InboxKind::Acceptance
                | InboxKind::Login
                | InboxKind::Conflict
                | InboxKind::Escalation
                | InboxKind::Blocked
                | InboxKind::Failed
                | InboxKind::Paused,
                _,
            ) => actions_popup(item, about),
        });
    }

    fn open_changes_popup(&mut self) {
        let Some((task, item)) = self.selected_review() else {
            return self.add_toast(MessageTone::Info, "only work that is to be looked at can be sent back");
        };
        let text = inbox::describe_item(item);
        let mut popup = TextPopup::new(
            format!("Send {task} back: what is to be changed"),
            text,
            TextPurpose::Changes(task),
        );
        let issues = self.reviews.iter().flat_map(|reviews| &reviews.issues);
        popup.issues = issues.map(|issue| (issue.name.clone(), issue.text.clone(), false)).collect();
        self.popup = Some(Popup::Text(popup));
    }

    fn open_retry_popup(&mut self) {
        let Some(task) = self.selected_task() else {
            return self.add_toast(MessageTone::Info, "no task is chosen");
        };
        let text = vec![
            "Enter lets it try again. What should its agent know this time? It may be empty.".to_owned(),
        ];
        let popup = TextPopup::new(format!("Try {task} again"), text, TextPurpose::Retry(task));
        self.popup = Some(Popup::Text(popup));
    }

    fn open_message_popup(&mut self) {
        let Some(task) = self.selected_task() else {
            return self.add_toast(MessageTone::Info, "no task is chosen");
        };
        let text = vec!["Its agent is told at the beginning of its next run.".to_owned()];
        let mut popup =
            TextPopup::new(format!("Say to the agent of {task}"), text, TextPurpose::Message(task));
        let now = "the run under way ends for it; its work is kept";
        popup.issues = vec![("now".to_owned(), now.to_owned(), false)];
        self.popup = Some(Popup::Text(popup));
    }

    fn open_block_popup(&mut self) {
        let Some(task) = self.selected_task() else {
            return self.add_toast(MessageTone::Info, "no task is chosen");
        };
        let text = vec!["It ends as blocked, and its work is kept. Why can it not go on?".to_owned()];
        let popup = TextPopup::new(format!("Block {task}"), text, TextPurpose::Block(task));
        self.popup = Some(Popup::Text(popup));
    }

    /// One key for both: a task that is held goes on.
    fn toggle_hold(&mut self) -> Vec<TuiAction> {
        let Some(task) = self.selected_task() else {
            self.add_toast(MessageTone::Info, "no task is chosen");
            return Vec::new();
        };
        let is_held = |item: &InboxItem| item.task == Some(task) && item.kind == InboxKind::Paused;
        if self.inbox_items().iter().any(is_held) {
            let asked = Release { tasks: vec![task] };
            return vec![TuiAction::Call(RequestSubject::Order, Request::Release(asked))];
        }
        let text =
            vec!["It does not go on before somebody says so; h again does. Why? It may be empty.".to_owned()];
        let popup = TextPopup::new(format!("Hold {task}"), text, TextPurpose::Hold(task));
        self.popup = Some(Popup::Text(popup));
        Vec::new()
    }

    fn defer_review(&mut self) -> Vec<TuiAction> {
        match self.selected_review() {
            Some((task, _)) => {
                let asked = ReviewAsked { tasks: vec![task], said: ReviewSaid::Defer };
                vec![TuiAction::Call(RequestSubject::Order, Request::Review(asked))]
            }
            None => {
                self.add_toast(MessageTone::Info, "only a look can be put off");
                Vec::new()
            }
        }
    }

    fn stop_task(&mut self) {
        let Some(task) = self.selected_task() else {
            return self.add_toast(MessageTone::Info, "no task is chosen");
        };
        let stop = |now| Request::Stop(StopAsked { task: Some(task), now });
        self.popup = Some(Popup::Choice {
            title: format!("Stop {task}?"),
            text: vec!["Its work is kept. It does not start again before somebody says so.".to_owned()],
            ways: vec![
                PopupChoice {
                    key: 'y',
                    label: "at the end of the iteration".to_owned(),
                    way: ChoiceAction::Send(stop(false)),
                },
                PopupChoice { key: 'n', label: "now".to_owned(), way: ChoiceAction::Send(stop(true)) },
            ],
        });
    }

    /// A run spends money, so it is asked for first.
    fn start(&mut self) {
        let ready =
            self.status_report().and_then(|status| status.counts.get(&Status::Ready)).copied().unwrap_or(0);
        let asked = RunAsked { attended: true, ..RunAsked::default() };
        let ready = landfall_text::pluralize(ready, "task");
        self.popup = Some(Popup::Choice {
            title: "Start a run?".to_owned(),
            text: vec![format!("{ready} ready. Agents begin to work as the settings say.")],
            ways: vec![PopupChoice {
                key: 'y',
                label: "start".to_owned(),
                way: ChoiceAction::Send(Request::RunStart(asked)),
            }],
        });
    }

    fn run(&mut self) -> Vec<TuiAction> {
        let Some(run) = self.status_report().and_then(|status| status.run.as_ref()).map(|run| run.run) else {
            self.start();
            return Vec::new();
        };
        let stop = |now| Request::Stop(StopAsked { task: None, now });
        self.popup = Some(Popup::Choice {
            title: format!("Stop {run}?"),
            text: vec!["The work is kept, and the next run goes on from there.".to_owned()],
            ways: vec![
                PopupChoice {
                    key: 'y',
                    label: "when the iterations under way are done".to_owned(),
                    way: ChoiceAction::Send(stop(false)),
                },
                PopupChoice { key: 'n', label: "now".to_owned(), way: ChoiceAction::Send(stop(true)) },
            ],
        });
        Vec::new()
    }

    fn toggle_autopilot(&mut self) -> Vec<TuiAction> {
        let Some((mode, ready, slots)) = self
            .status_report()
            .and_then(|status| status.pilot.as_ref())
            .map(|pilot| (pilot.mode, pilot.ready, pilot.slots))
        else {
            self.add_toast(MessageTone::Info, "no run is under way that could be driven");
            return Vec::new();
        };
        let auto = |mode| Request::Auto(AutoAsked { mode });
        match mode {
            Mode::Autopilot => vec![TuiAction::Call(RequestSubject::Order, auto(Mode::SemiAuto))],
            Mode::SemiAuto => {
                let text = format!(
                    "{} ready. Up to {} work at once, without anybody asked before each.",
                    landfall_text::pluralize(ready, "task"),
                    landfall_text::pluralize(slots.into(), "agent")
                );
                self.popup = Some(Popup::Choice {
                    title: "Autopilot on?".to_owned(),
                    text: vec![text],
                    ways: vec![PopupChoice {
                        key: 'y',
                        label: "on".to_owned(),
                        way: ChoiceAction::Send(auto(Mode::Autopilot)),
                    }],
                });
                Vec::new()
            }
        }
    }

    fn toggle_pause(&mut self) -> Vec<TuiAction> {
        let Some(paused) =
            self.status_report().and_then(|status| status.pilot.as_ref()).map(|pilot| pilot.pause.is_some())
        else {
            self.add_toast(MessageTone::Info, "no run is under way that could be paused");
            return Vec::new();
        };
        let request =
            if paused { Request::Resume(Nothing {}) } else { Request::Pause(PauseAsked::default()) };
        vec![TuiAction::Call(RequestSubject::Order, request)]
    }

    fn pick_task(&mut self) -> Vec<TuiAction> {
        let Some(task) = self.selected_task() else {
            self.add_toast(MessageTone::Info, "no task is chosen");
            return Vec::new();
        };
        vec![TuiAction::Call(RequestSubject::Order, Request::Next(NextAsked { task: Some(task) }))]
    }
}

/// What can be done about an item, each with a digit.
fn actions_popup(item: &InboxItem, about: Vec<String>) -> Popup {
    let task = item.task.map(|task| format!("{task}: ")).unwrap_or_default();
    let ways = item.actions.iter().zip('1'..='9').filter_map(|(action, key)| {
        let way = match (&action.fill, action.confirm) {
            (Some(fill), _) => {
                let title = format!("{task}{}", action.label);
                let text = [about.clone(), vec![fill.label.clone()]].concat();
                ChoiceAction::Say(Box::new(TextPopup::new(title, text, TextPurpose::Fill(action.clone()))))
            }
            (None, true) => ChoiceAction::Confirm(inbox::action_request(action, "")?),
            (None, false) => ChoiceAction::Send(inbox::action_request(action, "")?),
        };
        Some(PopupChoice { key, label: action.label.clone(), way })
    });
    Popup::Choice { title: format!("{task}{}", item.title), text: about[1..].to_vec(), ways: ways.collect() }
}

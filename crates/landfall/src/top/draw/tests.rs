//! What is on the screen, at both ends of what people use, and that nothing breaks in between.

use expect_test::{ExpectFile, expect_file};
use landfall_api::{Blob, Diff, Problem, ProblemCode, Response};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::draw_screen;
use crate::top::polls::PollTopic;
use crate::top::sample::{TuiSample, task_id};
use crate::top::state::{RequestSubject, TuiEvent};
use crate::top::theme::Theme;

/// The screen as text, with the clock of nowhere in particular.
fn render_screen(sample: &TuiSample) -> String {
    let (columns, rows) = sample.state.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a screen of our own");
    terminal
        .draw(|frame| draw_screen(frame, &sample.state, Theme { colour: false }))
        .expect("it cannot fail");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in 0..rows {
        let mut column = 0;
        let mut line = String::new();
        while column < columns {
            let cell = &buffer[(column, row)];
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "without colour there is none");
            line.push_str(cell.symbol());
            column += u16::try_from(console::measure_text_width(cell.symbol()).max(1)).expect("small");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    without_clock(&text)
}

/// `12:04:05` depends on where the test runs.
fn without_clock(text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for at in 0..letters.len().saturating_sub(7) {
        let is_clock = (0..8).all(|place| match place {
            2 | 5 => letters[at + place] == ':',
            _ => letters[at + place].is_ascii_digit(),
        });
        if is_clock {
            letters[at..at + 8].copy_from_slice(&['h', 'h', ':', 'm', 'm', ':', 's', 's']);
        }
    }
    letters.into_iter().collect()
}

fn check_screen(sample: &TuiSample, expect: &ExpectFile) {
    expect.assert_eq(&render_screen(sample));
}

#[test]
fn one_panel_at_a_time_where_the_screen_is_small() {
    check_screen(&TuiSample::with_busy_run(80, 24), &expect_file!["../snapshots/80x24.txt"]);
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("<Tab>");
    check_screen(&sample, &expect_file!["../snapshots/80x24-inbox.txt"]);
    sample.press_keys("jcmind the names");
    check_screen(&sample, &expect_file!["../snapshots/80x24-changes.txt"]);
}

#[test]
fn every_panel_at_once_where_there_is_room() {
    check_screen(&TuiSample::with_busy_run(200, 60), &expect_file!["../snapshots/200x60.txt"]);
}

#[test]
fn the_list_of_keys_has_every_key() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.press_keys("?");
    check_screen(&sample, &expect_file!["../snapshots/80x24-keys.txt"]);
}

#[test]
fn what_agents_say_cannot_reach_the_terminal() {
    for (columns, rows) in [(80, 24), (200, 60)] {
        let text = render_screen(&TuiSample::with_busy_run(columns, rows));
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
        assert!(text.contains("\\u{1b}[2J") || columns == 80, "it is shown as what it is: {text}");
    }
}

#[test]
fn every_screen_is_drawn_at_every_size() {
    for keys in
        ["", "<Tab>", "<Tab><Tab>", "/x", "1", "R", "M", "L", "T", "S", "?", "x", "s", "<Tab>a", "<Tab>jc"]
    {
        let mut sample = TuiSample::with_busy_run(80, 24);
        sample.press_keys(keys);
        sample.poll(PollTopic::Status, Response::Status(Box::new(crate::top::sample::status_report())));
        sample.send_answer(RequestSubject::Order, Err(Problem::new(ProblemCode::NotNow, "no ".repeat(60))));
        let text = "+\tlong line \u{1b}[31m".repeat(50);
        let diff = Diff {
            task: task_id(6),
            from: String::new(),
            to: String::new(),
            diff: Blob::new(text.into_bytes()),
        };
        sample.send_answer(RequestSubject::Page(task_id(6)), Ok(Response::Diff(diff)));
        for size in [(1, 1), (10, 3), (30, 8), (40, 10), (80, 24), (119, 33), (120, 34), (200, 60), (300, 9)]
        {
            sample.send_event(TuiEvent::Resized(size.0, size.1));
            let text = render_screen(&sample);
            assert_eq!(text.lines().count(), usize::from(size.1), "{keys} at {size:?}");
            assert!(!text.contains('\u{1b}'), "{keys} at {size:?}");
        }
    }
}

#[test]
fn a_project_that_is_away_is_said_so_above_everything() {
    let mut sample = TuiSample::with_busy_run(80, 24);
    sample.send_answer(
        RequestSubject::Poll(PollTopic::Journal),
        Err(Problem::new(ProblemCode::Internal, "the disk is away")),
    );
    sample.advance_clock(65_000);
    let text = render_screen(&sample);
    assert!(text.contains("CANNOT BE REACHED for 1m 5s, trying again: the disk is away"), "{text}");
}

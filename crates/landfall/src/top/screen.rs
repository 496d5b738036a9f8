//! The terminal while it is ours. It is given back on every way out: by leaving, by an error, by a panic.

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use signal_hook::consts::SIGTSTP;

use super::draw::draw_screen;
use super::state::TuiState;
use super::theme::Theme;

/// The terminal while it is ours; dropping it gives it back.
pub struct TerminalSession {
    terminal: TuiTerminal,
    theme: Theme,
    /// Whether the terminal is ours now, so that it is given back once.
    is_ours: Arc<AtomicBool>,
}

type TuiTerminal = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

impl TerminalSession {
    /// Takes the terminal.
    pub fn open() -> io::Result<Self> {
        let is_ours = Arc::new(AtomicBool::new(true));
        give_back_on_panic(&is_ours);
        let terminal = take().inspect_err(|_| restore_terminal(&is_ours))?;
        // A variable that is set, and not empty, whatever it says: that is the convention.
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Ok(Self { terminal, theme: Theme { colour }, is_ours })
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Shows it.
    pub fn draw_state(&mut self, state: &TuiState) -> io::Result<()> {
        self.terminal.draw(|frame| draw_screen(frame, state, self.theme))?;
        Ok(())
    }

    /// Gives the terminal to the shell, stops, and takes it again when the shell says so.
    pub fn suspend_program(&mut self) -> io::Result<()> {
        restore_terminal(&self.is_ours);
        signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
        self.is_ours.store(true, Ordering::SeqCst);
        self.terminal = take()?; // a new one: the shell has written there
        Ok(())
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        restore_terminal(&self.is_ours);
    }
}

fn take() -> io::Result<TuiTerminal> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
    Terminal::new(CrosstermBackend::new(BufWriter::new(stdout())))
}

/// Gives the terminal back, if it is ours.
fn restore_terminal(is_ours: &AtomicBool) {
    if !is_ours.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = stdout();
    let _ = execute!(out, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show); // the terminal is gone
    let _ = out.flush(); // the terminal is gone
    let _ = disable_raw_mode(); // the terminal is gone
}

/// A panic says what it has to say on the person's own screen, not on ours.
fn give_back_on_panic(is_ours: &Arc<AtomicBool>) {
    let is_ours = Arc::clone(is_ours);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        restore_terminal(&is_ours);
        before(info);
    }));
}

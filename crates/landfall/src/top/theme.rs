//! How things look. Colour only underlines what words and signs already say, and can be left out.

use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    /// Whether colours are used.
    pub colour: bool,
}

impl Theme {
    fn with_color(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// A heading.
    pub fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What matters less.
    pub fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What is chosen.
    pub fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What is well.
    pub fn good(self) -> Style {
        self.with_color(Color::Green)
    }

    /// What goes on.
    pub fn lively(self) -> Style {
        self.with_color(Color::Cyan)
    }

    /// What is to be looked at.
    pub fn warn(self) -> Style {
        self.with_color(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// What went wrong.
    pub fn bad(self) -> Style {
        self.with_color(Color::Red).add_modifier(Modifier::BOLD)
    }
}

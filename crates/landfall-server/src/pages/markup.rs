//! HTML made by hand, for what a template cannot say: coloured output, changed lines, marked-up text.
//!
//! What comes from outside goes in by [`Markup::text`] alone, which escapes it and makes visible what a browser would obey or
//! hide. Tags are literals of this program.

use std::fmt;

use super::words;

/// HTML that is safe to show as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Markup(String);

impl Markup {
    /// A piece of HTML of ours.
    pub(crate) fn push_tag(&mut self, html: &'static str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// A number.
    pub(crate) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.0.push_str(&number.into().to_string());
        self
    }

    /// Text from outside, in an element or in an attribute with quotes.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for char in words::visible(text).chars() {
            match char {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => self.0.push(char),
            }
        }
        self
    }

    /// What a template of ours draws: it escapes what it is given.
    pub(crate) fn from_template(page: &impl askama::Template) -> Result<Self, askama::Error> {
        Ok(Self(page.render()?))
    }

    /// HTML that was made the same way.
    pub(crate) fn add(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text from outside, alone.
pub(crate) fn escape_text(text: &str) -> Markup {
    let mut html = Markup::default();
    html.text(text);
    html
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_stays_text() {
        let mut html = Markup::default();
        html.push_tag("<b>").text("<img src=x onerror='a()'>&\"").push_tag("</b>");
        assert_eq!(html.as_str(), "<b>&lt;img src=x onerror=&#39;a()&#39;&gt;&amp;&quot;</b>");
    }

    #[test]
    fn what_would_hide_is_shown() {
        let mut html = Markup::default();
        html.text("a\u{202e}b\u{1b}[2J\u{7}\u{9b}c\td\u{feff}");
        assert_eq!(html.as_str(), "a⟨U+202E⟩b␛[2J␇⟨U+009B⟩c\td⟨U+FEFF⟩");
    }

    #[test]
    fn letters_of_all_languages_are_left_alone() {
        let text = "naïve 日本語 עברית 🚀 — “x”";
        let mut html = Markup::default();
        html.text(text);
        assert_eq!(html.as_str(), text);
    }
}

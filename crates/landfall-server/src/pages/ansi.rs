//! Colours in what programs print: the sequences that only change how letters look become classes; every other control
//! sequence is shown as the characters it consists of, and obeyed by nobody.

use super::markup::Markup;
use super::words::visible;

/// How letters look from here on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TextStyle {
    fore: Option<u8>,
    back: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    under: bool,
    inverse: bool,
    gone: bool,
}

const CUT: usize = 20_000; // letters of one line; a longer one is read in its file

/// One line, with its colours.
pub(crate) fn render_line(line: &str, to: &mut Markup) {
    let mut look = TextStyle::default();
    for_each_piece(line, |piece| match piece {
        AnsiPiece::Text(text) if look == TextStyle::default() => {
            to.text(text);
        }
        AnsiPiece::Text(text) => {
            open(look, to);
            to.text(text).push_tag("</span>");
        }
        AnsiPiece::Looks(numbers) => apply_style_codes(&mut look, numbers),
    });
}

/// Lines with their colours, one below the other.
pub(crate) fn render_block(text: &str) -> Markup {
    let mut html = Markup::default();
    for line in text.lines() {
        render_line(line, &mut html);
        html.push_tag("\n");
    }
    html
}

/// One line without its colours.
pub(crate) fn strip_colors(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for_each_piece(line, |piece| match piece {
        AnsiPiece::Text(piece) => text.push_str(&visible(piece)),
        AnsiPiece::Looks(_) => {}
    });
    text
}

enum AnsiPiece<'a> {
    Text(&'a str),
    /// The numbers of a sequence that changes how letters look.
    Looks(&'a str),
}

fn for_each_piece<'a>(line: &'a str, mut take: impl FnMut(AnsiPiece<'a>)) {
    let line = line.strip_suffix('\r').unwrap_or(line); // how lines end elsewhere
    let line = line.char_indices().nth(CUT).map_or(line, |(end, _)| &line[..end]);
    let mut rest = line;
    let mut from = 0;
    while let Some(at) = rest[from..].find("\u{1b}[").map(|at| at + from) {
        let inner = &rest[at + 2..];
        let end = inner.find(|char: char| !matches!(char, '0'..='9' | ';' | ':')).unwrap_or(inner.len());
        if inner[end..].starts_with('m') && end <= 64 {
            if at > 0 {
                take(AnsiPiece::Text(&rest[..at]));
            }
            take(AnsiPiece::Looks(&inner[..end]));
            rest = &inner[end + 1..];
            from = 0;
        } else {
            from = at + 2; // something else: it stays, to be seen
        }
    }
    if !rest.is_empty() {
        take(AnsiPiece::Text(rest));
    }
}

fn apply_style_codes(look: &mut TextStyle, numbers: &str) {
    let mut numbers = numbers.split([';', ':']).map(|it| it.parse::<u16>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => *look = TextStyle::default(),
            1 => look.bold = true,
            2 => look.dim = true,
            3 => look.italic = true,
            4 => look.under = true,
            7 => look.inverse = true,
            9 => look.gone = true,
            22 => (look.bold, look.dim) = (false, false),
            23 => look.italic = false,
            24 => look.under = false,
            27 => look.inverse = false,
            29 => look.gone = false,
            30..=37 => look.fore = Some((number - 30) as u8),
            38 => look.fore = parse_color(&mut numbers).or(look.fore),
            39 => look.fore = None,
            40..=47 => look.back = Some((number - 40) as u8),
            48 => look.back = parse_color(&mut numbers).or(look.back),
            49 => look.back = None,
            90..=97 => look.fore = Some((number - 90 + 8) as u8),
            100..=107 => look.back = Some((number - 100 + 8) as u8),
            _ => {}
        }
    }
}

/// One of the sixteen colours we have, the nearest to the one that is meant.
fn parse_color(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match numbers.next()? {
        2 => {
            let mut next = || numbers.next().map(|it| it.min(255));
            Some(nearest_color(next()?, next()?, next()?))
        }
        5 => match numbers.next()? {
            index @ 0..=15 => Some(index as u8),
            index @ 16..=231 => {
                let level = |part: u16| if part == 0 { 0 } else { 55 + 40 * part };
                let index = index - 16;
                Some(nearest_color(level(index / 36), level(index / 6 % 6), level(index % 6)))
            }
            index => {
                let grey = 8 + 10 * (index.min(255).saturating_sub(232));
                Some(nearest_color(grey, grey, grey))
            }
        },
        _ => None,
    }
}

fn nearest_color(red: u16, green: u16, blue: u16) -> u8 {
    let most = red.max(green).max(blue);
    let bit = |part: u16, bit: u8| if part > 40 && part * 2 > most { bit } else { 0 };
    let hue = bit(red, 1) | bit(green, 2) | bit(blue, 4);
    match (hue, most) {
        (0, _) => {
            if most > 40 {
                8
            } else {
                0
            }
        }
        (7, 0..=150) => 8,
        (7, 151..=220) => 7,
        (hue, 201..) => hue + 8,
        (hue, _) => hue,
    }
}

fn open(look: TextStyle, to: &mut Markup) {
    const FORE: [&str; 16] = [
        " f0", " f1", " f2", " f3", " f4", " f5", " f6", " f7", " f8", " f9", " f10", " f11", " f12", " f13",
        " f14", " f15",
    ];
    const BACK: [&str; 16] = [
        " b0", " b1", " b2", " b3", " b4", " b5", " b6", " b7", " b8", " b9", " b10", " b11", " b12", " b13",
        " b14", " b15",
    ];
    to.push_tag("<span class=\"ansi");
    for (is, class) in [
        (look.bold, " bold"),
        (look.dim, " dim"),
        (look.italic, " italic"),
        (look.under, " under"),
        (look.inverse, " inverse"),
        (look.gone, " gone"),
    ] {
        if is {
            to.push_tag(class);
        }
    }
    if let Some(fore) = look.fore {
        to.push_tag(FORE[usize::from(fore) % 16]);
    }
    if let Some(back) = look.back {
        to.push_tag(BACK[usize::from(back) % 16]);
    }
    to.push_tag("\">");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let mut html = Markup::default();
        render_line(line, &mut html);
        assert_eq!(html.as_str(), expected);
    }

    #[test]
    fn colours_become_classes() {
        check("\u{1b}[31mred\u{1b}[0m plain", "<span class=\"ansi f1\">red</span> plain");
        check("\u{1b}[1;38;5;10mok\u{1b}[m!", "<span class=\"ansi bold f10\">ok</span>!");
        check("\u{1b}[38;2;255;0;0mx", "<span class=\"ansi f9\">x</span>");
        check("\u{1b}[48;5;21mx\u{1b}[49my", "<span class=\"ansi b12\">x</span>y");
    }

    #[test]
    fn other_sequences_are_shown_and_not_obeyed() {
        check("\u{1b}[2Jgone", "␛[2Jgone");
        check("a\u{1b}]8;;https://x\u{7}b", "a␛]8;;https://x␇b");
        check("\u{1b}[31", "␛[31");
        check("\u{1b}[?25h\u{1b}[32mok", "␛[?25h<span class=\"ansi f2\">ok</span>");
        check("a\rb\r", "a␍b");
    }

    #[test]
    fn colours_never_let_markup_through() {
        check("\u{1b}[31m<svg>\u{1b}[0m&", "<span class=\"ansi f1\">&lt;svg&gt;</span>&amp;");
        check("\u{1b}[\"onload=x;m", "␛[&quot;onload=x;m");
    }

    #[test]
    fn numbers_beyond_all_bounds_do_no_harm() {
        check(
            "\u{1b}[99999999999999m\u{1b}[38;5;999mx\u{1b}[38;5mx",
            "<span class=\"ansi f15\">x</span><span class=\"ansi f15\">x</span>",
        );
        check(&format!("\u{1b}[{}mx", "1;".repeat(400)), &format!("␛[{}mx", "1;".repeat(400)));
    }

    #[test]
    fn every_letter_is_there_without_colours() {
        assert_eq!(strip_colors("\u{1b}[1;32m✓\u{1b}[0m ok \u{1b}[K"), "✓ ok ␛[K");
    }
}

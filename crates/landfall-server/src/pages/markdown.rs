//! A little Markdown: headings, lists, quotes, code, emphasis. There are no links, pictures or tags: what a task says is shown,
//! and leads nowhere.

use super::markup::Markup;

/// A text as HTML. Whatever is not understood is shown as it was written.
pub(crate) fn render_markdown(text: &str) -> Markup {
    let mut html = Markup::default();
    let mut open = MarkdownBlock::None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(fence) = code_fence(trimmed) {
            open.close(&mut html);
            html.push_tag("<pre tabindex=\"0\"><code>"); // whoever has no mouse scrolls it, too
            for line in lines.by_ref() {
                if line.trim() == fence {
                    break;
                }
                html.text(line).push_tag("\n");
            }
            html.push_tag("</code></pre>");
            continue;
        }
        if trimmed.is_empty() {
            open.close(&mut html);
            continue;
        }
        if let Some(heads) = split_table_cells(trimmed)
            && lines.peek().is_some_and(|line| is_rule(line))
        {
            open.close(&mut html);
            lines.next();
            render_table(&heads, &mut lines, &mut html);
            continue;
        }
        if let Some((level, title)) = parse_heading(trimmed) {
            open.close(&mut html);
            // The page has its own headings above these.
            let (from, to) = match level {
                1 => ("<h3>", "</h3>"),
                2 => ("<h4>", "</h4>"),
                _ => ("<h5>", "</h5>"),
            };
            html.push_tag(from);
            render_inline(title, &mut html);
            html.push_tag(to);
            continue;
        }
        let (block, words) = match parse_list_item(trimmed) {
            Some(found) => found,
            None => match trimmed.strip_prefix('>') {
                Some(words) => (MarkdownBlock::Quote, words.trim_start()),
                None if open.is_list() && line.starts_with(' ') => {
                    html.push_tag("<br>");
                    render_inline(trimmed, &mut html);
                    continue;
                }
                None => (MarkdownBlock::Paragraph, line),
            },
        };
        open.switch_block(block, &mut html);
        render_inline(words, &mut html);
    }
    open.close(&mut html);
    html
}

/// The cells of a row of a table: `| one | two |`.
fn split_table_cells(line: &str) -> Option<Vec<String>> {
    const BAR: &str = "\u{0}"; // what `\|` is meanwhile: a bar within a cell
    let inner = line.trim().strip_prefix('|')?.replace("\\|", BAR);
    let inner = inner.trim_end().strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.replace(BAR, "|").trim().to_owned()).collect())
}

/// Whether a line stands between the head of a table and its rows: `|---|:-:|`.
fn is_rule(line: &str) -> bool {
    let is_dashes =
        |cell: &String| cell.contains('-') && cell.bytes().all(|byte| matches!(byte, b'-' | b':'));
    split_table_cells(line).is_some_and(|cells| cells.iter().all(is_dashes))
}

/// The rows of a table, as long as there are any.
fn render_table<'a>(
    heads: &[String],
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    html: &mut Markup,
) {
    html.push_tag("<div class=\"scroll-x\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table class=\"table\"><thead><tr>");
    for head in heads {
        html.push_tag("<th scope=\"col\">");
        render_inline(head, html);
        html.push_tag("</th>");
    }
    html.push_tag("</tr></thead><tbody>");
    while let Some(row) = lines.peek().and_then(|line| split_table_cells(line)) {
        lines.next();
        html.push_tag("<tr>");
        for at in 0..heads.len() {
            html.push_tag("<td>");
            render_inline(row.get(at).map_or("", String::as_str), html);
            html.push_tag("</td>");
        }
        html.push_tag("</tr>");
    }
    html.push_tag("</tbody></table></div>");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkdownBlock {
    None,
    Paragraph,
    Quote,
    Bullets,
    Numbers,
}

impl MarkdownBlock {
    fn is_list(self) -> bool {
        matches!(self, Self::Bullets | Self::Numbers)
    }

    /// A line of `next` follows.
    fn switch_block(&mut self, next: Self, html: &mut Markup) {
        if *self == next {
            html.push_tag(if next.is_list() { "</li><li>" } else { "<br>" });
            return;
        }
        self.close(html);
        *self = next;
        html.push_tag(match next {
            Self::None => "",
            Self::Paragraph => "<p>",
            Self::Quote => "<blockquote>",
            Self::Bullets => "<ul><li>",
            Self::Numbers => "<ol><li>",
        });
    }

    fn close(&mut self, html: &mut Markup) {
        html.push_tag(match std::mem::replace(self, Self::None) {
            Self::None => "",
            Self::Paragraph => "</p>",
            Self::Quote => "</blockquote>",
            Self::Bullets => "</li></ul>",
            Self::Numbers => "</li></ol>",
        });
    }
}

fn code_fence(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence))
}

fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ').filter(|_| (1..=6).contains(&level))?;
    Some((level, title.trim().trim_end_matches('#').trim_end()))
}

fn parse_list_item(line: &str) -> Option<(MarkdownBlock, &str)> {
    if let Some(words) = ["- ", "* ", "+ "].into_iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some((MarkdownBlock::Bullets, words));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let words = line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "))?;
    (1..=4).contains(&digits).then_some((MarkdownBlock::Numbers, words))
}

/// Code, strong and emphasised words in one line.
fn render_inline(line: &str, html: &mut Markup) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, from) = rest.split_at(at);
        let starts_word = before.chars().next_back().is_none_or(|char| !char.is_alphanumeric());
        let marks: &[(&str, &'static str, &'static str)] =
            &[("`", "<code>", "</code>"), ("**", "<strong>", "</strong>"), ("*", "<em>", "</em>")];
        let found = marks.iter().find_map(|(mark, open, close)| {
            let inner = from.strip_prefix(mark)?;
            let end = inner.find(mark)?;
            let words = &inner[..end];
            let fits = *mark == "`" || (starts_word && !words.starts_with(' ') && !words.ends_with(' '));
            (fits && !words.is_empty()).then_some((words, &inner[end + mark.len()..], *open, *close))
        });
        html.text(before);
        match found {
            Some((words, after, open, close)) => {
                html.push_tag(open).text(words).push_tag(close);
                rest = after;
            }
            None => {
                html.text(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    html.text(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render_markdown(text).as_str(), expected);
    }

    #[test]
    fn the_usual_forms_are_drawn() {
        check("# A `b`", "<h3>A `b`</h3>".replace("`b`", "<code>b</code>").as_str());
        check("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>");
        check(
            "- a\n- **b**\n  more\n\n1. x\n2. y",
            "<ul><li>a</li><li><strong>b</strong><br>more</li></ul><ol><li>x</li><li>y</li></ol>",
        );
        check("> said\n> again", "<blockquote>said<br>again</blockquote>");
        check(
            "```rust\nlet a = \"<b>\";\n```\nafter",
            "<pre tabindex=\"0\"><code>let a = &quot;&lt;b&gt;&quot;;\n</code></pre><p>after</p>",
        );
        check("*so* be it", "<p><em>so</em> be it</p>");
        check(
            "| a | b |\n|---|---|\n| `x\\|y` | <b> |\nafter",
            "<div class=\"scroll-x\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table class=\"table\"><thead><tr>\
             <th scope=\"col\">a</th><th scope=\"col\">b</th></tr></thead><tbody><tr><td><code>x|y</code></td>\
             <td>&lt;b&gt;</td></tr></tbody></table></div><p>after</p>",
        );
        check("| no table", "<p>| no table</p>");
    }

    #[test]
    fn nothing_leads_anywhere_and_no_tag_gets_through() {
        check("[x](vbscript:alert(1))", "<p>[x](vbscript:alert(1))</p>");
        check("<svg>alert(1)</svg>", "<p>&lt;svg&gt;alert(1)&lt;/svg&gt;</p>");
        check("`<b>` **<i>** # <u>", "<p><code>&lt;b&gt;</code> <strong>&lt;i&gt;</strong> # &lt;u&gt;</p>");
        check("# <img onerror=x>", "<h3>&lt;img onerror=x&gt;</h3>");
        check(
            "```\n</code></pre><svg>",
            "<pre tabindex=\"0\"><code>&lt;/code&gt;&lt;/pre&gt;&lt;svg&gt;\n</code></pre>",
        );
    }

    #[test]
    fn what_is_not_closed_stays_as_it_was_written() {
        check("a * b ** c ` d", "<p>a * b ** c ` d</p>");
        check("snake*case*name 2*3*4", "<p>snake*case*name 2*3*4</p>");
        check("```\nnever closed", "<pre tabindex=\"0\"><code>never closed\n</code></pre>");
        check("**", "<p>**</p>");
    }

    #[test]
    fn tags_are_closed_whatever_comes() {
        // Every mixture of a few pieces: what is opened is closed in order.
        let pieces = ["# x", "- a", "1. b", "> q", "```", "", "p *e* `c`", "  in", "**b**", "<x>"];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    let html = render_markdown(&format!("{a}\n{b}\n{c}"));
                    balanced(html.as_str());
                }
            }
        }
    }

    #[track_caller]
    fn balanced(html: &str) {
        let mut open = Vec::new();
        for tag in html.split('<').skip(1) {
            let name = tag.split(['>', ' ']).next().expect("a part there is");
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{html}"),
                None if name == "br" => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{html}");
    }
}

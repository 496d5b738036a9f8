//! The keys, from the table that is obeyed.

use ratatui::text::{Line, Span};

use super::fit_columns;
use crate::top::keys::{BINDINGS, KeyGroup};
use crate::top::theme::Theme;

/// Every key, in two columns where there is room.
pub fn keys(width: usize) -> Vec<Line<'static>> {
    let columns: [&[KeyGroup]; 2] =
        [&[KeyGroup::Moving, KeyGroup::Run], &[KeyGroup::Task, KeyGroup::Screens]];
    let [left, right] =
        columns.map(|groups| groups.iter().flat_map(|group| group_rows(*group)).collect::<Vec<_>>());
    if width < 76 {
        return [left, right]
            .concat()
            .into_iter()
            .map(|(key, about)| help_line(&key, &about, width))
            .collect();
    }
    let half = width.min(120) / 2;
    let empty = (String::new(), String::new());
    (0..left.len().max(right.len()))
        .map(|place| {
            let mut row =
                help_line(&left.get(place).unwrap_or(&empty).0, &left.get(place).unwrap_or(&empty).1, half);
            let (key, about) = right.get(place).unwrap_or(&empty);
            row.spans.extend(help_line(key, about, half).spans);
            row
        })
        .collect()
}

fn group_rows(group: KeyGroup) -> Vec<(String, String)> {
    let mut rows = vec![(group.heading().to_owned(), String::new())];
    let of = BINDINGS.iter().filter(|binding| binding.group == group);
    rows.extend(of.map(|binding| (format!("  {}", binding.shown), binding.about.to_owned())));
    rows.push((String::new(), String::new()));
    rows
}

fn help_line(key: &str, about: &str, width: usize) -> Line<'static> {
    let key_width = 11.min(width);
    if about.is_empty() {
        return Line::from(Span::styled(fit_columns(key, width), Theme::strong()));
    }
    Line::from(vec![
        Span::styled(fit_columns(key, key_width), Theme::strong()),
        Span::raw(fit_columns(about, width.saturating_sub(key_width))),
    ])
}

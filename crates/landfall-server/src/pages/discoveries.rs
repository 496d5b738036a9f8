//! What agents found out.

use askama::Template;
use landfall_api::{DiscoveriesAsked, DiscoveryLine, Problem, TypedService as _};

use super::{PageContext, RenderedPage, parts, words};

const SHOWN_MAX: usize = 300; // the newest; whoever wants more searches the journal

#[derive(Template)]
#[template(path = "discoveries.html")]
struct DiscoveriesPage {
    discoveries: Vec<DiscoveryLine>,
    all: bool,
    more: usize,
    now_ms: i64,
}

pub(super) fn draw_discoveries_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let all = visit.query_value("all").is_some();
    let mut discoveries = visit.discoveries(DiscoveriesAsked { all })?.discoveries;
    discoveries.sort_by_key(|it| std::cmp::Reverse((impact_weight(&it.impact), it.seen_ms)));
    let more = discoveries.len().saturating_sub(SHOWN_MAX);
    discoveries.truncate(SHOWN_MAX);
    RenderedPage::new("Discoveries", &DiscoveriesPage { discoveries, all, more, now_ms: visit.now_ms() })
}

fn impact_weight(impact: &str) -> u8 {
    match impact {
        "critical" => 3,
        "high" => 2,
        "medium" => 1,
        _ => 0,
    }
}

fn tone(impact: &str) -> &'static str {
    match impact {
        "critical" => "bad",
        "high" => "warn",
        "medium" => "info",
        _ => "quiet",
    }
}

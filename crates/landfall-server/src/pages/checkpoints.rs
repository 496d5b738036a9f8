//! Checkpoints: where the base was, what going back takes away, and going back.

use askama::Template;
use landfall_api::{CheckpointAsked, CheckpointDetail, CheckpointLine, Nothing, Problem, TypedService as _};

use super::{PageContext, RenderedPage, parts, words};

#[derive(Template)]
#[template(path = "checkpoints.html")]
struct CheckpointsPage {
    checkpoints: Vec<CheckpointLine>,
    open: Option<CheckpointDetail>,
    now_ms: i64,
}

pub(super) fn draw_checkpoints_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    let checkpoints = visit.checkpoints(Nothing {})?.checkpoints;
    let open = match visit.query_value("name") {
        Some(name) => Some(visit.checkpoint(CheckpointAsked { name: name.to_owned() })?),
        None => None,
    };
    RenderedPage::new("Checkpoints", &CheckpointsPage { checkpoints, open, now_ms: visit.now_ms() })
}

/// Why a checkpoint was made, in words.
fn why(word: &str) -> &str {
    match word {
        "landings" => "after so many landings",
        "sprint" => "before a sprint",
        "person" => "by a person",
        "restore" => "before going back",
        other => other,
    }
}

fn link_to(name: &str) -> String {
    super::build_link("/checkpoints", &[("name", name)])
}

#[cfg(test)]
mod tests {
    use landfall_api::{LostCommit, LostTask, WireTaskId};

    use super::*;

    #[test]
    fn what_is_lost_is_told_before_going_back() {
        let hostile = || "<script>x</script>".to_owned();
        let line =
            CheckpointLine { name: hostile(), at_ms: 0, commit: hostile(), why: hostile(), landed_since: 2 };
        let lost = vec![LostTask { task: WireTaskId(4), title: hostile(), commit: None }];
        let commits = vec![LostCommit { commit: hostile(), title: hostile(), author: hostile() }];
        let open = Some(CheckpointDetail { checkpoint: line.clone(), lost, commits });
        let html = CheckpointsPage { checkpoints: vec![line], open, now_ms: 0 }.render().expect("drawn");
        assert!(
            !html.contains("<script") && html.contains("T4") && html.contains("/do/checkpoint_restore"),
            "{html}"
        );
        let none =
            CheckpointsPage { checkpoints: Vec::new(), open: None, now_ms: 0 }.render().expect("drawn");
        assert!(none.contains("class=\"empty\""), "{none}");
    }
}

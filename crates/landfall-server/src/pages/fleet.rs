//! What is there: agents at work, folders, lanes, the disk, and what could be given back.

use askama::Template;
use landfall_api::{Fleet, FleetAsked, FleetDisk, Problem, TypedService as _};

use super::{PageContext, RenderedPage, parts, words};

#[derive(Template)]
#[template(path = "fleet.html")]
struct FleetPage<'a> {
    fleet: &'a Fleet,
    count: bool,
    installed: bool,
    now_ms: i64,
}

pub(super) fn draw_fleet_page(visit: &PageContext<'_>) -> Result<RenderedPage, Problem> {
    // Both take a while, so nobody waits for them who did not ask.
    let (count, agents) = (visit.query_value("count").is_some(), visit.query_value("agents").is_some());
    let fleet = visit.fleet(FleetAsked { count, agents })?;
    RenderedPage::new("Fleet", &FleetPage { fleet: &fleet, count, installed: agents, now_ms: visit.now_ms() })
}

/// What the room on the disk means.
fn disk_tone(disk: &FleetDisk) -> (&'static str, &'static str) {
    match disk.free_bytes {
        free if free < disk.stop_bytes => ("bad", "too little: no agent starts"),
        free if free < disk.warn_bytes => ("warn", "little"),
        _ => ("good", "enough"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar is coarser than a float")]
fn share(bytes: u64, disk: &FleetDisk) -> parts::ProgressBar {
    let all: u64 = disk.used.iter().map(|it| it.bytes).sum();
    parts::progress_bar(bytes as f64 * 100.0 / all.max(1) as f64, "info", words::bytes(bytes))
}

#[cfg(test)]
mod tests {
    use landfall_api::{
        AgentProfile, AgentsFound, FleetAgent, FleetLane, FleetOrphan, FleetUse, FleetWorkspace, Reclaimed,
        ReclaimedItem, WireTaskId,
    };

    use super::*;

    #[test]
    fn the_fleet_is_drawn_and_words_stay_words() {
        let hostile = || "<script>x</script>".to_owned();
        let fleet = Fleet {
            seq: 1,
            agents: vec![FleetAgent {
                task: WireTaskId(1),
                title: hostile(),
                attempt: 1,
                iteration: 2,
                pid: Some(3),
                processes: Some(4),
                since_ms: 0,
                cpu_ms: Some(5),
                memory_bytes: Some(6),
                output_bytes: 7,
                agent: None,
            }],
            workspaces: vec![FleetWorkspace {
                task: None,
                name: hostile(),
                status: None,
                bytes: Some(1),
                state: "left over".to_owned(),
                why: hostile(),
            }],
            workspaces_more: 3,
            lanes: vec![FleetLane { name: hostile(), busy: true, check: Some(hostile()), bytes: None }],
            warm: vec![hostile()],
            disk: Some(FleetDisk {
                free_bytes: 5,
                warn_bytes: 10,
                pause_bytes: 3,
                stop_bytes: 1,
                used: vec![FleetUse { kind: hostile(), bytes: 3 }],
            }),
            reclaimable: Some(Reclaimed {
                dry_run: true,
                items: vec![ReclaimedItem {
                    what: hostile(),
                    path: hostile(),
                    bytes: 1,
                    why_safe: hostile(),
                }],
                bytes: 1,
                kinds: Vec::new(),
            }),
            installed: Some(AgentsFound {
                kinds: Vec::new(),
                profiles: vec![AgentProfile {
                    profile: hostile(),
                    kind: hostile(),
                    model: None,
                    effort: None,
                    style: "fresh".to_owned(),
                    account: hostile(),
                    failover: None,
                    sandbox: "strict".to_owned(),
                    path: None,
                    command: Some(hostile()),
                    problem: Some(hostile()),
                    hint: None,
                    probe: None,
                }],
            }),
            orphans: vec![FleetOrphan { name: hostile(), pid: Some(1), hint: hostile() }],
        };
        let html =
            FleetPage { fleet: &fleet, count: true, installed: true, now_ms: 0 }.render().expect("drawn");
        assert!(!html.contains("<script") && !html.contains("style="), "{html}");
        assert!(html.contains("/do/reclaim"), "{html}");
        assert_eq!(disk_tone(fleet.disk.as_ref().expect("a disk")).0, "warn");
    }
}

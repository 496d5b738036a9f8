//! `/metrics`: how the server and the project are, for a collector.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use landfall_api::{Access, BudgetScope, Nothing, Request as Asked, Response, StatusReport};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::answer::{self, HttpResponse};
use crate::api;
use crate::door::{Requester, ServerState};
use crate::router::{Guard, RouteTable};

/// What is counted while the server runs.
pub(crate) struct Metrics {
    asked: Family<RequestLabels, Counter>,
    took: Family<NameLabel, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabel {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.0005, 4.0, 8));
        Self { asked: Family::default(), took: Family::new_with_constructor(buckets) }
    }
}

impl Metrics {
    /// Counts a request that was carried out.
    pub(crate) fn note_request(&self, operation: &'static str, good: bool, took: Duration) {
        let result = if good { "ok" } else { "problem" };
        self.asked.get_or_create(&RequestLabels { operation, result }).inc();
        self.took.get_or_create(&NameLabel { operation }).observe(took.as_secs_f64());
    }
}

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.get("/metrics", Guard::Needs(Access::Read), serve_metrics);
}

async fn serve_metrics(State(shared): State<Arc<ServerState>>, request: Request<Body>) -> HttpResponse {
    let who = request.extensions().get::<Requester>().cloned().unwrap_or(Requester::Nobody);
    let status = match api::call(&shared, &who, Asked::Status(Nothing {})).await {
        Ok(Response::Status(status)) => status,
        Ok(_) => return answer::of(500, "text/plain; charset=utf-8", ""),
        Err(problem) => return answer::problem(&problem),
    };
    let mut text = String::new();
    match encode(&mut text, &build_registry(&shared, &status)) {
        Ok(()) => answer::of(200, "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
        Err(_) => answer::of(500, "text/plain; charset=utf-8", ""),
    }
}

/// Everything there is to collect, as it is now.
fn build_registry(shared: &ServerState, status: &StatusReport) -> Registry {
    let mut registry = Registry::with_prefix("landfall");
    let it = &mut registry;
    it.register("requests", "Requests carried out", shared.metrics.asked.clone());
    it.register("request_seconds", "How long requests took", shared.metrics.took.clone());
    let tasks = Family::<StatusLabel, Gauge>::default();
    for (word, count) in &status.counts {
        let label = StatusLabel { status: word.to_string() };
        tasks.get_or_create(&label).set(i64::try_from(*count).unwrap_or(i64::MAX));
    }
    it.register("tasks", "Tasks by status", tasks);
    let number = |it: &mut Registry, name: &str, help: &str, value: u64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        it.register(name, help, gauge);
    };
    number(it, "viewers", "Who watches the stream of events", shared.feed.viewer_count() as u64);
    number(
        it,
        "agents_at_work",
        "Agents at work",
        status.active.iter().filter(|it| it.agent.is_some()).count() as u64,
    );
    number(
        it,
        "slots",
        "Agents that may work at once",
        status.run.as_ref().map_or(0, |run| u64::from(run.slots)),
    );
    number(it, "run", "Whether a run is under way", u64::from(status.run.is_some()));
    number(it, "reviews_owed", "Landed tasks to look at", status.reviews_owed);
    number(it, "issues_left", "Landed issues with boxes to tick", status.issues_left);
    if let Some(disk) = &status.disk {
        number(it, "disk_free_bytes", "Room on the disk of the state folder", disk.free_bytes);
    }
    let spent = Gauge::<f64, AtomicU64>::default();
    let today = status.spending.iter().find(|it| it.scope == BudgetScope::Day);
    spent.set(today.and_then(|it| it.usage.cost_usd).unwrap_or(0.0));
    it.register("spent_today_usd", "Money spent today, as far as agents tell", spent);
    registry
}

//! What the fake answers, route by route.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::state::{FakeComment, FakeIssue, FakePull, FakeRepository, FakeReview, id_of, moment};
use super::{FakeGithubReply, actions};
use crate::http::HttpRequest;

pub(super) type QueryParams = [(String, String)];

/// The path below `/api/v3` and the query, decoded.
pub(super) fn parted(target: &str) -> (String, Vec<(String, String)>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix("/api/v3").unwrap_or(path);
    let pairs = query.split('&').filter(|it| !it.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    (path.to_owned(), pairs.map(|(name, value)| (decoded(name), decoded(value))).collect())
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn value<'a>(query: &'a QueryParams, name: &str) -> Option<&'a str> {
    query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Does what a request asks for, and answers.
pub(super) fn route(
    world: &mut FakeRepository,
    at: SocketAddr,
    request: &HttpRequest,
    path: &str,
    query: &QueryParams,
    body: &Value,
) -> FakeGithubReply {
    let wanted = format!("Bearer {}", world.token);
    if request.header("authorization") != Some(&wanted) {
        return FakeGithubReply::said(401, "Bad credentials");
    }
    if world.left == 0 {
        let reset = world.date() + 600;
        return FakeGithubReply::said(403, "API rate limit exceeded")
            .with("x-ratelimit-remaining", 0)
            .with("x-ratelimit-reset", reset);
    }
    let get = request.method == "GET";
    let reply = inner(world, at, &request.method, path, query, body);
    let reply = if get && reply.status == 200 && reply.body.is_array() {
        paged(at, path, query, reply)
    } else {
        reply
    };
    let mut hasher = DefaultHasher::new();
    (reply.body.to_string(), &reply.headers).hash(&mut hasher);
    let etag = format!("W/\"{:016x}\"", hasher.finish());
    if get && reply.status == 200 && request.header("if-none-match") == Some(&etag) {
        return FakeGithubReply::new(304, Value::Null).with("etag", etag); // and it costs nothing
    }
    world.left -= 1;
    let reset = world.date() + 3_000;
    reply.with("etag", etag).with("x-ratelimit-remaining", world.left).with("x-ratelimit-reset", reset)
}

/// One page of a list, and where the next one is.
pub(super) fn paged(
    at: SocketAddr,
    path: &str,
    query: &QueryParams,
    mut reply: FakeGithubReply,
) -> FakeGithubReply {
    let number =
        |name: &str, default: usize| value(query, name).and_then(|it| it.parse().ok()).unwrap_or(default);
    let (page, per_page) = (number("page", 1).max(1), number("per_page", 30).clamp(1, 100));
    let Value::Array(all) = reply.body else { return reply };
    let pages = all.len().div_ceil(per_page);
    reply.body = all.into_iter().skip((page - 1) * per_page).take(per_page).collect();
    if page < pages {
        // GitHub names repositories by their ids in these.
        let before = if path.starts_with("/repositories/") { 3 } else { 4 };
        let below = path.split('/').skip(before).collect::<Vec<_>>().join("/");
        let others: String = query
            .iter()
            .filter(|(name, _)| name != "page")
            .map(|(name, value)| format!("{name}={}&", plain(value)))
            .collect();
        let link = |page: usize| format!("<http://{at}/api/v3/repositories/1/{below}?{others}page={page}>");
        let link = format!("{}; rel=\"next\", {}; rel=\"last\"", link(page + 1), link(pages));
        return reply.with("link", link);
    }
    reply
}

fn plain(text: &str) -> String {
    let letter = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(letter).collect()
}

fn inner(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    path: &str,
    query: &QueryParams,
    body: &Value,
) -> FakeGithubReply {
    let parts: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let missing = || FakeGithubReply::said(404, "Not Found");
    match (method, &parts[..]) {
        ("GET", ["user"]) if world.login.ends_with("[bot]") => {
            FakeGithubReply::said(403, "Resource not accessible by integration")
        }
        ("GET", ["user"]) => FakeGithubReply::new(200, world.user(&world.login)),
        ("POST", ["api", "graphql"]) => graphql(world, body),
        (_, ["repos", owner, name, rest @ ..]) => {
            let asked = format!("{owner}/{name}");
            if world.former.as_deref() == Some(&asked) {
                let rest: String = rest.iter().map(|part| format!("/{}", plain(part))).collect();
                let to = format!("http://{at}/api/v3/repositories/1{rest}");
                return FakeGithubReply::said(301, "Moved Permanently").with("location", to);
            }
            if asked != world.repository {
                return missing();
            }
            repository(world, at, method, rest, query, body).unwrap_or_else(missing)
        }
        (_, ["repositories", "1", rest @ ..]) => {
            repository(world, at, method, rest, query, body).unwrap_or_else(missing)
        }
        // Another repository, to which issues were moved.
        ("GET", ["repositories", "2", "issues", number]) => {
            match world.transferred.values().find(|it| it.ends_with(&format!("#{number}"))) {
                Some(place) => {
                    let (repository, number) = place.split_once('#').expect("written so");
                    let url = format!("http://{at}/api/v3/repos/{repository}");
                    FakeGithubReply::new(
                        200,
                        json!({ "number": number.parse::<u64>().ok(), "repository_url": url }),
                    )
                }
                None => missing(),
            }
        }
        _ => missing(),
    }
}

fn repository(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    parts: &[&str],
    query: &QueryParams,
    body: &Value,
) -> Option<FakeGithubReply> {
    match (method, parts) {
        ("GET", []) => Some(FakeGithubReply::new(
            200,
            json!({ "id": 1, "full_name": world.repository, "default_branch": world.default_branch, "private": false }),
        )),
        ("GET", ["labels"]) => {
            let labels = world.labels.iter().map(|label| world.label(label)).collect();
            Some(FakeGithubReply::new(200, labels))
        }
        ("GET", ["labels", name]) => {
            let found = world.labels.iter().find(|label| label.eq_ignore_ascii_case(name))?;
            Some(FakeGithubReply::new(200, world.label(found)))
        }
        ("POST", ["labels"]) => {
            let name = body["name"].as_str()?;
            if world.labels.iter().any(|label| label.eq_ignore_ascii_case(name)) {
                return Some(invalid("Label", "name", "already_exists"));
            }
            world.labels.insert(name.to_owned());
            Some(FakeGithubReply::new(201, world.label(name)))
        }
        (_, ["issues", rest @ ..]) => issues(world, at, method, rest, query, body),
        (_, ["pulls", rest @ ..]) => pulls(world, at, method, rest, query, body),
        ("GET", ["commits", _, "check-runs"]) | (_, ["actions" | "check-runs", ..]) => {
            actions::route(world, at, method, parts, query)
        }
        ("GET", ["commits", sha, "status"]) => {
            let statuses = world.statuses.get(*sha).cloned().unwrap_or_default();
            let statuses: Vec<Value> = statuses
                .into_iter()
                .map(|it| json!({ "context": it.context, "state": it.state, "target_url": null, "created_at": moment(world.now) }))
                .collect();
            Some(FakeGithubReply::new(
                200,
                json!({ "state": "pending", "sha": sha, "total_count": statuses.len(), "statuses": statuses }),
            ))
        }
        _ => None,
    }
}

fn invalid(resource: &str, field: &str, code: &str) -> FakeGithubReply {
    let errors = json!([{ "resource": resource, "field": field, "code": code }]);
    FakeGithubReply::new(
        422,
        json!({ "message": "Validation Failed", "errors": errors, "documentation_url": "" }),
    )
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn issues(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    parts: &[&str],
    query: &QueryParams,
    body: &Value,
) -> Option<FakeGithubReply> {
    match (method, parts) {
        ("GET", []) => Some(FakeGithubReply::new(200, listed(world, at, query))),
        ("POST", []) => {
            let Some(title) = body["title"].as_str().filter(|title| !title.is_empty()) else {
                return Some(invalid("Issue", "title", "missing_field"));
            };
            let (number, now) = (world.next_number(), world.tick());
            let labels = strings(&body["labels"]);
            world.labels.extend(labels.iter().cloned());
            let issue = FakeIssue {
                title: title.to_owned(),
                body: body["body"].as_str().map(str::to_owned),
                labels,
                author: world.login.clone(),
                created: now,
                updated: now,
                ..FakeIssue::default()
            };
            world.issues.insert(number, issue);
            Some(FakeGithubReply::new(201, world.issue(at, number)))
        }
        ("DELETE", ["comments", id]) => {
            let id: u64 = id.parse().ok()?;
            let lists = world.issues.values_mut().map(|it| &mut it.comments);
            for comments in lists.chain(world.pulls.values_mut().map(|it| &mut it.comments)) {
                if let Some(index) = comments.iter().position(|it| it.id == id) {
                    comments.remove(index);
                    return Some(FakeGithubReply::new(204, Value::Null));
                }
            }
            None
        }
        (_, [number, rest @ ..]) => {
            let number: u64 = number.parse().ok()?;
            if let Some(place) = world.transferred.get(&number) {
                let there = place.split_once('#')?.1;
                let to = format!("http://{at}/api/v3/repositories/2/issues/{there}");
                return Some(FakeGithubReply::said(301, "Moved Permanently").with("location", to));
            }
            one_issue(world, at, method, number, rest, query, body)
        }
        _ => None,
    }
}

/// Issues and pull requests, as the list of issues has them.
fn listed(world: &FakeRepository, at: SocketAddr, query: &QueryParams) -> Value {
    let is = |name: &str, wanted: &str| value(query, name) == Some(wanted);
    let wanted: Vec<String> =
        value(query, "labels").map(|it| it.split(',').map(str::to_lowercase).collect()).unwrap_or_default();
    let since = value(query, "since").unwrap_or_default();
    let mut found: Vec<(u64, u64, Value)> = Vec::new();
    for (number, issue) in &world.issues {
        let labelled = wanted.iter().all(|label| issue.labels.iter().any(|it| it.to_lowercase() == *label));
        let stands = is("state", "all") || issue.closed.is_none();
        let by = value(query, "creator").is_none_or(|creator| creator == issue.author);
        if labelled
            && stands
            && by
            && moment(issue.updated).as_str() >= since
            && !world.transferred.contains_key(number)
        {
            found.push((issue.created, issue.updated, world.issue(at, *number)));
        }
    }
    for (number, pull) in &world.pulls {
        let stands = is("state", "all") || !pull.closed;
        let by = value(query, "creator").is_none_or(|creator| creator == pull.author);
        if wanted.is_empty() && stands && by && moment(pull.updated).as_str() >= since {
            found.push((pull.created, pull.updated, world.pull_as_issue(at, *number)));
        }
    }
    found.sort_by_key(|(created, updated, _)| if is("sort", "updated") { *updated } else { *created });
    if !is("direction", "asc") {
        found.reverse();
    }
    found.into_iter().map(|(.., issue)| issue).collect()
}

fn one_issue(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    number: u64,
    parts: &[&str],
    query: &QueryParams,
    body: &Value,
) -> Option<FakeGithubReply> {
    if let ["comments"] = parts {
        return comments(world, method, number, query, body);
    }
    if !world.issues.contains_key(&number) {
        let is_pull = world.pulls.contains_key(&number) && method == "GET" && parts.is_empty();
        return is_pull.then(|| FakeGithubReply::new(200, world.pull_as_issue(at, number)));
    }
    if method != "GET" {
        let now = world.tick();
        world.issues.get_mut(&number)?.updated = now;
    }
    match (method, parts) {
        ("GET", []) => Some(FakeGithubReply::new(200, world.issue(at, number))),
        ("PATCH", []) => {
            let now = world.now;
            let issue = world.issues.get_mut(&number)?;
            if let Some(title) = body["title"].as_str() {
                title.clone_into(&mut issue.title);
            }
            if let Some(text) = body["body"].as_str() {
                issue.body = Some(text.to_owned());
            }
            match body["state"].as_str() {
                Some("closed") => {
                    issue.closed = Some(body["state_reason"].as_str().unwrap_or("completed").to_owned());
                    issue.events.push(("closed".to_owned(), now));
                }
                Some("open") if issue.closed.is_some() => {
                    issue.closed = None;
                    issue.events.push(("reopened".to_owned(), now));
                }
                Some("open") => {}
                Some(_) => return Some(invalid("Issue", "state", "invalid")),
                None => {}
            }
            Some(FakeGithubReply::new(200, world.issue(at, number)))
        }
        ("GET", ["labels"]) => {
            let labels = world.issues[&number].labels.iter().map(|label| world.label(label)).collect();
            Some(FakeGithubReply::new(200, labels))
        }
        ("POST", ["labels"]) => {
            for label in strings(&body["labels"]) {
                world.labels.insert(label.clone());
                let labels = &mut world.issues.get_mut(&number)?.labels;
                if !labels.iter().any(|it| it.eq_ignore_ascii_case(&label)) {
                    labels.push(label);
                }
            }
            let labels = world.issues[&number].labels.iter().map(|label| world.label(label)).collect();
            Some(FakeGithubReply::new(200, labels))
        }
        ("DELETE", ["labels", name]) => {
            let labels = &mut world.issues.get_mut(&number)?.labels;
            let index = labels.iter().position(|label| label.eq_ignore_ascii_case(name));
            let Some(index) = index else { return Some(FakeGithubReply::said(404, "Label does not exist")) };
            labels.remove(index);
            let labels = world.issues[&number].labels.iter().map(|label| world.label(label)).collect();
            Some(FakeGithubReply::new(200, labels))
        }
        ("GET", ["events"]) => {
            let events = world.issues[&number].events.iter().enumerate();
            let events = events.map(|(id, (event, at))| json!({ "id": id, "event": event, "created_at": moment(*at), "actor": world.user("someone") }));
            Some(FakeGithubReply::new(200, events.collect()))
        }
        ("GET", ["sub_issues"]) => {
            let children =
                world.issues[&number].children.iter().map(|child| world.issue(at, *child)).collect();
            Some(FakeGithubReply::new(200, children))
        }
        ("POST", ["sub_issues"]) => {
            let child = by_id(world, &body["sub_issue_id"])?;
            if world.issues.values().any(|issue| issue.children.contains(&child)) {
                return Some(FakeGithubReply::said(
                    422,
                    "An error occurred while adding the sub-issue to the parent issue.",
                ));
            }
            world.issues.get_mut(&number)?.children.push(child);
            Some(FakeGithubReply::new(201, world.issue(at, number)))
        }
        ("GET", ["parent"]) => {
            let parent = world.issues.iter().find(|(_, issue)| issue.children.contains(&number));
            Some(match parent {
                Some((parent, _)) => FakeGithubReply::new(200, world.issue(at, *parent)),
                None => FakeGithubReply::said(404, "Not Found"),
            })
        }
        ("GET", ["dependencies", "blocked_by"]) => {
            let shown = |blocker: &u64| {
                let mut issue = world.issue(at, *blocker);
                // One that was transferred is listed where it is now.
                let place = world.transferred.get(blocker).and_then(|place| place.split_once('#'));
                if let Some((repository, number)) = place {
                    issue["number"] = json!(number.parse::<u64>().ok());
                    issue["repository_url"] = json!(format!("http://{at}/api/v3/repos/{repository}"));
                }
                issue
            };
            let blockers = world.issues[&number].blocked_by.iter().map(shown).collect();
            Some(FakeGithubReply::new(200, blockers))
        }
        ("POST", ["dependencies", "blocked_by"]) => {
            let blocker = by_id(world, &body["issue_id"])?;
            let blockers = &mut world.issues.get_mut(&number)?.blocked_by;
            if blockers.contains(&blocker) {
                return Some(FakeGithubReply::said(422, "The dependency exists already."));
            }
            blockers.push(blocker);
            Some(FakeGithubReply::new(201, world.issue(at, blocker)))
        }
        ("DELETE", ["dependencies", "blocked_by", id]) => {
            let blocker = by_id(world, &json!(id.parse::<u64>().ok()?))?;
            let blockers = &mut world.issues.get_mut(&number)?.blocked_by;
            let place = blockers.iter().position(|it| *it == blocker)?;
            blockers.remove(place);
            Some(FakeGithubReply::new(200, world.issue(at, blocker)))
        }
        _ => None,
    }
}

fn by_id(world: &FakeRepository, id: &Value) -> Option<u64> {
    world.issues.keys().copied().find(|number| Some(id_of(*number)) == id.as_u64())
}

fn comments(
    world: &mut FakeRepository,
    method: &str,
    number: u64,
    query: &QueryParams,
    body: &Value,
) -> Option<FakeGithubReply> {
    let there = match (world.issues.get(&number), world.pulls.get(&number)) {
        (Some(issue), _) => issue.comments.clone(),
        (None, Some(pull)) => pull.comments.clone(),
        (None, None) => return None,
    };
    match method {
        "GET" => {
            let since = value(query, "since").unwrap_or_default();
            let kept = there.iter().filter(|it| moment(it.at).as_str() >= since);
            Some(FakeGithubReply::new(200, kept.map(|comment| world.comment(comment)).collect()))
        }
        "POST" => {
            let text = body["body"].as_str()?.to_owned();
            if text.chars().count() > 65_536 {
                return Some(invalid("IssueComment", "body", "too_long"));
            }
            let comment =
                FakeComment { id: world.id(), author: world.login.clone(), body: text, at: world.tick() };
            let answer = world.comment(&comment);
            if let Some(issue) = world.issues.get_mut(&number) {
                issue.updated = comment.at;
                issue.comments.push(comment);
            } else if let Some(pull) = world.pulls.get_mut(&number) {
                pull.updated = comment.at;
                pull.comments.push(comment);
            }
            Some(FakeGithubReply::new(201, answer))
        }
        _ => None,
    }
}

fn pulls(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    parts: &[&str],
    query: &QueryParams,
    body: &Value,
) -> Option<FakeGithubReply> {
    match (method, parts) {
        ("GET", []) => {
            let owner = world.repository.split('/').next().unwrap_or_default();
            let head = value(query, "head")
                .and_then(|head| head.strip_prefix(&format!("{owner}:")))
                .map(str::to_owned);
            let state = value(query, "state").unwrap_or("open");
            let fits = |pull: &FakePull| {
                // GitHub's own filter has been seen to be generous; ours is by the beginning.
                head.as_ref().is_none_or(|head| pull.head.starts_with(head.as_str()))
                    && (state == "all" || !pull.closed)
            };
            let found = world.pulls.iter().rev().filter(|(_, pull)| fits(pull));
            Some(FakeGithubReply::new(200, found.map(|(number, _)| world.pull(at, *number)).collect()))
        }
        ("POST", []) => {
            let word = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            let (head, base) = (word("head"), word("base"));
            if !world.branches.contains_key(&base) {
                return Some(invalid("PullRequest", "base", "invalid"));
            }
            if !world.branches.contains_key(&head) {
                return Some(invalid("PullRequest", "head", "invalid"));
            }
            if world.pulls.values().any(|it| !it.closed && it.head == head && it.base == base) {
                let message = format!("A pull request already exists for o:{head}.");
                let errors = json!([{ "resource": "PullRequest", "code": "custom", "message": message }]);
                return Some(FakeGithubReply::new(
                    422,
                    json!({ "message": "Validation Failed", "errors": errors }),
                ));
            }
            let (number, now) = (world.next_number(), world.tick());
            let pull = FakePull {
                title: word("title"),
                body: word("body"),
                head,
                head_repository: world.repository.clone(),
                base,
                draft: body["draft"].as_bool().unwrap_or(false),
                author: world.login.clone(),
                created: now,
                updated: now,
                ..FakePull::default()
            };
            world.pulls.insert(number, pull);
            Some(FakeGithubReply::new(201, world.pull(at, number)))
        }
        (_, [number, rest @ ..]) => {
            let number: u64 = number.parse().ok()?;
            let pull = world.pulls.get(&number)?.clone();
            one_pull(world, at, method, number, &pull, rest, body)
        }
        _ => None,
    }
}

fn one_pull(
    world: &mut FakeRepository,
    at: SocketAddr,
    method: &str,
    number: u64,
    pull: &FakePull,
    parts: &[&str],
    body: &Value,
) -> Option<FakeGithubReply> {
    if method != "GET" {
        let now = world.tick();
        world.pulls.get_mut(&number)?.updated = now;
    }
    match (method, parts) {
        ("GET", []) => Some(FakeGithubReply::new(200, world.pull(at, number))),
        ("PATCH", []) => {
            if body["state"] == "closed" {
                world.pulls.get_mut(&number)?.closed = true;
            }
            Some(FakeGithubReply::new(200, world.pull(at, number)))
        }
        ("PUT", ["merge"]) => {
            if pull.closed || pull.draft {
                return Some(FakeGithubReply::said(405, "Pull Request is not mergeable"));
            }
            let head = world.head_of(pull);
            if body["sha"].as_str().is_some_and(|sha| sha != head) {
                return Some(FakeGithubReply::said(
                    409,
                    "Head branch was modified. Review and try the merge again.",
                ));
            }
            if let Some(why) = &world.merges_none {
                return Some(FakeGithubReply::said(405, why));
            }
            let green = |checks: &Vec<super::state::FakeCheck>| {
                !checks.is_empty() && checks.iter().all(|it| it.conclusion.as_deref() == Some("success"))
            };
            if world.needs_checks && !world.checks.get(&head).is_some_and(green) {
                return Some(FakeGithubReply::said(405, "Required status check \"ci\" is expected."));
            }
            let merged = match world.merge_kept(pull) {
                Some(merged) => merged, // seen like a push, with all it brings
                None => {
                    let merged = format!("{:040x}", world.tick());
                    world.branches.insert(pull.base.clone(), merged.clone());
                    merged
                }
            };
            let pull = world.pulls.get_mut(&number)?;
            (pull.closed, pull.merged, pull.merged_head) = (true, Some(merged.clone()), Some(head));
            Some(FakeGithubReply::new(
                200,
                json!({ "sha": merged, "merged": true, "message": "Pull Request successfully merged" }),
            ))
        }
        ("GET", ["reviews"]) => {
            Some(FakeGithubReply::new(200, pull.reviews.iter().map(|it| world.review(it)).collect()))
        }
        ("POST", ["reviews"]) => {
            let state = match body["event"].as_str() {
                Some("COMMENT") => "COMMENTED",
                Some(_) if pull.author == world.login => {
                    return Some(FakeGithubReply::said(422, "Can not approve your own pull request"));
                }
                Some("APPROVE") => "APPROVED",
                Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
                Some(_) | None => return Some(invalid("PullRequestReview", "event", "invalid")),
            };
            let review = FakeReview {
                id: world.id(),
                author: world.login.clone(),
                state: state.to_owned(),
                body: body["body"].as_str().unwrap_or_default().to_owned(),
                commit: body["commit_id"].as_str().unwrap_or_default().to_owned(),
            };
            let answer = world.review(&review);
            world.pulls.get_mut(&number)?.reviews.push(review);
            Some(FakeGithubReply::new(200, answer))
        }
        _ => None,
    }
}

const SIZES: [&str; 5] = ["XS", "S", "M", "L", "XL"];

fn graphql(world: &mut FakeRepository, body: &Value) -> FakeGithubReply {
    let (query, variables) = (body["query"].as_str().unwrap_or_default(), &body["variables"]);
    let failed = |kind: &str, message: &str| {
        FakeGithubReply::new(200, json!({ "data": null, "errors": [{ "type": kind, "message": message }] }))
    };
    if query.contains("markPullRequestReadyForReview") {
        let number = variables["id"].as_str().and_then(|id| id.strip_prefix("PR_")?.parse().ok());
        let Some(pull) = number.and_then(|number: u64| world.pulls.get_mut(&number)) else {
            return failed("NOT_FOUND", "Could not resolve to a node");
        };
        pull.draft = false;
        let data = json!({ "markPullRequestReadyForReview": { "pullRequest": { "isDraft": false } } });
        return FakeGithubReply::new(200, json!({ "data": data }));
    }
    if !world.has_projects {
        return failed(
            "INSUFFICIENT_SCOPES",
            "Your token has not been granted the required scopes: ['read:project'].",
        );
    }
    if query.contains("updateProjectV2ItemFieldValue") {
        let number = variables["item"].as_str().and_then(|id| id.strip_prefix("ITEM_")?.parse().ok());
        let size = variables["option"].as_str().and_then(|id| id.strip_prefix("OPTION_"));
        let issue = number.and_then(|number: u64| world.issues.get_mut(&number));
        let (Some(issue), Some(size)) = (issue, size) else {
            return failed("NOT_FOUND", "Could not resolve to a node");
        };
        issue.size = Some(size.to_owned());
        return FakeGithubReply::new(
            200,
            json!({ "data": { "updateProjectV2ItemFieldValue": { "projectV2Item": { "id": variables["item"] } } } }),
        );
    }
    let number = variables["number"].as_u64().unwrap_or_default();
    let Some(issue) = world.issues.get(&number) else {
        return failed("NOT_FOUND", "Could not resolve to an Issue");
    };
    let options: Vec<Value> =
        SIZES.iter().map(|size| json!({ "id": format!("OPTION_{size}"), "name": size })).collect();
    let item = json!({
        "id": format!("ITEM_{number}"),
        "size": issue.size.as_ref().map(|size| json!({ "name": size })),
        "project": { "id": "PROJECT", "closed": false, "field": { "id": "FIELD", "options": options } },
    });
    let items = json!({ "projectItems": { "nodes": [item] } });
    FakeGithubReply::new(200, json!({ "data": { "repository": { "issue": items } } }))
}

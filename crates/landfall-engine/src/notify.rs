//! Messages to a person: on their desktop, posted to an address, or by a command of theirs.
//!
//! Each channel has a thread and a line of its own: a server that does not answer keeps nobody else waiting. Of each
//! kind of event at most one message goes out in half a minute; what comes meanwhile is summed up in the next.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landfall_model::{TaskId, Timestamp};
use serde_json::json;

use crate::errand::{self, UserCommand};
use crate::herald::NotifierContext;
use crate::hooks::fit_env_value;
use crate::logfile::LogFile;
use crate::occasions::{NotificationEvent, NotificationTopic, Priority};
use crate::settings::{ChannelAddress, DeliveryMethod, NotificationChannel};

/// How long everything takes and waits.
#[derive(Debug, Clone)]
pub struct NotificationTiming {
    /// At most one message of a kind in this time.
    pub pause: Duration,
    /// How long a server has to answer.
    pub answer: Duration,
    /// How long is waited before the second and the third try.
    pub back_off: [Duration; 2],
    /// How long a command that tells may take.
    pub command_ms: u64,
    /// How long a hook may go on after being asked to end.
    pub hook_grace_ms: u64,
}

impl Default for NotificationTiming {
    fn default() -> Self {
        Self {
            pause: Duration::from_secs(30),
            answer: Duration::from_secs(10),
            back_off: [Duration::from_secs(1), Duration::from_secs(5)],
            command_ms: 30_000,
            hook_grace_ms: 5_000,
        }
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationMessage {
    /// What it is about.
    pub topic: NotificationTopic,
    /// In a line.
    pub title: String,
    /// In a few more.
    pub text: String,
    /// The tasks it is about.
    pub tasks: Vec<TaskId>,
    /// How many events it sums up.
    pub count: usize,
    /// When the last of them happened.
    pub at: Timestamp,
}

const NAMED_MAX: usize = 10; // tasks in one message; the rest is a number
const LINE_MAX: usize = 300; // characters of one line: a phone shows less
const KEPT_MAX: usize = 200; // events of a kind that wait to be summed up; beyond, they are only counted

/// What waits to be told, by kind.
#[derive(Debug, Default)]
pub struct NotificationBuffer {
    waiting: BTreeMap<NotificationTopic, PendingNotifications>,
    last: BTreeMap<NotificationTopic, Instant>,
}

#[derive(Debug, Default)]
struct PendingNotifications {
    heard: Vec<NotificationEvent>,
    more: usize,
}

impl NotificationBuffer {
    /// Takes an event in.
    pub fn add_event(&mut self, topic: NotificationTopic, heard: NotificationEvent) {
        let waiting = self.waiting.entry(topic).or_default();
        if waiting.heard.len() < KEPT_MAX {
            waiting.heard.push(heard);
        } else {
            waiting.more += 1;
        }
    }

    /// A message that may go out now, what matters most first. With `pause` zero everything may.
    pub fn take_due_message(&mut self, now: Instant, pause: Duration) -> Option<NotificationMessage> {
        let open = |topic: &NotificationTopic| self.opens_at(*topic, pause).is_none_or(|at| at <= now);
        let topic = *self.waiting.keys().filter(|topic| open(topic)).max_by_key(|topic| topic.priority())?;
        let waiting = self.waiting.remove(&topic)?;
        self.last.insert(topic, now);
        Some(build_message(topic, &waiting))
    }

    /// When the next message may go out; none while nothing waits.
    #[must_use]
    pub fn next(&self, now: Instant, pause: Duration) -> Option<Instant> {
        self.waiting.keys().map(|topic| self.opens_at(*topic, pause).unwrap_or(now)).min()
    }

    fn opens_at(&self, topic: NotificationTopic, pause: Duration) -> Option<Instant> {
        self.last.get(&topic).map(|last| *last + pause)
    }
}

fn build_message(
    topic: NotificationTopic,
    PendingNotifications { heard, more }: &PendingNotifications,
) -> NotificationMessage {
    let count = heard.len() + more;
    let mut tasks: Vec<TaskId> = Vec::new();
    for task in heard.iter().filter_map(|it| it.task) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let at = heard.iter().map(|it| it.at).max().unwrap_or(Timestamp(0));
    let (title, text) = match heard.as_slice() {
        [one] if *more == 0 => (one.what.clone(), detail_lines(one).join("\n")),
        many => {
            let names: Vec<String> = tasks.iter().take(NAMED_MAX).map(ToString::to_string).collect();
            let rest = if tasks.len() > NAMED_MAX || *more > 0 { " …" } else { "" };
            let names =
                if names.is_empty() { String::new() } else { format!(": {}{rest}", names.join(", ")) };
            let lines = many
                .iter()
                .take(NAMED_MAX)
                .map(|it| to_single_line(&[vec![it.what.clone()], detail_lines(it)].concat().join(": ")));
            (format!("{}{names}", topic.plural_title(count)), lines.collect::<Vec<_>>().join("\n"))
        }
    };
    NotificationMessage {
        topic,
        title: to_single_line(&title),
        text: text.lines().map(to_single_line).collect::<Vec<_>>().join("\n"),
        tasks,
        count,
        at,
    }
}

/// The title of a task and the reason, as far as there are any.
fn detail_lines(heard: &NotificationEvent) -> Vec<String> {
    [&heard.title, &heard.reason]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| to_single_line(text))
        .collect()
}

/// One line that can be shown anywhere: what agents wrote may hold anything.
fn to_single_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    match clean.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// One channel at work.
#[derive(Debug)]
pub(crate) struct NotificationSender {
    shared: Arc<ChannelQueue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ChannelQueue {
    ground: NotifierContext,
    channel: NotificationChannel,
    timing: NotificationTiming,
    log: LogFile,
    state: Mutex<ChannelQueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ChannelQueueState {
    burst: NotificationBuffer,
    ending: bool,
    over: bool,
}

impl NotificationSender {
    pub(crate) fn start(
        ground: NotifierContext,
        channel: NotificationChannel,
        timing: NotificationTiming,
    ) -> Self {
        let log = LogFile::at_path(ground.folder.notices_log());
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(ChannelQueue { ground, channel, timing, log, state, changed });
        let own = shared.clone();
        // Without a thread nothing is told, and nothing else is the worse for it.
        let thread =
            std::thread::Builder::new().name("notify".to_owned()).spawn(move || own.run_queue()).ok();
        Self { shared, thread }
    }

    /// Puts an event in line, if the channel is for it.
    pub(crate) fn enqueue_event(&self, heard: &NotificationEvent) {
        let Some(topic) = heard.topic else { return };
        let NotificationChannel { floor, topics, .. } = &self.shared.channel;
        if topic.priority() < *floor || !(topics.is_empty() || topics.contains(&topic)) {
            return;
        }
        let mut state = self.shared.lock_state();
        if !state.ending {
            state.burst.add_event(topic, heard.clone());
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Takes nothing in any more: what waits goes out now.
    pub(crate) fn close(&self) {
        self.shared.lock_state().ending = true;
        self.shared.changed.notify_all();
    }

    /// Waits until all is told, at most until then.
    pub(crate) fn wait_until_sent(&mut self, deadline: Instant) {
        let mut state = self.shared.lock_state();
        while !state.over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return; // it ends by itself, at its own limits, or with the process
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic there has taken nothing with it
        }
    }
}

impl Drop for NotificationSender {
    fn drop(&mut self) {
        self.close();
    }
}

/// Set on the way out of the thread, whatever the way is.
struct NotifierEndGuard<'a>(&'a ChannelQueue);

impl Drop for NotifierEndGuard<'_> {
    fn drop(&mut self) {
        self.0.lock_state().over = true;
        self.0.changed.notify_all();
    }
}

impl ChannelQueue {
    fn lock_state(&self) -> MutexGuard<'_, ChannelQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_queue(&self) {
        let _over = NotifierEndGuard(self);
        while let Some(message) = self.next() {
            self.send_message(&message);
        }
    }

    /// The next message, when it may go out; none at the end.
    fn next(&self) -> Option<NotificationMessage> {
        let mut state = self.lock_state();
        loop {
            let now = Instant::now();
            let pause = if state.ending { Duration::ZERO } else { self.timing.pause };
            if let Some(message) = state.burst.take_due_message(now, pause) {
                return Some(message);
            }
            if state.ending {
                return None;
            }
            state = match state.burst.next(now, pause) {
                Some(at) => {
                    let waited = self.changed.wait_timeout(state, at.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn send_message(&self, message: &NotificationMessage) {
        let mut tries = 0;
        let sent = loop {
            tries += 1;
            match (self.try_send(message), self.timing.back_off.get(tries - 1)) {
                (Err(SendFailure { again: true, .. }), Some(pause)) => self.wait_before_retry(*pause),
                (sent, _) => break sent,
            }
        };
        let NotificationMessage { topic, title, count, at, .. } = message;
        let mut entry = json!({
            "at_ms": at.0,
            "kind": self.channel.way.wire_name(),
            "event": topic.wire_name(),
            "priority": topic.priority().wire_name(),
            "title": title,
            "count": count,
            "tries": tries,
            "sent": sent.is_ok(),
        });
        if let Err(SendFailure { why, .. }) = sent {
            entry["error"] = json!(why);
        }
        self.log.append_line(&entry);
    }

    /// Waits before another try; not at all when the engine is leaving.
    fn wait_before_retry(&self, pause: Duration) {
        let state = self.lock_state();
        let waited = self.changed.wait_timeout_while(state, pause, |state| !state.ending);
        drop(waited.unwrap_or_else(PoisonError::into_inner).0);
    }

    fn try_send(&self, message: &NotificationMessage) -> Result<(), SendFailure> {
        match &self.channel.way {
            DeliveryMethod::Desktop => self.show_on_desktop(message),
            DeliveryMethod::Command { run } => self.run_command(run, message),
            DeliveryMethod::Webhook(address) => {
                let target = DeliveryTarget::from_address(&self.ground, address)?;
                self.post_json(&target, &target.url, &webhook_body(&self.ground, message))
            }
            DeliveryMethod::Slack(address) => {
                let target = DeliveryTarget::from_address(&self.ground, address)?;
                self.post_json(&target, &target.url, &slack_body(&self.ground, message))
            }
            DeliveryMethod::Ntfy(address) => {
                let target = DeliveryTarget::from_address(&self.ground, address)?;
                let (server, body) = ntfy_request(&self.ground, &target.url, message)
                    .ok_or_else(|| SendFailure::permanent("the address does not end with a topic"))?;
                self.post_json(&target, &server, &body)
            }
        }
    }

    fn post_json(
        &self,
        target: &DeliveryTarget,
        url: &str,
        body: &serde_json::Value,
    ) -> Result<(), SendFailure> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(self.timing.answer))
            .max_redirects(0) // what is posted, and its token, go where they were meant to go
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(find_proxy(&self.ground, url))
            .user_agent(concat!("landfall/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent: ureq::Agent = config.into();
        let mut request = agent.post(url).header("Content-Type", "application/json");
        if let Some(token) = &target.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        match request.send(body.to_string()) {
            Ok(answer) => match answer.status().as_u16() {
                200..=299 => Ok(()),
                status @ (408 | 425 | 429 | 500..=599) => {
                    Err(SendFailure::temporary(&format!("{} answered {status}", target.host_name())))
                }
                status => Err(SendFailure::permanent(&format!("{} answered {status}", target.host_name()))),
            },
            Err(error) => {
                let why = format!("{}: {}", target.host_name(), target.mask_secrets(&error.to_string()));
                Err(SendFailure::temporary(&why))
            }
        }
    }

    fn show_on_desktop(&self, message: &NotificationMessage) -> Result<(), SendFailure> {
        const SESSION: [&str; 4] =
            ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];
        let path = self.ground.env_variable("PATH").unwrap_or_default();
        let there = std::env::split_paths(&path).any(|folder| folder.join("notify-send").is_file());
        if !there {
            return Err(SendFailure::permanent("`notify-send` is not installed"));
        }
        let urgency = match message.topic.priority() {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High | Priority::Urgent => "critical",
        };
        let argv = [
            "notify-send".to_owned(),
            "--app-name=Landfall".to_owned(),
            format!("--urgency={urgency}"),
            "--".to_owned(),
            fit_env_value(&format!("{}: {}", self.ground.project_label(), message.title)),
            fit_env_value(&escape_slack(&message.text)), // the text may hold markup, and agents wrote it
        ];
        let session = SESSION.map(str::to_owned);
        self.run_user_command(
            argv.into_iter().map(OsString::from).collect(),
            self.ground.command_environment(&session),
            Vec::new(),
        )
    }

    fn run_command(&self, run: &str, message: &NotificationMessage) -> Result<(), SendFailure> {
        self.ground.check_trust().map_err(|why| SendFailure::permanent(&why))?;
        let tasks: Vec<String> = message.tasks.iter().map(ToString::to_string).collect();
        let variables = [
            ("LANDFALL_EVENT", message.topic.wire_name().to_owned()),
            ("LANDFALL_PRIORITY", message.topic.priority().wire_name().to_owned()),
            ("LANDFALL_TITLE", message.title.clone()),
            ("LANDFALL_TEXT", message.text.clone()),
            ("LANDFALL_TASKS", tasks.join(" ")),
        ];
        let mut env = self.ground.command_environment(&[]);
        env.extend(variables.map(|(name, value)| (name.into(), fit_env_value(&value).into())));
        let stdin = format!("{}\n", webhook_body(&self.ground, message)).into_bytes();
        self.run_user_command(errand::sh_arguments(run), env, stdin)
    }

    fn run_user_command(
        &self,
        argv: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
        stdin: Vec<u8>,
    ) -> Result<(), SendFailure> {
        let errand = UserCommand {
            argv,
            cwd: self.ground.root.clone(),
            env,
            stdin,
            sandbox: None,
            limit_ms: self.timing.command_ms,
            grace_ms: self.timing.hook_grace_ms,
        };
        let place: &Path = &self.ground.folder.errands_path();
        match errand::run_in_temporary_folder(&self.ground.program, place, &errand) {
            Ok(ended) if ended.is_well() => Ok(()),
            Ok(ended) => Err(SendFailure::temporary(&ended.describe_failure())),
            Err(error) => Err(SendFailure::temporary(&error)),
        }
    }
}

/// Why something was not sent.
struct SendFailure {
    why: String,
    /// Whether another try could help.
    again: bool,
}

impl SendFailure {
    fn temporary(why: &str) -> Self {
        Self { why: why.to_owned(), again: true }
    }

    fn permanent(why: &str) -> Self {
        Self { why: why.to_owned(), again: false }
    }
}

/// Where a message goes, and what of it must not be shown.
struct DeliveryTarget {
    url: String,
    token: Option<String>,
}

impl DeliveryTarget {
    fn from_address(ground: &NotifierContext, address: &ChannelAddress) -> Result<Self, SendFailure> {
        let from = |name: &String| {
            ground
                .env_variable(name)
                .ok_or_else(|| SendFailure::permanent(&format!("the variable `{name}` is not set")))
        };
        let url = match (&address.url, &address.url_env) {
            (Some(url), _) => url.clone(),
            (None, Some(name)) => from(name)?,
            (None, None) => return Err(SendFailure::permanent("there is no address")),
        };
        if !crate::settings::is_address(&url) {
            return Err(SendFailure::permanent("what is set is not an address"));
        }
        let token = address.token_env.as_ref().map(from).transpose()?;
        if token.is_some() && !may_carry_token(&url) {
            let what = "a token goes only to an address with https://, or to this machine";
            return Err(SendFailure::permanent(what));
        }
        Ok(Self { url, token })
    }

    /// The server, without anything secret: no name, no path.
    fn host_name(&self) -> String {
        host_of(&self.url).to_owned()
    }

    /// A text of others about the message, without what is secret.
    fn mask_secrets(&self, text: &str) -> String {
        let path = self
            .url
            .find("://")
            .and_then(|at| self.url[at + 3..].find('/').map(|end| &self.url[at + 3 + end..]));
        let secrets = [Some(self.url.as_str()), path.filter(|path| path.len() > 1), self.token.as_deref()];
        let mut text = to_single_line(text);
        for secret in secrets.into_iter().flatten() {
            text = text.replace(secret, "…");
        }
        text
    }
}

/// Whether a token may be sent to this address: nobody on the way reads it.
fn may_carry_token(url: &str) -> bool {
    let host = host_of(url);
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_near = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    url.starts_with("https://") || is_near
}

/// The host and port of an address.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The proxy for an address, as the environment says.
pub(crate) fn find_proxy(ground: &NotifierContext, url: &str) -> Option<ureq::Proxy> {
    let address = proxy_address(&|name| ground.env_variable(name), url)?;
    ureq::Proxy::new(&address).ok() // one that cannot be read is none: the try says what comes of it
}

/// Where that proxy is. `variable` looks an environment variable up.
pub(crate) fn proxy_address(variable: &dyn Fn(&str) -> Option<String>, url: &str) -> Option<String> {
    let either = |name: &str| variable(name).or_else(|| variable(&name.to_lowercase()));
    let host = host_of(url);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let own = host == "localhost" || host.starts_with("127.") || host == "[::1]";
    let spared = either("NO_PROXY").unwrap_or_default();
    let is_spared = |rule: &str| {
        let rule = rule.trim().trim_start_matches('.');
        rule == "*" || (!rule.is_empty() && (host == rule || host.ends_with(&format!(".{rule}"))))
    };
    if own || spared.split(',').any(is_spared) {
        return None;
    }
    let name = if url.starts_with("https:") { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    either(name).or_else(|| either("ALL_PROXY"))
}

/// What a webhook and a command get.
fn webhook_body(ground: &NotifierContext, message: &NotificationMessage) -> serde_json::Value {
    let NotificationMessage { topic, title, text, tasks, count, at } = message;
    json!({
        "version": 1,
        "event": topic.wire_name(),
        "priority": topic.priority().wire_name(),
        "project": ground.project_label(),
        "title": title,
        "text": text,
        "tasks": tasks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "count": count,
        "at_ms": at.0,
    })
}

/// What Slack gets. Its three special characters are escaped, so that nothing in the text becomes a link or a mention.
fn slack_body(ground: &NotifierContext, message: &NotificationMessage) -> serde_json::Value {
    let title = escape_slack(&format!("{}: {}", ground.project_label(), message.title));
    let text = escape_slack(&message.text);
    let both = if text.is_empty() { format!("*{title}*") } else { format!("*{title}*\n{text}") };
    json!({ "text": both })
}

fn escape_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Where an ntfy server takes JSON, and what it gets: the topic is the end of the address.
fn ntfy_request(
    ground: &NotifierContext,
    url: &str,
    message: &NotificationMessage,
) -> Option<(String, serde_json::Value)> {
    let (server, topic) = url.trim_end_matches('/').rsplit_once('/')?;
    if topic.is_empty() || server.ends_with('/') || server.ends_with(':') {
        return None;
    }
    let priority = match message.topic.priority() {
        Priority::Low => 2,
        Priority::Normal => 3,
        Priority::High => 4,
        Priority::Urgent => 5,
    };
    let text = if message.text.is_empty() { &message.title } else { &message.text };
    let body = json!({
        "topic": topic,
        "title": format!("{}: {}", ground.project_label(), message.title),
        "message": text,
        "priority": priority,
        "tags": [message.topic.wire_name()],
    });
    Some((format!("{server}/"), body))
}

#[cfg(test)]
mod tests {
    use super::{NotificationBuffer, build_message, host_of, may_carry_token, ntfy_request};
    use crate::occasions::{NotificationEvent, NotificationTopic};
    use landfall_model::{TaskId, Timestamp};
    use std::time::{Duration, Instant};

    fn landed_event(task: u32) -> NotificationEvent {
        NotificationEvent {
            hook: None,
            topic: Some(NotificationTopic::Landed),
            at: Timestamp(7),
            task: Some(TaskId(task)),
            title: format!("Title {task}"),
            status: String::new(),
            commit: None,
            what: format!("T{task} landed"),
            reason: String::new(),
        }
    }

    #[test]
    fn a_token_is_sent_where_nobody_on_the_way_reads_it() {
        for good in
            ["https://a.example/x", "http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]:80/"]
        {
            assert!(may_carry_token(good), "{good}");
        }
        for bad in [
            "http://a.example/x",
            "http://127.0.0.1.evil.example/",
            "http://127.0.0.1@evil.example/",
            "http://localhost.evil.example/",
            "http://192.0.2.1/",
            "http://[2001:db8::1]/",
        ] {
            assert!(!may_carry_token(bad), "{bad}");
        }
    }

    #[test]
    fn the_first_goes_out_at_once_and_the_rest_is_summed_up() {
        let pause = Duration::from_secs(30);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut burst = NotificationBuffer::default();
        burst.add_event(NotificationTopic::Landed, landed_event(1));
        assert_eq!(burst.take_due_message(at(0), pause).expect("it is the first").title, "T1 landed");
        burst.add_event(NotificationTopic::Landed, landed_event(2));
        burst.add_event(NotificationTopic::Landed, landed_event(3));
        burst.add_event(NotificationTopic::Landed, landed_event(2));
        assert_eq!(burst.take_due_message(at(1), pause), None);
        assert_eq!(burst.next(at(1), pause), Some(at(30)));
        burst.add_event(
            NotificationTopic::Question,
            NotificationEvent { topic: Some(NotificationTopic::Question), ..landed_event(4) },
        );
        assert_eq!(
            burst.take_due_message(at(1), pause).expect("another kind").topic,
            NotificationTopic::Question
        );
        let summed = burst.take_due_message(at(30), pause).expect("the pause is over");
        assert_eq!((summed.title.as_str(), summed.count), ("3 tasks landed: T2, T3", 3));
        assert_eq!(summed.text, "T2 landed: Title 2\nT3 landed: Title 3\nT2 landed: Title 2");
        assert_eq!(burst.next(at(31), pause), None);
        burst.add_event(NotificationTopic::Landed, landed_event(9));
        assert!(burst.take_due_message(at(31), Duration::ZERO).is_some(), "at the end nothing is held back");
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut burst = NotificationBuffer::default();
        for task in 0..5_000 {
            burst.add_event(NotificationTopic::Landed, landed_event(task));
        }
        let message = burst.take_due_message(Instant::now(), Duration::ZERO).expect("there is much");
        assert_eq!(message.count, 5_000);
        assert!(message.title.starts_with("5000 tasks landed: T0, T1,") && message.title.ends_with('…'));
        assert_eq!(message.text.lines().count(), 10);
    }

    #[test]
    fn what_agents_wrote_is_one_plain_line() {
        let nasty =
            NotificationEvent { title: format!("a\u{1b}[31m\nb{}", "x".repeat(1_000)), ..landed_event(1) };
        let waiting = super::PendingNotifications { heard: vec![nasty], more: 0 };
        let text = build_message(NotificationTopic::Landed, &waiting).text;
        assert!(text.starts_with("a [31m b") && text.lines().count() == 1 && text.chars().count() == 301);
    }

    #[test]
    fn a_host_is_shown_without_name_or_path() {
        assert_eq!(host_of("https://user:sesame@a.example:8/p?q#f"), "a.example:8");
        assert_eq!(host_of("http://a.example?q=sesame"), "a.example");
    }

    #[test]
    fn the_topic_of_ntfy_is_the_end_of_its_address() {
        let ground = crate::herald::NotifierContext {
            program: "p".into(),
            root: "/x/shop".into(),
            base: "main".to_owned(),
            folder: crate::StateFolder::at_root("/s".into()),
            environment: Vec::new(),
            trust: None,
        };
        let message = build_message(
            NotificationTopic::Landed,
            &super::PendingNotifications { heard: vec![landed_event(1)], more: 0 },
        );
        let (server, body) =
            ntfy_request(&ground, "https://ntfy.example/my-topic", &message).expect("it has a topic");
        assert_eq!((server.as_str(), &body["topic"]), ("https://ntfy.example/", &"my-topic".into()));
        assert_eq!(body["title"], "shop: T1 landed");
        assert!(ntfy_request(&ground, "https://ntfy.example", &message).is_none());
        assert!(ntfy_request(&ground, "https://ntfy.example/", &message).is_none());
    }
}

//! What is set about hooks, messages and workspaces, made fit to work with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use landfall_agents::nearest_word;

use super::raw::{RawHooks, RawNotify, RawNotifyKind, RawPriority, RawTelemetry, RawWorkspace};
use super::resolve::{SettingsMismatch, check_names};
use crate::occasions::{HookPoint, NotificationTopic, Priority};

/// The person's own commands, by occasion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSettings {
    /// The command line of each.
    pub commands: BTreeMap<HookPoint, String>,
    /// How long each may take.
    pub limit_ms: u64,
    /// Names of environment variables passed on to them.
    pub env: Vec<String>,
}

/// One way to tell someone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationChannel {
    /// How.
    pub way: DeliveryMethod,
    /// The least that is told.
    pub floor: Priority,
    /// What is told of; empty is everything.
    pub topics: BTreeSet<NotificationTopic>,
}

/// How someone is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryMethod {
    /// On this desktop.
    Desktop,
    /// JSON, posted to an address.
    Webhook(ChannelAddress),
    /// By an ntfy server.
    Ntfy(ChannelAddress),
    /// By an incoming webhook of Slack.
    Slack(ChannelAddress),
    /// By a command of the person's.
    Command {
        /// The command line.
        run: String,
    },
}

impl DeliveryMethod {
    /// The word people and settings use.
    #[must_use]
    pub fn wire_name(&self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Webhook(_) => "webhook",
            Self::Ntfy(_) => "ntfy",
            Self::Slack(_) => "slack",
            Self::Command { .. } => "command",
        }
    }
}

/// Where to post to. The address is often itself a secret, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ChannelAddress {
    /// The address, if settings hold it.
    pub url: Option<String>,
    /// The environment variable that holds it, if they do not.
    pub url_env: Option<String>,
    /// The environment variable that holds a token.
    pub token_env: Option<String>,
}

impl fmt::Debug for ChannelAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, url_env, token_env } = self;
        let url = url.as_ref().map(|_| "…");
        f.debug_struct("Address")
            .field("url", &url)
            .field("url_env", url_env)
            .field("token_env", token_env)
            .finish()
    }
}

/// What is run in a workspace besides its agent, and its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// Run once it is made.
    pub after_create: Option<String>,
    /// Run before every run of the agent.
    pub before_run: Option<String>,
    /// Run after every run of the agent.
    pub after_run: Option<String>,
    /// Run before it is removed.
    pub before_remove: Option<String>,
    /// How long each may take.
    pub timeout_ms: u64,
    /// The ports to lease.
    pub ports: Option<PortRange>,
}

/// Ports to lease, in blocks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
    /// How many are in a block.
    pub each: u16,
}

pub(super) fn resolve_workspace(raw: RawWorkspace) -> Result<WorkspaceSettings, SettingsMismatch> {
    let RawWorkspace { after_create, before_run, after_run, before_remove, timeout, ports, ports_each } = raw;
    let commands = [
        ("after_create", &after_create),
        ("before_run", &before_run),
        ("after_run", &after_run),
        ("before_remove", &before_remove),
    ];
    for (key, line) in commands {
        line.as_deref().map_or(Ok(()), |line| check_line(&["workspace", key], line))?;
    }
    let each = u16::try_from(ports_each.0).expect("at most a thousand");
    let ports = ports.map(|text| port_range(&text, each)).transpose()?;
    Ok(WorkspaceSettings { after_create, before_run, after_run, before_remove, timeout_ms: timeout.0, ports })
}

fn port_range(text: &str, each: u16) -> Result<PortRange, SettingsMismatch> {
    const LOWEST: u16 = 1024; // those below are the system's
    let wrong = |what: String| {
        Err(SettingsMismatch::new(&["workspace", "ports"], what)
            .with_hint("two ports from 1024 to 65535, such as `41000-41999`"))
    };
    let ends = text
        .split_once('-')
        .and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)));
    let Some((first, last)) = ends else {
        return wrong(format!("`{}` is not a range of ports", text.escape_debug()));
    };
    match (first, last) {
        (first, last) if first > last => wrong(format!("the ports `{text}` end before they begin")),
        (first, _) if first < LOWEST => wrong(format!("the ports `{text}` begin among those of the system")),
        (first, last) if u32::from(last - first) + 1 < u32::from(each) => {
            wrong(format!("the ports `{text}` are fewer than the {each} of one block (`ports_each`)"))
        }
        (first, last) => Ok(PortRange { first, last, each }),
    }
}

pub(super) fn resolve_hooks(raw: RawHooks) -> Result<HookSettings, SettingsMismatch> {
    let RawHooks {
        pre_start,
        post_complete,
        pre_merge,
        post_merge,
        on_conflict,
        on_discovery,
        on_pause,
        on_error,
        on_escalation,
        timeout,
        env,
    } = raw;
    let lines = [
        (HookPoint::PreStart, pre_start),
        (HookPoint::PostComplete, post_complete),
        (HookPoint::PreMerge, pre_merge),
        (HookPoint::PostMerge, post_merge),
        (HookPoint::OnConflict, on_conflict),
        (HookPoint::OnDiscovery, on_discovery),
        (HookPoint::OnPause, on_pause),
        (HookPoint::OnError, on_error),
        (HookPoint::OnEscalation, on_escalation),
    ];
    let mut commands = BTreeMap::new();
    for (occasion, line) in lines {
        let Some(line) = line else { continue };
        check_line(&["hooks", occasion.wire_name()], &line)?;
        commands.insert(occasion, line);
    }
    check_names(&env, &["hooks", "env"])?;
    Ok(HookSettings { commands, limit_ms: timeout.0, env })
}

pub(super) fn resolve_channels(raw: Vec<RawNotify>) -> Result<Vec<NotificationChannel>, SettingsMismatch> {
    raw.into_iter().enumerate().map(|(place, raw)| resolve_channel(&place.to_string(), raw)).collect()
}

fn resolve_channel(place: &str, raw: RawNotify) -> Result<NotificationChannel, SettingsMismatch> {
    let RawNotify { kind, url, url_env, token_env, run, priority, events } = raw;
    let fault = |key: &str, what: &str| SettingsMismatch::new(&["notify", place, key], what);
    let posts = matches!(kind, RawNotifyKind::Webhook | RawNotifyKind::Ntfy | RawNotifyKind::Slack);
    for (key, name) in [("url_env", &url_env), ("token_env", &token_env)] {
        if let Some(name) = name {
            check_names(std::slice::from_ref(name), &["notify", place, key])?;
        }
    }
    if !posts && (url.is_some() || url_env.is_some() || token_env.is_some()) {
        return Err(fault("kind", "an address is set, but nothing of this kind is posted")
            .with_hint("`webhook`, `ntfy` and `slack` have an address"));
    }
    if !matches!(kind, RawNotifyKind::Command) && run.is_some() {
        return Err(fault("run", "a command is set for something that runs none")
            .with_hint("set `kind = \"command\"`"));
    }
    let address = || match (&url, &url_env) {
        (Some(_), Some(_)) => {
            Err(fault("url_env", "the address is set twice").with_hint("`url` or `url_env`, not both"))
        }
        (None, None) => {
            Err(fault("kind", "there is no address to post to").with_hint("set `url`, or `url_env`"))
        }
        (Some(url), None) if !is_address(url) => {
            // What it is stays unsaid: it may be most of a secret.
            Err(fault("url", "`url` is not an address")
                .with_hint("`https://…`, or `http://…` for a machine of your own"))
        }
        (_, _) => {
            Ok(ChannelAddress { url: url.clone(), url_env: url_env.clone(), token_env: token_env.clone() })
        }
    };
    let way = match kind {
        RawNotifyKind::Desktop => DeliveryMethod::Desktop,
        RawNotifyKind::Webhook => DeliveryMethod::Webhook(address()?),
        RawNotifyKind::Ntfy => DeliveryMethod::Ntfy(address()?),
        RawNotifyKind::Slack => DeliveryMethod::Slack(address()?),
        RawNotifyKind::Command => {
            let Some(run) = run else {
                return Err(fault("kind", "there is no command to run").with_hint("set `run`"));
            };
            check_line(&["notify", place, "run"], &run)?;
            DeliveryMethod::Command { run }
        }
    };
    let known = NotificationTopic::ALL.map(NotificationTopic::wire_name);
    let topic = |word: &String| {
        NotificationTopic::from_word(word).ok_or_else(|| {
            let hint = match nearest_word(word, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", known.join(", ")),
            };
            let what = format!("`{}` is nothing one is told of", word.escape_debug());
            SettingsMismatch::new(&["notify", place, "events"], what).with_hint(hint)
        })
    };
    let topics = events.iter().map(topic).collect::<Result<_, SettingsMismatch>>()?;
    let floor = match priority {
        RawPriority::Low => Priority::Low,
        RawPriority::Normal => Priority::Normal,
        RawPriority::High => Priority::High,
        RawPriority::Urgent => Priority::Urgent,
    };
    Ok(NotificationChannel { way, floor, topics })
}

/// Where traces are sent.
pub(super) fn resolve_telemetry(raw: RawTelemetry) -> Result<Option<String>, SettingsMismatch> {
    match raw.otlp {
        Some(url) if !is_address(&url) || url.contains(['?', '#']) => {
            Err(SettingsMismatch::new(&["telemetry", "otlp"], "`otlp` is not the address of a collector")
                .with_hint("`http://127.0.0.1:4318`"))
        }
        otlp => Ok(otlp),
    }
}

/// Whether this can be posted to at all: a scheme we speak, a host, and nothing that could be read as another line.
pub(crate) fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let odd = |c: char| c.is_whitespace() || c.is_control();
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':', '?', '#'])) && !url.contains(odd)
}

fn check_line(path: &[&str], line: &str) -> Result<(), SettingsMismatch> {
    if line.trim().is_empty() || line.contains('\0') {
        let what = format!("`{}` is empty", path.join("."));
        return Err(SettingsMismatch::new(path, what).with_hint("take it out, or say what to run"));
    }
    Ok(())
}

//! The settings that a person has to trust: those that run commands outside of the sandbox, lower it, or name credentials or
//! hosts. A repository comes from somebody else, and its `landfall.toml` with it.
//!
//! Everything here is a function of the settings. Who has trusted what is kept by [`crate::trust`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};

use landfall_model::cache::PackageCache;
use landfall_model::trust::{TrustedPart, TrustedParts};

use super::{
    ChannelAddress, Confinement, DeliveryMethod, HookSettings, LandSettings, NotificationChannel,
    ProfileSettings, PublishTarget, RunSettings, Settings, TrackerSettings, VerifySettings,
    WorkspaceSettings,
};
use crate::secrets::is_secret;

/// What a setting can do that its author should not decide alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// It runs a command outside of the sandbox.
    RunsUnconfined,
    /// It opens the sandbox, or leaves it out.
    LowersSandbox,
    /// It names a credential: a file or a variable that holds one, or what an agent does with its own.
    NamesCredential,
    /// It names a host that something is sent to.
    NamesHost,
    /// It names a folder outside of the project, which is read and written as the person.
    LeavesProject,
}

impl Exposure {
    /// What it does, after the name of the setting.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::RunsUnconfined => "runs outside of the sandbox",
            Self::LowersSandbox => "opens the sandbox",
            Self::NamesCredential => "names a credential",
            Self::NamesHost => "names a host",
            Self::LeavesProject => "is outside of the project",
        }
    }
}

/// One setting that has to be trusted.
#[derive(Clone, PartialEq, Eq)]
pub struct SensitiveSetting {
    /// What settings call it: `hooks.post-merge`.
    pub key: String,
    /// What it is set to. It may be a secret, so it is not shown.
    value: String,
    /// What a person is shown of it.
    pub shown: String,
    /// Why it has to be trusted.
    pub exposure: Exposure,
}

impl fmt::Debug for SensitiveSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.key, self.shown, self.exposure.label())
    }
}

/// All settings of a project that have to be trusted, in an order of their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SensitiveSettings {
    settings: Vec<SensitiveSetting>,
    /// What limits the settings above, or says what they are given to. It is not sensitive by itself, but a change of it
    /// changes what the person has trusted.
    context: Vec<String>,
    /// The files of the project that commands outside of the sandbox run, with the digest of what each holds.
    scripts: BTreeMap<String, String>,
}

/// The digest of exactly these settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrustDigest(String);

/// The text is not the digest of settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the digest of settings: it has 64 hexadecimal digits")]
pub struct NotADigest(String);

impl TrustDigest {
    /// The digest in a text.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, NotADigest> {
        let text = text.trim().to_ascii_lowercase();
        if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self(text));
        }
        Err(NotADigest(text.chars().take(80).collect()))
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SensitiveSettings {
    /// Those of a project. Every field is named, so that a new setting makes whoever adds it think of this.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        let Settings {
            project: _,
            verify,
            run,
            agents,
            caps: _,
            attempt_budget: _,
            task_budget: _,
            purse: _,
            prices: _,
            land,
            review: _,
            judge: _,
            checkpoint: _,
            keep: _,
            disk: _,
            workspace,
            hooks,
            notify,
            telemetry,
            tracker,
            mapped: _,
        } = settings;
        let mut all = Self::default();
        all.add_run(run);
        if !is_confined(run.sandbox) {
            all.add_checks(verify);
        }
        for profile in agents.values() {
            all.add_profile(profile, run);
        }
        if agents.values().any(|profile| !is_confined(profile.sandbox)) {
            all.add_workspace(workspace);
        }
        all.add_land(land);
        all.add_hooks(hooks);
        for (number, channel) in (1..).zip(notify) {
            all.add_channel(number, channel);
        }
        if let Some(url) = telemetry {
            all.add_setting("telemetry.otlp", url, Exposure::NamesHost);
        }
        all.add_tracker(tracker);
        all
    }

    /// The same with the files that their commands run.
    #[must_use]
    pub(crate) fn with_scripts(self, scripts: BTreeMap<String, String>) -> Self {
        Self { scripts, ..self }
    }

    /// The files of the project that are trusted with these settings.
    pub fn script_paths(&self) -> impl Iterator<Item = &str> {
        self.scripts.keys().map(String::as_str)
    }

    /// Whether there is nothing to trust.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &SensitiveSetting> {
        self.settings.iter()
    }

    /// Each part that has to be trusted, with the digest of what it holds. Values of one key belong together.
    pub(crate) fn parts(&self) -> TrustedParts {
        let mut hashers: BTreeMap<TrustedPart, blake3::Hasher> = BTreeMap::new();
        let mut add = |part: TrustedPart, text: &str| {
            let hasher = hashers.entry(part).or_default();
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        for setting in &self.settings {
            add(TrustedPart::Setting(setting.key.clone()), &setting.value);
        }
        for text in &self.context {
            add(TrustedPart::SettingLimits, text);
        }
        let settings =
            hashers.into_iter().map(|(part, hasher)| (part, hasher.finalize().to_hex().to_string()));
        let scripts = self.scripts.iter();
        let scripts = scripts.map(|(path, digest)| (TrustedPart::Script(path.clone()), digest.clone()));
        settings.chain(scripts).collect()
    }

    /// The digest of exactly these settings: any change makes another one.
    #[must_use]
    pub fn compute_digest(&self) -> TrustDigest {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &str| {
            // The length before the text, so that no two lists read the same.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        };
        for setting in &self.settings {
            add(&setting.key);
            add(&setting.value);
        }
        if !self.settings.is_empty() {
            self.context.iter().for_each(|text| add(text));
            self.scripts.iter().for_each(|(path, digest)| add(&format!("script {path} {digest}")));
        }
        TrustDigest(hasher.finalize().to_hex().to_string())
    }

    fn add_setting(&mut self, key: impl Into<String>, value: &str, exposure: Exposure) {
        self.settings.push(SensitiveSetting {
            key: key.into(),
            value: value.to_owned(),
            shown: value.to_owned(),
            exposure,
        });
    }

    /// The same for a value that is not shown whole.
    fn add_hidden(&mut self, key: impl Into<String>, value: &str, shown: String, exposure: Exposure) {
        let value = value.to_owned();
        self.settings.push(SensitiveSetting { key: key.into(), value, shown, exposure });
    }

    fn add_run(&mut self, run: &RunSettings) {
        let RunSettings {
            slots: _,
            lanes: _,
            iterations_max: _,
            task_limit_ms: _,
            stuck_after: _,
            watch: _,
            stalls_step_max: _,
            stalls_total_max: _,
            compact_percent: _,
            compactions_max: _,
            sandbox,
            is_sandbox_lowered,
            caches,
            sandbox_write,
            sandbox_read,
            sandbox_hide,
            grace_ms: _,
            step_grace_ms: _,
            output_cap: _,
            restarts_max: _,
            failures_max: _,
            mode: _,
            env,
        } = run;
        if is_lowered(*sandbox, *is_sandbox_lowered) {
            self.add_setting("run.sandbox", sandbox.word(), Exposure::LowersSandbox);
        }
        // Nobody keeps secrets in a known cache, and nothing that a run does in one reaches it. Another folder it would see.
        for path in caches.iter().filter(|path| PackageCache::find_by_path(path).is_none()) {
            self.add_setting("run.caches", path, Exposure::LowersSandbox);
        }
        for path in sandbox_write {
            self.add_setting("run.sandbox_write", path, Exposure::LowersSandbox);
        }
        for path in sandbox_read {
            self.add_setting("run.sandbox_read", path, Exposure::LowersSandbox);
        }
        // Without one of these, what was trusted sees more than before.
        self.context.extend(sandbox_hide.iter().map(|path| format!("hide {path}")));
        for name in env {
            self.add_setting("run.env", name, Exposure::NamesCredential);
        }
    }

    /// The checks, where no sandbox is around them.
    fn add_checks(&mut self, verify: &VerifySettings) {
        for command in &verify.commands {
            self.add_setting("verify.command", &command.run, Exposure::RunsUnconfined);
        }
    }

    fn add_profile(&mut self, profile: &ProfileSettings, run: &RunSettings) {
        let ProfileSettings {
            name,
            kind,
            run: command,
            script,
            model: _,
            effort: _,
            style: _,
            account: _,
            failover: _,
            turns_max: _,
            sandbox,
            mcp: _,
            terminal_poll_ms: _,
            pass_env,
            flags,
            env,
        } = profile;
        let key = |part: &str| format!("agent.{name}.{part}");
        let script = script.as_ref().map(|path| path.to_string_lossy());
        if is_lowered(*sandbox, run.is_sandbox_lowered) {
            self.add_setting(key("sandbox"), sandbox.word(), Exposure::LowersSandbox);
        }
        if !is_confined(*sandbox) {
            self.add_setting(key("kind"), kind, Exposure::RunsUnconfined);
            if let Some(command) = command {
                self.add_setting(key("run"), command, Exposure::RunsUnconfined);
            }
            if let Some(script) = &script {
                self.add_setting(key("script"), script, Exposure::RunsUnconfined);
            }
        }
        // What gets the variables, the flags and the environment below.
        if !(pass_env.is_empty() && flags.is_empty() && env.is_empty()) {
            let words = [Some(kind.as_str()), command.as_deref(), script.as_deref()];
            self.context.push(format!("{name} {words:?}"));
        }
        for variable in pass_env {
            self.add_setting(key("pass_env"), variable, Exposure::NamesCredential);
        }
        // They reach the agent's own program, which has the person's login and sends it where it is told to.
        for flag in flags {
            self.add_setting(key("flags"), flag, Exposure::NamesCredential);
        }
        for (variable, value) in env {
            let shown = if is_secret(variable) { "…".to_owned() } else { value.clone() };
            self.add_hidden(key(&format!("env.{variable}")), value, shown, Exposure::NamesCredential);
        }
    }

    /// What is run around an agent that has no sandbox.
    fn add_workspace(&mut self, workspace: &WorkspaceSettings) {
        let WorkspaceSettings { after_create, before_run, after_run, before_remove, timeout_ms: _, ports: _ } =
            workspace;
        let commands = [
            ("after_create", after_create),
            ("before_run", before_run),
            ("after_run", after_run),
            ("before_remove", before_remove),
        ];
        for (name, command) in commands {
            if let Some(command) = command {
                self.add_setting(format!("workspace.{name}"), command, Exposure::RunsUnconfined);
            }
        }
    }

    fn add_land(&mut self, land: &LandSettings) {
        match &land.publish {
            // A name is that of a remote in the person's own clone; an address is somebody else's word.
            PublishTarget::Push { remote, by: _ } if remote.contains([':', '/']) => {
                self.add_setting("land.remote", remote, Exposure::NamesHost);
            }
            PublishTarget::Push { .. } | PublishTarget::Checkout | PublishTarget::None => {}
        }
    }

    fn add_hooks(&mut self, hooks: &HookSettings) {
        let HookSettings { commands, limit_ms: _, env } = hooks;
        for (occasion, command) in commands {
            self.add_setting(format!("hooks.{}", occasion.wire_name()), command, Exposure::RunsUnconfined);
        }
        for name in env {
            self.add_setting("hooks.env", name, Exposure::NamesCredential);
        }
    }

    fn add_channel(&mut self, number: usize, channel: &NotificationChannel) {
        let key = |part: &str| format!("notify.{number}.{part}");
        match &channel.way {
            DeliveryMethod::Desktop => {} // a program of the system, by its own name
            DeliveryMethod::Command { run } => self.add_setting(key("run"), run, Exposure::RunsUnconfined),
            DeliveryMethod::Webhook(address)
            | DeliveryMethod::Ntfy(address)
            | DeliveryMethod::Slack(address) => {
                let ChannelAddress { url, url_env, token_env } = address;
                if let Some(url) = url {
                    self.add_hidden(key("url"), url, format!("{}/…", origin_of(url)), Exposure::NamesHost);
                }
                if let Some(name) = url_env {
                    self.add_setting(key("url_env"), name, Exposure::NamesCredential);
                }
                if let Some(name) = token_env {
                    self.add_setting(key("token_env"), name, Exposure::NamesCredential);
                }
            }
        }
    }

    fn add_tracker(&mut self, tracker: &TrackerSettings) {
        let TrackerSettings {
            kind: _,
            repository: _,
            base,
            token_file,
            webhook_secret_file,
            folder,
            size_field: _,
            poll_ms: _,
            write_pause_ms: _,
            spec_path: _,
            always_pr: _,
            file_proposals: _,
            verify_iterations_max: _,
            concurrent: _,
            production_url,
            preview_url,
            local_url,
            verify_ignore: _,
        } = tracker;
        if let Some(base) = base {
            self.add_setting("tracker.url", base.rest_url(), Exposure::NamesHost);
        }
        for (key, file) in [("token_file", token_file), ("webhook_secret_file", webhook_secret_file)] {
            if let Some(file) = file {
                self.add_setting(
                    format!("tracker.{key}"),
                    &file.to_string_lossy(),
                    Exposure::NamesCredential,
                );
            }
        }
        if let Some(folder) = folder.as_deref().filter(|folder| leaves_project(folder)) {
            self.add_setting("tracker.folder", &folder.to_string_lossy(), Exposure::LeavesProject);
        }
        let urls =
            [("production_url", production_url), ("preview_url", preview_url), ("local_url", local_url)];
        for (key, url) in urls {
            if let Some(url) = url {
                self.add_setting(format!("tracker.{key}"), url.as_str(), Exposure::NamesHost);
            }
        }
    }
}

/// Whether a path as people write it, seen from the root of the project, leads out of it.
fn leaves_project(path: &Path) -> bool {
    let mut parts = path.components();
    path.starts_with("~") || !parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

impl Settings {
    /// The commands that always run outside of the sandbox, in the project, each with the name of its setting.
    #[must_use]
    pub fn unconfined_commands(&self) -> Vec<(String, String)> {
        let hooks = self.hooks.commands.iter();
        let hooks = hooks.map(|(occasion, line)| (format!("hooks.{}", occasion.wire_name()), line.clone()));
        let messages = (1..).zip(&self.notify).filter_map(|(number, channel)| match &channel.way {
            DeliveryMethod::Command { run } => Some((format!("notify.{number}.run"), run.clone())),
            DeliveryMethod::Desktop
            | DeliveryMethod::Webhook(_)
            | DeliveryMethod::Ntfy(_)
            | DeliveryMethod::Slack(_) => None,
        });
        hooks.chain(messages).collect()
    }
}

/// Whether a level keeps agents and checks from what is the person's.
fn is_confined(level: Confinement) -> bool {
    match level {
        Confinement::Strict | Confinement::Isolated | Confinement::Write => true,
        Confinement::Off => false,
    }
}

/// Whether the settings choose a level that keeps less than the default. `by_machine`: the machine has nothing better, so
/// this level was not chosen.
fn is_lowered(level: Confinement, by_machine: bool) -> bool {
    match level {
        Confinement::Strict | Confinement::Isolated => false,
        Confinement::Write => !by_machine,
        Confinement::Off => true,
    }
}

/// The scheme and the host of an address: the rest of it is often a secret.
fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensitive_settings_in(text: &str) -> SensitiveSettings {
        SensitiveSettings::from_settings(
            &Settings::parse(text, "landfall.toml").unwrap_or_else(|problem| panic!("{problem}")),
        )
    }

    /// Each setting that has to be trusted, and one that says the same in another way.
    const SENSITIVE: [(&str, &str); 31] = [
        ("tracker.folder", "[tracker]\nfolder = \"~/notes\"\n"),
        ("tracker.folder", "[tracker]\nfolder = \"/srv/notes\"\n"),
        ("tracker.folder", "[tracker]\nfolder = \"issues/../../notes\"\n"),
        ("run.caches", "[run]\ncaches = [\"~/.npm\", \"~/.ssh\"]\n"),
        ("run.sandbox", "[run]\nsandbox = \"off\"\n"),
        ("run.sandbox_write", "[run]\nsandbox_write = [\"~/.ssh\"]\n"),
        ("run.sandbox", "[run]\nsandbox = \"write\"\n"),
        ("run.sandbox_read", "[run]\nsandbox_read = [\"~/.ssh\"]\n"),
        ("tracker.preview_url", "[tracker]\npreview_url = \"https://evil.example\"\n"),
        ("run.env", "[run]\nenv = [\"AWS_SECRET_ACCESS_KEY\"]\n"),
        ("verify.command", "[run]\nsandbox = \"off\"\n[[verify.command]]\nrun = \"sh x\"\n"),
        ("agent.a.sandbox", "[agent.a]\nkind = \"claude\"\nsandbox = \"off\"\n"),
        ("agent.a.run", "[agent.a]\nkind = \"command\"\nrun = \"sh x\"\nsandbox = \"off\"\n"),
        ("agent.a.flags", "[agent.a]\nkind = \"claude\"\nflags = [\"--settings=x\"]\n"),
        ("agent.a.pass_env", "[agent.a]\nkind = \"claude\"\npass_env = [\"ANTHROPIC_API_KEY\"]\n"),
        (
            "agent.a.env.ANTHROPIC_BASE_URL",
            "[agent.a]\nkind = \"claude\"\nenv = { ANTHROPIC_BASE_URL = \"https://evil.example\" }\n",
        ),
        (
            "workspace.before_run",
            "[agent.a]\nkind = \"claude\"\nsandbox = \"off\"\n[workspace]\nbefore_run = \"sh x\"\n",
        ),
        ("land.remote", "[land]\npublish = \"push\"\nremote = \"https://evil.example/x.git\"\n"),
        ("hooks.post-merge", "[hooks]\npost-merge = \"sh x\"\n"),
        ("hooks.pre-start", "[hooks]\npre-start = \"sh x\"\n"),
        ("hooks.env", "[hooks]\nenv = [\"DEPLOY_KEY\"]\n"),
        ("notify.1.run", "[[notify]]\nkind = \"command\"\nrun = \"sh x\"\n"),
        ("notify.1.url", "[[notify]]\nkind = \"webhook\"\nurl = \"https://evil.example/x\"\n"),
        ("notify.1.url_env", "[[notify]]\nkind = \"slack\"\nurl_env = \"SLACK\"\n"),
        (
            "notify.1.token_env",
            "[[notify]]\nkind = \"ntfy\"\nurl = \"https://evil.example/x\"\ntoken_env = \"GH_TOKEN\"\n",
        ),
        ("telemetry.otlp", "[telemetry]\notlp = \"https://evil.example\"\n"),
        ("tracker.url", "[tracker]\nkind = \"github\"\nurl = \"https://evil.example\"\n"),
        ("tracker.token_file", "[tracker]\nkind = \"github\"\ntoken_file = \"~/.netrc\"\n"),
        ("tracker.webhook_secret_file", "[tracker]\nkind = \"github\"\nwebhook_secret_file = \"~/.netrc\"\n"),
        ("tracker.production_url", "[tracker]\nproduction_url = \"https://evil.example\"\n"),
        ("tracker.local_url", "[tracker]\nlocal_url = \"http://127.0.0.1:1\"\n"),
    ];

    #[test]
    fn every_setting_that_reaches_out_of_the_sandbox_has_to_be_trusted() {
        let mut digests = std::collections::BTreeSet::new();
        for (key, text) in SENSITIVE {
            let found = sensitive_settings_in(text);
            assert!(found.iter().any(|setting| setting.key == key), "{key}: {found:?}");
            assert!(digests.insert(found.compute_digest()), "{key} has a digest of its own");
            assert_eq!(
                found.compute_digest(),
                sensitive_settings_in(&format!("# a remark\n{text}[keep]\nfailed = \"1d\"\n"))
                    .compute_digest()
            );
        }
    }

    #[test]
    fn what_stays_inside_asks_nobody() {
        let found = sensitive_settings_in(
            "[project]\nbase = \"main\"\n[run]\nslots = 2\nsandbox = \"strict\"\nsandbox_hide = [\"~/x\"]\n\
             caches = [\"~/.cargo/registry\", \"~/.npm\"]\n[agent.default]\nkind = \"command\"\nrun = \"sh x\"\n[[verify.command]]\nrun = \"sh test.sh\"\n\
             [workspace]\nbefore_run = \"npm ci\"\n[land]\npublish = \"push\"\nremote = \"origin\"\n\
             [tracker]\nkind = \"github\"\nrepository = \"a/b\"\nfolder = \"./docs/issues\"\n[[notify]]\nkind = \"desktop\"\n",
        );
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(sensitive_settings_in("").compute_digest(), found.compute_digest());
    }

    #[test]
    fn any_change_of_such_a_setting_makes_another_digest_and_secrets_are_not_shown() {
        let hooks = |text: &str| {
            sensitive_settings_in(&format!("[hooks]\npost-merge = \"{text}\"\n")).compute_digest()
        };
        assert_ne!(hooks("a"), hooks("b"));
        assert_ne!(hooks("a"), sensitive_settings_in("[hooks]\npre-merge = \"a\"\n").compute_digest());
        let env = |list: &str| sensitive_settings_in(&format!("[run]\nenv = {list}\n")).compute_digest();
        assert_ne!(env("[\"A\", \"B\"]"), env("[\"AB\"]"));
        // What gets a credential, or is unconfined, and what limits it.
        let changes = [
            (
                "[agent.a]\nkind = \"claude\"\nsandbox = \"off\"\n",
                "[agent.a]\nkind = \"script\"\nscript = \"x.toml\"\nsandbox = \"off\"\n",
            ),
            (
                "[agent.a]\nkind = \"claude\"\npass_env = [\"KEY\"]\n",
                "[agent.a]\nkind = \"command\"\nrun = \"curl x\"\npass_env = [\"KEY\"]\n",
            ),
            (
                "[run]\nsandbox = \"off\"\n[agent.a]\nkind = \"claude\"\nsandbox = \"strict\"\n",
                "[run]\nsandbox = \"off\"\n[agent.a]\nkind = \"claude\"\n",
            ),
            ("[run]\nenv = [\"KEY\"]\nsandbox_hide = [\"~/x\"]\n", "[run]\nenv = [\"KEY\"]\n"),
            ("[run]\nenv = [\"KEY\"]\n", "[run]\nenv = [\"KEY\"]\nsandbox = \"write\"\n"),
        ];
        for (before, after) in changes {
            assert_ne!(
                sensitive_settings_in(before).compute_digest(),
                sensitive_settings_in(after).compute_digest(),
                "{after}"
            );
        }
        let secret = sensitive_settings_in(
            "[[notify]]\nkind = \"slack\"\nurl = \"https://hooks.example/T0/SECRET\"\n\
             [agent.a]\nkind = \"claude\"\nenv = { API_KEY = \"SECRET\" }\n",
        );
        assert!(!format!("{secret:?}").contains("SECRET"), "{secret:?}");
        assert!(format!("{secret:?}").contains("https://hooks.example/…"), "{secret:?}");
    }

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = sensitive_settings_in("").compute_digest();
        assert_eq!(TrustDigest::parse(digest.as_str()), Ok(digest.clone()));
        assert_eq!(TrustDigest::parse(&format!(" {} \n", digest.as_str().to_uppercase())), Ok(digest));
        for bad in ["", "x", &"g".repeat(64), &"0".repeat(63), &"0".repeat(65)] {
            assert!(TrustDigest::parse(bad).is_err(), "{bad}");
        }
    }
}

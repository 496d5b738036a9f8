//! Signs of life of one running agent. They are only gathered here; what they mean is decided by the model.

use std::path::Path;
use std::time::UNIX_EPOCH;

use landfall_host::sitter;
use landfall_model::liveness::{LivenessLimits, LivenessSample, ModelCalls, StreamDetector};

/// The moments of an agent's signs of life, by the monotonic clock.
pub(crate) struct AgentVitals {
    /// It began, or was adopted.
    pub began_ms: u64,
    /// Whether it calls a model itself.
    calls_model: bool,
    /// It last wrote something.
    heard_ms: Option<u64>,
    /// The longest it wrote nothing.
    quiet_max_ms: u64,
    /// Its processes last used the processor or moved data.
    busy_ms: u64,
    /// Commands it started last did.
    commands_ms: u64,
    /// Its workspace last changed.
    changed_ms: u64,
    /// Its connections last received a stream.
    inflow_ms: u64,
    inflow: StreamDetector,
    /// Its connections now; none if they cannot be seen.
    connections: Option<u32>,
    /// When this was looked at.
    looked_ms: u64,
    before: sitter::ProcessActivity,
    fingerprint: u64,
}

/// What is known of an agent besides the moments of its signs of life.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentState {
    /// Tools it began to use and has not ended, by its own word.
    pub tools_open: u32,
    /// It asks a person and waits for the answer.
    pub asking: bool,
    /// How often in a row it said and did the same.
    pub echoes: u32,
}

const BUSY_MS_PER_TICK: u64 = 200; // a twentieth of a core: more than an idle runtime's timers, less than any build
const BUSY_BYTES: u64 = 64 * 1024; // between two looks: more than a heartbeat on a socket, less than any download
const LOOK_MIN_MS: u64 = 100;

impl AgentVitals {
    /// Of an agent that begins now.
    pub fn for_new_run(now: u64, calls_model: bool) -> Self {
        Self {
            began_ms: now,
            calls_model,
            heard_ms: None,
            quiet_max_ms: 0,
            busy_ms: now,
            commands_ms: now,
            changed_ms: now,
            inflow_ms: now,
            inflow: StreamDetector::default(),
            connections: None,
            looked_ms: now,
            before: sitter::ProcessActivity::default(),
            fingerprint: 0,
        }
    }

    /// Of a run that began before this engine: its clocks go on from what its files say.
    pub fn for_adopted_run(now: u64, wall_ms: i64, dir: &Path, calls_model: bool) -> Self {
        let age = |name: &str| {
            let written = std::fs::metadata(dir.join(name)).ok()?.modified().ok()?;
            let at = i64::try_from(written.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
            u64::try_from(wall_ms - at).ok()
        };
        let back = |age: u64| now.saturating_sub(age);
        let heard = ["out.log", "err.log"].into_iter().filter_map(|name| {
            let some = std::fs::metadata(dir.join(name)).ok()?.len() > 0;
            some.then(|| age(name))?
        });
        let began_ms = age("prompt.md").map_or(now, back);
        Self { began_ms, heard_ms: heard.min().map(back), ..Self::for_new_run(now, calls_model) }
    }

    /// It wrote something.
    pub fn note_output(&mut self, now: u64) {
        self.quiet_max_ms = self.longest_silence(now);
        self.heard_ms = Some(now);
    }

    /// The longest it wrote nothing, by now.
    pub fn longest_silence(&self, now: u64) -> u64 {
        now.saturating_sub(self.heard_ms.unwrap_or(self.began_ms)).max(self.quiet_max_ms)
    }

    /// Whether it is time to look: a few times within every span that could run out.
    pub fn is_due(&self, now: u64, watch: &LivenessLimits) -> bool {
        let shortest = watch.beat_ms.min(watch.silence_ms).min(watch.first_output_ms).min(watch.tool_ms);
        let pause = (shortest / 4).max(LOOK_MIN_MS);
        now.saturating_sub(self.looked_ms) >= pause
    }

    /// Takes in what was seen of its processes and its workspace.
    pub fn note_activity(
        &mut self,
        now: u64,
        pulse: sitter::ProcessActivity,
        fingerprint: u64,
        watch: &LivenessLimits,
    ) {
        let since = now.saturating_sub(self.looked_ms);
        let before = &self.before;
        let busy = |ticks: u64, moved: u64| ticks > since / BUSY_MS_PER_TICK || moved >= BUSY_BYTES;
        if busy(
            pulse.cpu_ticks.saturating_sub(before.cpu_ticks),
            pulse.io_bytes.saturating_sub(before.io_bytes),
        ) {
            self.busy_ms = now;
        }
        if busy(
            pulse.command_ticks.saturating_sub(before.command_ticks),
            pulse.command_bytes.saturating_sub(before.command_bytes),
        ) {
            self.commands_ms = now;
        }
        if fingerprint != self.fingerprint {
            self.changed_ms = now;
        }
        let received = pulse.connections.as_deref().map(|open| {
            open.iter().map(|connection| (connection.cookie, connection.received)).collect::<Vec<_>>()
        });
        self.connections = received.as_ref().map(|open| u32::try_from(open.len()).unwrap_or(u32::MAX));
        if received.is_some_and(|open| self.inflow.note_connections(now, &open, watch)) {
            self.inflow_ms = now;
        }
        (self.before, self.fingerprint, self.looked_ms) = (pulse, fingerprint, now);
    }

    /// Everything that is known, as ages.
    pub fn current_pulse(&self, now: u64, agent: AgentState) -> LivenessSample {
        let age = |at: u64| now.saturating_sub(at);
        let AgentState { tools_open, asking, echoes } = agent;
        let connections = self.connections.filter(|_| self.calls_model);
        LivenessSample {
            running_ms: age(self.began_ms),
            silent_ms: self.heard_ms.map(age),
            idle_ms: age(self.busy_ms),
            still_ms: age(self.changed_ms),
            calls: connections.map(|connections| ModelCalls {
                tools_idle_ms: age(self.commands_ms),
                inflow_ms: age(self.inflow_ms),
                connections,
            }),
            tools_open,
            children: self.before.processes,
            asking,
            echoes,
        }
    }
}

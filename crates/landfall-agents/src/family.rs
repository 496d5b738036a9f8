//! Which agent a command line starts, for the kinds that start any: so that it gets its own folders.

use crate::agent::{Agent, LaunchProfile};
use crate::claude::Claude;
use crate::codex::Codex;
use crate::gemini::Gemini;
use crate::opencode::Opencode;

/// Files and folders that the agent of this command line keeps its own state in. None for those we do not know: a
/// person opens theirs by a setting.
pub(crate) fn state_paths(words: &[String], profile: &LaunchProfile) -> Vec<String> {
    /// Words looked at: a runner, its flag, and the package.
    const WORDS_MAX: usize = 3;
    let of = |name: &str| words.iter().take(WORDS_MAX).any(|word| word.contains(name));
    let mut state = Vec::new();
    let agents: [(&str, &dyn Agent); 4] =
        [("claude", &Claude), ("codex", &Codex), ("gemini", &Gemini), ("opencode", &Opencode)];
    for (name, agent) in agents {
        if of(name) {
            state.extend(agent.list_requirements(profile).state);
        }
    }
    for (name, place) in [("qwen", "~/.qwen"), ("copilot", "~/.copilot"), ("npx", "~/.npm")] {
        if of(name) {
            state.push(place.to_owned());
        }
    }
    state
}

/// Programs that agents are made of: the interpreter of a script, and the native part that it starts.
pub const PROGRAM_PARTS: [&str; 6] = ["node", "bun", "claude", "codex", "gemini", "opencode"];

/// Where agents keep their login, below the home folder.
pub const LOGINS: [&str; 4] = [
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
];

/// What in an agent's own state decides about code that it runs: a change there outlives the run and its sandbox, because
/// it takes effect when a person starts the agent. Names below its state folders.
pub const GUARDED: [&str; 9] = [
    "settings.json",
    "settings.local.json",
    "config.toml",
    "opencode.json",
    "opencode.jsonc",
    "hooks",
    "plugin",
    "extensions",
    "skills",
];

/// Of settings, the keys by which programs are run.
pub const RUNS: [&str; 18] = [
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "command",
    "enabledPlugins",
    "env",
    "formatter",
    "hooks",
    "lsp",
    "mcp",
    "mcpServers",
    "mcp_servers",
    "notify",
    "plugin",
    "plugins",
    "shell_environment_policy",
    "statusLine",
    "tools",
];

#[cfg(test)]
mod tests {
    use super::state_paths;
    use crate::agent::LaunchProfile;

    #[test]
    fn known_agents_get_their_folders_and_strangers_none() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            state_paths(&words, &LaunchProfile::default())
        };
        assert_eq!(of("gemini --acp"), ["~/.gemini"]);
        assert_eq!(of("/opt/bin/codex"), ["~/.codex"]);
        assert_eq!(
            of("npx -y @agentclientprotocol/claude-agent-acp"),
            ["~/.claude", "~/.claude.json", "~/.npm"]
        );
        assert_eq!(of("my-agent --like gemini-2.5 --model codex"), ["~/.gemini"]); // a folder too many, and no more
        assert_eq!(of("my-agent"), [""; 0]);
    }
}

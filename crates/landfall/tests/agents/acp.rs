//! Agents that speak the Agent Client Protocol: adapters and programs that people really install.

use landfall_testkit::ModelServer;

use crate::kind::Kind;
use crate::shared::works;
use crate::stage::Stage;

/// It edits, commits, signals and lands. Where such an agent keeps its state is for the person to say.
fn lands(run: &str, kind: Kind, state: &str, env: &str) {
    let server = ModelServer::start();
    let url = server.url("agent");
    let profile = format!("kind = \"acp\"\nrun = \"{run}\"\nenv = {{ {} }}", env.replace("{url}", &url));
    let settings = format!("[run]\nsandbox_write = [{state}]\n");
    let Some(stage) = Stage::with(server, &profile, &settings) else { return };
    kind.move_in(&stage.scratch, &stage.url());
    kind.settle(&stage.scratch);
    stage.play(works());
    stage.until_over(&mut stage.run());
    stage.check_landed();
}

#[test]
fn the_adapter_for_claude_lands() {
    let env = "ANTHROPIC_API_KEY = \"dummy\", ANTHROPIC_BASE_URL = \"{url}\", IS_SANDBOX = \"1\", \
               CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\"";
    lands("claude-agent-acp", Kind::Claude, "\"~/.claude\"", env);
}

#[test]
fn gemini_lands() {
    lands(
        "gemini --acp --skip-trust -m gemini-2.5-pro",
        Kind::Gemini,
        "\"~/.gemini\"",
        "GEMINI_API_KEY = \"dummy\", GOOGLE_GEMINI_BASE_URL = \"{url}\"",
    );
}

#[test]
fn opencode_lands() {
    let state = "\"~/.local/share/opencode\", \"~/.local/state/opencode\", \"~/.cache/opencode\", \
                 \"~/.config/opencode\"";
    let env = "OPENCODE_DISABLE_AUTOUPDATE = \"1\", OPENCODE_CONFIG_CONTENT = '{\"model\":\"fake/fake-1\"}'";
    lands("opencode acp", Kind::Opencode, state, env);
}

//! Agents that speak the Agent Client Protocol: adapters and programs that people really install.

use landfall_testkit::ModelServer;

use crate::kind::Kind;
use crate::shared::works;
use crate::stage::Stage;

/// It edits, commits, signals and lands.
fn lands(run: &str, kind: Kind, env: &str) {
    let server = ModelServer::start();
    let url = server.url("agent");
    let profile = format!("kind = \"acp\"\nrun = \"{run}\"\nenv = {{ {} }}", env.replace("URL", &url));
    let Some(stage) = Stage::with(server, &profile, "") else { return };
    kind.move_in(&stage.scratch, &stage.url());
    stage.play(works());
    stage.until_over(&mut stage.run());
    stage.check_landed();
}

#[test]
fn the_adapter_for_claude_lands() {
    let env = "ANTHROPIC_API_KEY = \"dummy\", ANTHROPIC_BASE_URL = \"URL\", IS_SANDBOX = \"1\", \
               CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\"";
    lands("claude-agent-acp", Kind::Claude, env);
}

#[test]
fn gemini_lands() {
    lands(
        "gemini --acp --skip-trust -m gemini-2.5-pro",
        Kind::Gemini,
        "GEMINI_API_KEY = \"dummy\", GOOGLE_GEMINI_BASE_URL = \"URL\"",
    );
}

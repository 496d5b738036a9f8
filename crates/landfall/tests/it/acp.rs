//! An agent of the Agent Client Protocol, end to end. The agent is a few lines of shell: what it says is all there is.

use landfall_api::TaskDetail;

use crate::support::TestEnvironment;

/// Answers what the bridge asks, does the work, asks for leave once, and closes with the word.
const TINY: &str = r#"#!/bin/sh
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | grep -o '"id":"[^"]*"' | head -n 1)
  case "$line" in
  *'"method":"initialize"'*) say "$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}" ;;
  *'"method":"session/new"'*) say "$id,\"result\":{\"sessionId\":\"tiny-1\"}" ;;
  *'"method":"session/prompt"'*)
    update='"method":"session/update","params":{"sessionId":"tiny-1","update"'
    say "\"id\":\"p1\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"tiny-1\",\"toolCall\":{\"toolCallId\":\"t1\",\"title\":\"commit\"},\"options\":[{\"optionId\":\"o\",\"name\":\"Once\",\"kind\":\"allow_once\"}]}"
    IFS= read -r leave
    case "$leave" in *'"optionId":"o"'*) ;; *) exit 4 ;; esac
    echo hello >hello.txt
    git add hello.txt
    git -c user.name=Tiny -c user.email=tiny@example.invalid commit --quiet --message hello
    say "$update:{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"All done.\\n<landfall key=\\\"$LANDFALL_KEY\\\">COMPLETE</landfall>\"}}}"
    say "$id,\"result\":{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":10,\"outputTokens\":5,\"totalTokens\":15}}"
    ;;
  esac
done
"#;

#[test]
fn an_agent_that_wants_a_conversation_lands_its_work() {
    let environment = TestEnvironment::new();
    let tiny = environment.path("tiny-acp");
    std::fs::write(&tiny, TINY).expect("a script");
    environment.write(
        "landfall.toml",
        &format!(
            "[project]\nbase = \"main\"\n[verify]\nrequired = true\nred_base = \"start\"\n[[verify.command]]\nname = \"check\"\nrun = \"test -s hello.txt\"\n\
             [agent.default]\nkind = \"acp\"\nrun = \"sh {}\"\n",
            tiny.display()
        ),
    );
    environment.commit("settings");
    environment.add(&["Say hello"]);
    let said = environment.landfall(&["run"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(environment.git(&["show", "main:hello.txt"]), "hello");
    let task: TaskDetail = environment.json(&["show", "T1"]);
    let text = format!("{task:?}");
    assert!(text.contains("15"), "its tokens are counted: {text}");
}

#[test]
fn an_agent_that_dies_in_the_middle_has_not_done_its_work() {
    let environment = TestEnvironment::new();
    let tiny = environment.path("tiny-acp");
    std::fs::write(&tiny, TINY.replace("    echo hello >hello.txt\n", "    exit 7\n")).expect("a script");
    environment.write(
        "landfall.toml",
        &format!(
            "[project]\nbase = \"main\"\n[verify]\nrequired = true\n[[verify.command]]\nname = \"check\"\nrun = \"true\"\n\
             [run]\niterations_max = 1\n[agent.default]\nkind = \"acp\"\nrun = \"sh {}\"\n",
            tiny.display()
        ),
    );
    environment.commit("settings");
    environment.add(&["Say hello"]);
    let said = environment.landfall(&["run"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert_eq!(environment.git(&["log", "--format=%s", "main"]), "settings\nfirst");
}

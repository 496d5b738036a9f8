//! The `command` agent: how its command line comes to be.

use expect_test::{Expect, expect};
use landfall_agents::registry::find_agent;

use crate::brief;

fn check(change: impl FnOnce(&mut landfall_agents::LaunchProfile), expected: &Expect) {
    let mut brief = brief("command");
    change(&mut brief.profile);
    let agent = find_agent("command").expect("it is registered").create_agent();
    let told = match agent.build_launch_command(&brief) {
        Ok(launch) => format!("{:?} < {:?}", launch.argv, launch.stdin.expect("a command reads its prompt")),
        Err(error) => format!("{error}\nhint: {}", error.hint().unwrap_or_default()),
    };
    expected.assert_eq(&told);
}

fn check_run(run: &str, expected: &Expect) {
    check(|profile| profile.run = Some(run.to_owned()), expected);
}

#[test]
fn the_command_line_is_split_without_a_shell() {
    check_run(
        "sh -c 'cat > \"$HOME/x\"; my-agent'",
        &expect![[r#"["sh", "-c", "cat > \"$HOME/x\"; my-agent"] < "/state/attempts/9/prompt.md""#]],
    );
}

#[test]
fn placeholders_are_filled_inside_words() {
    check(
        |profile| {
            profile.run = Some("a --dir={workspace} -f {prompt_file} {model}:{model}".to_owned());
            profile.model = Some("small one".to_owned());
            profile.flags = vec!["--cd".to_owned(), "{workspace}/sub".to_owned()];
        },
        &expect![[
            r#"["a", "--dir=/state/workspaces/T7", "-f", "/state/attempts/9/prompt.md", "small one:small one", "--cd", "/state/workspaces/T7/sub"] < "/state/attempts/9/prompt.md""#
        ]],
    );
}

#[test]
fn other_braces_stay_as_they_are() {
    check_run(
        r#"awk '{print}' '{"a":{}}' {} { } {Model} {{workspace}}"#,
        &expect![[
            r#"["awk", "{print}", "{\"a\":{}}", "{}", "{", "}", "{Model}", "{/state/workspaces/T7}"] < "/state/attempts/9/prompt.md""#
        ]],
    );
}

#[test]
fn what_cannot_be_run_is_refused_with_the_reason() {
    check(
        |profile| profile.run = None,
        &expect![[r#"
            profile `main` of kind `command` has no `run`
            hint: agents of kind `command` are told what to run by `run` in their profile"#]],
    );
    check_run(
        "my-agent 'oops",
        &expect![[r#"
            read `run` of profile `main`: the ' at character 10 is never closed
            hint: quote words as a shell would; nothing is expanded"#]],
    );
    check_run(
        "",
        &expect![[r#"
            read `run` of profile `main`: it is empty
            hint: quote words as a shell would; nothing is expanded"#]],
    );
    check_run(
        "my-agent --model {model}",
        &expect![[r#"
            `{model}` in profile `main` has no value: the profile names no model
            hint: known are {model}, {workspace} and {prompt_file}; the prompt itself comes on stdin"#]],
    );
    check_run(
        "my-agent {prompt}",
        &expect![[r#"
            `{prompt}` in profile `main` would show the prompt to everyone on the machine
            hint: known are {model}, {workspace} and {prompt_file}; the prompt itself comes on stdin"#]],
    );
    check_run(
        "my-agent {promt_file}",
        &expect![[r#"
            `{promt_file}` in profile `main` is not known; did you mean `{prompt_file}`?
            hint: known are {model}, {workspace} and {prompt_file}; the prompt itself comes on stdin"#]],
    );
}

//! schemathesis against a real server on a scratch project. `cargo xtask test` installs it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landfall_testkit::{ScratchProject, skip_test};

use crate::LANDFALL;
use crate::serve::Served;

const TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// What is looked at in every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

#[test]
fn the_server_answers_as_its_reference_says() {
    let Some(python) = std::env::var_os("LANDFALL_SCHEMATHESIS") else {
        return skip_test("schemathesis is not installed; `cargo xtask test` installs it");
    };
    let scratch = ScratchProject::new(LANDFALL);
    let writes =
        |path: &str| format!("signal = \"complete\"\n[[write]]\npath = \"{path}\"\ntext = \"here\\n\"\n");
    let served = Served::start(&scratch, &[]);
    // A project with something of everything in it.
    scratch.task("Lands", &writes("b.txt"), &[]);
    scratch.task("Asks", "signal = \"pending:which port?\"\n", &[]);
    scratch.task("Stuck", "signal = \"blocked:no key\"\n", &[]);
    scratch.landfall(&["run"]);
    scratch.landfall(&["checkpoint", "create", "one"]);
    scratch.task("Ready", &writes("c.txt"), &["--needs", "T2"]);
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let report = scratch.root().join("schemathesis.log");
    let log = std::fs::File::create(&report).expect("a file");
    let mut child = Command::new(python)
        .args(["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"])
        .arg(reference)
        .args([
            "--url",
            &format!("http://{}", served.at),
            "--header",
            &format!("Authorization: Bearer {}", served.token),
        ])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "8", "--checks", CHECKS])
        // Streams have no end to wait for; the tests of the server read them. One worker: hypothesis minds threads.
        .args([
            "--exclude-operation-id",
            "events",
            "--request-timeout",
            "30",
            "--workers",
            "1",
            "--seed",
            "7",
        ])
        .args(["--suppress-health-check", "all", "--no-color"])
        .current_dir(scratch.root())
        .env_remove("PYTHONPATH")
        .env("HOME", scratch.root().join("home"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("shared"))
        .stderr(log)
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            break status;
        }
        if began.elapsed() > TIME_MAX {
            child.kill().expect("our own child");
            child.wait().expect("our own child");
            panic!(
                "it did not end within {TIME_MAX:?}: {}",
                std::fs::read_to_string(&report).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let said = std::fs::read_to_string(&report).unwrap_or_default();
    assert!(status.success(), "{said}");
    println!(
        "{}",
        said.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    );
    served.end();
}

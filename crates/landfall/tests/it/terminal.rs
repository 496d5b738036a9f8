//! Help, completions, pipes: how the program behaves among others.

use std::fs::File;
use std::process::Stdio;

use crate::support::{TIME_MAX, TestEnvironment, finish, wait};

#[test]
fn version_and_help_need_no_project() {
    let place = TestEnvironment::without_repository();
    let said = place.landfall(&["--version"]).works();
    assert_eq!(said.out, concat!("landfall ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(place.landfall(&["-V"]).works().out, said.out);
    let help = place.landfall(&["--help"]).works().out;
    assert!(help.contains("Usage: landfall") && help.contains("certificate"), "{help}");
    assert!(
        !help.contains("sit ") && !help.contains("play"),
        "helpers of our own are not for people: {help}"
    );
    let nothing: [&str; 0] = [];
    let said = place.landfall(&nothing);
    assert!(said.code == Some(2) && said.out.is_empty() && said.err.contains("Usage"), "{said:?}");
}

#[test]
fn help_is_plain_text_in_a_pipe() {
    let place = TestEnvironment::without_repository();
    for args in [&["--help"][..], &["add", "--help"], &["run", "-h"]] {
        let said = place.landfall(args).works();
        assert!(!said.out.contains('\u{1b}') && said.err.is_empty(), "{said:?}");
    }
}

#[test]
fn completions_name_every_command() {
    let place = TestEnvironment::without_repository();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = place.landfall(&["completions", shell]).works();
        assert!(
            said.out.contains("LANDFALL_COMPLETE"),
            "the script of {shell} asks the program: {}",
            said.out
        );
    }
    for (typed, words) in [(&[""][..], &["init", "certificate"][..]), (&["project", ""], &["reclaim"])] {
        let mut command = place.command(&[&["--", "landfall"], typed].concat());
        command.env("LANDFALL_COMPLETE", "fish");
        let said = String::from_utf8(command.output().expect("it starts").stdout).expect("UTF-8");
        for word in words {
            assert!(said.lines().any(|line| line.split('\t').next() == Some(word)), "{word}: {said}");
        }
    }
    place.landfall(&["completions", "tcsh"]).refuses(2, &["tcsh", "bash"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = TestEnvironment::without_repository();
    let mut command = place.command(&["completions", "zsh"]);
    let mut child = command.stdin(Stdio::null()).spawn().expect("it starts");
    let _ = child.stdout.take(); // before it has written more than a pipe holds
    let status = wait(&mut child, TIME_MAX);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let place = TestEnvironment::without_repository();
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let mut command = place.command(&["completions", "bash"]);
    let mut child = command.stdout(Stdio::from(full)).spawn().expect("it starts");
    child.stdout = None;
    let mut command = place.command(&["--version"]);
    let full = File::options().write(true).open("/dev/full").expect("opened before");
    let mut version = command.stdout(Stdio::from(full)).spawn().expect("it starts");
    assert_eq!(wait(&mut child, TIME_MAX).code(), Some(10));
    assert_eq!(wait(&mut version, TIME_MAX).code(), Some(10));
}

#[test]
fn another_folder_is_meant_with_c() {
    let place = TestEnvironment::new();
    place.add(&["one"]);
    let mut command = place.command(&["-C", "project", "list"]);
    let said = finish(command.current_dir(place.path("")).spawn().expect("it starts"), "").works();
    assert!(said.out.contains("one"), "{said:?}");
    place.landfall(&["-C", "nowhere", "list"]).refuses(2, &["nowhere"]);
}

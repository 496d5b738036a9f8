//! Files that a user names: a pipe, a device or a huge file in their place is refused at once.

use std::path::Path;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

/// What may stand where a file is expected, and what is said of it.
const KINDS: [(&str, &str); 4] = [
    ("pipe", "it is a pipe, not a regular file"),
    ("folder", "it is a folder, not a regular file"),
    ("endless", "it is a device, not a regular file"),
    ("large", "the maximum is 1048576"),
];

fn put(kind: &str, path: &Path) {
    std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
    let _ = std::fs::remove_file(path); // there may be none
    match kind {
        "pipe" => {
            let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
            assert!(made.success());
        }
        "folder" => std::fs::create_dir(path).expect("made"),
        "endless" => std::os::unix::fs::symlink("/dev/zero", path).expect("linked"),
        _ => std::fs::File::create(path).and_then(|file| file.set_len((1 << 20) + 1)).expect("made"),
    }
}

#[test]
fn settings_that_are_no_small_regular_file_are_refused() {
    for (kind, words) in KINDS {
        let scratch = ScratchProject::new(LANDFALL);
        put(kind, &scratch.project().join("landfall.toml"));
        for command in [&["run"][..], &["add", "A task"]] {
            let refused = scratch.landfall(command);
            assert_ne!(refused.code, Some(0), "{kind}: {}", refused.out);
            assert!(refused.err.contains("landfall.toml"), "{kind}: {}", refused.err);
            assert!(refused.err.contains(words), "{kind}: {}", refused.err);
        }
        // Commands that only look may do without settings, but never wait for them.
        scratch.landfall(&["status"]);
    }
}

#[test]
fn flows_and_lists_that_are_no_small_regular_files_are_refused() {
    let scratch = ScratchProject::new(LANDFALL);
    for (kind, words) in KINDS {
        let list = scratch.root().join(format!("{kind}.md"));
        put(kind, &list);
        if kind != "folder" {
            // A folder is read as task modules.
            let refused = scratch.landfall(&["import", &list.display().to_string()]);
            assert_eq!(refused.code, Some(2), "{kind}: {}", refused.err);
            assert!(refused.err.contains(words), "{kind}: {}", refused.err);
        }
        let flow = scratch.project().join(".landfall/flows/own.toml");
        put(kind, &flow);
        let refused = scratch.landfall(&["run"]);
        assert_ne!(refused.code, Some(0), "{kind}: {}", refused.out);
        assert!(refused.err.contains("own.toml") && refused.err.contains(words), "{kind}: {}", refused.err);
        if kind == "folder" {
            std::fs::remove_dir(&flow).expect("removed");
        }
    }
}

#[test]
fn work_that_a_checking_remote_refuses_does_not_land_and_the_task_is_told() {
    let scratch = ScratchProject::new(LANDFALL);
    // Left uncommitted: what the agent commits itself is checked when it comes in.
    let modules = "[submodule \\\"x\\\"]\\n\\tpath = x\\n\\turl = -u./x\\n";
    let script = format!("signal = \"complete\"\n[[write]]\npath = \".gitmodules\"\ntext = \"{modules}\"\n");
    scratch.task("First", &script, &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]);
    assert_ne!(scratch.status("T1"), "done");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    let told = scratch.why("T1");
    assert!(told.contains("gitmodulesUrl"), "{told}");
}

#[test]
fn work_with_more_paths_than_allowed_does_not_land_and_the_task_is_told() {
    let scratch = ScratchProject::new(LANDFALL);
    scratch.more_settings("[land]\npaths_max = 3");
    let many: String = (0..4).map(|n| format!("[[write]]\npath = \"f{n}\"\ntext = \"x\"\n")).collect();
    scratch.task("First", &format!("signal = \"complete\"\n{many}"), &[]);
    let before = scratch.git(&["rev-parse", "main"]);
    scratch.landfall(&["run"]);
    assert_ne!(scratch.status("T1"), "done");
    assert_eq!(scratch.git(&["rev-parse", "main"]), before);
    let told = scratch.why("T1");
    assert!(told.contains("`land.paths_max` allows 3"), "{told}");
}

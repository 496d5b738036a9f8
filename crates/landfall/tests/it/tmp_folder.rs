//! The folder for temporary files: one that somebody else has taken is not used, and `landfall doctor` says so.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

fn writes(name: &str) -> String {
    format!("signal = \"complete\"\n[[write]]\npath = \"{name}.txt\"\ntext = \"{name}\\n\"\n")
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The folder for temporary files that is usually taken.
fn usual(scratch: &ScratchProject) -> PathBuf {
    let uid = own_uid();
    scratch.root().join("tmp").join(format!("landfall-{uid}"))
}

#[test]
fn a_folder_for_temporary_files_that_is_not_ours_alone_is_not_used() {
    type Take = fn(&Path);
    let variants: [(&str, Take, &str); 4] = [
        ("a folder of another mode", |at| make_folder(at, 0o777), "has mode 777"),
        ("a file", |at| std::fs::write(at, "mine").expect("ours"), "is not a folder"),
        ("a link", |at| symlink("/", at).expect("ours"), "is a symbolic link"),
        (
            "somebody else's folder",
            |at| {
                make_folder(at, 0o700);
                std::os::unix::fs::chown(at, Some(12_345), None).expect("root may");
            },
            "belongs to user 12345",
        ),
    ];
    for (name, take, told) in variants {
        if name == "somebody else's folder" && own_uid() != 0 {
            landfall_testkit::skip_test("only root can make a folder of somebody else");
            continue;
        }
        let scratch = ScratchProject::new(LANDFALL);
        take(&usual(&scratch));
        let before = std::fs::symlink_metadata(usual(&scratch)).expect("there").permissions().mode();
        scratch.task("One", &writes("one"), &[]);
        let run = scratch.landfall(&["run"]);
        assert_eq!(scratch.status("T1"), "done", "{name}: {}\n{}", scratch.why("T1"), run.err);
        let doctor = scratch.landfall(&["doctor"]);
        let text = format!("{}{}", doctor.out, doctor.err);
        assert!(text.contains(told) && text.contains("is used instead"), "{name}: {text}");
        let after = std::fs::symlink_metadata(usual(&scratch)).expect("still there").permissions().mode();
        assert_eq!(before, after, "{name}: it is left as it was");
        assert_eq!(scratch.left_behind(), [], "{name}");
    }
}

fn make_folder(at: &Path, mode: u32) {
    std::fs::create_dir(at).expect("ours");
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).expect("ours");
}

#[test]
fn where_every_name_for_temporary_files_is_taken_the_state_folder_is_used() {
    let scratch = ScratchProject::new(LANDFALL);
    make_folder(&usual(&scratch), 0o777);
    for number in 1..=8 {
        let name = format!("landfall-{}-{number}", own_uid());
        make_folder(&scratch.root().join("tmp").join(name), 0o777);
    }
    scratch.task("One", &writes("one"), &[]);
    let run = scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "done", "{}\n{}", scratch.why("T1"), run.err);
    assert_eq!(
        std::fs::read_dir(scratch.state().join("tmp")).expect("it was used").count(),
        0,
        "and given up"
    );
}

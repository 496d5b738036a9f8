//! A lane is used again: whoever still holds a file of an earlier check does not change what the next check sees.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::sandbox::open_folder;

/// Says that it has begun, waits for leave, and shows what it was given. It has nothing to do on the base.
const CHECK: &str = "test -e one.txt || exit 0; name=one; test ! -e two.txt || name=two; touch $HOME/open/at-$name\n\
    while [ ! -e $HOME/open/go-$name ]; do sleep 0.02; done\n\
    cat want.txt > $HOME/open/saw-$name; grep -q right want.txt\n";

/// The checkout in which the first check runs.
fn lane(scratch: &ScratchProject) -> PathBuf {
    let lanes = std::fs::read_dir(scratch.state().join("lanes")).expect("there").flatten();
    let mut trees = lanes.map(|lane| lane.path().join("tree"));
    trees.find(|tree| tree.join("one.txt").exists()).expect("a lane with the work")
}

/// As a process does that got the file from the first check: by a descriptor, and by a link.
#[test]
fn a_file_that_one_check_handed_out_is_not_in_the_next_verification() {
    for level in ["isolated", "write"] {
        let scratch = ScratchProject::new(LANDFALL);
        let open = open_folder(&scratch);
        scratch.file("want.txt", "right\n");
        scratch.file("other.txt", "right\n");
        scratch.file("check.sh", CHECK);
        scratch.settings(&format!(
            "[agent.default]\nkind = \"script\"\n[run]\nslots = 1\nlanes = 1\niterations_max = 1\n\
             sandbox = \"{level}\"\nsandbox_write = [\"~/open\"]\n\
             [verify]\nretries = 0\n[[verify.command]]\nname = \"tests\"\nrun = \"sh check.sh\"\n"
        ));
        for (title, file) in [("One", "one.txt"), ("Two", "two.txt")] {
            let script = format!("signal = \"complete\"\n[[write]]\npath = \"{file}\"\ntext = \"work\\n\"\n");
            let needs: &[&str] = if file == "two.txt" { &["--needs", "T1"] } else { &[] };
            scratch.task(title, &script, needs);
        }
        let mut run = scratch.start(&["run"]);
        scratch.eventually("the first check runs", || open.join("at-one").exists());
        let file = lane(&scratch).join("want.txt");
        let mut held = OpenOptions::new().write(true).open(&file).expect("it may be written");
        std::fs::hard_link(lane(&scratch).join("other.txt"), open.join("link")).expect("on the same disk");
        std::fs::write(open.join("go-one"), "").expect("ours");
        scratch.eventually("the second check runs", || open.join("at-two").exists());
        held.write_all(b"wrong\n").expect("room");
        std::fs::write(open.join("link"), "wrong\n").expect("ours");
        let other = std::fs::read_to_string(lane(&scratch).join("other.txt")).expect("there");
        std::fs::write(open.join("go-two"), "").expect("ours");
        run.wait(Duration::from_secs(60));
        let saw = std::fs::read_to_string(open.join("saw-two")).expect("the second check ran");
        assert_eq!((saw.as_str(), other.as_str()), ("right\n", "right\n"), "{level}");
        assert_eq!(scratch.status("T2"), "done", "{level}: {}", scratch.why("T2"));
        assert_eq!(scratch.left_behind(), []);
    }
}

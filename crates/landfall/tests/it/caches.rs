//! Caches of package managers: agents and checks change them for themselves alone.

use std::path::PathBuf;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;

/// Files of three caches, as a shell finds them: where a variable says, or at the usual place.
const CACHED: &str = "${CARGO_HOME:-$HOME/.cargo}/registry/cache/a.crate ${npm_config_cache:-$HOME/.npm}/_cacache/index \
    ${GOPATH:-$HOME/go}/pkg/mod/a.go";
const USUAL: [&str; 3] = [".cargo/registry/cache/a.crate", ".npm/_cacache/index", "go/pkg/mod/a.go"];

/// A project with a user's caches. Its agents write down what they find in them and leave something else there; so do its
/// checks, which fail if they do not find what the user has. On the base the checks leave nothing: what they leave there is
/// for all verifications.
fn scene(settings: &str) -> ScratchProject {
    let scratch = ScratchProject::new(LANDFALL);
    for cached in USUAL {
        let path = scratch.root().join("home").join(cached);
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("ours");
        std::fs::write(path, "theirs\n").expect("ours");
    }
    scratch
        .file("agent.sh", &format!("for file in {CACHED}; do cat $file >> $1; echo agent > $file; done\n"));
    scratch.file(
        "check.sh",
        &format!(
            "[ -e one.txt ] || [ -e two.txt ] || exit 0\n\
             for file in {CACHED}; do test \"$(cat $file)\" = theirs || exit 1; echo check > $file || exit 2; done\n"
        ),
    );
    scratch.settings(&format!(
        "[agent.default]\nkind = \"script\"\n[run]\nslots = 1\nlanes = 1\niterations_max = 1\n\
         caches = [\"~/.cargo/registry\", \"~/.npm\", \"~/go/pkg\"]\n{settings}\n\
         [[verify.command]]\nname = \"tests\"\nrun = \"sh check.sh\"\n"
    ));
    for (title, file) in [("One", "one.txt"), ("Two", "two.txt")] {
        let script = format!("run = [\"sh\", \"agent.sh\", \"{file}\"]\nsignal = \"complete\"\n");
        scratch.task(title, &script, &[]);
    }
    scratch
}

fn changes_stay_with_who_makes_them(settings: &str, broken: Option<&str>) {
    let mut scratch = scene(settings);
    if let Some(part) = broken {
        scratch.set("LANDFALL_SANDBOX_BREAK", part);
    }
    let run = scratch.landfall(&["run"]);
    for (task, file) in [("T1", "one.txt"), ("T2", "two.txt")] {
        assert_eq!(scratch.status(task), "done", "{settings} {broken:?}: {}\n{}", scratch.why(task), run.err);
        let found = scratch.git(&["show", &format!("main:{file}")]);
        assert_eq!(found, "theirs\ntheirs\ntheirs", "{settings} {broken:?}");
    }
    for cached in USUAL {
        let path: PathBuf = scratch.root().join("home").join(cached);
        assert_eq!(std::fs::read_to_string(path).expect("there"), "theirs\n", "{settings} {broken:?}");
    }
    assert_eq!(scratch.left_behind(), []);
}

#[test]
fn a_change_of_a_cache_reaches_neither_the_user_nor_another_run() {
    changes_stay_with_who_makes_them("sandbox = \"isolated\"", None);
}

/// Ignored files may stay in a lane. Caches may not.
#[test]
fn a_change_of_a_cache_does_not_stay_in_a_lane_with_ignored_files() {
    changes_stay_with_who_makes_them("sandbox = \"isolated\"\n[verify]\nkeep_ignored = true", None);
}

#[test]
fn a_change_of_a_cache_without_overlays_stays_in_a_copy() {
    changes_stay_with_who_makes_them("sandbox = \"isolated\"", Some("overlay"));
}

#[test]
fn a_change_of_a_cache_without_mounts_stays_where_a_variable_points() {
    changes_stay_with_who_makes_them("sandbox = \"write\"", None);
}

//! A checkout that is used again: nobody who holds a file from before changes what the next user sees.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, IoSliceMut, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use landfall_host::git::{IgnoredFilesPolicy, RefName};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::git_scene::{Scene, write};

const PLANTED: &[u8] = b"bad\n";

/// What somebody else holds of a file, and how they change it.
enum Hold {
    Descriptor(File),
    Mapping(*mut u8),
    Link(PathBuf),
    /// A mount of the file elsewhere, by a process that has mounts of its own.
    Mount(std::process::Child),
}

impl Hold {
    /// Every way to hold `file`, which has at least as many bytes as are planted.
    fn all(file: &Path, elsewhere: &Path) -> Vec<Hold> {
        let open =
            || OpenOptions::new().read(true).write(true).open(file).expect("the occupant may write it");
        let link = elsewhere.join("link");
        std::fs::hard_link(file, &link).expect("on the same disk");
        let mut all = vec![Hold::Descriptor(pass_on(&open())), Hold::Mapping(map(&open())), Hold::Link(link)];
        all.extend(bind(file, &elsewhere.join("mounted")).map(Hold::Mount));
        all
    }

    fn plant(&mut self) {
        match self {
            Hold::Descriptor(file) => {
                file.seek(SeekFrom::Start(0)).expect("a file");
                file.write_all(PLANTED).expect("room");
            }
            // SAFETY: the mapping is as long as that, and lives as long as the test.
            Hold::Mapping(at) => unsafe {
                std::ptr::copy_nonoverlapping(PLANTED.as_ptr(), *at, PLANTED.len());
            },
            Hold::Mount(process) => {
                let _ = process.stdin.take(); // now
                assert!(process.wait().expect("it ends").success(), "it wrote to its mount");
            }
            Hold::Link(path) => {
                let mut file = OpenOptions::new().write(true).open(path).expect("ours");
                file.write_all(PLANTED).expect("room");
            }
        }
    }
}

/// A process with a mount of `file` at `elsewhere`, which writes there when its input ends. None where nobody may mount.
fn bind(file: &Path, elsewhere: &Path) -> Option<std::process::Child> {
    use std::io::Read as _;
    use std::process::Stdio;
    std::fs::write(elsewhere, "").expect("ours");
    let script = "mount --bind \"$1\" \"$2\" && echo ready && cat && printf 'bad\\n' | dd of=\"$2\" conv=notrunc 2>/dev/null";
    let mut process = std::process::Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, "sh"])
        .args([file, elsewhere])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut word = [0; 6];
    let is_ready = process.stdout.as_mut().is_some_and(|out| out.read_exact(&mut word).is_ok());
    if !is_ready {
        let _ = process.wait(); // it has said why
        eprintln!("landfall-skip: a mount of a file needs namespaces");
    }
    is_ready.then_some(process)
}

/// The file as somebody else gets it over a socket.
fn pass_on(file: &File) -> File {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(&ours, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).expect("sent");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&theirs, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::empty()).expect("received");
    let mut messages = ancillary.drain();
    let Some(RecvAncillaryMessage::ScmRights(mut files)) = messages.next() else { panic!("no descriptor") };
    files.next().expect("one").into()
}

fn map(file: &File) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of an open file, which is never taken back.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), PLANTED.len(), access, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(at, libc::MAP_FAILED);
    at.cast()
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).expect("there").ino()
}

const FILES: [(&str, &str); 3] = [
    ("a.txt", "one\ntwo\nthree\n"),
    ("dir/deep/c.txt", "good, and long enough\n"),
    ("kept.log", "tracked\n"),
];

fn scene() -> Scene {
    Scene::with(|root| {
        write(root, ".gitignore", "target/\n");
        for (name, text) in FILES {
            write(root, name, text);
        }
    })
}

/// Whoever holds a file changes it now; the checkout has what the commit has.
fn assert_out_of_reach(holds: &mut [Hold], top: &Path) {
    for hold in holds {
        hold.plant();
    }
    for (name, text) in FILES {
        assert_eq!(std::fs::read_to_string(top.join(name)).expect("there"), text, "{name}");
    }
}

#[test]
fn no_file_that_a_check_handed_out_is_in_the_next_checkout_of_its_lane() {
    for ignored in [IgnoredFilesPolicy::Remove, IgnoredFilesPolicy::Keep] {
        let scene = scene();
        let lane = scene.lane("1");
        let top = lane.check_out_commit(&scene.base, ignored).expect("checked out").path;
        lane.note_occupant("run", true).expect("noted");
        lane.note_vacated("run").expect("noted");
        let mut holds: Vec<Hold> = Vec::new();
        for (number, (name, _)) in FILES.iter().enumerate() {
            let elsewhere = scene.temp.path().join(format!("shared{number}"));
            std::fs::create_dir(&elsewhere).expect("ours");
            holds.extend(Hold::all(&top.join(name), &elsewhere));
        }
        lane.check_out_commit(&scene.base, ignored).expect("checked out");
        assert_out_of_reach(&mut holds, &top);
    }
}

/// A process that outlives its check has the folder, and makes what it likes in it whenever it likes.
#[test]
fn a_lane_is_another_folder_after_a_check_that_may_not_have_ended() {
    for ignored in [IgnoredFilesPolicy::Remove, IgnoredFilesPolicy::Keep] {
        let scene = scene();
        let lane = scene.lane("1");
        let top = lane.check_out_commit(&scene.base, ignored).expect("checked out").path;
        lane.note_occupant("first", false).expect("noted");
        lane.note_vacated("first").expect("noted");
        let kept = inode(&top);
        lane.check_out_commit(&scene.base, ignored).expect("checked out");
        assert_eq!(inode(&top), kept, "all have ended");
        lane.note_occupant("first", false).expect("noted");
        lane.note_occupant("second", false).expect("noted");
        lane.note_vacated("second").expect("noted");
        let held = std::fs::File::open(&top).expect("there");
        lane.check_out_commit(&scene.base, ignored).expect("checked out");
        let planted = rustix::fs::openat(
            &held,
            "planted",
            rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY,
            rustix::fs::Mode::from_raw_mode(0o644),
        );
        assert!(planted.is_err(), "the folder that it has is gone");
        assert_ne!(inode(&top), kept);
    }
}

#[test]
fn ignored_files_that_were_handed_out_stay_suspect_while_they_are_kept() {
    let scene = scene();
    let lane = scene.lane("1");
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
    lane.note_occupant("first", true).expect("noted");
    lane.note_vacated("first").expect("noted");
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out");
    assert!(lane.may_be_handed_out(), "nobody was started since, but they are as they were");
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
    assert!(!lane.may_be_handed_out());
}

/// A link shows by itself: making it changes the file's own time.
#[test]
fn a_file_that_was_linked_is_made_anew_without_a_word_about_it() {
    let scene = scene();
    let lane = scene.lane("1");
    let top = lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out").path;
    lane.note_occupant("run", false).expect("noted");
    lane.note_vacated("run").expect("noted");
    let link = scene.temp.path().join("link");
    std::fs::hard_link(top.join("a.txt"), &link).expect("on the same disk");
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out");
    assert_out_of_reach(&mut [Hold::Link(link)], &top);
}

#[test]
fn files_of_a_check_that_can_hand_out_none_stay() {
    let scene = scene();
    let lane = scene.lane("1");
    let top = lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out").path;
    let before = FILES.map(|(name, _)| inode(&top.join(name)));
    lane.note_occupant("run", false).expect("noted");
    lane.note_vacated("run").expect("noted");
    assert!(!lane.may_be_handed_out());
    lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out");
    assert_eq!(FILES.map(|(name, _)| inode(&top.join(name))), before);
    // One that nobody has told about, as from an earlier version, is not trusted.
    std::fs::remove_file(top.with_file_name("room").join("fresh")).expect("there");
    assert!(lane.may_be_handed_out());
}

/// `verify.keep_ignored` speaks of files in the checkout only.
#[test]
fn layers_over_caches_last_for_one_verification() {
    let scene = Scene::with(|root| write(root, ".gitignore", "target/\n"));
    let lane = scene.lane("1");
    let top = lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out").path;
    lane.note_occupant("run", false).expect("noted");
    lane.note_vacated("run").expect("noted");
    for (ignored, cache_stays, file_stays) in [
        (IgnoredFilesPolicy::Keep, true, true),
        (IgnoredFilesPolicy::KeepWithoutCaches, false, true),
        (IgnoredFilesPolicy::Remove, false, false),
    ] {
        write(&top, "target/built", "x\n");
        write(&lane.caches_path(), "layer/left", "x\n");
        lane.check_out_commit(&scene.base, ignored).expect("checked out");
        assert_eq!(lane.caches_path().exists(), cache_stays, "{ignored:?}");
        assert_eq!(top.join("target/built").exists(), file_stays, "{ignored:?}");
    }
}

/// Git does not know such a file once the index is gone, and it is ignored.
#[test]
fn a_tracked_file_that_is_ignored_goes_with_the_commit_that_has_it() {
    let scene = Scene::with(|root| write(root, "target/tracked", "x\n"));
    let lane = scene.lane("1");
    let top = lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Keep).expect("checked out").path;
    lane.note_occupant("run", true).expect("noted");
    lane.note_vacated("run").expect("noted");
    write(&scene.root(), ".gitignore", "target/\n");
    crate::git_scene::git(&scene.root(), ["rm", "-q", "--cached", "target/tracked"]);
    crate::git_scene::git(&scene.root(), ["add", ".gitignore"]);
    crate::git_scene::git(&scene.root(), ["commit", "-q", "-m", "second"]);
    let next = scene.store.import_branch(&scene.repo, &crate::git_scene::main_branch()).expect("imported");
    lane.check_out_commit(&next, IgnoredFilesPolicy::Keep).expect("checked out");
    assert!(!top.join("target/tracked").exists());
}

#[test]
fn no_file_that_an_agent_handed_out_is_in_the_next_workspace() {
    for is_spare in [false, true] {
        let scene = scene();
        let workspace = scene.prepare("T1");
        workspace.note_occupant("run", true).expect("noted");
        workspace.note_vacated("run").expect("noted");
        let mut holds: Vec<Hold> = Vec::new();
        for (number, (name, _)) in FILES.iter().enumerate() {
            let elsewhere = scene.temp.path().join(format!("shared{number}"));
            std::fs::create_dir(&elsewhere).expect("ours");
            holds.extend(Hold::all(&workspace.path().join(name), &elsewhere));
        }
        let collected = scene.collect(&workspace);
        let keep = RefName::new("refs/landfall/kept/t1").expect("a fine name");
        scene.pool.release_workspace(workspace, &collected, &keep).expect("released");
        assert_eq!(scene.pool.warm_count(), 1);
        if is_spare {
            assert!(scene.pool.make_spare(&scene.base, &|_| false).expect("made"));
        }
        let next = scene.prepare("T2");
        assert_out_of_reach(&mut holds, next.path());
    }
}

/// Not a claim but a measurement: what a fresh checkout costs against one in which nothing changed. See `git_figures`.
#[test]
#[ignore = "a measurement, to be run alone: --run-ignored"]
fn what_a_fresh_checkout_costs() {
    let scene = Scene::with(|root| {
        for number in 0..4_000 {
            write(
                root,
                &format!("dir{}/file{number}.txt", number / 100),
                format!("text {number}\n").repeat(50),
            );
        }
    });
    let lane = scene.lane("1");
    let time = |may_hand_out: bool| {
        lane.note_occupant("run", may_hand_out).expect("noted");
        lane.note_vacated("run").expect("noted");
        let began = std::time::Instant::now();
        lane.check_out_commit(&scene.base, IgnoredFilesPolicy::Remove).expect("checked out");
        began.elapsed()
    };
    time(true);
    let mut best = [std::time::Duration::MAX; 2];
    for _ in 0..5 {
        for (at, may_hand_out) in [false, true].into_iter().enumerate() {
            best[at] = best[at].min(time(may_hand_out));
        }
    }
    let [kept, fresh] = best.map(|time| time.as_secs_f64());
    println!("4,000 files: kept {kept:.3} s, fresh {fresh:.3} s, ratio {:.1}", fresh / kept);
}

//! One engine per state folder.

use landfall_host::lock::{LockHolder, StateLock, StateLockError};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn a_second_engine_is_refused_and_told_who_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = LockHolder::this_process("landfall run", 1_700_000_000_000);
    assert_eq!(first.started, landfall_host::sitter::started_of(first.pid).expect("we run"));
    let lock = StateLock::acquire(folder.path(), &first).expect("free");
    let second = LockHolder { command: "landfall serve".into(), ..first.clone() };
    match StateLock::acquire(folder.path(), &second) {
        Err(StateLockError::Held { holder, path }) => {
            assert_eq!(holder, first);
            assert_eq!(path, lock.path());
        }
        other => panic!("{other:?}"),
    }
    drop(lock);
    let lock = StateLock::acquire(folder.path(), &second).expect("free again");
    match StateLock::acquire(folder.path(), &first) {
        Err(error @ StateLockError::Held { .. }) => {
            assert!(error.to_string().contains("`landfall serve`"), "{error}")
        }
        other => panic!("{other:?}"),
    }
    drop(lock);
}

#[test]
fn a_dead_holder_holds_nothing_and_a_silent_one_is_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.lock");
    let me = LockHolder::this_process("landfall run", 0);
    // As a crash leaves it: the file with a name in it, and no lock.
    std::fs::write(&path, r#"{"v":1,"pid":1,"started":1,"host":"h","command":"c","since_ms":1}"#)
        .expect("writable");
    drop(StateLock::acquire(folder.path(), &me).expect("nobody holds it"));
    let silent = std::fs::File::open(&path).expect("there");
    silent.lock().expect("free");
    assert!(matches!(StateLock::acquire(folder.path(), &me), Err(StateLockError::HeldByUnknown { .. })));
}

#[test]
fn a_folder_that_is_missing_or_read_only_has_its_own_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let me = LockHolder::this_process("landfall run", 0);
    let missing = folder.path().join("no");
    assert!(matches!(StateLock::acquire(&missing, &me), Err(StateLockError::Missing { .. })));
    std::fs::write(folder.path().join("file"), "").expect("writable");
    assert!(matches!(
        StateLock::acquire(&folder.path().join("file"), &me),
        Err(StateLockError::Missing { .. })
    ));
    // The superuser may write anywhere but here.
    assert!(matches!(
        StateLock::acquire(Path::new("/proc/1"), &me),
        Err(StateLockError::ReadOnly { .. } | StateLockError::Missing { .. })
    ));
    if !rustix::process::getuid().is_root() {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).expect("ours");
        assert!(matches!(StateLock::acquire(folder.path(), &me), Err(StateLockError::ReadOnly { .. })));
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).expect("ours");
    }
}

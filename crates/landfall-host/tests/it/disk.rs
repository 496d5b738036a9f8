//! The disk.

use landfall_host::disk;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

#[test]
fn a_file_is_replaced_whole_and_leaves_no_scratch() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state.json");
    disk::write_atomic(&path, b"one").expect("writable");
    disk::write_atomic(&path, b"two, longer").expect("writable");
    assert_eq!(fs::read(&path).expect("there"), b"two, longer");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(disk::write_atomic(&folder.path().join("no/such"), b"x").is_err());
    // Where the rename fails, the scratch file is taken away again.
    fs::create_dir(folder.path().join("taken")).expect("writable");
    assert!(disk::write_atomic(&folder.path().join("taken"), b"x").is_err());
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|it| it.expect("one").file_name()).collect();
    names.sort();
    assert_eq!(names, ["state.json", "taken"]);
    disk::sync_dir(folder.path()).expect("a folder");
}

#[test]
fn the_size_of_a_folder_follows_no_link_and_counts_a_file_once() {
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("huge"), vec![1; 4 << 20]).expect("writable");
    let folder = tempfile::tempdir().expect("a folder");
    let before = disk::dir_size(folder.path()).expect("readable");
    symlink(outside.path(), folder.path().join("folder")).expect("a link");
    symlink(outside.path().join("huge"), folder.path().join("file")).expect("a link");
    symlink(folder.path(), folder.path().join("loop")).expect("a link");
    let with_links = disk::dir_size(folder.path()).expect("readable");
    assert!(with_links - before < 64 << 10, "{before} → {with_links}");
    fs::create_dir(folder.path().join("deep")).expect("writable");
    fs::write(folder.path().join("deep/big"), vec![1; 1 << 20]).expect("writable");
    let once = disk::dir_size(folder.path()).expect("readable");
    assert!(once - with_links >= 1 << 20, "{with_links} → {once}");
    fs::hard_link(folder.path().join("deep/big"), folder.path().join("again")).expect("a second name");
    let twice = disk::dir_size(folder.path()).expect("readable");
    assert!(twice - once < 64 << 10, "{once} → {twice}");
    assert!(disk::dir_size(&folder.path().join("no")).is_err());
    assert!(disk::dir_size(&folder.path().join("file")).expect("a link") < 64 << 10);
}

#[test]
fn the_machine_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(disk::free_bytes(folder.path()).expect("readable") > 0);
    assert!(disk::free_bytes(Path::new("/no/such")).is_err());
    assert!(!disk::is_network_fs(Path::new("/proc")).expect("readable"));
    assert!(disk::is_network_fs(Path::new("/no/such")).is_err());
    let boot = disk::boot_id().expect("known");
    assert_eq!(boot.len(), 36);
    assert_eq!(boot, disk::boot_id().expect("known"));
}

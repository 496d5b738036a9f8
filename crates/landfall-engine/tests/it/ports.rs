//! Ports are leased once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use landfall_engine::ports::{PortBlock, lease_ports};
use landfall_engine::settings::PortRange;

/// A range of ports that nobody uses now, `blocks` times `each` of them. `test` tells tests apart: trying a port is using
/// it for an instant.
fn quiet_range(test: u16, blocks: u16, each: u16) -> PortRange {
    let wanted = blocks * each;
    let from = 20_000 + 1_000 * test;
    for first in (from..from + 900).step_by(usize::from(wanted)) {
        let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (first..first + wanted).all(free) {
            return PortRange { first, last: first + wanted - 1, each };
        }
    }
    panic!("this machine has no quiet ports");
}

fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("ports.json")
}

const ALL: &dyn Fn(&str) -> bool = &|_| true;

#[test]
fn a_block_is_stable_while_its_workspace_stands_and_free_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let range = quiet_range(1, 2, 5);
    let get = |name: &str, stands: &dyn Fn(&str) -> bool| lease_ports(&file(&folder), range, name, stands);
    let one = get("T1", ALL).expect("there are two");
    let two = get("T2", ALL).expect("there are two");
    assert_eq!((one.first, one.last, two.first), (range.first, range.first + 4, range.first + 5));
    assert_eq!(get("T1", ALL), Ok(one), "the same after a restart: nothing is kept but the file");
    let full = get("T3", ALL).expect_err("there are only two");
    assert!(full.contains("no ports are left") && full.contains("2 workspaces"), "{full}");
    assert_eq!(get("T3", &|name| name != "T1"), Ok(one));
    assert_eq!(get("T2", ALL), Ok(two));
    let words: Vec<_> = two.env_variables().into_iter().map(|(_, value)| value).collect();
    assert_eq!(words, [two.first.to_string().as_str(), &format!("{}-{}", two.first, two.last)]);
}

#[test]
fn however_many_ask_at_once_no_port_is_leased_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let range = quiet_range(2, 16, 3);
    let file = file(&folder);
    let asked = |file: &Path, name: String| lease_ports(file, range, &name, ALL).map(|block| (name, block));
    let blocks: BTreeMap<String, PortBlock> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..32)
            .map(|n| {
                scope.spawn({
                    let file = &file;
                    move || asked(file, format!("T{}", n % 16))
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().expect("no panic").expect("there are as many")).collect()
    });
    assert_eq!(blocks.len(), 16);
    let ports: Vec<u16> = blocks.values().flat_map(|block| block.first..=block.last).collect();
    assert_eq!(ports.len(), 48);
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 48);
}

#[test]
fn a_block_in_which_someone_listens_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let range = quiet_range(3, 3, 4);
    let _other = TcpListener::bind((Ipv4Addr::LOCALHOST, range.first + 2)).expect("it was quiet");
    let block = lease_ports(&file(&folder), range, "T1", ALL).expect("two are left");
    assert_eq!(block.first, range.first + 4);
}

#[test]
fn another_range_gives_another_block_that_overlaps_none_of_the_old() {
    let folder = tempfile::tempdir().expect("a folder");
    let range = quiet_range(4, 4, 6);
    let old = lease_ports(&file(&folder), range, "T1", ALL).expect("there are four");
    let smaller = PortRange { each: 4, ..range };
    let other = lease_ports(&file(&folder), smaller, "T2", ALL).expect("there is room");
    assert!(other.first > old.last, "{other:?} and {old:?}");
    let own = lease_ports(&file(&folder), smaller, "T1", ALL).expect("there is room");
    assert_eq!(own.last - own.first, 3);
    assert!(own.last < other.first || own.first > other.last);
}

#[test]
fn damaged_leases_are_not_guessed_at() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(file(&folder), "{").expect("a file");
    let error = lease_ports(&file(&folder), quiet_range(5, 1, 1), "T1", ALL).expect_err("it cannot be read");
    assert!(error.contains("is damaged"), "{error}");
}

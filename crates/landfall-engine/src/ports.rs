//! Ports leased to workspaces: each has a block to itself for as long as it stands, across restarts.
//!
//! The leases are a small file in the state folder. One whose workspace is gone is free again: that is looked at when
//! the next block is wanted, so there is nothing to give back and nothing to forget.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use landfall_host::disk;
use landfall_model::TaskId;
use serde::{Deserialize, Serialize};

use crate::host_context::HostContext;
use crate::settings::PortRange;

/// Ports that belong to one workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortBlock {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl PortBlock {
    /// How agents, checks and commands hear of it.
    #[must_use]
    pub fn env_variables(self) -> [(OsString, OsString); 2] {
        let Self { first, last } = self;
        [
            ("LANDFALL_PORT".into(), first.to_string().into()),
            ("LANDFALL_PORTS".into(), format!("{first}-{last}").into()),
        ]
    }

    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The ports of a task whose workspace stands, as variables; none if no ports are set.
///
/// # Errors
/// When all are leased, or the leases cannot be read or written.
pub fn port_variables(site: &HostContext, task: TaskId) -> Result<Vec<(OsString, OsString)>, String> {
    let Some(range) = site.settings.workspace.ports else { return Ok(Vec::new()) };
    let side = site.folder.side_name();
    let stands = |holder: &str| {
        let (name, of) = holder.split_once('@').map_or((holder, None), |(name, of)| (name, Some(of)));
        match of == side {
            true => site.pool.find_workspace(name).is_some(),
            false => site.folder.of_side(of).workspaces_path().join(name).is_dir(), // of another base of the project
        }
    };
    let name = side.map_or_else(|| task.to_string(), |side| format!("{task}@{side}"));
    let block = lease_ports(&site.folder.ports_path(), range, &name, &stands)?;
    Ok(block.env_variables().to_vec())
}

#[derive(Debug, Serialize, Deserialize)]
struct PortLeases {
    version: u32,
    leases: BTreeMap<String, PortBlock>,
}

const VERSION: u32 = 1;

/// The block of the workspace `name`: the one it has, or a free one. `stands` says of a workspace whether it still does.
///
/// # Errors
/// When all are leased, or the leases cannot be read or written.
pub fn lease_ports(
    file: &Path,
    range: PortRange,
    name: &str,
    stands: &dyn Fn(&str) -> bool,
) -> Result<PortBlock, String> {
    let doing = |error: std::io::Error| format!("lease ports in {}: {error}", file.display());
    let lock = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(file.with_extension("lock"))
        .map_err(doing)?;
    lock.lock().map_err(doing)?; // let go of when it is closed: two threads never choose at once
    let mut leases = read_leases(file)?;
    let before = leases.leases.len();
    leases.leases.retain(|holder, _| holder == name || stands(holder));
    let fits = |block: &PortBlock| {
        let PortBlock { first, last } = *block;
        first >= range.first && last <= range.last && last - first + 1 == range.each
    };
    if let Some(block) = leases.leases.get(name).copied().filter(fits) {
        if leases.leases.len() != before {
            write_leases(file, &leases).map_err(doing)?;
        }
        return Ok(block);
    }
    leases.leases.remove(name);
    let taken: Vec<PortBlock> = leases.leases.values().copied().collect();
    let block = list_blocks(range)
        .filter(|block| !taken.iter().any(|other| other.overlaps(*block)))
        .find(|block| is_quiet(*block))
        .ok_or_else(|| {
            let PortRange { first, last, .. } = range;
            let holders = leases.leases.len();
            format!(
                "no ports are left in {first}-{last}: {holders} workspaces have leased theirs, and others are in use; \
                 `workspace.ports` can be widened, `landfall project reclaim` gives up workspaces that are not needed"
            )
        })?;
    leases.leases.insert(name.to_owned(), block);
    write_leases(file, &leases).map_err(doing)?;
    Ok(block)
}

fn list_blocks(range: PortRange) -> impl Iterator<Item = PortBlock> {
    let PortRange { first, last, each } = range;
    let firsts = (u32::from(first)..=u32::from(last)).step_by(usize::from(each));
    firsts.filter_map(move |at| {
        let end = u16::try_from(at + u32::from(each) - 1).ok().filter(|end| *end <= last)?;
        Some(PortBlock { first: u16::try_from(at).ok()?, last: end })
    })
}

/// Whether nobody listens there now: someone else's program is not ours to fight with.
fn is_quiet(block: PortBlock) -> bool {
    (block.first..=block.last).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}

fn read_leases(file: &Path) -> Result<PortLeases, String> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(PortLeases { version: VERSION, leases: BTreeMap::new() });
        }
        Err(error) => return Err(format!("read {}: {error}", file.display())),
    };
    // Guessing could lease a port twice; a person can remove the file once no agent runs.
    let leases: PortLeases =
        serde_json::from_slice(&bytes).map_err(|error| format!("{} is damaged ({error})", file.display()))?;
    match leases.version {
        VERSION => Ok(leases),
        other => Err(format!("{} is of version {other}, this program knows {VERSION}", file.display())),
    }
}

fn write_leases(file: &Path, leases: &PortLeases) -> std::io::Result<()> {
    let text = serde_json::to_vec_pretty(leases).expect("strings and numbers only");
    disk::write_atomic(file, &text)
}

//! `landfall.toml`: what a person writes about a project.
//!
//! [`raw`] says which keys there are, [`resolve`] makes [`Settings`] of them, [`reference`](Settings::reference)
//! writes the page about them. To add a setting, add a field to `raw.rs` and carry it over in `resolve.rs`.

mod describe;
mod keys;
mod overrides;
pub(crate) mod place;
mod problem;
mod raw;
mod reference;
mod resolve;
mod sensitive;
mod service;
mod shares;
mod tracker;
mod units;
mod wholework;

pub use describe::{Described, Key, Section, Wrong};
pub use landfall_model::sandbox::Confinement;
pub use problem::SettingsProblem;
pub use resolve::{
    Checkpoint, Disk, Installation, Keep, Land, Profile, Project, Publish, PushBy, Review, Run, Settings,
    Verify, VerifyCommand,
};
pub use sensitive::{Exposure, NotADigest, SensitiveSetting, SensitiveSettings, TrustDigest};
pub(crate) use service::is_address;
pub use service::{Address, Channel, Hooks, PortRange, Way, WorkspaceSettings};
pub use tracker::TrackerSettings;
pub(crate) use units::show_millis;
pub(crate) use wholework::{BYTES_MAX as WHOLEWORK_BYTES_MAX, FILE as WHOLEWORK};

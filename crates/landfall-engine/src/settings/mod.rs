//! `landfall.toml`: what a person writes about a project.
//!
//! [`raw`] says which keys there are, [`resolve`] makes [`Settings`] of them, [`reference`](Settings::render_reference)
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

pub use describe::{SettingDescription, SettingsDescription, SettingsFileProblem, SettingsTable};
pub use landfall_model::sandbox::Confinement;
pub use problem::SettingsProblem;
pub use resolve::{
    CheckpointSettings, DiskSettings, Installation, LandSettings, ProfileSettings, ProjectSettings,
    PublishTarget, PushMode, RetentionSettings, ReviewSettings, RunSettings, Settings, VerifyCommand,
    VerifySettings,
};
pub use sensitive::{Exposure, NotADigest, SensitiveSetting, SensitiveSettings, TrustDigest};
pub(crate) use service::is_address;
pub use service::{
    ChannelAddress, DeliveryMethod, HookSettings, NotificationChannel, PortRange, WorkspaceSettings,
};
pub use tracker::TrackerSettings;
pub(crate) use units::show_millis;
pub(crate) use wholework::{BYTES_MAX as WHOLEWORK_BYTES_MAX, FILE as WHOLEWORK};

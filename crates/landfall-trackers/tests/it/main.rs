//! The trackers, each against what it really speaks with.

mod contract;
mod corpus;
mod github;
mod github_recorded;
mod github_schema;
mod local;
mod modules;
mod schema;
mod world;

//! The server from outside: a real one on a free port, raw requests, and a project that only pretends.

mod agents;
mod attacks;
mod door;
mod events;
mod forms;
mod idempotency;
mod keys;
mod limits;
mod loops;
mod metrics;
mod samples;
mod socket;
mod support;
mod tokens;

//! Tests of the trackers from outside.

mod modules;

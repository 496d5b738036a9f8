//! The least a Rust program costs to start.

fn main() {}

//! Landfall: takes a backlog and the coding agents a person already has, and lands only work that it has proved.

#![expect(dead_code, reason = "the commands follow")]

mod house;
mod running;

fn main() {}

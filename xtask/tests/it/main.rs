//! The rules of the house as tests: facts about the tree that no compiler checks.

mod agents;
mod engine_layers;
mod house;

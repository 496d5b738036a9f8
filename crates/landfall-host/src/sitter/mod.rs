//! The small process that owns one agent process and outlives the engine.

//! The one place that runs git.

//! The instruments themselves: a test that trusts them should be able to.

mod model;

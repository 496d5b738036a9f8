//! The wire from outside: task files, the shapes of messages, and the socket.

mod corpus;
mod import;
mod openapi;
mod shapes;
mod socket;
mod taskfile;
mod wire;

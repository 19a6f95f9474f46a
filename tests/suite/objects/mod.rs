//! One suite for all kinds of places: a folder, the embedded server, and versitygw if installed. Case names
//! are command lines. The content of a server is read by an independent client, never by the program under
//! test.

mod aliases;
mod cases;
mod changes;
mod closed;
mod copies;
mod encrypted;
mod filters;
mod flatten;
mod headers;
mod hostile;
mod known;
mod late;
mod levels;
mod lines;
mod lists;
mod looking;
mod manifests;
mod moving;
mod own_names;
mod proxied;
mod run_lines;
pub mod server;
pub mod stage;
mod trips;
mod unchanged;
mod versions;
mod wrong;

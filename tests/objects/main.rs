//! One suite for every place that objects or files can be in: a folder, the embedded server, and
//! versitygw where it is installed. Case names are command lines. What a server holds is looked at
//! by requests that are made here, never by the program under test.

#[path = "../server/client.rs"]
#[allow(dead_code, reason = "a part of what the server's own tests need")]
mod client;
#[path = "../common/mod.rs"]
mod common;
#[path = "../server/sign.rs"]
#[allow(dead_code, reason = "as above")]
mod sign;

mod changes;
mod copies;
mod filters;
mod headers;
mod hostile;
mod looking;
mod moving;
mod server;
mod stage;
mod streams;
mod trips;
mod unchanged;
mod wrong;

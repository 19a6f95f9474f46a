//! Steering: numbers of jobs that are found, remembered and told; limits that are refused or hold;
//! what is said at the end.

#[path = "../server/client.rs"]
#[allow(dead_code, reason = "a part of what the server's own tests need")]
mod client;
#[path = "../common/mod.rs"]
mod common;
#[path = "../objects/server.rs"]
#[allow(dead_code, reason = "as above")]
mod server;
#[path = "../server/sign.rs"]
#[allow(dead_code, reason = "as above")]
mod sign;
#[path = "../objects/stage.rs"]
#[allow(dead_code, reason = "as above")]
mod stage;

mod limits;
mod memory;
mod path;
mod polite;
mod said;

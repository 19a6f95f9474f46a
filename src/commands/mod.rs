//! The commands, one file or folder each. `main.rs` has their list.

pub mod agent;
#[cfg(feature = "lab")]
pub mod bench;
pub mod bucket_version;
pub mod buckets;
pub mod cat;
pub mod cluster;
#[cfg(feature = "lab")]
pub mod compare;
pub mod completions;
mod compression;
mod confinement;
pub mod cp;
#[cfg(all(feature = "lab", feature = "serve"))]
pub mod demo;
pub mod du;
pub mod head;
#[cfg(feature = "io")]
pub mod io;
pub mod ls;
pub mod manual;
pub mod mpu;
pub mod mv;
mod operands;
pub mod pipe;
pub mod presign;
mod remote;
#[cfg(feature = "lab")]
pub mod report;
#[cfg(feature = "lab")]
pub mod results;
pub mod rm;
pub mod run;
#[cfg(feature = "serve")]
pub mod serve;
mod session;
pub mod sync;
mod tool;
pub mod topics;
pub mod verify;
#[cfg(feature = "lab")]
pub mod watch;

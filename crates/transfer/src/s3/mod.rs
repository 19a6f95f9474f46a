//! The S3 client: settings, credentials, signing, connections, retries, and the operations of the
//! REST API that moving takes. Thin on purpose: one request is one small struct, one connection of
//! hyper and one pass over its body. Knows nothing of files, plans or policies.
//!
//! A [`Store`] is one account at one endpoint, shared by all cores; a [`Client`] is one core's
//! connections to it and never leaves that core.

mod address;
mod attempt;
pub mod blocking;
mod checksum;
mod client;
mod connector;
mod credentials;
mod download;
mod endpoint;
mod error;
mod flow;
pub mod header;
mod http;
mod instance;
pub mod ops;
mod outgoing;
mod pace;
mod pool;
mod presign;
mod profile;
mod request;
mod retry;
#[cfg(test)]
#[path = "tests/script.rs"]
pub(crate) mod script;
mod settings;
mod sign;
mod store;
mod stream;
mod time;
mod tls;
mod told;
mod xml;

pub use blocking::Requests;
pub use checksum::{Algorithm, Checksum, Hasher, combine_crc64};
pub use client::Client;
pub use download::Download;
pub use error::{Error, Kind};
pub use flow::{Flow, bodies_max};
pub use instance::instance_type;
pub use presign::presign;
pub use request::{Reply, Request};
pub use settings::{Addressing, ChecksumPolicy, Settings};
pub use sign::Keys;
pub use store::Store;

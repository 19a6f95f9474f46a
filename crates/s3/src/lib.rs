//! The S3 client: settings, credentials, signing, connections, retries, and the operations of the REST API
//! that transfers need. Kept thin: a request is one small struct, one hyper connection and one pass over its
//! body. Independent of files, plans and policies.
//!
//! A [`Store`] is an account at an endpoint, shared by all cores; a [`Client`] owns one core's connections to
//! it and stays on that core.

mod access_point;
mod address;
mod answer;
mod attempt;
pub mod blocking;
mod checksum;
mod client;
mod connector;
mod credentials;
mod customer_key;
mod download;
mod ec2;
mod endpoint;
mod error;
pub mod header;
mod http;
pub mod ops;
mod outgoing;
mod pace;
mod pool;
mod presign;
mod profile;
mod proxy;
mod reporter;
mod request;
mod retry;
mod retrying;
#[cfg(test)]
#[path = "tests/script.rs"]
pub(crate) mod script;
mod secrets;
mod settings;
mod sign;
mod store;
mod stream;
mod throttle;
mod time;
mod tls;
mod watch;
mod xml;

pub use access_point::AccessPoint;
pub use blocking::Requests;
pub use checksum::{Algorithm, Checksum, Hasher, combine_crc64};
pub use client::Client;
pub use customer_key::CustomerKey;
pub use download::Download;
pub use ec2::instance_type;
pub use endpoint::Addressing;
pub use error::{Error, Kind};
pub use presign::presign;
pub use profile::Lookup;
pub use request::{Reply, Request};
pub use secrets::without_secrets;
pub use settings::Settings;
pub use sign::Keys;
pub use store::Store;
pub use throttle::Throttle;

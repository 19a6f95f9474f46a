//! The S3 client: settings, credentials, signing, connections, retries, and the operations of the REST API
//! that transfers need. Kept thin: a request is one small struct, one hyper connection and one pass over its
//! body. Independent of files, plans and policies.
//!
//! A [`S3Session`] is an account at an endpoint, shared by all cores; a [`Client`] owns one core's connections to
//! it and stays on that core.

mod checksum;
mod client;
mod credentials;
mod customer_key;
mod endpoint;
mod error;
pub mod header;
pub mod ops;
mod proxy;
mod response;
#[cfg(test)]
pub(crate) mod script;
mod settings;
mod sign;
mod time;
mod xml;

pub use checksum::{Algorithm, Checksum, Hasher, combine_crc64};
pub use client::request::{Download, Request, Response};
pub use client::session::S3Session;
pub use client::throttle::Throttle;
pub use client::{Client, RequestCounts, with_client, with_session};
pub use credentials::instance_type;
pub use customer_key::CustomerKey;
pub use endpoint::{AccessPoint, Addressing, without_secrets};
pub use error::{Error, ErrorKind};
pub use settings::{Lookup, Settings};
pub use sign::{Credentials, presign};

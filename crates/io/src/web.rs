//! TLS and signatures for engines that talk to servers. The program has both, with its S3 client, and lends them: this
//! crate knows neither.

use std::io::{Read, Result, Write};
use std::net::TcpStream;

/// A connection.
pub trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// A request before it is signed. Path and query are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned<'a> {
    /// GET, PUT or DELETE.
    pub method: &'a str,
    /// Value of the header Host.
    pub host: &'a str,
    /// Path.
    pub path: &'a str,
    /// Other headers, names in small letters.
    pub headers: &'a [(String, String)],
    /// Its body.
    pub body: &'a [u8],
    /// Region of the account.
    pub region: &'a str,
    /// Access key.
    pub key_id: &'a str,
    /// Its secret.
    pub key: &'a str,
    /// Token of a session, or nothing.
    pub session: &'a str,
}

/// Things that the program lends.
pub trait Web: Sync {
    /// TLS over a connection to this host; its certificate is verified, or not.
    ///
    /// # Errors
    /// The handshake failed, or there are no certificates to trust.
    fn secure(&self, socket: TcpStream, host: &str, verify: bool) -> Result<Box<dyn Wire>>;

    /// Headers to be added to a request to S3, so that it is signed now (Signature Version 4).
    fn sign(&self, request: &Unsigned<'_>) -> Vec<(String, String)>;
}

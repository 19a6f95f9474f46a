//! TLS and signatures for engines that talk to servers. The program has both, with its S3 client, and lends them: this
//! crate knows neither.

pub use hakobu_core::web::Unsigned;
use std::io::{Read, Result, Write};
use std::net::TcpStream;

/// A connection.
pub trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

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

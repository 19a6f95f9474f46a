//! TLS and signatures of the S3 client, lent to `ioengine=http`.

use hakobu_io::web::{Unsigned, Web, Wire};
use hakobu_s3::lend;
use std::io::Result;
use std::net::TcpStream;

/// The S3 client's.
pub struct Lent;

impl Web for Lent {
    fn secure(&self, socket: TcpStream, host: &str, verify: bool) -> Result<Box<dyn Wire>> {
        let bundle = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty());
        let bundle = bundle.as_ref().map(std::path::Path::new);
        Ok(Box::new(lend::secure(socket, host, bundle, verify)?))
    }

    fn sign(&self, request: &Unsigned<'_>) -> Vec<(String, String)> {
        lend::signature(request)
    }
}

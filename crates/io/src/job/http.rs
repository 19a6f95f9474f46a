//! The server of a job with `ioengine=http`.

use std::fmt;

/// A text that is shown nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

/// Kind of the server (`http_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpMode {
    /// Any that has GET, PUT and DELETE.
    #[default]
    Webdav,
    /// S3: requests are signed.
    S3,
    /// OpenStack Swift: requests have a token.
    Swift,
}

/// TLS (`https`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Https {
    /// None.
    #[default]
    Off,
    /// With a certificate that is verified.
    On,
    /// With any certificate.
    Insecure,
}

/// Options of `ioengine=http`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http {
    /// Kind of the server.
    pub mode: HttpMode,
    /// Name or address, perhaps with a port (`http_host`).
    pub host: Option<String>,
    /// TLS.
    pub https: Https,
    /// User and password (`http_user`, `http_pass`).
    pub user: Option<String>,
    /// See there.
    pub password: Secret,
    /// Access key of S3, its secret, a session token (`http_s3_keyid`, `http_s3_key`, `http_s3_security_token`).
    pub key_id: Option<String>,
    /// See there.
    pub key: Secret,
    /// See there.
    pub session: Secret,
    /// Region of S3.
    pub region: Option<String>,
    /// Storage class of S3.
    pub storage_class: Option<String>,
    /// Key and algorithm of encryption by S3 (`http_s3_sse_customer_key`, `http_s3_sse_customer_algorithm`).
    pub customer_key: Secret,
    /// See there.
    pub customer_algorithm: Option<String>,
    /// Token of Swift.
    pub token: Secret,
    /// Each file is an object, of which parts are read (`http_object_mode=range`); otherwise each block is one.
    pub ranges: bool,
}

impl Http {
    /// Name or address of the server.
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or("localhost")
    }
}

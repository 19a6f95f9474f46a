//! A request to a web server that somebody else signs.

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

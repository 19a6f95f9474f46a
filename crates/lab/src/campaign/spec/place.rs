//! `[place.NAME]`: destinations of tools: a path, an embedded server, an S3 URL.

use crate::campaign::spec::toml;
use crate::campaign::spec::toml::{SpecError, TomlTable};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Scheme of S3 URLs.
const SCHEME: &str = "s3://";

/// A place of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceSpec {
    /// Name.
    pub name: String,
    /// Location.
    pub at: PlaceLocation,
}

/// Location of a place.
#[derive(Clone, Debug, PartialEq)]
pub enum PlaceLocation {
    /// A folder: absolute, or relative to the work folder. In a folder that the campaign does not own, only a
    /// subfolder of its own is touched.
    Path(PathBuf),
    /// An embedded server.
    Server {
        /// True for the null server, which discards uploads.
        null: bool,
        /// Delay of each answer.
        latency: Duration,
        /// Bytes per second in each direction.
        bandwidth_bytes_per_s: Option<u64>,
        /// Most requests served at once.
        in_flight_max: Option<usize>,
        /// Bucket.
        bucket: String,
        /// Key prefix without a trailing slash.
        prefix: String,
    },
    /// An existing S3 store, with the user's keys.
    Url {
        /// Bucket.
        bucket: String,
        /// Key prefix without a trailing slash; may be empty. Only keys below a prefix of the campaign in it
        /// are touched.
        prefix: String,
        /// `http[s]://HOST[:PORT]`; `None` for Amazon's.
        endpoint: Option<String>,
        /// Region.
        region: Option<String>,
    },
}

/// Why a text is no place: what follows the name of its key in a sentence.
#[derive(Debug)]
pub enum PlaceError {
    /// It is empty.
    Empty,
    /// Its path may lead out of the work folder.
    Dots,
    /// It is not an S3 URL, and has to be one.
    NotS3(String),
    /// An S3 URL without a bucket.
    NoBucket(String),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Empty => out.write_str("is empty"),
            PlaceError::Dots => out.write_str("must not contain '.' or '..'"),
            PlaceError::NotS3(text) => write!(out, "'{text}' is not an s3:// URL"),
            PlaceError::NoBucket(url) => write!(out, "'{url}' names no bucket"),
        }
    }
}

error_type!(PlaceError: ; );

impl PlaceSpec {
    /// True for S3.
    pub fn is_store(&self) -> bool {
        !matches!(self.at, PlaceLocation::Path(_))
    }

    /// Parses a replacement given by the user: a path, or an S3 URL.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn parse_replacement(&self, text: &str) -> Result<PlaceSpec, PlaceError> {
        let at = match text.starts_with(SCHEME) {
            true => {
                let (bucket, prefix) = parts(text)?;
                let (endpoint, region) = match &self.at {
                    PlaceLocation::Url { endpoint, region, .. } => {
                        (endpoint.clone(), region.clone())
                    }
                    _ => (None, None),
                };
                PlaceLocation::Url { bucket, prefix, endpoint, region }
            }
            false if self.is_store() => return Err(PlaceError::NotS3(text.to_owned())),
            false if text.trim().is_empty() => return Err(PlaceError::Empty),
            false => PlaceLocation::Path(PathBuf::from(text)),
        };
        Ok(PlaceSpec { name: self.name.clone(), at })
    }
}

/// Bucket and prefix of a URL.
fn parts(url: &str) -> Result<(String, String), PlaceError> {
    let rest = url.strip_prefix(SCHEME).ok_or_else(|| PlaceError::NotS3(url.to_owned()))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    if bucket.is_empty() {
        return Err(PlaceError::NoBucket(url.to_owned()));
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// Parses all places.
pub(super) fn read(top: &mut TomlTable<'_>) -> Result<Vec<PlaceSpec>, SpecError> {
    top.named("place", |name, table| {
        if !toml::is_name(&name) {
            return Err(table.lacks("the name must be lower-case letters, digits, '-' and '_'"));
        }
        let kinds = ["path", "serve", "url"];
        if kinds.iter().filter(|kind| table.has(kind)).count() != 1 {
            return Err(table.lacks("give one of 'path', 'serve' and 'url'"));
        }
        let at = if let Some(folder) = table.parsed("path", folder)? {
            PlaceLocation::Path(folder)
        } else if let Some((bucket, prefix)) = table.parsed("url", parts)? {
            let endpoint = endpoint_of(table)?;
            PlaceLocation::Url { bucket, prefix, endpoint, region: table.text("region")? }
        } else {
            server(table)?
        };
        Ok(PlaceSpec { name, at })
    })
}

/// Parses `endpoint`, an HTTP URL.
fn endpoint_of(table: &mut TomlTable<'_>) -> Result<Option<String>, SpecError> {
    table.parsed("endpoint", |endpoint| {
        let starts = ["http://", "https://"];
        if !starts.iter().any(|start| endpoint.len() > start.len() && endpoint.starts_with(start)) {
            return Err("must begin with http:// or https://");
        }
        if endpoint.contains('@') {
            return Err("must have no user and password: it is written into results and reports");
        }
        Ok(endpoint.to_owned())
    })
}

/// `[prove]`: settings of counter-experiments.
pub(super) fn other(
    top: &mut TomlTable<'_>,
    places: &[PlaceSpec],
) -> Result<Option<String>, SpecError> {
    top.section("prove", |table| {
        let endpoint = endpoint_of(table)?;
        if endpoint.is_some() && !places.iter().any(PlaceSpec::is_store) {
            return Err(table.lacks("'endpoint' is for places in S3, and there is none"));
        }
        Ok(endpoint)
    })
}

fn folder(path: &str) -> Result<PathBuf, PlaceError> {
    if path.trim().is_empty() {
        return Err(PlaceError::Empty);
    }
    let odd = |part: &str| part == ".." || part == ".";
    if path.split('/').any(odd) || path.contains('\0') {
        return Err(PlaceError::Dots);
    }
    Ok(PathBuf::from(path))
}

fn server(table: &mut TomlTable<'_>) -> Result<PlaceLocation, SpecError> {
    let kind = table.required("serve")?;
    let null = table.meaning("serve", &kind, &[("folder", false), ("null", true)])?;
    let latency = table.duration("latency")?.unwrap_or_default();
    let bandwidth_bytes_per_s = table.size("bandwidth")?;
    if bandwidth_bytes_per_s == Some(0) {
        return Err(table.wrong("bandwidth", "must be more than nothing"));
    }
    let in_flight_max = table.whole_in("in_flight", 1..=1_000_000)?.map(|count| count as usize);
    let names = (table.text("bucket")?, table.text("prefix")?);
    let name = |given: Option<String>, key: &str, otherwise: &str| match given {
        None => Ok(otherwise.to_owned()),
        Some(name) if toml::is_name(&name) && name.len() >= 3 => Ok(name),
        Some(_) => {
            let why = "must be three or more lower-case letters, digits and '-'";
            Err(table.wrong(key, why))
        }
    };
    let bucket = name(names.0, "bucket", "campaign")?;
    let prefix = name(names.1, "prefix", "run")?;
    Ok(PlaceLocation::Server {
        null,
        latency,
        bandwidth_bytes_per_s,
        in_flight_max,
        bucket,
        prefix,
    })
}

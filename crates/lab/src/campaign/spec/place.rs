//! `[place.NAME]`: destinations of tools: a path, an embedded server, an S3 URL.

use super::node::Error;
use super::table::{Spot, Table};
use super::value;
use std::path::PathBuf;
use std::time::Duration;

/// Scheme of S3 URLs.
const SCHEME: &str = "s3://";

/// A place of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Name.
    pub name: String,
    /// Location.
    pub at: Location,
}

/// Location of a place.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
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

impl Place {
    /// True for S3.
    pub fn is_store(&self) -> bool {
        !matches!(self.at, Location::Path(_))
    }

    /// Parses a replacement given by the user: a path, or an S3 URL.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn parse_replacement(&self, text: &str) -> Result<Place, String> {
        let at = match text.starts_with(SCHEME) {
            true => {
                let (bucket, prefix) = parts(text)?;
                let (endpoint, region) = match &self.at {
                    Location::Url { endpoint, region, .. } => (endpoint.clone(), region.clone()),
                    _ => (None, None),
                };
                Location::Url { bucket, prefix, endpoint, region }
            }
            false if self.is_store() => return Err(format!("'{text}' is not an s3:// URL")),
            false if text.trim().is_empty() => return Err("is empty".into()),
            false => Location::Path(PathBuf::from(text)),
        };
        Ok(Place { name: self.name.clone(), at })
    }
}

/// Bucket and prefix of a URL.
fn parts(url: &str) -> Result<(String, String), String> {
    let rest = url.strip_prefix(SCHEME).ok_or_else(|| format!("'{url}' is not an s3:// URL"))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    if bucket.is_empty() {
        return Err(format!("'{url}' names no bucket"));
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// Parses all places.
pub(super) fn read(top: &mut Table<'_>) -> Result<Vec<Place>, Error> {
    let Some(table) = top.table("place")? else { return Ok(Vec::new()) };
    table.named()?.into_iter().map(|(name, table)| one(name, table)).collect()
}

fn one(name: Spot<String>, mut table: Table<'_>) -> Result<Place, Error> {
    if !value::is_name(&name.value) {
        return Err(table.lacks("the name must be small letters, digits, '-' and '_'"));
    }
    let kinds = ["path", "serve", "url"];
    if kinds.iter().filter(|kind| table.has(kind)).count() != 1 {
        return Err(table.lacks("give one of 'path', 'serve' and 'url'"));
    }
    let at = if let Some(path) = table.text("path")? {
        path_of(&table, path)?
    } else if let Some(url) = table.text("url")? {
        let (bucket, prefix) = parts(&url.value).map_err(|why| table.wrong(url.at, "url", why))?;
        let endpoint = endpoint_of(&mut table)?;
        let region = table.text("region")?.map(|region| region.value);
        Location::Url { bucket, prefix, endpoint, region }
    } else {
        server(&mut table)?
    };
    table.end()?;
    Ok(Place { name: name.value, at })
}

/// Parses `endpoint`, an HTTP URL.
fn endpoint_of(table: &mut Table<'_>) -> Result<Option<String>, Error> {
    let Some(endpoint) = table.text("endpoint")? else { return Ok(None) };
    let starts = ["http://", "https://"];
    if !starts
        .iter()
        .any(|start| endpoint.value.len() > start.len() && endpoint.value.starts_with(start))
    {
        let why = "must begin with http:// or https://";
        return Err(table.wrong(endpoint.at, "endpoint", why));
    }
    if endpoint.value.contains('@') {
        let why = "must have no user and password: it is written into results and reports";
        return Err(table.wrong(endpoint.at, "endpoint", why));
    }
    Ok(Some(endpoint.value))
}

/// `[prove]`: settings of counter-experiments.
pub(super) fn other(top: &mut Table<'_>, places: &[Place]) -> Result<Option<String>, Error> {
    let Some(mut table) = top.table("prove")? else { return Ok(None) };
    let endpoint = endpoint_of(&mut table)?;
    if endpoint.is_some() && !places.iter().any(Place::is_store) {
        return Err(table.lacks("'endpoint' is for places in S3, and there is none"));
    }
    table.end()?;
    Ok(endpoint)
}

fn path_of(table: &Table<'_>, path: Spot<String>) -> Result<Location, Error> {
    let folder = PathBuf::from(&path.value);
    if path.value.trim().is_empty() {
        return Err(table.wrong(path.at, "path", "is empty"));
    }
    let odd = |part: &str| part == ".." || part == ".";
    if path.value.split('/').any(odd) || path.value.contains('\0') {
        return Err(table.wrong(path.at, "path", "must not contain '.' or '..'"));
    }
    Ok(Location::Path(folder))
}

fn server(table: &mut Table<'_>) -> Result<Location, Error> {
    let kind = table.required("serve")?;
    let null = match kind.value.as_str() {
        "folder" => false,
        "null" => true,
        other => {
            let why = format!("'{other}' is neither folder nor null");
            return Err(table.wrong(kind.at, "serve", why));
        }
    };
    let latency = table.duration("latency")?.map_or(Duration::ZERO, |latency| latency.value);
    let bandwidth = match table.size("bandwidth")? {
        Some(rate) if rate.value == 0 => {
            return Err(table.wrong(rate.at, "bandwidth", "must be more than nothing"));
        }
        rate => rate.map(|rate| rate.value),
    };
    let in_flight_max = table.whole_in("in_flight", 1..=1_000_000)?.map(|count| count as usize);
    let (bucket, prefix) = (table.text("bucket")?, table.text("prefix")?);
    let name = |spot: Option<Spot<String>>, key: &str, otherwise: &str| match spot {
        None => Ok(otherwise.to_owned()),
        Some(name) if value::is_name(&name.value) && name.value.len() >= 3 => Ok(name.value),
        Some(name) => {
            let why = "must be three or more small letters, digits and '-'";
            Err(table.wrong(name.at, key, why))
        }
    };
    let bucket = name(bucket, "bucket", "campaign")?;
    let prefix = name(prefix, "prefix", "run")?;
    let bandwidth_bytes_per_s = bandwidth;
    Ok(Location::Server { null, latency, bandwidth_bytes_per_s, in_flight_max, bucket, prefix })
}

//! `[place.NAME]`: where tools write: a path, a server of this program, an S3 URL.

use super::node::Error;
use super::table::{Spot, Table};
use super::value;
use std::path::PathBuf;
use std::time::Duration;

/// What stands before the bucket in a URL.
const SCHEME: &str = "s3://";

/// A place of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub at: Where,
}

/// Where a place is.
#[derive(Clone, Debug, PartialEq)]
pub enum Where {
    /// A folder: absolute, or below the folder that a campaign works in. Of one that the campaign
    /// does not own only a folder of its own in it is ever touched.
    Path(PathBuf),
    /// A server that runs inside the campaign.
    Server {
        /// It keeps nothing: uploads succeed and are gone.
        null: bool,
        /// Each answer waits so long.
        latency: Duration,
        /// Bytes a second in each direction.
        bandwidth_bytes_per_s: Option<u64>,
        /// Requests that are served at once.
        in_flight_max: Option<usize>,
        /// The bucket.
        bucket: String,
        /// What keys begin with; no slash at its end.
        prefix: String,
    },
    /// S3 that is somewhere already, with the keys of the user.
    Url {
        /// The bucket.
        bucket: String,
        /// What keys begin with; no slash at its end, may be empty. Only what is below a prefix of
        /// the campaign's own in it is ever touched.
        prefix: String,
        /// `http[s]://HOST[:PORT]`; none is Amazon's.
        endpoint: Option<String>,
        /// The region.
        region: Option<String>,
    },
}

impl Place {
    /// Whether it is S3.
    pub fn is_store(&self) -> bool {
        !matches!(self.at, Where::Path(_))
    }

    /// A place that the user names instead: a path, or an S3 URL.
    ///
    /// # Errors
    /// Why it is none.
    pub fn instead(&self, text: &str) -> Result<Place, String> {
        let at = match text.starts_with(SCHEME) {
            true => {
                let (bucket, prefix) = parts(text)?;
                let (endpoint, region) = match &self.at {
                    Where::Url { endpoint, region, .. } => (endpoint.clone(), region.clone()),
                    _ => (None, None),
                };
                Where::Url { bucket, prefix, endpoint, region }
            }
            false if self.is_store() => return Err(format!("'{text}' is no s3:// URL")),
            false if text.trim().is_empty() => return Err("is empty".into()),
            false => Where::Path(PathBuf::from(text)),
        };
        Ok(Place { name: self.name.clone(), at })
    }
}

/// Bucket and prefix of a URL.
fn parts(url: &str) -> Result<(String, String), String> {
    let rest = url.strip_prefix(SCHEME).ok_or_else(|| format!("'{url}' is no s3:// URL"))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    if bucket.is_empty() {
        return Err(format!("'{url}' names no bucket"));
    }
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// Reads all places.
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
        Where::Url { bucket, prefix, endpoint, region }
    } else {
        server(&mut table)?
    };
    table.end()?;
    Ok(Place { name: name.value, at })
}

/// `endpoint`, which begins as URLs of stores do.
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
    Ok(Some(endpoint.value))
}

/// `[prove]`: what counter-experiments need besides the campaign.
pub(super) fn other(top: &mut Table<'_>, places: &[Place]) -> Result<Option<String>, Error> {
    let Some(mut table) = top.table("prove")? else { return Ok(None) };
    let endpoint = endpoint_of(&mut table)?;
    if endpoint.is_some() && !places.iter().any(Place::is_store) {
        return Err(table.lacks("'endpoint' is for places in S3, and there is none"));
    }
    table.end()?;
    Ok(endpoint)
}

fn path_of(table: &Table<'_>, path: Spot<String>) -> Result<Where, Error> {
    let folder = PathBuf::from(&path.value);
    if path.value.trim().is_empty() {
        return Err(table.wrong(path.at, "path", "is empty"));
    }
    let odd = |part: &str| part == ".." || part == ".";
    if path.value.split('/').any(odd) || path.value.contains('\0') {
        return Err(table.wrong(path.at, "path", "must not contain '.' or '..'"));
    }
    Ok(Where::Path(folder))
}

fn server(table: &mut Table<'_>) -> Result<Where, Error> {
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
    Ok(Where::Server { null, latency, bandwidth_bytes_per_s, in_flight_max, bucket, prefix })
}

//! Evaluation of the options for `s3://`: settings of stores, and options for writing objects.

pub mod landing;
mod metadata;
mod options;
mod value;

pub use options::{
    ALL_VERSIONS, CASES, COMMON, DEBUG, FLATTEN, NAMES, ONE, RAW, SIDES, SSE_C, STAT, STOP, STORE,
    TRANSFER, UNBUILT, VERSION, WRITE,
};
pub use value::{concurrency, part_bytes};

use crate::options::parts;
use hakobu_core::error::quoted;
use hakobu_s3::{AccessPoint, CustomerKey, Settings};
use hakobu_transfer::location::{Location, S3Url, Sources};
use hakobu_transfer::object::ObjectOptions;
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::Objects;
use http::{HeaderName, HeaderValue};
use std::ffi::{OsStr, OsString};

/// Settings of one side.
#[derive(Clone, Debug, Default)]
struct SideArgs {
    endpoint_url: Option<String>,
    profile: Option<String>,
    region: Option<String>,
}

/// A key of the caller.
#[derive(Clone, Debug, Default)]
struct KeyArgs {
    is_on: bool,
    key: Option<CustomerKey>,
}

impl KeyArgs {
    /// Returns the key of an option.
    ///
    /// # Errors
    /// The option was given without a key.
    fn key(&self, option: &str) -> Result<Option<CustomerKey>, String> {
        match self.is_on && self.key.is_none() {
            true => Err(format!("--{option} needs a key: --{option}-key")),
            false => Ok(self.key.clone()),
        }
    }
}

/// The S3 options read so far.
#[derive(Clone, Debug, Default)]
pub struct ObjectArgs {
    common: Settings,
    source: SideArgs,
    target: SideArgs,
    options: ObjectOptions,
    no_guess: bool,
    metadata: Vec<(String, String)>,
    sse: Option<String>,
    kms_key: Option<String>,
    sse_c: KeyArgs,
    sse_c_source: KeyArgs,
    raw: bool,
    all_versions: bool,
    flatten: bool,
    /// Print totals of requests at the end.
    pub stat: bool,
}

parts!(ObjectArgs {});

impl ObjectArgs {
    /// Sets a header; the last value counts.
    fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.options.headers.retain(|(known, _)| *known != name);
        self.options.headers.push((name, value));
    }

    /// Returns the object settings of a transfer.
    ///
    /// # Errors
    /// Values that cannot be put into headers; keys that contradict each other.
    pub fn objects(self) -> Result<Objects, String> {
        self.objects_of(Concerned { source: false, target: true })
    }

    fn objects_of(mut self, concerned: Concerned) -> Result<Objects, String> {
        let is_small = |bytes: u64| bytes < value::PART_BYTES_MIN;
        if concerned.target && self.options.part_bytes.is_some_and(is_small) {
            return Err("--part-size: parts of an upload have 5 MiB at least".into());
        }
        let (source_key, target_key) = self.customer_keys(concerned)?;
        self.finish_headers()?;
        self.options.guess_content_type = !self.no_guess;
        Ok(Objects {
            source: Settings { customer_key: source_key, ..self.side(&self.source) },
            target: Settings { customer_key: target_key, ..self.side(&self.target) },
            options: self.options,
            raw: self.raw,
            flatten: self.flatten,
            expected: None,
            inventory: None,
        })
    }

    /// Returns the object settings of a transfer between these sides; removes settings from the policy that only
    /// apply to files.
    ///
    /// # Errors
    /// Values that cannot be put into headers.
    pub fn fit(self, concerned: Concerned, policy: &mut Policy) -> Result<Objects, String> {
        if !concerned.any() {
            return self.objects();
        }
        let mut objects = self.objects_of(concerned)?;
        let keep = &mut policy.preserve;
        (keep.acls, keep.xattrs, keep.atimes) = (false, false, false);
        (policy.hard_links, policy.devices, policy.specials) = (false, false, false);
        let options = &mut objects.options;
        (options.keep_times, options.keep_modes) = (keep.times, keep.mode);
        (options.keep_owner, options.keep_group) = (keep.owner, keep.group);
        // Also skip existing objects that appear meanwhile.
        options.if_none_match |= policy.ignore_existing && concerned.target;
        Ok(objects)
    }

    /// Returns the keys that encrypt objects of the source and of the target.
    fn customer_keys(
        &self,
        concerned: Concerned,
    ) -> Result<(Option<CustomerKey>, Option<CustomerKey>), String> {
        let key = self.sse_c.key("sse-c")?;
        let source_key = self.sse_c_source.key("sse-c-copy-source")?;
        if key.is_some() && (self.sse.is_some() || self.kms_key.is_some()) {
            return Err("--sse and --sse-c contradict each other".into());
        }
        match (concerned.source && concerned.target, source_key) {
            (true, source_key) => Ok((source_key, key)),
            (false, None) => Ok((key.clone(), key)),
            (false, Some(_)) => {
                let message = "--sse-c-copy-source-key is for copies inside S3; here --sse-c-key \
                               is the key of the objects";
                Err(message.into())
            }
        }
    }

    /// Returns the settings of a command with one store.
    pub fn settings(&self) -> Settings {
        Settings { customer_key: self.sse_c.key.clone(), ..self.common.clone() }
    }

    /// Rejects `--sse-c` without a key.
    ///
    /// # Errors
    /// A sentence about it.
    pub fn check_key(&self) -> Result<(), String> {
        self.sse_c.key("sse-c").map(drop)
    }

    /// `--version-id`.
    pub fn version(&self) -> Option<&str> {
        self.options.version.as_deref()
    }

    /// `--all-versions`.
    pub fn all_versions(&self) -> bool {
        self.all_versions
    }

    /// `--raw`.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    fn side(&self, side: &SideArgs) -> Settings {
        let mut settings = self.common.clone();
        let pick = |one: &Option<String>, all: &mut Option<String>| {
            if one.is_some() {
                all.clone_from(one);
            }
        };
        pick(&side.endpoint_url, &mut settings.endpoint_url);
        pick(&side.profile, &mut settings.profile);
        pick(&side.region, &mut settings.region);
        settings
    }

    fn finish_headers(&mut self) -> Result<(), String> {
        const SSE: HeaderName = HeaderName::from_static("x-amz-server-side-encryption");
        const KEY: HeaderName =
            HeaderName::from_static("x-amz-server-side-encryption-aws-kms-key-id");
        let kms = self.kms_key.take();
        let sse = match (self.sse.take(), &kms) {
            (Some(how), Some(_)) if how == "AES256" => {
                return Err("--sse-kms-key-id goes with --sse aws:kms, not with AES256".into());
            }
            (None, Some(_)) => Some("aws:kms".to_owned()),
            (sse, _) => sse,
        };
        let value = |option: &str, text: &str| {
            HeaderValue::from_str(text)
                .map_err(|_| format!("--{option}={text} cannot be sent in a header"))
        };
        if let Some(how) = sse {
            self.set(SSE, value("sse", &how)?);
        }
        if let Some(key) = kms {
            self.set(KEY, value("sse-kms-key-id", &key)?);
        }
        for (name, text) in std::mem::take(&mut self.metadata) {
            let (name, value) = metadata::header(&name, &text)?;
            self.set(name, value);
        }
        Ok(())
    }
}

/// Sides of a transfer that are in S3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concerned {
    /// The source is in S3.
    pub source: bool,
    /// The target is in S3.
    pub target: bool,
}

impl Concerned {
    /// Returns the sides of a transfer that are in S3.
    pub fn of(sources: &Sources, target: &Location) -> Concerned {
        Concerned { source: sources.are_s3(), target: target.is_s3() }
    }

    /// Returns whether any side is in S3.
    pub fn any(self) -> bool {
        self.source || self.target
    }
}

/// Returns whether a path as typed is in S3. Errors in its bucket or key are reported by the parser.
pub fn is_s3(path: impl AsRef<OsStr>) -> bool {
    path.as_ref().as_encoded_bytes().starts_with(b"s3://")
}

/// Returns whether all of the paths are in S3; `false` if none is.
///
/// # Errors
/// Paths of both kinds.
pub fn are_s3(typed: &[OsString]) -> Result<bool, String> {
    let stored = typed.iter().filter(|path| is_s3(path)).count();
    match stored > 0 && stored < typed.len() {
        true => Err("paths are either all local or all in s3://".into()),
        false => Ok(stored > 0),
    }
}

/// Parses an argument that must be in S3.
///
/// # Errors
/// A sentence: it is not an `s3://` URL, or an invalid one.
pub fn url(typed: &OsStr) -> Result<S3Url, String> {
    match Location::parse(typed) {
        Ok(Location::S3(url)) => Ok(url),
        Ok(_) => Err(format!("{} is not an s3://BUCKET/KEY", quoted(typed))),
        Err(fatal) => Err(fatal.message),
    }
}

/// Parses an argument that must name one object.
///
/// # Errors
/// As [`url`]; a bucket or prefix.
pub fn object_url(typed: &OsStr) -> Result<S3Url, String> {
    let url = url(typed)?;
    if url.bucket.is_empty() || url.key.is_empty() {
        return Err(format!("{} names no object: give s3://BUCKET/KEY", quoted(typed)));
    }
    Ok(url)
}

/// Parses an argument that must name a bucket, and perhaps something in it.
///
/// # Errors
/// As [`url`]; `s3://` alone.
pub fn place_url(typed: &OsStr) -> Result<S3Url, String> {
    let url = url(typed)?;
    match url.bucket.is_empty() {
        true => Err("s3:// names no bucket: give s3://BUCKET[/PREFIX]".into()),
        false => Ok(url),
    }
}

/// Parses all arguments of a command; each is returned with its typed form. `lacking` is the message if there are
/// none.
///
/// # Errors
/// As `parse`; there are none.
pub fn all<T>(
    typed: &[OsString],
    parse: impl Fn(&OsStr) -> Result<T, String>,
    lacking: &str,
) -> Result<Vec<(OsString, T)>, String> {
    if typed.is_empty() {
        return Err(lacking.to_owned());
    }
    typed.iter().map(|typed| Ok((typed.clone(), parse(typed)?))).collect()
}

/// Parses an argument that must name a bucket and nothing in it.
///
/// # Errors
/// As [`url`]; a key.
pub fn bucket_url(typed: &OsStr) -> Result<String, String> {
    let url = url(typed)?;
    if AccessPoint::of(&url.bucket).is_some() {
        return Err(format!("{} is an access point: give the bucket's name", quoted(typed)));
    }
    if url.bucket.is_empty() || !url.key.is_empty() {
        return Err(format!("{} is not a bucket: give s3://BUCKET", quoted(typed)));
    }
    Ok(url.bucket)
}

#[cfg(test)]
mod tests;

//! What the options for `s3://` mean: from the command line to settings of stores and to how
//! objects are written; and which options of the tree commands mean nothing there.

mod metadata;
mod misfits;

pub use misfits::Concerned;

use crate::options::Given;
use crate::size;
use hakobu_transfer::error::quoted;
use hakobu_transfer::location::{Location, S3Url};
use hakobu_transfer::object::ObjectOptions;
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::Objects;
use hakobu_transfer::s3::{Addressing, Algorithm, Settings};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
};
use http::{HeaderName, HeaderValue};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// S3's limits of a part that is not the last one (User Guide, "Amazon S3 multipart upload limits").
const PART_BYTES: std::ops::RangeInclusive<u64> = 5 * MIB..=5 * 1024 * MIB;
/// Parts of one object that may be in flight.
const CONCURRENCY_MAX: usize = 1000;
/// The longest time to wait, in seconds.
const TIMEOUT_MAX_S: f64 = 100.0 * 365.0 * 86_400.0;

/// What one side is told apart from the other.
#[derive(Clone, Debug, Default)]
struct SideAsked {
    endpoint_url: Option<String>,
    profile: Option<String>,
    region: Option<String>,
}

/// What the options for S3 have said so far.
#[derive(Clone, Debug)]
pub struct Asked {
    common: Settings,
    source: SideAsked,
    target: SideAsked,
    options: ObjectOptions,
    metadata: Vec<(String, String)>,
    sse: Option<String>,
    kms_key: Option<String>,
    raw: bool,
    /// Totals of requests at the end.
    pub stat: bool,
    /// The first option that has a meaning for `s3://` only.
    first: Option<&'static str>,
}

impl Default for Asked {
    fn default() -> Asked {
        Asked {
            common: Settings::default(),
            source: SideAsked::default(),
            target: SideAsked::default(),
            options: ObjectOptions { guess_content_type: true, ..ObjectOptions::default() },
            metadata: Vec::new(),
            sse: None,
            kms_key: None,
            raw: false,
            stat: false,
            first: None,
        }
    }
}

impl Asked {
    /// Takes an option if it is one for S3; whether it was.
    ///
    /// # Errors
    /// What is wrong with its value.
    pub fn take(&mut self, given: &Given) -> Result<bool, String> {
        let taken = self.take_store(given)? || self.take_object(given)?;
        if taken {
            self.first.get_or_insert(given.name);
        }
        Ok(taken)
    }

    fn take_store(&mut self, given: &Given) -> Result<bool, String> {
        let common = &mut self.common;
        match given.name {
            "endpoint-url" => common.endpoint_url = Some(text(given)?),
            "profile" => common.profile = Some(text(given)?),
            "region" => common.region = Some(text(given)?),
            "source-endpoint-url" => self.source.endpoint_url = Some(text(given)?),
            "source-profile" => self.source.profile = Some(text(given)?),
            "source-region" => self.source.region = Some(text(given)?),
            "destination-endpoint-url" => self.target.endpoint_url = Some(text(given)?),
            "destination-profile" => self.target.profile = Some(text(given)?),
            "destination-region" => self.target.region = Some(text(given)?),
            "no-sign-request" => common.no_sign_request = true,
            "request-payer" => match &*text(given)? {
                "requester" => common.request_payer = true,
                _ => return Err(wrong(given, "'requester' is the only value")),
            },
            "no-verify-ssl" => common.no_verify_ssl = true,
            "ca-bundle" => common.ca_bundle = Some((&given.value).into()),
            "addressing-style" => {
                common.addressing = match &*text(given)? {
                    "auto" => Addressing::Auto,
                    "path" => Addressing::Path,
                    "virtual" => Addressing::Virtual,
                    _ => return Err(wrong(given, "is none of auto, path, virtual")),
                }
            }
            "cli-read-timeout" => common.read_timeout = Some(timeout(given)?),
            "cli-connect-timeout" => common.connect_timeout = Some(timeout(given)?),
            "unsigned-payload" => common.unsigned_payload = true,
            "checksum-algorithm" => {
                let algorithm = Algorithm::parse(&text(given)?).ok_or_else(|| {
                    wrong(given, "is none of CRC64NVME, CRC32C, CRC32, SHA256, SHA1, MD5")
                })?;
                (common.algorithm, self.options.algorithm) = (Some(algorithm), Some(algorithm));
            }
            "raw" => self.raw = true,
            "stat" => self.stat = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_object(&mut self, given: &Given) -> Result<bool, String> {
        let options = &mut self.options;
        match given.name {
            "storage-class" => self.header(given, "x-amz-storage-class")?,
            "acl" => self.header(given, "x-amz-acl")?,
            "tagging" => self.header(given, "x-amz-tagging")?,
            "sse" => match &*text(given)? {
                how @ ("AES256" | "aws:kms" | "aws:kms:dsse") => self.sse = Some(how.to_owned()),
                _ => return Err(wrong(given, "is none of AES256, aws:kms, aws:kms:dsse")),
            },
            "sse-kms-key-id" => self.kms_key = Some(text(given)?),
            "metadata" => {
                for (name, value) in metadata::parse(&text(given)?)? {
                    self.metadata.retain(|(known, _)| *known != name);
                    self.metadata.push((name, value));
                }
            }
            "content-type" => self.header(given, CONTENT_TYPE.as_str())?,
            "content-encoding" => self.header(given, CONTENT_ENCODING.as_str())?,
            "content-disposition" => self.header(given, CONTENT_DISPOSITION.as_str())?,
            "content-language" => self.header(given, CONTENT_LANGUAGE.as_str())?,
            "cache-control" => self.header(given, CACHE_CONTROL.as_str())?,
            "expires" => {
                let time = metadata::http_date(&text(given)?)
                    .ok_or_else(|| wrong(given, "is no time such as 2030-01-31T12:00:00Z"))?;
                let value = header_value(given, &time)?;
                self.set(EXPIRES, value);
            }
            "no-guess-mime-type" => options.guess_content_type = false,
            "metadata-directive" => match &*text(given)?.to_ascii_uppercase() {
                "COPY" => options.replace_metadata = false,
                "REPLACE" => options.replace_metadata = true,
                _ => return Err(wrong(given, "is none of COPY, REPLACE")),
            },
            "version-id" => options.version = Some(text(given)?),
            "if-none-match" => match &*text(given)? {
                "*" => options.if_none_match = true,
                _ => return Err(wrong(given, "'*' is the only value")),
            },
            "part-size" => {
                let bytes = size::parse(&given.value, MIB).map_err(|why| wrong(given, why))?;
                if !PART_BYTES.contains(&bytes) {
                    return Err(wrong(given, "is not between 5 MiB and 5 GiB"));
                }
                options.part_bytes = Some(bytes);
            }
            "concurrency" => {
                let parts = text(given)?.parse().ok();
                let parts = parts.filter(|parts| (1..=CONCURRENCY_MAX).contains(parts));
                options.concurrency =
                    Some(parts.ok_or_else(|| wrong(given, "is not a number from 1 to 1000"))?);
            }
            "resume" => options.resume = true,
            "dir-markers" => options.dir_markers = true,
            "encode-names" => options.encode_names = true,
            "exit-on-error" => options.exit_on_error = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn header(&mut self, given: &Given, name: &'static str) -> Result<(), String> {
        let value = header_value(given, &text(given)?)?;
        self.set(HeaderName::from_static(name), value);
        Ok(())
    }

    /// The last value of a header counts.
    fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.options.headers.retain(|(known, _)| *known != name);
        self.options.headers.push((name, value));
    }

    /// Everything for a transfer.
    ///
    /// # Errors
    /// What cannot be put into headers.
    pub fn objects(mut self) -> Result<Objects, String> {
        self.finish_headers()?;
        Ok(Objects {
            source: self.side(&self.source),
            target: self.side(&self.target),
            options: self.options,
            raw: self.raw,
        })
    }

    /// Everything for a transfer of `command`, whose options are `typed`: refuses what means nothing
    /// where S3 is, and takes from the policy what only files have.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn fit(
        self,
        command: &str,
        typed: &[Given],
        concerned: Concerned,
        policy: &mut Policy,
    ) -> Result<Objects, String> {
        self.only_with_objects(concerned.any())?;
        if !concerned.any() {
            return self.objects();
        }
        misfits::check(command, typed, concerned)?;
        let mut objects = self.objects()?;
        let keep = &mut policy.preserve;
        // Numbers of users mean little in a store: they travel only where they were asked for.
        let group = typed.iter().any(|given| given.name == "group" && given.on);
        keep.owner &= keep.owner_explicit;
        keep.group &= keep.owner_explicit || group;
        (keep.acls, keep.xattrs, keep.atimes) = (false, false, false);
        (policy.hard_links, policy.devices, policy.specials) = (false, false, false);
        let options = &mut objects.options;
        (options.keep_times, options.keep_modes) = (keep.times, keep.mode);
        options.keep_owners = keep.owner || keep.group;
        // Whoever wants existing objects left alone wants it also where one appears meanwhile.
        options.if_none_match |= policy.ignore_existing && concerned.target;
        Ok(objects)
    }

    /// The settings of a command that speaks to one store.
    pub fn settings(&self) -> Settings {
        self.common.clone()
    }

    /// `--version-id`.
    pub fn version(&self) -> Option<&str> {
        self.options.version.as_deref()
    }

    /// `--raw`.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// Refuses options for S3 where no argument is in S3.
    ///
    /// # Errors
    /// The sentence.
    pub fn only_with_objects(&self, any: bool) -> Result<(), String> {
        match self.first {
            Some(name) if !any => {
                Err(format!("--{name} is for s3:// locations, and none is given"))
            }
            _ => Ok(()),
        }
    }

    fn side(&self, side: &SideAsked) -> Settings {
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

/// Whether a path as typed is meant to be in S3. What is wrong with its bucket or key is told where
/// it is parsed.
pub fn is_s3(path: impl AsRef<OsStr>) -> bool {
    path.as_ref().as_encoded_bytes().starts_with(b"s3://")
}

/// Parses an argument that has to be in S3.
///
/// # Errors
/// The sentence: it is no `s3://` URL, or no possible one.
pub fn url(typed: &OsStr) -> Result<S3Url, String> {
    match Location::parse(typed) {
        Ok(Location::S3(url)) => Ok(url),
        Ok(_) => Err(format!("{} is no s3://BUCKET/KEY", quoted(typed))),
        Err(fatal) => Err(fatal.message),
    }
}

/// Parses an argument that has to name one object.
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

/// Parses all arguments of a command; each stays beside what was typed. `lacking` is what is said where
/// there is none.
///
/// # Errors
/// As `parse`; there is none.
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

/// Parses an argument that has to name a bucket and nothing in it.
///
/// # Errors
/// As [`url`]; a key.
pub fn bucket_url(typed: &OsStr) -> Result<String, String> {
    let url = url(typed)?;
    if url.bucket.is_empty() || !url.key.is_empty() {
        return Err(format!("{} is no bucket: give s3://BUCKET", quoted(typed)));
    }
    Ok(url.bucket)
}

/// A time in seconds; 0 is, as in aws, no limit (a hundred years).
fn timeout(given: &Given) -> Result<Duration, String> {
    let seconds =
        text(given)?.parse().ok().filter(|seconds| (0.0..=TIMEOUT_MAX_S).contains(seconds));
    match seconds {
        Some(0.0) => Ok(Duration::from_secs_f64(TIMEOUT_MAX_S)),
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(wrong(given, "is no number of seconds")),
    }
}

fn text(given: &Given) -> Result<String, String> {
    let text = given.value.to_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| wrong(given, "needs a value that is text"))
}

fn header_value(given: &Given, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| wrong(given, "cannot be sent in a header"))
}

fn wrong(given: &Given, why: &str) -> String {
    format!("--{}={} {why}", given.name, given.value.display())
}

#[cfg(test)]
mod tests;

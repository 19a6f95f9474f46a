//! The options for `s3://`: one block for the store, one for its two sides, one for writing objects. The names are
//! those of aws and s5cmd.

use super::ObjectArgs;
use crate::cli::{self, Blocks, Group, Noted, OptArg, Row, Takes, put, titled};
use hakobu_core::error::{Cause, quoted};
use hakobu_core::number;
use hakobu_s3::{Addressing, Algorithm, CustomerKey};
use hakobu_transfer::object::CaseConflict;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
};
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::strtime;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Maximum timeout in seconds.
const TIMEOUT_MAX_S: f64 = 100.0 * 365.0 * 86_400.0;

const STORE_GROUP: &str = "S3";
const WRITE_GROUP: &str = "S3: how objects are written";

/// Makes an option with a value that requires a store.
const fn value(name: &'static str, what: &'static str, help: &'static str) -> Row {
    cli::value(name, None, what, help).stored()
}

/// Makes a flag that requires a store.
const fn flag(name: &'static str, help: &'static str) -> Row {
    cli::flag(name, None, help).stored()
}

/// Store and credentials: for every command that uses a store.
pub static STORE: Group<ObjectArgs> = titled(STORE_GROUP).with(&[
    value("endpoint-url", "URL", "address of the S3 server: http[s]://HOST[:PORT]")
        .reads(|asked, arg| put(&mut asked.common.endpoint_url, Some(text(arg)?))),
    value("profile", "NAME", "profile with credentials and settings, as in aws")
        .reads(|asked, arg| put(&mut asked.common.profile, Some(text(arg)?))),
    value("region", "NAME", "region of the bucket")
        .reads(|asked, arg| put(&mut asked.common.region, Some(text(arg)?))),
    flag("no-sign-request", "send anonymous requests")
        .sets(|asked, on| asked.common.no_sign_request = on),
    value("credentials-file", "FILE", "read credentials from FILE instead of ~/.aws/credentials")
        .reads(|asked, arg| put(&mut asked.common.credentials_file, Some(arg.path()))),
    value("retry-count", "N", "retries per request (default 4; 9 while throttled)").reads(
        |asked, arg| {
            let retries: Option<u32> = text(arg)?.parse().ok();
            let tries = retries.and_then(|retries| retries.checked_add(1));
            let tries = tries.ok_or_else(|| arg.refuse("not a number of retries"))?;
            put(&mut asked.common.attempts_max, Some(tries))
        },
    ),
    value("request-payer", "WHO", "pay for requests and traffic yourself")
        .takes(Takes::PerhapsOneOf("requester", &["requester"]))
        .reads(|asked, arg| match arg.value.to_str() {
            Some("" | "requester") => put(&mut asked.common.request_payer, true),
            _ => Err(arg.refuse("'requester' is the only value")),
        }),
    flag("use-list-objects-v1", "use ListObjects, for servers without ListObjectsV2")
        .alias(&["list-objects-v1"])
        .sets(|asked, on| asked.common.list_objects_v1 = on),
    flag("no-verify-ssl", "do not check certificates")
        .sets(|asked, on| asked.common.no_verify_ssl = on),
    value("ca-bundle", "FILE", "certificates (PEM) to trust instead of the system's")
        .reads(|asked, arg| put(&mut asked.common.ca_bundle, Some(arg.path()))),
    value("addressing-style", "STYLE", "how URLs name the bucket: auto, path, virtual")
        .words(&["auto", "path", "virtual"])
        .reads(|asked, arg| {
            let style = match &*text(arg)? {
                "auto" => Addressing::Auto,
                "path" => Addressing::Path,
                "virtual" => Addressing::Virtual,
                _ => return Err(arg.refuse("none of auto, path, virtual")),
            };
            put(&mut asked.common.addressing, style)
        }),
    value("cli-read-timeout", "S", "read timeout in seconds (default 20; 0: none)")
        .alias(&["read-timeout"])
        .reads(|asked, arg| put(&mut asked.common.read_timeout, Some(timeout(arg)?))),
    value("cli-connect-timeout", "S", "connection timeout in seconds (default 5)")
        .alias(&["connect-timeout"])
        .reads(|asked, arg| put(&mut asked.common.connect_timeout, Some(timeout(arg)?))),
]);

/// The same for each side: for commands that transfer between two locations.
pub static SIDES: Group<ObjectArgs> = titled(STORE_GROUP).with(&[
    value("source-endpoint-url", "URL", "--endpoint-url for sources only")
        .reads(|asked, arg| put(&mut asked.source.endpoint_url, Some(text(arg)?))),
    value("source-profile", "NAME", "--profile for sources only")
        .reads(|asked, arg| put(&mut asked.source.profile, Some(text(arg)?))),
    value("source-region", "NAME", "--region for sources only")
        .reads(|asked, arg| put(&mut asked.source.region, Some(text(arg)?))),
    value("destination-endpoint-url", "URL", "--endpoint-url for targets only")
        .reads(|asked, arg| put(&mut asked.target.endpoint_url, Some(text(arg)?))),
    value("destination-profile", "NAME", "--profile for targets only")
        .reads(|asked, arg| put(&mut asked.target.profile, Some(text(arg)?))),
    value("destination-region", "NAME", "--region for targets only")
        .reads(|asked, arg| put(&mut asked.target.region, Some(text(arg)?))),
]);

/// Options of every command with `s3://`.
pub static COMMON: Blocks<ObjectArgs> = Blocks(&[&STORE, &ACCEPTED, &COLOR]);

/// Options of commands that read single objects.
pub static ONE: Blocks<ObjectArgs> = Blocks(&[&COMMON, &DEBUG, &RAW, &VERSION]);

/// Options of commands that transfer: how objects are written, and the keys of both sides.
pub static TRANSFER: Blocks<ObjectArgs> = Blocks(&[&WRITE, &SSE_C, &SSE_C_COPY, &MOVE]);

/// Literal keys: for commands that support wildcards.
pub static RAW: Group<ObjectArgs> =
    titled(STORE_GROUP)
        .with(&[flag("raw", "take '*' and '?' in s3:// paths literally")
            .sets(|asked, on| asked.raw = on)]);

/// One version of one object.
pub static VERSION: Group<ObjectArgs> =
    titled(STORE_GROUP).with(&[value("version-id", "ID", "use this version of the object")
        .reads(|asked, arg| put(&mut asked.options.version, Some(text(arg)?)))]);

/// All versions of the objects that are listed.
pub static ALL_VERSIONS: Group<ObjectArgs> =
    titled(STORE_GROUP).with(&[flag("all-versions", "include every version and delete marker")
        .sets(|asked, on| asked.all_versions = on)]);

/// Totals of requests.
pub static STAT: Group<ObjectArgs> =
    titled(STORE_GROUP).with(&[flag("stat", "print counts of requests and times at the end")
        .sets(|asked, on| asked.stat = on)]);

/// Properties of written objects.
pub static WRITE: Group<ObjectArgs> = titled(WRITE_GROUP).with(&[
    value("storage-class", "CLASS", "storage class: STANDARD, STANDARD_IA, GLACIER, ...")
        .words(&[
            "STANDARD",
            "STANDARD_IA",
            "ONEZONE_IA",
            "INTELLIGENT_TIERING",
            "GLACIER_IR",
            "GLACIER",
            "DEEP_ARCHIVE",
            "REDUCED_REDUNDANCY",
            "EXPRESS_ONEZONE",
        ])
        .reads(|asked, arg| asked.header(arg, HeaderName::from_static("x-amz-storage-class"))),
    value("sse", "HOW", "server-side encryption: AES256 (default), aws:kms, aws:kms:dsse")
        .takes(Takes::PerhapsOneOf("HOW", SSE))
        .reads(|asked, arg| match arg.value.to_str() {
            Some("") => put(&mut asked.sse, Some(SSE[0].to_owned())),
            Some(how) if SSE.contains(&how) => put(&mut asked.sse, Some(how.to_owned())),
            _ => Err(arg.refuse("none of AES256, aws:kms, aws:kms:dsse")),
        }),
    value("sse-kms-key-id", "KEY", "KMS key (implies aws:kms)")
        .reads(|asked, arg| put(&mut asked.kms_key, Some(text(arg)?))),
    value("acl", "ACL", "canned ACL: private, public-read, ...")
        .words(&[
            "private",
            "public-read",
            "public-read-write",
            "authenticated-read",
            "bucket-owner-read",
            "bucket-owner-full-control",
        ])
        .reads(|asked, arg| asked.header(arg, HeaderName::from_static("x-amz-acl"))),
    value("grants", "WHO", "grant read, readacl, writeacl or full, such as read=id=X,full=uri=Y")
        .takes(Takes::Values("WHO"))
        .reads(|asked, arg| {
            for (name, grantees) in grants(arg)? {
                // An option for each grantee adds to those before it.
                let before = asked.options.headers.iter().find(|(known, _)| *known == name);
                let before = before.and_then(|(_, value)| value.to_str().ok());
                let all = before.map(|before| format!("{before}, {grantees}"));
                asked.header_of(arg, name, &all.unwrap_or(grantees))?;
            }
            Ok(())
        }),
    value("website-redirect", "PLACE", "redirect of a website to PLACE").reads(|asked, arg| {
        asked.header(arg, HeaderName::from_static("x-amz-website-redirect-location"))
    }),
    value("metadata", "K=V", "user metadata: k1=v1,k2=v2, or once for each")
        .takes(Takes::Values("K=V"))
        .reads(|asked, arg| {
            for (name, value) in parse_metadata(&text(arg)?)? {
                asked.metadata.retain(|(known, _)| *known != name);
                asked.metadata.push((name, value));
            }
            Ok(())
        }),
    value("content-type", "TYPE", "Content-Type (default: guessed from the name or the content)")
        .reads(|asked, arg| asked.header(arg, CONTENT_TYPE)),
    flag("no-guess-mime-type", "do not guess content types").sets(|asked, on| asked.no_guess = on),
    value("content-encoding", "TEXT", "Content-Encoding header")
        .reads(|asked, arg| asked.header(arg, CONTENT_ENCODING)),
    value("content-disposition", "TEXT", "Content-Disposition header")
        .reads(|asked, arg| asked.header(arg, CONTENT_DISPOSITION)),
    value("content-language", "TEXT", "Content-Language header")
        .reads(|asked, arg| asked.header(arg, CONTENT_LANGUAGE)),
    value("cache-control", "TEXT", "Cache-Control header")
        .reads(|asked, arg| asked.header(arg, CACHE_CONTROL)),
    value("expires", "TIME", "Expires header: 2030-01-31T12:00:00Z, or as HTTP writes it").reads(
        |asked, arg| {
            let time = http_date(&text(arg)?)
                .ok_or_else(|| arg.refuse("not a time such as 2030-01-31T12:00:00Z"))?;
            asked.set(EXPIRES, header_value(arg, &time)?);
            Ok(())
        },
    ),
    value("tagging", "K=V", "tags: k1=v1&k2=v2, URL-encoded")
        .reads(|asked, arg| asked.header(arg, HeaderName::from_static("x-amz-tagging"))),
    value("if-none-match", "ETAG", "'*': never replace an object").reads(
        |asked, arg| match &*text(arg)? {
            "*" => put(&mut asked.options.if_none_match, true),
            _ => Err(arg.refuse("'*' is the only value")),
        },
    ),
    value("checksum-algorithm", "NAME", "CRC64NVME (default), CRC32C, CRC32, SHA256, SHA1, MD5")
        .words(&["CRC64NVME", "CRC32C", "CRC32", "SHA256", "SHA1", "MD5"])
        .reads(|asked, arg| {
            let algorithm = Algorithm::parse(&text(arg)?)
                .ok_or_else(|| arg.refuse("none of CRC64NVME, CRC32C, CRC32, SHA256, SHA1, MD5"))?;
            asked.common.algorithm = Some(algorithm);
            put(&mut asked.options.algorithm, Some(algorithm))
        }),
    flag("unsigned-payload", "do not sign bodies over plain HTTP")
        .sets(|asked, on| asked.common.unsigned_payload = on),
    value(
        "part-size",
        "SIZE",
        "part size of multipart uploads and downloads; a plain number is MiB",
    )
    .reads(|asked, arg| put(&mut asked.options.part_bytes, Some(part_bytes(arg)?))),
    value("concurrency", "N", "parts in flight per object")
        .reads(|asked, arg| put(&mut asked.options.concurrency, Some(concurrency(arg)?))),
]);

/// A key of the caller for the objects that a command reads or writes.
pub static SSE_C: Group<ObjectArgs> = titled(STORE_GROUP).with(&[
    value("sse-c", "HOW", "server-side encryption with a key of your own: AES256 (default)")
        .takes(Takes::PerhapsOneOf("HOW", AES256))
        .reads(|asked, arg| put(&mut asked.sse_c.is_on, aes256(arg)?)),
    value("sse-c-key", "KEY", "the key of --sse-c: 32 bytes, their base64, or fileb://FILE")
        .reads(|asked, arg| put(&mut asked.sse_c.key, Some(customer_key(arg)?))),
]);

/// A key of the caller for the sources of copies inside S3.
static SSE_C_COPY: Group<ObjectArgs> = titled(STORE_GROUP).with(&[
    value("sse-c-copy-source", "HOW", "--sse-c for the sources of copies inside S3")
        .takes(Takes::PerhapsOneOf("HOW", AES256))
        .reads(|asked, arg| put(&mut asked.sse_c_source.is_on, aes256(arg)?)),
    value("sse-c-copy-source-key", "KEY", "--sse-c-key for the sources of copies inside S3")
        .reads(|asked, arg| put(&mut asked.sse_c_source.key, Some(customer_key(arg)?))),
]);

/// Further options of transfers.
static MOVE: Group<ObjectArgs> = titled(WRITE_GROUP).with(&[
    value("metadata-directive", "WHAT", "copies inside S3: keep metadata (COPY) or REPLACE it")
        .words(&["COPY", "REPLACE"])
        .reads(|asked, arg| match &*text(arg)?.to_ascii_uppercase() {
            "COPY" => put(&mut asked.options.replace_metadata, false),
            "REPLACE" => put(&mut asked.options.replace_metadata, true),
            _ => Err(arg.refuse("none of COPY, REPLACE")),
        }),
    flag("resume", "keep the parts of interrupted transfers, and continue with them")
        .sets(|asked, on| asked.options.resume = on),
    flag("ignore-glacier-warnings", "skip archived objects without failing")
        .sets(|asked, on| asked.options.leave_archived = on),
    flag("dir-markers", "store directories as objects NAME/, and restore them")
        .sets(|asked, on| asked.options.dir_markers = on),
]);

/// Base names as target names: for commands that name each target.
pub static FLATTEN: Group<ObjectArgs> =
    titled(STORE_GROUP).with(&[flag("flatten", "name everything in DST by its base name")
        .sets(|asked, on| asked.flatten = on)]);

/// Mapping between file names and keys.
pub static NAMES: Group<ObjectArgs> = titled(STORE_GROUP).with(&[flag(
    "encode-names",
    "percent-encode names that the other side cannot have",
)
.sets(|asked, on| asked.options.encode_names = on)]);

/// Names that a local target takes for one: for commands that download several objects.
pub static CASES: Group<ObjectArgs> = titled(STORE_GROUP).with(&[value(
    "case-conflict",
    "WHAT",
    "names that differ only in case, in a target that ignores case: error (default), skip, warn, ignore",
)
.words(&["error", "skip", "warn", "ignore"])
.reads(|asked, arg| {
    let what = match arg.value.to_str() {
        Some("error") => CaseConflict::Error,
        Some("skip") => CaseConflict::Skip,
        Some("warn") => CaseConflict::Warn,
        Some("ignore") => CaseConflict::Ignore,
        _ => return Err(arg.refuse("none of error, skip, warn, ignore")),
    };
    put(&mut asked.options.case_conflict, what)
})]);

/// Stopping at the first failure.
pub static STOP: Group<ObjectArgs> =
    titled(STORE_GROUP).with(&[flag("exit-on-error", "stop at the first failure")
        .sets(|asked, on| asked.options.exit_on_error = on)]);

/// Values of `--sse`.
const SSE: &[&str] = &["AES256", "aws:kms", "aws:kms:dsse"];

/// Values of `--sse-c`.
const AES256: &[&str] = &["AES256"];
/// Most bytes of a file with a key: more than any form of a key.
const KEY_FILE_BYTES: u64 = 1024;

const PAGES: &str = "pages are as large as the server makes them, and all are read";
const WORDS: &str = "--json is the machine-readable form";
const CHECKED: &str = "all content is checked against the stored checksum";
const PAGER: &str = "there is no pager, and no prompt";
const TIMES: &str = "a download is left out only if the times are equal";
const SAME: &str = "source and target of one name are always refused";
const ARCHIVED: &str = "archived objects are always asked for; one that is not restored is a failure, or \
     skipped with --ignore-glacier-warnings";

/// `--color` of aws.
pub const COLOR: Noted = Noted(&[cli::value("color", None, "WHEN", "colours in lists")
    .takes(Takes::PerhapsOneOf("WHEN", &["on", "off", "auto", "always", "never"]))
    .noted("there are no colours in lists")]);

/// `--debug` of aws. In `sync` it is rsync's, which takes a value.
pub const DEBUG: Noted = Noted(&[cli::flag("debug", None, "debug messages")
    .alias(&["v2-debug"])
    .noted("--stat counts requests, -v prints each action")]);

/// Options of aws and s5cmd without effect here, in all commands.
pub const ACCEPTED: Noted = Noted(&[
    cli::value("page-size", None, "N", "keys per page").noted(PAGES),
    cli::flag("no-paginate", None, "read only one page").noted(PAGES),
    cli::value("output", None, "FORM", "output format of aws").noted(WORDS),
    cli::value("query", None, "JMESPATH", "output filter of aws").noted(WORDS),
    cli::flag("no-cli-pager", None, "do not start a pager")
        .alias(&["no-cli-auto-prompt"])
        .noted(PAGER),
    cli::value("cli-binary-format", None, "FORM", "format of binary values").noted(WORDS),
    cli::value("checksum-mode", None, "ENABLED", "verify checksums of downloads").noted(CHECKED),
    cli::flag("force-glacier-transfer", None, "request archived objects").noted(ARCHIVED),
    cli::value("expected-size", None, "N", "size of a stream").noted("parts grow with the stream"),
    cli::flag("exact-timestamps", None, "compare times exactly").noted(TIMES),
    cli::flag("validate-same-s3-paths", None, "refuse to copy an object onto itself").noted(SAME),
    cli::value("log", None, "LEVEL", "log level")
        .takes(Takes::PerhapsOneOf("LEVEL", &["trace", "debug", "info", "error"]))
        .noted("-v prints each action"),
    cli::value("no-such-upload-retry-count", None, "N", "retries after a lost multipart upload")
        .noted("--retry-count is for all requests; a lost upload is a failure"),
]);

/// Options of aws and s5cmd that are not supported, in all commands.
pub const UNBUILT: &[(&str, &str)] = &[
    (
        "--sse-c --sse-c-key --sse-c-copy-source --sse-c-copy-source-key",
        "sync, cp, mv, cat, head and pipe take a key",
    ),
    (
        "--all-versions",
        "ls, du, rm and rb have it; cp, cat and head take one version: --version-id",
    ),
    ("--ignore-glacier-warnings", "sync, cp and mv have it"),
    (
        "--copy-props",
        "copies keep metadata and tags; --metadata-directive REPLACE gives metadata anew",
    ),
    ("--case-conflict", "sync, cp and mv have it"),
    ("--json", "this command prints no list; errors are one line each"),
    ("--dry-run", "this command handles one object"),
    ("--version-id", "cp, cat, du, head, presign and rm take one version of one object"),
    ("--flatten", "cp and mv have it; sync keeps directories"),
    ("--group", "du sums by storage class, and ls -l shows that of each object"),
    ("--version", "it is an option of hakobu itself: hakobu --version"),
    ("--debug --v2-debug", "--stat counts requests, -v prints each action"),
    ("--install-completion", "hakobu completions SHELL prints them"),
    ("--tags", "s3:// options set tags of objects (--tagging), not of buckets"),
    ("--bucket-name-prefix --bucket-region", "buckets are listed completely; use grep"),
];

impl ObjectArgs {
    fn header(&mut self, arg: &OptArg, name: HeaderName) -> Result<(), String> {
        self.header_of(arg, name, &text(arg)?)
    }

    fn header_of(&mut self, arg: &OptArg, name: HeaderName, text: &str) -> Result<(), String> {
        let value = header_value(arg, text)?;
        self.set(name, value);
        Ok(())
    }
}

/// Returns the headers of `--grants`, with all grantees of a permission in one (API reference, PutObject).
fn grants(arg: &OptArg) -> Result<Vec<(HeaderName, String)>, String> {
    let mut headers: Vec<(HeaderName, String)> = Vec::new();
    for grant in text(arg)?.split([',', ' ']).filter(|grant| !grant.is_empty()) {
        let (name, grantee) = match grant.split_once('=') {
            Some(("read", who)) => ("x-amz-grant-read", who),
            Some(("readacl", who)) => ("x-amz-grant-read-acp", who),
            Some(("writeacl", who)) => ("x-amz-grant-write-acp", who),
            Some(("full", who)) => ("x-amz-grant-full-control", who),
            _ => return Err(arg.refuse("no read=, readacl=, writeacl= or full=")),
        };
        let grantee = match grantee.split_once('=') {
            Some((kind @ ("id" | "uri" | "emailaddress" | "emailAddress"), who)) => {
                let kind = if kind == "emailaddress" { "emailAddress" } else { kind };
                format!("{kind}=\"{who}\"")
            }
            _ => return Err(arg.refuse("no grantee (id=, uri= or emailaddress=)")),
        };
        match headers.iter_mut().find(|(known, _)| known == name) {
            Some((_, grantees)) => *grantees = format!("{grantees}, {grantee}"),
            None => headers.push((HeaderName::from_static(name), grantee)),
        }
    }
    Ok(headers)
}

/// Parses a time in seconds; 0 means no limit (a hundred years), as in aws.
fn timeout(arg: &OptArg) -> Result<Duration, String> {
    let seconds = text(arg)?.parse().ok().filter(|seconds| (0.0..=TIMEOUT_MAX_S).contains(seconds));
    match seconds {
        Some(0.0) => Ok(Duration::from_secs_f64(TIMEOUT_MAX_S)),
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err(arg.refuse("not a number of seconds")),
    }
}

fn aes256(arg: &OptArg) -> Result<bool, String> {
    match arg.value.to_str() {
        Some("" | "AES256") => Ok(true),
        // It may be a key in the wrong place.
        _ => Err(format!("--{}: 'AES256' is the only value", arg.name)),
    }
}

/// Parses a key, or reads it from a file. Messages do not show it.
fn customer_key(arg: &OptArg) -> Result<CustomerKey, String> {
    let given = arg.value.as_bytes();
    let mut read = Vec::new();
    if let Some(path) = given.strip_prefix(b"fileb://") {
        let path = OsStr::from_bytes(path);
        let file = File::open(path);
        let done = file.and_then(|file| file.take(KEY_FILE_BYTES).read_to_end(&mut read));
        done.map_err(|error| {
            format!("--{}: cannot read {}: {}", arg.name, quoted(path), Cause::System(error))
        })?;
    } else {
        read.extend_from_slice(given);
    }
    CustomerKey::parse(&read).ok_or_else(|| {
        format!("--{}: a key has 32 bytes; give them, their base64, or fileb://FILE", arg.name)
    })
}

const MIB: u64 = 1 << 20;
/// Sizes of parts, in bytes. Ranges of downloads may be small.
const PART_BYTES: std::ops::RangeInclusive<u64> = MIB..=5 * 1024 * MIB;
/// S3's minimum for parts of an upload other than the last one (User Guide, "Amazon S3 multipart upload limits").
pub(super) const PART_BYTES_MIN: u64 = 5 * MIB;
/// Maximum number of concurrent parts of one object.
const CONCURRENCY_MAX: usize = 1000;

/// Reads the value of `--part-size`, in bytes.
///
/// # Errors
/// Not a size, or out of range.
pub fn part_bytes(arg: &OptArg) -> Result<u64, String> {
    let bytes = number::parse_size(&arg.value, MIB).map_err(|why| arg.refuse(why))?;
    match PART_BYTES.contains(&bytes) {
        true => Ok(bytes),
        false => Err(arg.refuse("not between 1 MiB and 5 GiB")),
    }
}

/// Reads the value of `--concurrency`.
///
/// # Errors
/// It is not a number, or out of range.
pub fn concurrency(arg: &OptArg) -> Result<usize, String> {
    let parts = text(arg)?.parse().ok();
    let parts = parts.filter(|parts| (1..=CONCURRENCY_MAX).contains(parts));
    parts.ok_or_else(|| arg.refuse("not a number from 1 to 1000"))
}

/// Returns a value that must be text.
///
/// # Errors
/// It is empty or not UTF-8.
pub(super) fn text(arg: &OptArg) -> Result<String, String> {
    let text = arg.value.to_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| arg.refuse("needs a value that is text"))
}

/// Returns a value as a header.
///
/// # Errors
/// It holds bytes that headers may not have.
pub(super) fn header_value(arg: &OptArg, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| arg.refuse("cannot be sent in a header"))
}

/// Parses `k1=v1,k2=v2`, or a JSON object of strings as in aws. A comma without a following `NAME=` belongs to the
/// value before it.
///
/// # Errors
/// A sentence for the user.
pub fn parse_metadata(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.starts_with('{') {
        let map: std::collections::BTreeMap<String, String> =
            serde_json::from_str(text).map_err(|error| {
                format!("--metadata={text} is not a JSON object of strings: {error}")
            })?;
        return Ok(map
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect());
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for piece in text.split(',') {
        match (piece.split_once('=').filter(|(name, _)| is_name(name)), pairs.last_mut()) {
            (Some((name, value)), _) => pairs.push((name.to_ascii_lowercase(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(',');
                value.push_str(piece);
            }
            (None, None) => return Err(format!("--metadata={text} is not NAME=VALUE")),
        }
    }
    Ok(pairs)
}

/// Returns whether the text is a valid header name (RFC 9110, token).
fn is_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fine)
}

/// Returns the header of a pair.
///
/// # Errors
/// A sentence: a name or a value that a header cannot carry unchanged.
pub fn metadata_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let header = HeaderName::from_bytes(format!("x-amz-meta-{name}").as_bytes())
        .map_err(|_| format!("--metadata: '{name}' cannot be a name"))?;
    let plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && value.trim() == value;
    match HeaderValue::from_str(value) {
        Ok(value) if plain => Ok((header, value)),
        _ => Err(format!(
            "--metadata: the value of '{name}' must be printable ASCII without leading or trailing blanks"
        )),
    }
}

/// Formats a time for HTTP (RFC 9110, IMF-fixdate), from that format or RFC 3339.
pub fn http_date(text: &str) -> Option<String> {
    const FORM: &str = "%a, %d %b %Y %H:%M:%S GMT";
    let time = match strtime::parse(FORM, text).and_then(|parsed| parsed.to_datetime()) {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(),
        Err(_) => text.parse::<Timestamp>().ok()?,
    };
    strtime::format(FORM, time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_both_spellings() {
        let parsed = |text: &str| {
            parse_metadata(text).map(|pairs| {
                pairs.iter().map(|(k, v)| format!("{k}:{v}")).collect::<Vec<_>>().join(" ")
            })
        };
        for (text, expected) in [
            ("a=1", "a:1"),
            ("A=1,b=2", "a:1 b:2"),
            ("a=1,2,b=x=y", "a:1,2 b:x=y"),
            ("a=,b=", "a: b:"),
            ("a=1,b c=2", "a:1,b c=2"),
            ("{\"K\":\"v,w=1\"}", "k:v,w=1"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in ["", "a", "=1", "{\"a\":1}", "{"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_header_values_are_refused() {
        assert!(metadata_header("a", "x y").is_ok_and(|(name, _)| name == "x-amz-meta-a"));
        for (name, value) in [("a", "ä"), ("a", " x"), ("a", "x\ny"), ("a b", "x")] {
            assert!(metadata_header(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("2030-01-31T12:00:00Z", Some("Thu, 31 Jan 2030 12:00:00 GMT")),
            ("2030-01-31T12:00:00+02:00", Some("Thu, 31 Jan 2030 10:00:00 GMT")),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some("Wed, 21 Oct 2015 07:28:00 GMT")),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(http_date(text).as_deref(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text: String) {
            if let Ok(pairs) = parse_metadata(&text) {
                let empty = ["{", "}"].concat();
                proptest::prop_assert!(!pairs.is_empty() || text.split_whitespace().collect::<String>() == empty);
            }
        }
    }
}

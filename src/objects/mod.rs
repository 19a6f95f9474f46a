//! Evaluation of the options for `s3://`: settings of stores, and options for writing objects.

mod options;

pub use options::{
    ALL_VERSIONS, CASES, COMMON, DEBUG, FLATTEN, NAMES, ONE, RAW, SIDES, SSE_C, STAT, STOP, STORE,
    TRANSFER, UNBUILT, VERSION, WRITE, concurrency, part_bytes,
};

use crate::cli::parts;
use hakobu_core::error::quoted;
use hakobu_s3::{AccessPoint, Addressing, CustomerKey, Settings};
use hakobu_transfer::location::{Location, S3Url, Sources};
use hakobu_transfer::object::ObjectOptions;
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::Objects;
use http::{HeaderName, HeaderValue};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

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
        let is_small = |bytes: u64| bytes < options::PART_BYTES_MIN;
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
            manifests: None,
            inventory: None,
            target_inventory: None,
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
            let (name, value) = options::metadata_header(&name, &text)?;
            self.set(name, value);
        }
        Ok(())
    }
}

/// Makes the paths of settings absolute, for processes that run in other directories.
pub fn absolute(settings: Settings) -> Settings {
    let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Settings {
        credentials_file: settings.credentials_file.map(whole),
        ca_bundle: settings.ca_bundle.map(whole),
        ..settings
    }
}

/// Returns settings as options of [`STORE`], for another process. Keys are not among them: each machine has its own
/// credentials.
pub fn store_words(settings: &Settings) -> Vec<OsString> {
    let Settings {
        endpoint_url,
        region,
        profile,
        credentials_file,
        no_sign_request,
        request_payer,
        list_objects_v1,
        no_verify_ssl,
        ca_bundle,
        addressing,
        attempts_max,
        connect_timeout,
        read_timeout,
        // Secrets, and options of how objects are written.
        credentials: _,
        customer_key: _,
        algorithm: _,
        unsigned_payload: _,
    } = settings;
    let style = match addressing {
        Addressing::Auto => None,
        Addressing::Path => Some("path"),
        Addressing::Virtual => Some("virtual"),
    };
    let text = |text: &Option<String>| text.clone().map(OsString::from);
    let path = |path: &Option<PathBuf>| path.clone().map(OsString::from);
    let seconds =
        |limit: &Option<Duration>| limit.map(|limit| limit.as_secs_f64().to_string().into());
    let retries = attempts_max.map(|attempts| attempts.saturating_sub(1).to_string().into());
    let values: [(&str, Option<OsString>); 9] = [
        ("endpoint-url", text(endpoint_url)),
        ("profile", text(profile)),
        ("region", text(region)),
        ("credentials-file", path(credentials_file)),
        ("retry-count", retries),
        ("ca-bundle", path(ca_bundle)),
        ("addressing-style", style.map(OsString::from)),
        ("cli-read-timeout", seconds(read_timeout)),
        ("cli-connect-timeout", seconds(connect_timeout)),
    ];
    let flags = [
        ("no-sign-request", *no_sign_request),
        ("request-payer", *request_payer),
        ("use-list-objects-v1", *list_objects_v1),
        ("no-verify-ssl", *no_verify_ssl),
    ];
    let values = values.into_iter().filter_map(|(name, value)| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value?);
        Some(word)
    });
    let flags = flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| format!("--{name}").into());
    values.chain(flags).collect()
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
mod tests {
    use super::*;
    use crate::cli::{Table, Typed};
    use hakobu_s3::Algorithm;
    use std::ffi::OsString;

    /// A command with all options for S3.
    const TABLE: Table<ObjectArgs> = Table {
        command: "test",
        about: "",
        description: "",
        examples: &[],
        common: &[],
        usage: "",
        after: "",
        options: &[&STORE, &SIDES, &RAW, &VERSION, &STAT, &TRANSFER, &STOP],
        unbuilt: &[UNBUILT],
        abbreviates: false,
    };

    fn typed(line: &str) -> Typed {
        TABLE.parse_line(line).unwrap()
    }

    fn args(line: &str) -> Result<ObjectArgs, String> {
        TABLE.read(&typed(line), ObjectArgs::default())
    }

    fn headers(line: &str) -> Result<String, String> {
        let objects = args(line)?.objects()?;
        let shown = objects
            .options
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("not text")));
        Ok(shown.collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn options_become_headers() {
        for (line, expected) in [
            ("", ""),
            ("--storage-class=GLACIER", "x-amz-storage-class: GLACIER"),
            ("--content-type=a/b --content-type=c/d", "content-type: c/d"),
            ("--sse=AES256", "x-amz-server-side-encryption: AES256"),
            ("--sse", "x-amz-server-side-encryption: AES256"),
            (
                "--grants=read=id=x --grants read=uri=u,full=emailaddress=m@x.test",
                "x-amz-grant-read: id=\"x\", uri=\"u\"; \
                 x-amz-grant-full-control: emailAddress=\"m@x.test\"",
            ),
            (
                "--sse-kms-key-id=k",
                "x-amz-server-side-encryption: aws:kms; \
                 x-amz-server-side-encryption-aws-kms-key-id: k",
            ),
            ("--metadata=a=1,b=2 --metadata A=3", "x-amz-meta-b: 2; x-amz-meta-a: 3"),
            ("--expires=2030-01-31T12:00:00Z", "expires: Thu, 31 Jan 2030 12:00:00 GMT"),
            ("--tagging=a=1&b=2 --acl=private", "x-amz-tagging: a=1&b=2; x-amz-acl: private"),
        ] {
            assert_eq!(headers(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn specific_settings_win() {
        let objects = args(
            "--endpoint-url=http://both --source-region=here --region=there \
             --destination-endpoint-url=http://target --profile=p",
        )
        .and_then(ObjectArgs::objects)
        .unwrap();
        let shown = |settings: &Settings| {
            [&settings.endpoint_url, &settings.region, &settings.profile]
                .map(|text| text.clone().unwrap_or_default())
                .join(" ")
        };
        assert_eq!(shown(&objects.source), "http://both here p");
        assert_eq!(shown(&objects.target), "http://target there p");
    }

    /// Another process reads from the words what this one has read.
    #[test]
    fn settings_become_options_again() {
        let line = "--endpoint-url=http://h:1/p --profile=p --region=r --credentials-file=/c --retry-count=0 \
                    --ca-bundle=/b --addressing-style=path --cli-read-timeout=0 --cli-connect-timeout=2.5 \
                    --no-sign-request --request-payer --use-list-objects-v1 --no-verify-ssl";
        let settings = args(line).unwrap().settings();
        let words: Vec<String> =
            store_words(&settings).iter().map(|word| word.to_str().unwrap().to_owned()).collect();
        assert_eq!(words.len(), 13, "an option of the store is not passed on: {words:?}");
        assert_eq!(STORE.1.len(), 13, "an option of the store is not in this test");
        let again = args(&words.join(" ")).unwrap().settings();
        assert_eq!(again, settings);
        assert!(store_words(&Settings::default()).is_empty());
        let secret = args(&format!("--sse-c --sse-c-key={}", "k".repeat(32))).unwrap().settings();
        assert!(store_words(&secret).is_empty());
        let relative = absolute(args("--ca-bundle=b --credentials-file=c").unwrap().settings());
        let here = std::env::current_dir().unwrap();
        assert_eq!(relative.ca_bundle, Some(here.join("b")));
        assert_eq!(relative.credentials_file, Some(here.join("c")));
    }

    #[test]
    fn sizes_and_numbers() {
        let options = |line: &str| args(line).and_then(ObjectArgs::objects).map(|it| it.options);
        assert_eq!(options("--part-size=8").unwrap().part_bytes, Some(8 << 20));
        assert!(options("--part-size=1").unwrap_err().contains("5 MiB at least"));
        assert_eq!(options("--part-size=16MB").unwrap().part_bytes, Some(16_000_000));
        assert_eq!(options("--concurrency=7").unwrap().concurrency, Some(7));
        assert!(options("").unwrap().guess_content_type);
        assert!(!options("--no-guess-mime-type").unwrap().guess_content_type);
        assert!(options("--metadata-directive=replace").unwrap().replace_metadata);
        assert_eq!(
            options("--checksum-algorithm=crc32c").unwrap().algorithm,
            Some(Algorithm::Crc32c)
        );
    }

    #[test]
    fn wrong_values_are_refused() {
        for line in [
            "--part-size=1k",
            "--part-size=6G",
            "--part-size=x",
            "--concurrency=0",
            "--concurrency=1001",
            "--sse=yes",
            "--if-none-match=etag",
            "--request-payer=me",
            "--addressing-style=dns",
            "--checksum-algorithm=crc",
            "--metadata-directive=KEEP",
            "--metadata=x",
            "--expires=soon",
            "--endpoint-url=",
        ] {
            assert!(args(line).is_err(), "{line}");
        }
        assert!(headers("--sse=AES256 --sse-kms-key-id=k").is_err());
        assert!(headers("--metadata=a=ä").is_err());
    }

    #[test]
    fn keys_go_to_their_sides() {
        let (one, two) = ("1".repeat(32), "2".repeat(32));
        let both = Concerned { source: true, target: true };
        let down = Concerned { source: true, target: false };
        let keys = |line: String, concerned| {
            let args = args(&line)?;
            let objects = args.fit(concerned, &mut Policy::default())?;
            let key = |key: &str| CustomerKey::parse(key.as_bytes());
            let side = |settings: &Settings| match &settings.customer_key {
                None => "-",
                found if *found == key(&one) => "1",
                found if *found == key(&two) => "2",
                Some(_) => "?",
            };
            Ok::<_, String>([side(&objects.source), side(&objects.target)].concat())
        };
        let own = format!("--sse-c AES256 --sse-c-key {one}");
        let source = format!("--sse-c-copy-source --sse-c-copy-source-key={two}");
        assert_eq!(keys(own.clone(), down).as_deref(), Ok("11"));
        assert_eq!(keys(own.clone(), both).as_deref(), Ok("-1"));
        assert_eq!(keys(source.clone(), both).as_deref(), Ok("2-"));
        assert_eq!(keys(format!("{own} {source}"), both).as_deref(), Ok("21"));
        for wrong in [
            "--sse-c".to_owned(),
            "--sse-c=DES --sse-c-key=x".to_owned(),
            format!("--sse-c-key={one}x"),
            format!("--sse-c-key=fileb:///no/such/{one}"),
            format!("{own} --sse=aws:kms"),
            source.clone(),
        ] {
            let message = keys(wrong.clone(), down).unwrap_err();
            assert!(!message.contains(&format!("={one}")) && !message.contains(&two), "{message}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, &one).unwrap();
        let line = format!("--sse-c-key=fileb://{}", file.display());
        assert_eq!(keys(line, down).as_deref(), Ok("11"));
        assert!(!format!("{:?}", args(&own).unwrap()).contains(&one));
    }

    #[test]
    fn without_a_store_they_are_refused() {
        let checked = |line: &str, any| TABLE.check_places(&typed(line), any, any);
        let message = checked("--region=x", false);
        assert_eq!(message, Err("--region is for s3:// locations, and none is given".to_owned()));
        assert_eq!(checked("--region=x", true), Ok(()));
        assert_eq!(checked("s d", false), Ok(()));
    }

    #[test]
    fn urls() {
        let os = |text: &str| OsString::from(text);
        assert!(object_url(&os("s3://abc/k")).is_ok() && object_url(&os("s3://abc")).is_err());
        assert!(object_url(&os("k")).is_err() && url(&os("s3://a b")).is_err());
        assert_eq!(bucket_url(&os("s3://abc/")).as_deref(), Ok("abc"));
        assert!(bucket_url(&os("s3://abc/k")).is_err() && bucket_url(&os("s3://")).is_err());
    }
}

//! Settings of an endpoint and account: endpoint, addressing, verification, timeouts. Options take precedence over
//! `AWS_*` variables, and these over the profile of the AWS configuration files (AWS SDKs and Tools Reference Guide,
//! "Shared config and credentials files"), which the SDK parses.

use crate::client::retry::RetryAttempts;
use crate::endpoint::{Endpoint, REGION};
use crate::proxy::Proxies;
use crate::{Addressing, Algorithm, Credentials, CustomerKey};
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_runtime::env_config::property::PropertiesKey;
use aws_runtime::env_config::section::EnvConfigSections;
use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of an endpoint and account from the command line; `None` to use the environment and the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `--endpoint-url` (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `endpoint_url`):
    /// `http[s]://HOST[:PORT][/PATH]`.
    pub endpoint_url: Option<String>,
    /// `--region`.
    pub region: Option<String>,
    /// `--profile`.
    pub profile: Option<String>,
    /// `--credentials-file` (`AWS_SHARED_CREDENTIALS_FILE`): its profile takes precedence over keys in the
    /// environment.
    pub credentials_file: Option<PathBuf>,
    /// Keys known to the program, of a server that it runs: environment and profile are ignored. Not set by
    /// any option.
    pub credentials: Option<Credentials>,
    /// `--no-sign-request`: anonymous requests.
    pub no_sign_request: bool,
    /// `--request-payer requester`.
    pub request_payer: bool,
    /// `--use-list-objects-v1`: use ListObjects, for servers without ListObjectsV2.
    pub list_objects_v1: bool,
    /// `--no-verify-ssl`: do not verify certificates.
    pub no_verify_ssl: bool,
    /// `--ca-bundle` (`AWS_CA_BUNDLE`): PEM certificates to trust instead of the system's.
    pub ca_bundle: Option<PathBuf>,
    /// `--addressing-style`.
    pub addressing: Addressing,
    /// `--sse-c-key`: encrypts and decrypts all objects at this endpoint.
    pub customer_key: Option<CustomerKey>,
    /// `--checksum-algorithm`; default CRC64NVME, or none by `AWS_REQUEST_CHECKSUM_CALCULATION`.
    pub algorithm: Option<Algorithm>,
    /// Attempts per request, including the first (`AWS_MAX_ATTEMPTS`; default 5, or 10 while the server
    /// throttles).
    pub attempts_max: Option<u32>,
    /// True to leave bodies with a checksum unsigned over plain HTTP as well (`--unsigned-payload`; over TLS
    /// they always are).
    pub unsigned_payload: bool,
    /// Time limit for opening a connection.
    pub connect_timeout: Option<Duration>,
    /// Time limit for a connection without progress.
    pub read_timeout: Option<Duration>,
}

/// Default time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Default time limit for a connection without progress.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Settings combined with environment and profile.
#[derive(Debug)]
pub(crate) struct ResolvedSettings {
    /// The settings themselves; those that have fields below are read there.
    pub given: Settings,
    pub endpoint: Endpoint,
    pub region: String,
    /// Profile selected by an option; it takes precedence over keys in the environment.
    pub profile: Option<String>,
    /// Name of the profile and files for providers of credentials, if those on disk have names in quotes.
    pub renamed: Option<(String, EnvConfigFiles)>,
    pub ca_bundle: Option<PathBuf>,
    pub addressing: Addressing,
    pub algorithm: Option<Algorithm>,
    pub checks_downloads: bool,
    pub attempts: RetryAttempts,
    pub connect_timeout: Duration,
    pub read_timeout: Duration,
    pub proxies: Proxies,
}

impl Settings {
    /// Combines options with the environment and the profile.
    ///
    /// # Errors
    /// A message: an invalid value with its source, or a missing profile.
    pub(crate) fn resolve(&self, lookup: Lookup<'_>) -> Result<ResolvedSettings, String> {
        let file = self.credentials_file.as_ref().map(|file| file.to_string_lossy().into_owned());
        let lookup: Lookup<'_> = &|name| match name {
            "AWS_SHARED_CREDENTIALS_FILE" if file.is_some() => file.clone(),
            _ => lookup(name),
        };
        let profile = match self.credentials {
            Some(_) => None,
            None => Profile::load(self.profile.as_deref(), lookup)?,
        };
        let from = SettingSources { lookup, profile: profile.as_ref() };
        let url = self.endpoint_url.clone().map_or_else(|| from.endpoint_url(), |it| Ok(Some(it)));
        let endpoint = match url? {
            Some(url) => Endpoint::parse(&url)?,
            None => Endpoint::Aws {
                dualstack: from.flag("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint")?,
                fips: from.flag("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint")?,
            },
        };
        if self.customer_key.is_some() && !endpoint.keeps_secrets() {
            return Err(
                "--sse-c sends its key to the server, which needs an https endpoint".to_owned()
            );
        }
        let region = self
            .region
            .clone()
            .or_else(|| lookup("AWS_REGION"))
            .or_else(|| from.text("AWS_DEFAULT_REGION", "region"))
            .unwrap_or_else(|| REGION.to_owned());
        if region.is_empty() || !region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(format!("'{region}' is not a region"));
        }
        // The three modes differ in details that this client handles by itself; other values are still
        // errors.
        from.parse("AWS_RETRY_MODE", "retry_mode", |mode| {
            matches!(mode, "legacy" | "standard" | "adaptive").then_some(())
        })?;
        let positive = |text: &str| text.parse().ok().filter(|n| *n > 0);
        let attempts_max = match self.attempts_max {
            Some(0) => return Err("at least one attempt is needed".to_owned()),
            None => from.parse("AWS_MAX_ATTEMPTS", "max_attempts", positive)?,
            said => said,
        };
        let when_supported = |variable: &str, key: &str| {
            let policy = from.parse(variable, key, |policy| match policy {
                "when_supported" => Some(true),
                "when_required" => Some(false),
                _ => None,
            });
            policy.map(|policy| policy.unwrap_or(true))
        };
        let sends_checksums =
            when_supported("AWS_REQUEST_CHECKSUM_CALCULATION", "request_checksum_calculation")?;
        let checks_downloads =
            when_supported("AWS_RESPONSE_CHECKSUM_VALIDATION", "response_checksum_validation")?;
        Ok(ResolvedSettings {
            endpoint,
            region,
            profile: self.profile.clone().or_else(|| {
                // A file of credentials is used even if no profile of it is named.
                self.credentials_file.as_ref()?;
                Some(lookup("AWS_PROFILE").unwrap_or_else(|| "default".to_owned()))
            }),
            renamed: profile.as_ref().and_then(Profile::renamed),
            ca_bundle: self
                .ca_bundle
                .clone()
                .or_else(|| from.text("AWS_CA_BUNDLE", "ca_bundle").map(PathBuf::from)),
            addressing: self.addressing(&from)?,
            algorithm: self.algorithm.or(sends_checksums.then_some(Algorithm::Crc64Nvme)),
            checks_downloads,
            attempts: attempts_max.map_or_else(RetryAttempts::default, RetryAttempts::exactly),
            connect_timeout: self.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            read_timeout: self.read_timeout.unwrap_or(READ_TIMEOUT),
            proxies: Proxies::of_environment(lookup)?,
            given: self.clone(),
        })
    }

    fn addressing(&self, from: &SettingSources<'_>) -> Result<Addressing, String> {
        let style = from.profile.and_then(|profile| profile.get_nested("s3", "addressing_style"));
        match (self.addressing, style.as_deref()) {
            (Addressing::Auto, Some("path")) => Ok(Addressing::Path),
            (Addressing::Auto, Some("virtual")) => Ok(Addressing::Virtual),
            (Addressing::Auto, None | Some("auto")) => Ok(Addressing::Auto),
            (Addressing::Auto, Some(odd)) => Err(format!(
                "addressing_style '{odd}' of the profile is none of path, virtual, auto"
            )),
            (said, _) => Ok(said),
        }
    }
}

/// Looks up the environment first, then the profile.
struct SettingSources<'a> {
    lookup: Lookup<'a>,
    profile: Option<&'a Profile>,
}

impl SettingSources<'_> {
    fn text(&self, variable: &str, key: &str) -> Option<String> {
        (self.lookup)(variable).or_else(|| self.profile?.get(key))
    }

    /// Value in small letters, parsed.
    fn parse<T>(
        &self,
        variable: &str,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(variable, key) else { return Ok(None) };
        let wrong = || format!("{variable} (or {key} of the profile) cannot be '{text}'");
        parse(&text.to_ascii_lowercase()).map(Some).ok_or_else(wrong)
    }

    fn flag(&self, variable: &str, key: &str) -> Result<bool, String> {
        Ok(self.parse(variable, key, |text| text.parse().ok())?.unwrap_or(false))
    }

    /// AWS SDKs and Tools Reference Guide, "Service-specific endpoints"; s5cmd's variable comes last.
    fn endpoint_url(&self) -> Result<Option<String>, String> {
        let ignored = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";
        if self.flag(ignored, "ignore_configured_endpoint_urls")? {
            return Ok(None);
        }
        Ok((self.lookup)("AWS_ENDPOINT_URL_S3")
            .or_else(|| (self.lookup)("AWS_ENDPOINT_URL"))
            .or_else(|| self.profile?.endpoint_url())
            .or_else(|| (self.lookup)("S3_ENDPOINT_URL")))
    }
}

/// Looks up an environment variable; empty ones count as unset.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Settings of the selected profile.
pub(crate) struct Profile {
    name: String,
    sections: EnvConfigSections,
    /// The files, if names in them were changed.
    renamed: Option<EnvConfigFiles>,
}

impl Profile {
    /// Reads the files, if they exist. `name` is the value of `--profile`; else `AWS_PROFILE` is used, else
    /// `default`.
    ///
    /// # Errors
    /// A message: a file cannot be read or parsed, or the requested profile does not exist.
    pub fn load(name: Option<&str>, lookup: Lookup<'_>) -> Result<Option<Profile>, String> {
        let asked = name.map(str::to_owned).or_else(|| lookup("AWS_PROFILE"));
        let home = lookup("HOME");
        let file = |variable, standard: &str| {
            let path = lookup(variable).unwrap_or_else(|| format!("~/.aws/{standard}"));
            // As in the SDKs, a path that cannot be expanded stays as it is.
            let below_home = path.strip_prefix("~/").zip(home.as_ref());
            below_home.map(|(rest, home)| format!("{home}/{rest}")).unwrap_or(path)
        };
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let missing =
            |name: &str| format!("there is no profile '{name}' in {config} or {credentials}");
        // Skip the parser without files, as in most containers.
        if !Path::new(&config).exists() && !Path::new(&credentials).exists() {
            return match asked {
                Some(name) => Err(missing(&name)),
                None => Ok(None),
            };
        }
        let mut files = EnvConfigFiles::builder();
        let mut renames = false;
        for (kind, path) in
            [(EnvConfigFileKind::Config, &config), (EnvConfigFileKind::Credentials, &credentials)]
        {
            if Path::new(path).exists() {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| format!("cannot read the AWS configuration file {path}: {e}"))?;
                let text = with_identifiers(&text, kind);
                renames |= matches!(text, Cow::Owned(_));
                files = files.with_contents(kind, text);
            }
        }
        let name = asked.as_deref().map_or(Cow::Borrowed("default"), identifier).into_owned();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| format!("cannot start a runtime: {e}"))?;
        // All input is in `files`: environment and file system are not accessed.
        let (fs, env, files) = (Default::default(), Default::default(), files.build());
        let loading = aws_config::profile::load(&fs, &env, &files, Some(name.clone().into()));
        let sections = runtime
            .block_on(loading)
            .map_err(|e| format!("AWS configuration files: {}", chain(&e)))?;
        if sections.get_profile(&name).is_none() {
            return asked.map_or(Ok(None), |asked| Err(missing(&asked)));
        }
        // Without a name the chain of providers finds the default profile by itself.
        let renamed = (renames && asked.is_some()).then_some(files);
        Ok(Some(Profile { name, sections, renamed }))
    }

    /// Its name and the files for providers of credentials, if those cannot read the files on disk.
    pub fn renamed(&self) -> Option<(String, EnvConfigFiles)> {
        self.renamed.clone().map(|files| (self.name.clone(), files))
    }

    /// Value of a property.
    pub fn get(&self, key: &str) -> Option<String> {
        let value = self.sections.get_profile(&self.name)?.get(key)?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Value of a nested property, such as `addressing_style` of `s3`, in indented lines.
    pub fn get_nested(&self, group: &str, key: &str) -> Option<String> {
        let lines = self.get(group)?;
        let mut pairs = lines.lines().filter_map(|line| line.split_once('='));
        let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
        Some(value.trim().to_owned())
    }

    /// `endpoint_url` for S3: from the profile's `services` section, else its own.
    pub fn endpoint_url(&self) -> Option<String> {
        let of_service = || {
            let services = self.get("services")?;
            let key = PropertiesKey::builder()
                .section_key("services")
                .section_name(services)
                .property_name("s3")
                .sub_property_name("endpoint_url")
                .build()
                .ok()?;
            self.sections.other_sections().get(&key).map(|url| url.trim().to_owned())
        };
        of_service().or_else(|| self.get("endpoint_url"))
    }
}

/// An error with all its causes on one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        let words = e.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = e.source();
    }
    text
}

/// Properties whose values are names of sections.
const REFERENCES: &[&str] = &["source_profile", "sso_session", "services"];

/// Returns the name of a section for the parser: itself if it is an identifier (letters, digits, `_-/.%@:+`).
pub fn identifier(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.%@:+".contains(&byte);
    if name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut text = String::new();
    for byte in name.bytes() {
        match is_plain(byte) && byte != b'%' {
            true => text.push(char::from(byte)),
            false => {
                // Writing into a string does not fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    Cow::Owned(text)
}

pub fn with_identifiers(text: &str, kind: EnvConfigFileKind) -> Cow<'_, str> {
    let mut out = String::new();
    let mut changed = false;
    for line in text.split_inclusive('\n') {
        let new = match line.starts_with('[') {
            true => section_header(line, kind),
            false => reference(line),
        };
        changed |= new.is_some();
        out.push_str(new.as_deref().unwrap_or(line));
    }
    if changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Returns a header with identifiers, if it changes.
fn section_header(line: &str, kind: EnvConfigFileKind) -> Option<String> {
    let end = line.rfind(']')?;
    let (inner, rest) = (line.get(1..end)?, line.get(end..)?);
    let new = match kind {
        EnvConfigFileKind::Config => {
            if !inner.contains(['\'', '"', '\\']) {
                return None;
            }
            match words(inner)?.as_slice() {
                [kind, name] => format!("{kind} {}", identifier(name)),
                _ => return None,
            }
        }
        _ => {
            let name = inner.trim();
            match identifier(name) {
                Cow::Owned(new) if !name.starts_with("profile ") => new,
                _ => return None,
            }
        }
    };
    Some(format!("[{new}{rest}"))
}

/// Returns a property that names another section with its identifier, if it changes.
fn reference(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    if !REFERENCES.iter().any(|known| key.trim_end().eq_ignore_ascii_case(known)) {
        return None;
    }
    // A comment begins after a blank.
    let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
    let name = value.get(..comment.unwrap_or(value.len()))?.trim();
    match identifier(name) {
        Cow::Owned(new) => Some(format!("{key}= {new}\n")),
        Cow::Borrowed(_) => None,
    }
}

/// Splits as a POSIX shell does, without expansions (Python's `shlex.split`, which aws uses); `None` if a quote is not
/// closed.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests;

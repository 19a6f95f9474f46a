//! Settings of a store: endpoint, addressing, verification, timeouts. Options take precedence over `AWS_*`
//! variables, and these over the profile.

use super::checksum::Algorithm;
use super::customer_key::CustomerKey;
use super::endpoint::{Addressing, Endpoint, REGION};
use super::profile::{Lookup, Profile};
use super::proxy::Proxies;
use super::retry::Attempts;
use super::sign::Keys;
use aws_runtime::env_config::file::EnvConfigFiles;
use std::path::PathBuf;
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
    pub keys: Option<Keys>,
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
    /// `--sse-c-key`: encrypts and decrypts all objects of this store.
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
pub(super) struct Resolved {
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
    pub attempts: Attempts,
    pub connect_timeout: Duration,
    pub read_timeout: Duration,
    /// Proxies.
    pub proxies: Proxies,
}

impl Settings {
    /// Combines options with the environment and the profile.
    ///
    /// # Errors
    /// A message: an invalid value with its source, or a missing profile.
    pub(super) fn resolve(&self, lookup: Lookup<'_>) -> Result<Resolved, String> {
        let file = self.credentials_file.as_ref().map(|file| file.to_string_lossy().into_owned());
        let lookup: Lookup<'_> = &|name| match name {
            "AWS_SHARED_CREDENTIALS_FILE" if file.is_some() => file.clone(),
            _ => lookup(name),
        };
        let profile = match self.keys {
            Some(_) => None,
            None => Profile::load(self.profile.as_deref(), lookup)?,
        };
        let from = Sources { lookup, profile: profile.as_ref() };
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
            return Err(format!("`{region}` is not a region"));
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
        Ok(Resolved {
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
            attempts: attempts_max.map_or_else(Attempts::default, Attempts::exactly),
            connect_timeout: self.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
            read_timeout: self.read_timeout.unwrap_or(READ_TIMEOUT),
            proxies: Proxies::of_environment(lookup)?,
            given: self.clone(),
        })
    }

    fn addressing(&self, from: &Sources<'_>) -> Result<Addressing, String> {
        let style = from.profile.and_then(|profile| profile.get_nested("s3", "addressing_style"));
        match (self.addressing, style.as_deref()) {
            (Addressing::Auto, Some("path")) => Ok(Addressing::Path),
            (Addressing::Auto, Some("virtual")) => Ok(Addressing::Virtual),
            (Addressing::Auto, None | Some("auto")) => Ok(Addressing::Auto),
            (Addressing::Auto, Some(odd)) => Err(format!(
                "addressing_style `{odd}` of the profile is none of path, virtual, auto"
            )),
            (said, _) => Ok(said),
        }
    }
}

/// Looks up the environment first, then the profile.
struct Sources<'a> {
    lookup: Lookup<'a>,
    profile: Option<&'a Profile>,
}

impl Sources<'_> {
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
        let wrong = || format!("{variable} (or {key} of the profile) cannot be `{text}`");
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

#[cfg(test)]
mod tests;

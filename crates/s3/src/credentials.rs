//! Credentials: fixed, or fetched and refreshed before they expire.

use super::connector::Connector;
use super::profile::{Lookup, chain};
use super::settings::Resolved;
use super::sign::Keys;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_types::region::Region;
use hakobu_core::error::quoted;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// Time before expiry at which credentials are refreshed, seconds.
const AHEAD_S: i64 = 300;
/// Pause after a failed refresh in the background, seconds.
const PAUSE_S: i64 = 30;

/// Credentials of a store, shared by all cores.
pub(super) struct Vault {
    provider: Option<SharedCredentialsProvider>,
    keys: Mutex<Option<Arc<Keys>>>,
    /// Increases with each new set of keys; 0 without keys.
    version: AtomicU64,
    /// Time of the next refresh, seconds since 1970; `i64::MAX` for never.
    due_s: AtomicI64,
    busy: AtomicBool,
    fetching: tokio::sync::Mutex<()>,
}

impl Vault {
    /// Fixed keys; without any, requests are not signed.
    pub fn fixed(keys: Option<Keys>) -> Vault {
        Vault::new(None, keys)
    }

    /// Keys from `provider`; none before the first fetch.
    pub fn fetched(provider: impl ProvideCredentials + 'static) -> Vault {
        Vault::new(Some(SharedCredentialsProvider::new(provider)), None)
    }

    fn new(provider: Option<SharedCredentialsProvider>, keys: Option<Keys>) -> Vault {
        Vault {
            provider,
            keys: Mutex::new(keys.map(Arc::new)),
            version: AtomicU64::new(1),
            due_s: AtomicI64::new(i64::MAX),
            busy: AtomicBool::new(false),
            fetching: tokio::sync::Mutex::new(()),
        }
    }

    /// True if keys have to be fetched.
    pub fn is_fetched(&self) -> bool {
        self.provider.is_some()
    }

    /// Version of the keys; changes when they do.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Current keys; `None` for anonymous requests.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.lock().clone()
    }

    /// True if a refresh is due at `now_s`, for one caller only, which must then call
    /// [`Vault::refresh_ahead`].
    pub fn claims_refresh(&self, now_s: i64) -> bool {
        now_s >= self.due_s.load(Ordering::Relaxed) && !self.busy.swap(true, Ordering::AcqRel)
    }

    /// Refreshes keys before they expire. A failure is ignored here: the keys are still valid for a while,
    /// and the request that finally fails reports the reason.
    pub async fn refresh_ahead(&self, now_s: i64) {
        if self.refresh(self.version()).await.is_err() {
            self.due_s.store(now_s.saturating_add(PAUSE_S), Ordering::Relaxed);
        }
        self.busy.store(false, Ordering::Release);
    }

    /// Fetches keys, unless they are newer than `version` already. Returns whether keys can change at all.
    /// Only one fetch at a time, over all cores.
    ///
    /// # Errors
    /// A message: why there are no keys.
    pub async fn refresh(&self, version: u64) -> Result<bool, String> {
        let Some(provider) = &self.provider else { return Ok(false) };
        let _alone = self.fetching.lock().await;
        if self.version() != version {
            return Ok(true);
        }
        let got = provider.provide_credentials().await.map_err(|e| describe(&chain(&e)))?;
        let due_s = got.expiry().map_or(i64::MAX, |time| {
            let since = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            i64::try_from(since).unwrap_or(i64::MAX).saturating_sub(AHEAD_S)
        });
        let keys = Keys {
            access_key: got.access_key_id().to_owned(),
            secret_key: got.secret_access_key().to_owned(),
            session_token: got.session_token().map(str::to_owned),
        };
        *self.keys.lock() = Some(Arc::new(keys));
        // Keys with a short lifetime would always be due: these are refreshed after half of their remaining
        // lifetime.
        let now_s = super::time::now_s();
        let half_s = now_s.saturating_add((due_s.saturating_add(AHEAD_S) - now_s).max(2) / 2);
        self.due_s
            .store(if due_s == i64::MAX { due_s } else { due_s.max(half_s) }, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }
}

fn describe(why: &str) -> String {
    format!(
        "no credentials: {why}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a \
         --profile, or read public data with --no-sign-request"
    )
}

/// Determines the source of credentials without fetching them. Keys in the environment need no SDK. Blocking.
///
/// # Errors
/// A message: only half of a key pair is set.
pub(super) fn open(
    resolved: &Resolved,
    lookup: Lookup<'_>,
    connector: Connector,
) -> Result<Vault, String> {
    if resolved.given.no_sign_request {
        return Ok(Vault::fixed(None));
    }
    if resolved.given.keys.is_some() {
        return Ok(Vault::fixed(resolved.given.keys.clone()));
    }
    if resolved.profile.is_none() {
        match (lookup("AWS_ACCESS_KEY_ID"), lookup("AWS_SECRET_ACCESS_KEY")) {
            (Some(access_key), Some(secret_key)) => {
                let session_token = lookup("AWS_SESSION_TOKEN");
                let keys = Keys { access_key, secret_key, session_token };
                return Ok(Vault::fixed(Some(keys)));
            }
            (Some(_), None) => {
                return Err("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not".into());
            }
            (None, Some(_)) => {
                return Err("AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not".into());
            }
            (None, None) => {}
        }
    }
    let region = Region::new(resolved.region.clone());
    let config = ProviderConfig::without_region()
        .with_region(Some(region.clone()))
        .with_http_client(connector);
    let missing = resolved.given.credentials_file.as_ref().filter(|file| !file.exists());
    if let Some(file) = missing {
        return Err(format!("there is no credentials file {}", quoted(file)));
    }
    if let Some((name, files)) = &resolved.renamed {
        let provider = ProfileFileCredentialsProvider::builder().configure(&config);
        return Ok(Vault::fetched(
            provider.profile_name(name).profile_files(files.clone()).build(),
        ));
    }
    let Some(profile) = &resolved.profile else {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| format!("cannot start a runtime: {e}"))?;
        let building = DefaultCredentialsChain::builder().configure(config).region(region).build();
        return Ok(Vault::fetched(runtime.block_on(building)));
    };
    let mut provider =
        ProfileFileCredentialsProvider::builder().configure(&config).profile_name(profile);
    if let Some(file) = &resolved.given.credentials_file {
        let files = EnvConfigFiles::builder()
            .include_default_config_file(true)
            .with_file(EnvConfigFileKind::Credentials, file);
        provider = provider.profile_files(files.build());
    }
    Ok(Vault::fetched(provider.build()))
}

#[cfg(test)]
mod tests;

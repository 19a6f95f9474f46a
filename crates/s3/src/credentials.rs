//! Credentials: fixed, or fetched by `aws-config` and refreshed before they expire; and its HTTP client, so that requests
//! to STS, SSO and the metadata services of instances and containers use the same streams and TLS as everything else.

use crate::client::connection;
use crate::client::pool::DnsCache;
use crate::endpoint::{Endpoint, Route};
use crate::proxy::Proxies;
use crate::settings::{ResolvedSettings, chain};
use crate::{Addressing, Credentials, ErrorKind, Lookup};
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::imds::Client as ImdsClient;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_types::region::Region;
use bytes::Bytes;
use hakobu_core::error::quoted;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};
use tokio_rustls::TlsConnector;

/// Time before expiry at which credentials are refreshed, seconds.
const AHEAD_S: i64 = 300;
/// Pause after a failed refresh in the background, seconds.
const PAUSE_S: i64 = 30;

/// Credentials of a session, shared by all cores.
pub(crate) struct CredentialCache {
    provider: Option<SharedCredentialsProvider>,
    credentials: Mutex<Option<Arc<Credentials>>>,
    /// Increases with each new set of credentials; 0 without credentials.
    version: AtomicU64,
    /// Time of the next refresh, seconds since 1970; `i64::MAX` for never.
    due_s: AtomicI64,
    busy: AtomicBool,
    fetching: tokio::sync::Mutex<()>,
}

impl CredentialCache {
    /// Fixed credentials; without any, requests are not signed.
    pub fn fixed(credentials: Option<Credentials>) -> CredentialCache {
        CredentialCache::new(None, credentials)
    }

    /// Keys from `provider`; none before the first fetch.
    pub fn fetched(provider: impl ProvideCredentials + 'static) -> CredentialCache {
        CredentialCache::new(Some(SharedCredentialsProvider::new(provider)), None)
    }

    fn new(
        provider: Option<SharedCredentialsProvider>,
        credentials: Option<Credentials>,
    ) -> CredentialCache {
        CredentialCache {
            provider,
            credentials: Mutex::new(credentials.map(Arc::new)),
            version: AtomicU64::new(1),
            due_s: AtomicI64::new(i64::MAX),
            busy: AtomicBool::new(false),
            fetching: tokio::sync::Mutex::new(()),
        }
    }

    /// True if credentials have to be fetched.
    pub fn is_fetched(&self) -> bool {
        self.provider.is_some()
    }

    /// Version of the credentials; changes when they do.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Current credentials; `None` for anonymous requests.
    pub fn credentials(&self) -> Option<Arc<Credentials>> {
        self.credentials.lock().clone()
    }

    /// True if a refresh is due at `now_s`, for one caller only, which must then call
    /// [`CredentialCache::refresh_ahead`].
    pub fn claims_refresh(&self, now_s: i64) -> bool {
        now_s >= self.due_s.load(Ordering::Relaxed) && !self.busy.swap(true, Ordering::AcqRel)
    }

    /// Refreshes credentials before they expire. A failure is ignored here: the credentials are still valid for a while,
    /// and the request that finally fails reports the reason.
    pub async fn refresh_ahead(&self, now_s: i64) {
        if self.refresh(self.version()).await.is_err() {
            self.due_s.store(now_s.saturating_add(PAUSE_S), Ordering::Relaxed);
        }
        self.busy.store(false, Ordering::Release);
    }

    /// Fetches credentials, unless they are newer than `version` already. Returns whether credentials can change at all.
    /// Only one fetch at a time, over all cores.
    ///
    /// # Errors
    /// A message: why there are no credentials.
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
        let credentials = Credentials {
            access_key: got.access_key_id().to_owned(),
            secret_key: got.secret_access_key().to_owned(),
            session_token: got.session_token().map(str::to_owned),
        };
        *self.credentials.lock() = Some(Arc::new(credentials));
        // Keys with a short lifetime would always be due: these are refreshed after half of their remaining
        // lifetime.
        let now_s = crate::time::now_s();
        let half_s = now_s.saturating_add((due_s.saturating_add(AHEAD_S) - now_s).max(2) / 2);
        self.due_s
            .store(if due_s == i64::MAX { due_s } else { due_s.max(half_s) }, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }
}

fn describe(why: &str) -> String {
    let why = why.trim_end_matches('.');
    // That no place has any is what the message says anyway, in words of its own.
    let why = match why.contains("no providers in chain") {
        true => String::new(),
        false => format!(" ({why})"),
    };
    format!(
        "no credentials{why}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a \
         --profile, or read public data with --no-sign-request"
    )
}

/// Determines the source of credentials without fetching them. Keys in the environment need no SDK. Blocking.
///
/// # Errors
/// A message: only half of a key pair is set.
pub(crate) fn open(
    resolved: &ResolvedSettings,
    lookup: Lookup<'_>,
    connector: AwsHttpClient,
) -> Result<CredentialCache, String> {
    if resolved.given.no_sign_request {
        return Ok(CredentialCache::fixed(None));
    }
    if resolved.given.credentials.is_some() {
        return Ok(CredentialCache::fixed(resolved.given.credentials.clone()));
    }
    if resolved.profile.is_none() {
        match (lookup("AWS_ACCESS_KEY_ID"), lookup("AWS_SECRET_ACCESS_KEY")) {
            (Some(access_key), Some(secret_key)) => {
                let session_token = lookup("AWS_SESSION_TOKEN");
                let credentials = Credentials { access_key, secret_key, session_token };
                return Ok(CredentialCache::fixed(Some(credentials)));
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
        return Ok(CredentialCache::fetched(
            provider.profile_name(name).profile_files(files.clone()).build(),
        ));
    }
    let Some(profile) = &resolved.profile else {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|e| format!("cannot start a runtime: {e}"))?;
        let building = DefaultCredentialsChain::builder().configure(config).region(region).build();
        return Ok(CredentialCache::fetched(runtime.block_on(building)));
    };
    let mut provider =
        ProfileFileCredentialsProvider::builder().configure(&config).profile_name(profile);
    if let Some(file) = &resolved.given.credentials_file {
        let files = EnvConfigFiles::builder()
            .include_default_config_file(true)
            .with_file(EnvConfigFileKind::Credentials, file);
        provider = provider.profile_files(files.build());
    }
    Ok(CredentialCache::fetched(provider.build()))
}

/// Longest response with credentials, bytes.
const BODY_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Time limit of an exchange if the caller sets none.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a connection per request, because there are few. Cloning shares it.
#[derive(Clone)]
pub(crate) struct AwsHttpClient {
    shared: Arc<Shared>,
    connect_timeout: Duration,
    timeout: Duration,
}

struct Shared {
    dns: DnsCache,
    /// Certificates are read on first use.
    tls: OnceLock<Result<TlsConnector, String>>,
    ca_bundle: Option<PathBuf>,
    verify: bool,
    proxies: Proxies,
}

impl AwsHttpClient {
    /// Uses the same trust settings as the session.
    pub fn new(ca_bundle: Option<PathBuf>, verify: bool, proxies: Proxies) -> AwsHttpClient {
        let (dns, tls) = (DnsCache::default(), OnceLock::new());
        let shared = Arc::new(Shared { dns, tls, ca_bundle, verify, proxies });
        AwsHttpClient { shared, connect_timeout: Duration::from_secs(5), timeout: TIMEOUT }
    }

    /// TLS configuration, created on first use.
    pub fn tls(&self) -> Result<&TlsConnector, String> {
        let shared = &self.shared;
        let make = || {
            crate::client::tls::config(shared.ca_bundle.as_deref(), shared.verify)
                .map(TlsConnector::from)
        };
        shared.tls.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let user = |e: String| ConnectorError::user(e.into());
        let request = request.try_into_http1x().map_err(|e| user(e.to_string()))?;
        let (mut head, body) = request.into_parts();
        let origin = match (head.uri.scheme_str(), head.uri.authority()) {
            (Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
            _ => return Err(user(format!("{} is not an absolute URL", head.uri))),
        };
        let route = Endpoint::parse(&origin).map_err(user)?.route(None, "", Addressing::Path);
        let route = route.via_proxy(&self.shared.proxies);
        let body = body.collect().await.map_err(|e| user(e.to_string()))?.to_bytes();
        if !head.headers.contains_key(http::header::HOST) {
            let host = route.authority.parse().map_err(|_| user(format!("host {origin}")))?;
            head.headers.insert(http::header::HOST, host);
        }
        match route.forwards() {
            Some(proxy) => {
                let authorization = proxy.authorization.clone();
                head.headers
                    .extend(authorization.map(|it| (http::header::PROXY_AUTHORIZATION, it)));
            }
            None => {
                if let Some(path) = head.uri.path_and_query().cloned() {
                    head.uri = path.into();
                }
            }
        }
        let request = http::Request::from_parts(head, Full::new(body));
        match tokio::time::timeout(self.timeout, self.send(&route, request)).await {
            Ok(response) => response,
            Err(_) => {
                let what = format!("{} did not respond in {:?}", route.url(), self.timeout);
                Err(ConnectorError::timeout(what.into()))
            }
        }
    }

    async fn send(
        &self,
        route: &Route,
        request: http::Request<Full<Bytes>>,
    ) -> Result<HttpResponse, ConnectorError> {
        let io = |e: hyper::Error| ConnectorError::io(e.into());
        let tls = route.tls.then(|| self.tls()).transpose();
        let tls = tls.map_err(|e| ConnectorError::user(e.into()))?;
        let dialled =
            connection::dial(&self.shared.dns, route, tls, self.connect_timeout, None).await;
        let stream = dialled.map_err(|(kind, what)| match kind {
            ErrorKind::Settings => ConnectorError::user(what.into()),
            ErrorKind::TimedOut => ConnectorError::timeout(what.into()),
            _ => ConnectorError::io(what.into()),
        })?;
        let (mut sender, connection) =
            http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(io)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(io)?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, BODY_MAX_BYTES).collect().await;
            let body = body.map_err(ConnectorError::io)?.to_bytes();
            Ok::<_, ConnectorError>(http::Response::from_parts(head, SdkBody::from(body)))
        };
        // The connection alone can only end by failing, which the request reports as well.
        let mut exchange = std::pin::pin!(exchange);
        let mut connection = std::pin::pin!(connection);
        let mut over = false;
        let response = std::future::poll_fn(|cx| {
            over = over || connection.as_mut().poll(cx).is_ready();
            exchange.as_mut().poll(cx)
        });
        let response = response.await?;
        HttpResponse::try_from(response).map_err(|e| ConnectorError::other(e.into(), None))
    }
}

impl fmt::Debug for AwsHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsHttpClient")
    }
}

impl HttpConnector for AwsHttpClient {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        HttpConnectorFuture::new(async move { connector.exchange(request).await })
    }
}

impl HttpClient for AwsHttpClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let mut connector = self.clone();
        connector.connect_timeout = settings.connect_timeout().unwrap_or(self.connect_timeout);
        connector.timeout = settings.read_timeout().unwrap_or(self.timeout);
        SharedHttpConnector::new(connector)
    }
}

/// The service is one hop away and responds immediately, if it exists.
const METADATA_CONNECT: Duration = Duration::from_millis(250);
const METADATA_READ: Duration = Duration::from_secs(1);
/// Longest name of an instance type.
const NAME_MAX: usize = 64;

/// Instance type, `m5.large`; `None` if it cannot be determined within about a second.
/// `AWS_EC2_METADATA_SERVICE_ENDPOINT` overrides the service's address.
pub fn instance_type() -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let config = ProviderConfig::without_region().with_http_client(AwsHttpClient::new(
        None,
        true,
        Proxies::default(),
    ));
    let client = ImdsClient::builder()
        .configure(&config)
        .max_attempts(1)
        .connect_timeout(METADATA_CONNECT)
        .read_timeout(METADATA_READ)
        .build();
    let said = runtime.block_on(client.get("/latest/meta-data/instance-type")).ok()?;
    let name = said.as_ref().trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let is_type = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_name);
    is_type.then(|| name.to_owned())
}

#[cfg(test)]
mod tests;

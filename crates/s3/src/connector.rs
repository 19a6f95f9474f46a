//! HTTP client for `aws-config`: its requests for credentials (STS, SSO, metadata services of instances and
//! containers) use the same streams and TLS as everything else.

use super::address::Addresses;
use super::endpoint::{Addressing, Endpoint, Place};
use super::error::Kind;
use super::proxy::Proxies;
use super::stream;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// Longest response with credentials, bytes.
const BODY_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Time limit of an exchange if the caller sets none.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a connection per request, because there are few. Cloning shares it.
#[derive(Clone)]
pub(super) struct Connector {
    shared: Arc<Shared>,
    connect_timeout: Duration,
    timeout: Duration,
}

struct Shared {
    addresses: Addresses,
    /// Certificates are read on first use.
    tls: OnceLock<Result<TlsConnector, String>>,
    ca_bundle: Option<PathBuf>,
    verify: bool,
    proxies: Proxies,
}

impl Connector {
    /// Uses the same trust settings as the store.
    pub fn new(ca_bundle: Option<PathBuf>, verify: bool, proxies: Proxies) -> Connector {
        let (addresses, tls) = (Addresses::default(), OnceLock::new());
        let shared = Arc::new(Shared { addresses, tls, ca_bundle, verify, proxies });
        Connector { shared, connect_timeout: Duration::from_secs(5), timeout: TIMEOUT }
    }

    /// TLS configuration, created on first use.
    ///
    /// # Errors
    /// As [`super::tls::config`].
    pub fn tls(&self) -> Result<&TlsConnector, String> {
        let shared = &self.shared;
        let make = || {
            super::tls::config(shared.ca_bundle.as_deref(), shared.verify).map(TlsConnector::from)
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
        let place = Endpoint::parse(&origin).map_err(user)?.place(None, "", Addressing::Path);
        let place = place.via_proxy(&self.shared.proxies);
        let body = body.collect().await.map_err(|e| user(e.to_string()))?.to_bytes();
        if !head.headers.contains_key(http::header::HOST) {
            let host = place.authority.parse().map_err(|_| user(format!("host {origin}")))?;
            head.headers.insert(http::header::HOST, host);
        }
        match place.forwards() {
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
        match tokio::time::timeout(self.timeout, self.send(&place, request)).await {
            Ok(answered) => answered,
            Err(_) => {
                let what = format!("{} did not answer in {:?}", place.url(), self.timeout);
                Err(ConnectorError::timeout(what.into()))
            }
        }
    }

    async fn send(
        &self,
        place: &Place,
        request: http::Request<Full<Bytes>>,
    ) -> Result<HttpResponse, ConnectorError> {
        let io = |e: hyper::Error| ConnectorError::io(e.into());
        let tls = place.tls.then(|| self.tls()).transpose();
        let tls = tls.map_err(|e| ConnectorError::user(e.into()))?;
        let dialled =
            stream::dial(&self.shared.addresses, place, tls, self.connect_timeout, None).await;
        let stream = dialled.map_err(|(kind, what)| match kind {
            Kind::Settings => ConnectorError::user(what.into()),
            Kind::TimedOut => ConnectorError::timeout(what.into()),
            _ => ConnectorError::io(what.into()),
        })?;
        let (mut sender, connection) =
            http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(io)?;
        let answering = async {
            let answer = sender.send_request(request).await.map_err(io)?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, BODY_MAX_BYTES).collect().await;
            let body = body.map_err(ConnectorError::io)?.to_bytes();
            Ok::<_, ConnectorError>(http::Response::from_parts(head, SdkBody::from(body)))
        };
        // The connection alone can only end by failing, which the request reports as well.
        let mut answering = std::pin::pin!(answering);
        let mut connection = std::pin::pin!(connection);
        let mut over = false;
        let answer = std::future::poll_fn(|cx| {
            over = over || connection.as_mut().poll(cx).is_ready();
            answering.as_mut().poll(cx)
        });
        let answer = answer.await?;
        HttpResponse::try_from(answer).map_err(|e| ConnectorError::other(e.into(), None))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        HttpConnectorFuture::new(async move { connector.exchange(request).await })
    }
}

impl HttpClient for Connector {
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

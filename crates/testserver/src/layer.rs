//! Layer in front of a server: hyper's HTTP/1.1 with conditions and faults. It works on requests and
//! responses in transit, independent of the server behind it.

use super::body::Passing;
use super::conditions::{Chance, Conditions, Gate, Pipe};
use super::counts::Counts;
use super::fault::{self, Effect, Fault, Side, pick};
use super::log::{Entry, Log};
use super::operation::Operation;
use super::wire::{Fuse, Wire};
use super::{folder, listing, null, xml};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::Body;
use s3s::service::S3Service;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Failure = Box<dyn Error + Send + Sync>;
/// A pending response.
type Answering = Pin<Box<dyn Future<Output = io::Result<Response<Passing<Body, Note>>>> + Send>>;

/// Server behind the layer.
#[derive(Clone)]
pub enum Backend {
    /// S3 on a folder.
    Folder(S3Service),
    /// The null server's store.
    Null(Arc<null::Store>),
}

/// The layer, shared by all connections.
pub struct Layer {
    backend: Backend,
    latency: Duration,
    chance: Chance,
    gate: Option<Gate>,
    slots: Option<Arc<Semaphore>>,
    pipe: Option<Arc<Pipe>>,
    faults: Vec<Fault>,
    log: Option<Log>,
    counts: Arc<Counts>,
}

impl Layer {
    /// Creates a layer with conditions in front of a server.
    pub fn new(
        backend: Backend,
        conditions: Conditions,
        log: Option<Log>,
        counts: Arc<Counts>,
    ) -> Layer {
        let now = Instant::now();
        Layer {
            backend,
            latency: conditions.latency,
            chance: Chance::new(conditions.error_rate, conditions.seed),
            gate: conditions.requests_per_s_max.map(|rate| Gate::new(rate, now)),
            slots: conditions.in_flight_max.map(|count| Arc::new(Semaphore::new(count))),
            pipe: conditions.bandwidth.map(|rate| Arc::new(Pipe::new(rate, now))),
            faults: conditions.faults,
            log,
            counts,
        }
    }

    /// Serves a connection to its end. Failures concern only this connection.
    pub async fn serve(self: Arc<Layer>, stream: TcpStream) {
        let fuse = Fuse::default();
        let wire = Wire::new(stream, fuse.clone(), self.pipe.clone());
        let service = service_fn(move |request| {
            let (layer, fuse) = (Arc::clone(&self), fuse.clone());
            let answer = layer.call(request, fuse);
            Box::pin(async { answer.await.map_err(io::Error::other) }) as Answering
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(wire), service).await;
    }

    async fn call(
        self: Arc<Layer>,
        request: Request<Incoming>,
        fuse: Fuse,
    ) -> Result<Response<Passing<Body, Note>>, Failure> {
        let (parts, incoming) = request.into_parts();
        let copies = parts.headers.contains_key("x-amz-copy-source");
        let (method, path) = (parts.method.as_str(), parts.uri.path());
        let query = parts.uri.query().unwrap_or("");
        let operation = Operation::of(method, path, query, copies);
        let described = fault::Request { method, operation, path, query };
        let mut note = Note::new(Arc::clone(&self), &described);
        if let Some(slots) = &self.slots {
            note.slot = Some(Arc::clone(slots).acquire_owned().await?);
        }
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let mut fault = None;
        let verdict = if self.gate.as_ref().is_some_and(|gate| !gate.passes(Instant::now())) {
            Some((503, "SlowDown"))
        } else if self.chance.fails_next() {
            Some((500, "InternalError"))
        } else {
            fault = pick(&self.faults, &described);
            None
        };
        note.fault = fault.map(Effect::kind);
        let side = fault.and_then(|fault| fault.side(operation));
        let on = |wanted| fault.filter(|_| side == Some(wanted));
        let received = Arc::clone(&note.received);
        let body = Passing::new(incoming, on(Side::Request), fuse.clone(), received, ());
        let body = Body::http_body_unsync(body);
        let path = path.to_owned();
        let error = |status, code: &str, region: Option<&str>| {
            let message = "this error was asked for on the server's command line";
            xml::refusal(StatusCode::from_u16(status)?, code, message, &path, region)
        };
        let mut response = match (verdict, fault) {
            (Some((status, code)), _) => {
                drain(body).await?;
                error(status, code, None)?
            }
            (None, Some(Effect::Silent)) => {
                drain(body).await?;
                std::future::pending().await
            }
            (None, Some(Effect::Error { status, code, region, late: false })) => {
                drain(body).await?;
                error(*status, code, region.as_deref())?
            }
            _ => {
                let request = Request::from_parts(parts, body);
                self.backend.respond(request, operation).await?
            }
        };
        if fuse.is_blown() {
            return Err("the request was cut".into());
        }
        match fault {
            Some(Effect::Error { status, code, region, late: true }) => {
                drain(response.into_body()).await?;
                response = error(*status, code, region.as_deref())?;
            }
            Some(Effect::Checksum) => falsify_checksums(&mut response),
            Some(Effect::List { drop, add, swap }) => {
                let (mut parts, body) = response.into_parts();
                let page = body.collect().await?.to_bytes();
                let page = String::from_utf8_lossy(&page);
                let page = listing::changed(&page, *drop, add.as_deref(), *swap);
                parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(page.len()));
                response = Response::from_parts(parts, Body::from(page));
            }
            _ => {}
        }
        note.status = response.status().as_u16();
        let sent = Arc::clone(&note.sent);
        let cut = on(Side::Response);
        Ok(response.map(|body| Passing::new(body, cut, fuse, sent, note)))
    }
}

impl Backend {
    async fn respond(
        &self,
        request: Request<Body>,
        operation: Operation,
    ) -> Result<Response<Body>, Failure> {
        match self {
            Backend::Folder(service) => {
                let is_small = !operation.sends_payload();
                folder::payload::respond(service, request, is_small).await
            }
            Backend::Null(store) => null::layered::respond(store, request, operation).await,
        }
    }
}

/// Reads and discards a body: answering earlier would make the client's write fail.
async fn drain(mut body: Body) -> Result<(), Failure> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// Changes the checksums of a response to wrong but well-formed ones.
fn falsify_checksums(response: &mut Response<Body>) {
    for (name, value) in response.headers_mut() {
        let is_sum = name.as_str().strip_prefix("x-amz-checksum-");
        if is_sum.is_none_or(|rest| rest == "type" || rest == "algorithm") {
            continue;
        }
        let mut bytes = value.as_bytes().to_vec();
        if let Some(first) = bytes.first_mut() {
            *first = if *first == b'A' { b'B' } else { b'A' };
        }
        if let Ok(wrong) = HeaderValue::from_bytes(&bytes) {
            *value = wrong;
        }
    }
}

/// Log entry of a request, written when it ends in any way.
struct Note {
    layer: Arc<Layer>,
    method: String,
    operation: Operation,
    path: String,
    query: String,
    /// 0 until there is a response.
    status: u16,
    received: Arc<AtomicU64>,
    sent: Arc<AtomicU64>,
    start: Instant,
    fault: Option<&'static str>,
    slot: Option<OwnedSemaphorePermit>,
}

impl Note {
    fn new(layer: Arc<Layer>, described: &fault::Request<'_>) -> Note {
        Note {
            layer,
            method: described.method.to_owned(),
            operation: described.operation,
            path: described.path.to_owned(),
            query: described.query.to_owned(),
            status: 0,
            received: Arc::default(),
            sent: Arc::default(),
            start: Instant::now(),
            fault: None,
            slot: None,
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let received_bytes = self.received.load(Ordering::Relaxed);
        let sent_bytes = self.sent.load(Ordering::Relaxed);
        self.layer.counts.add(self.status, received_bytes, sent_bytes);
        let Some(log) = &self.layer.log else { return };
        log.add(&Entry {
            method: &self.method,
            operation: self.operation.name(),
            path: &self.path,
            query: &self.query,
            status: self.status,
            received_bytes,
            sent_bytes,
            took_s: self.start.elapsed().as_secs_f64(),
            fault: self.fault,
        });
    }
}

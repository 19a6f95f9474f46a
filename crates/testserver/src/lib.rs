//! S3 servers in this process: the null server for measuring clients, and a real one on a folder, both with conditions and
//! faults; and the scripted server of unit tests.

mod fault;
mod folder;
mod layer;
mod null;
mod protocol;
pub mod script;

pub use fault::Fault;
use hakobu_sys::paths::Links;
use hakobu_sys::stdio::Output;
pub use layer::Conditions;
use layer::{Backend, Layer};
use null::{NullServer, NullStore};
use parking_lot::Mutex;
use serde::Serialize;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// Kind of server.
#[derive(Clone, Debug)]
pub enum ServerKind {
    /// Stores nothing; every object exists.
    Null {
        /// Number of keys in listings.
        keys: u64,
        /// Default size of objects, bytes; a key may specify another.
        object_bytes: u64,
    },
    /// Serves a folder, whose subfolders are buckets.
    Folder {
        /// Its path.
        dir: PathBuf,
        /// Access key of clients.
        access_key: String,
        /// Secret key of clients.
        secret_key: String,
    },
}

/// Configuration of a server.
#[derive(Debug)]
pub struct ServerConfig {
    /// Kind of server.
    pub kind: ServerKind,
    /// Host and port to listen on; port 0 selects a free one.
    pub listen: String,
    /// Number of threads; 0 for one per CPU.
    pub threads: usize,
    /// Conditions of requests.
    pub conditions: Conditions,
    /// Log file, with a line of JSON per request.
    pub log: Option<PathBuf>,
}

/// A running server on its own threads. It stops when dropped.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    workers: ServerThreads,
    counts: Arc<ServerCounts>,
}

impl TestServer {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// # Errors
    /// The address, the folder or the log cannot be used, or threads cannot be started.
    pub fn start(config: ServerConfig) -> io::Result<TestServer> {
        let log = config.log.as_deref().map(RequestLog::open).transpose()?;
        let addresses: Vec<SocketAddr> = config.listen.to_socket_addrs()?.collect();
        let listener = TcpListener::bind(&addresses[..])?;
        let address = listener.local_addr()?;
        let threads = match config.threads {
            0 => hakobu_sys::process::cpus(),
            threads => threads,
        };
        let conditions = config.conditions;
        let counts = Arc::<ServerCounts>::default();
        let layered = |backend, conditions, log| {
            let counts = Arc::clone(&counts);
            Frontend::Layered(Arc::new(Layer::new(backend, conditions, log, counts)))
        };
        let front = match config.kind {
            ServerKind::Null { keys, object_bytes } => {
                let store = NullStore::new(keys, object_bytes);
                if conditions.is_plain() {
                    let (latency, counts) = (conditions.latency, Arc::clone(&counts));
                    Frontend::Null(Arc::new(NullServer { store, latency, log, counts }))
                } else {
                    layered(Backend::Null(Arc::new(store)), conditions, log)
                }
            }
            ServerKind::Folder { dir, access_key, secret_key } => {
                let service = folder::service(&dir, access_key, secret_key)?;
                layered(Backend::Folder(service), conditions, log)
            }
        };
        let workers = ServerThreads::start(listener, threads, front)?;
        Ok(TestServer { address, workers, counts })
    }

    /// URL without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Totals so far.
    pub fn totals(&self) -> ServerTotals {
        self.counts.read()
    }

    /// Stops the server, closing connections. Returns when all its threads have ended.
    pub fn stop(self) {
        drop(self.workers);
    }
}

/// Server of the connections.
#[derive(Clone)]
enum Frontend {
    Null(Arc<NullServer>),
    Layered(Arc<Layer>),
}

impl Frontend {
    /// True for a measuring instrument, whose threads leave the CPU to a local client until it waits.
    /// Otherwise each request preempts the client that sent it.
    pub fn is_instrument(&self) -> bool {
        matches!(self, Frontend::Null(_))
    }

    /// Serves a connection to its end. Failures concern only this client.
    pub async fn serve(self, stream: tokio::net::TcpStream) {
        // Answers are written whole, so delaying them has no benefit.
        let _ = stream.set_nodelay(true);
        match self {
            Frontend::Null(null) => {
                let _ = null::serve(stream, null).await;
            }
            Frontend::Layered(layer) => layer.serve(stream).await,
        }
    }
}

/// Threads of a server, ended when dropped.
#[derive(Debug)]
struct ServerThreads {
    stop: watch::Sender<bool>,
    as_batch: bool,
    threads: Vec<JoinHandle<()>>,
}

impl ServerThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread or runtime cannot be created, or the socket cannot be used.
    pub fn start(
        listener: TcpListener,
        count: usize,
        front: Frontend,
    ) -> io::Result<ServerThreads> {
        listener.set_nonblocking(true)?;
        let (stop, stopped) = watch::channel(false);
        let as_batch = front.is_instrument();
        let mut workers = ServerThreads { stop, as_batch, threads: Vec::new() };
        let mut others = Vec::new();
        for number in 1..count.max(1) {
            let (sender, connections) = unbounded_channel();
            others.push(sender);
            let (front, stopped) = (front.clone(), stopped.clone());
            workers
                .spawn(number, move |runtime| serve_passed(runtime, connections, front, stopped))?;
        }
        workers.spawn(0, move |runtime| accept(runtime, listener, others, front, stopped))?;
        Ok(workers)
    }

    fn spawn(
        &mut self,
        number: usize,
        work: impl FnOnce(&Runtime) + Send + 'static,
    ) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name(format!("serve-{number}"));
        let as_batch = self.as_batch;
        self.threads.push(thread.spawn(move || {
            if as_batch {
                // Without permission, measurements have more context switches.
                let _ = hakobu_sys::process::set_batch();
            }
            work(&runtime);
            // A file system call may hang; connections are closed by now.
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?);
        Ok(())
    }
}

impl Drop for ServerThreads {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// First thread: accepts connections, and serves its share.
fn accept(
    runtime: &Runtime,
    listener: TcpListener,
    others: Vec<UnboundedSender<TcpStream>>,
    front: Frontend,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async move {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let mut turn = 0;
        loop {
            let stream = tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                    Err(_) => {
                        // Probably out of descriptors, which may become available.
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            turn = (turn + 1) % (others.len() + 1);
            match turn.checked_sub(1).and_then(|other| others.get(other)) {
                Some(other) => drop(stream.into_std().map(|stream| other.send(stream))),
                None => drop(tokio::spawn(front.clone().serve(stream))),
            }
        }
    });
}

/// Other threads: serve the connections passed to them.
fn serve_passed(
    runtime: &Runtime,
    mut connections: UnboundedReceiver<TcpStream>,
    front: Frontend,
    mut stopped: watch::Receiver<bool>,
) {
    runtime.block_on(async move {
        loop {
            tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => return,
                stream = connections.recv() => match stream {
                    Some(stream) => {
                        if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                            drop(tokio::spawn(front.clone().serve(stream)));
                        }
                    }
                    None => return,
                },
            }
        }
    });
}

/// Counters shared by all connections.
#[derive(Debug, Default)]
struct ServerCounts {
    requests: AtomicU64,
    failed: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// Totals of a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTotals {
    /// Completed requests.
    pub requests: u64,
    /// Requests among them with a status of 400 or above, or without an answer.
    pub failed: u64,
    /// Bytes of request bodies.
    pub received_bytes: u64,
    /// Bytes of response bodies.
    pub sent_bytes: u64,
}

impl ServerCounts {
    /// Adds a request; its status is 0 without an answer.
    pub fn add(&self, status: u16, received_bytes: u64, sent_bytes: u64) {
        self.requests.fetch_add(1, Relaxed);
        if !(100..400).contains(&status) {
            self.failed.fetch_add(1, Relaxed);
        }
        if received_bytes > 0 {
            self.received_bytes.fetch_add(received_bytes, Relaxed);
        }
        if sent_bytes > 0 {
            self.sent_bytes.fetch_add(sent_bytes, Relaxed);
        }
    }

    /// Current totals.
    pub fn read(&self) -> ServerTotals {
        ServerTotals {
            requests: self.requests.load(Relaxed),
            failed: self.failed.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
        }
    }
}

/// A request with its response.
#[derive(Debug, Serialize)]
struct LogEntry<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// The S3 operation.
    pub operation: &'static str,
    /// Path as sent.
    pub path: &'a str,
    /// Query as sent.
    pub query: &'a str,
    /// Status of the response; 0 if none was sent.
    pub status: u16,
    /// Bytes of the request body that were read.
    pub received_bytes: u64,
    /// Bytes of the response body.
    pub sent_bytes: u64,
    /// Seconds from the request's head to the end of its response.
    pub took_s: f64,
    /// Injected fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
}

#[derive(Serialize)]
struct LogLine<'a> {
    time_s: f64,
    #[serde(flatten)]
    entry: &'a LogEntry<'a>,
}

/// A request log.
#[derive(Debug)]
struct RequestLog {
    file: Mutex<Output<fn() -> bool>>,
}

impl RequestLog {
    /// Opens the log for appending, and creates it if missing.
    ///
    /// # Errors
    /// The file cannot be opened for writing; ENXIO for a FIFO without reader.
    pub fn open(path: &Path) -> io::Result<RequestLog> {
        let file = File::from(Links::Trusted.open_write(path, true)?);
        Ok(RequestLog { file: Mutex::new(Output::new(file, || false)) })
    }

    /// Appends a line immediately. Write errors do not stop the server.
    pub fn add(&self, entry: &LogEntry<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = LogLine { time_s: now.as_secs_f64(), entry };
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        let mut file = self.file.lock();
        let _ = file.write_all(&text);
    }
}

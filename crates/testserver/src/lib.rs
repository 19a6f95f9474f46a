//! S3 servers in this process: the null server for measuring clients, and a real one on a folder.

mod body;
mod conditions;
mod counts;
mod fault;
mod folder;
mod layer;
mod listing;
mod log;
mod null;
mod operation;
pub mod script;
mod wire;
mod workers;
mod xml;

pub use conditions::Conditions;
use counts::Counts;
pub use counts::Totals;
pub use fault::Fault;
use layer::{Backend, Layer};
use log::Log;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use workers::{Front, Workers};

/// Kind of server.
#[derive(Clone, Debug)]
pub enum Kind {
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
pub struct Config {
    /// Kind of server.
    pub kind: Kind,
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
pub struct Server {
    address: SocketAddr,
    workers: Workers,
    counts: Arc<Counts>,
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// # Errors
    /// The address, the folder or the log cannot be used, or threads cannot be started.
    pub fn start(config: Config) -> io::Result<Server> {
        let log = config.log.as_deref().map(Log::open).transpose()?;
        let addresses: Vec<SocketAddr> = config.listen.to_socket_addrs()?.collect();
        let listener = TcpListener::bind(&addresses[..])?;
        let address = listener.local_addr()?;
        let threads = match config.threads {
            0 => hakobu_sys::process::cpus(),
            threads => threads,
        };
        let conditions = config.conditions;
        let counts = Arc::<Counts>::default();
        let layered = |backend, conditions, log| {
            let counts = Arc::clone(&counts);
            Front::Layered(Arc::new(Layer::new(backend, conditions, log, counts)))
        };
        let front = match config.kind {
            Kind::Null { keys, object_bytes } => {
                let store = null::Store::new(keys, object_bytes);
                if conditions.is_plain() {
                    let (latency, counts) = (conditions.latency, Arc::clone(&counts));
                    Front::Null(Arc::new(null::Null { store, latency, log, counts }))
                } else {
                    layered(Backend::Null(Arc::new(store)), conditions, log)
                }
            }
            Kind::Folder { dir, access_key, secret_key } => {
                let service = folder::service(&dir, access_key, secret_key)?;
                layered(Backend::Folder(service), conditions, log)
            }
        };
        let workers = Workers::start(listener, threads, front)?;
        Ok(Server { address, workers, counts })
    }

    /// URL without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.counts.read()
    }

    /// Stops the server, closing connections. Returns when all its threads have ended.
    pub fn stop(self) {
        drop(self.workers);
    }
}

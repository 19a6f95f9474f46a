//! S3 servers in this process: the null server to measure clients with, and a real one on a folder.

mod body;
mod conditions;
mod fault;
mod folder;
mod layer;
mod listing;
mod log;
mod null;
mod operation;
mod wire;
mod workers;
mod xml;

pub use conditions::Conditions;
pub use fault::Fault;
use layer::{Backend, Layer};
use log::Log;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The request id of every answer that is made here.
const REQUEST_ID: &str = "HAKOBU0000000000";

/// What is served.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Nothing is kept, everything is there.
    Null {
        /// How many keys listings show.
        keys: u64,
        /// The size of objects whose key does not say another, in bytes.
        object_bytes: u64,
    },
    /// A folder: buckets are the folders in it.
    Folder {
        /// Where it is.
        dir: PathBuf,
        /// Who may sign requests.
        access_key: String,
        /// With what.
        secret_key: String,
    },
}

/// A server as it is asked for.
#[derive(Debug)]
pub struct Config {
    /// What is served.
    pub kind: Kind,
    /// Host and port to listen on; port 0 is a free one.
    pub listen: String,
    /// How many threads serve; 0 is one for each CPU.
    pub threads: usize,
    /// What requests meet.
    pub conditions: Conditions,
    /// A file that gets a line of JSON for each request.
    pub log: Option<PathBuf>,
}

/// A running server, on threads of its own. It stops when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    workers: workers::Workers,
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// # Errors
    /// The address cannot be listened on, the folder or the log not be used, or threads not be
    /// started.
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
        let layered = |backend, conditions, log| {
            Front::Layered(Arc::new(Layer::new(backend, conditions, log)))
        };
        let front = match config.kind {
            Kind::Null { keys, object_bytes } => {
                let store = null::Store::new(keys, object_bytes);
                if conditions.is_plain() {
                    let latency = conditions.latency;
                    Front::Null(Arc::new(null::Null { store, latency, log }))
                } else {
                    layered(Backend::Null(Arc::new(store)), conditions, log)
                }
            }
            Kind::Folder { dir, access_key, secret_key } => {
                let service = folder::service(&dir, access_key, secret_key)?;
                layered(Backend::Folder(service), conditions, log)
            }
        };
        let workers = workers::Workers::start(listener, threads, front)?;
        Ok(Server { address, workers })
    }

    /// Where it can be reached, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops it: connections are cut. Returns when all its threads have ended.
    pub fn stop(self) {
        self.workers.stop();
    }
}

/// What serves the connections.
#[derive(Clone)]
enum Front {
    Null(Arc<null::Null>),
    Layered(Arc<Layer>),
}

impl Front {
    /// Whether it is there to measure clients with: then its threads leave the CPU to a client of
    /// this machine until that waits. Else each request interrupts the client that has just sent it.
    fn is_instrument(&self) -> bool {
        matches!(self, Front::Null(_))
    }

    /// Serves a connection to its end. Failures are those of this client.
    async fn serve(self, stream: TcpStream) {
        // Answers are written whole: nothing is gained by waiting for more.
        let _ = stream.set_nodelay(true);
        match self {
            Front::Null(null) => {
                let _ = null::serve(stream, null).await;
            }
            Front::Layered(layer) => layer.serve(stream).await,
        }
    }
}

//! Worker threads with a runtime each. The first one accepts and distributes connections round-robin, because
//! separate listeners would distribute them randomly.

use super::layer::Layer;
use super::null;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// Server of the connections.
#[derive(Clone)]
pub enum Front {
    Null(Arc<null::Null>),
    Layered(Arc<Layer>),
}

impl Front {
    /// True for a measuring instrument, whose threads leave the CPU to a local client until it waits.
    /// Otherwise each request preempts the client that sent it.
    pub fn is_instrument(&self) -> bool {
        matches!(self, Front::Null(_))
    }

    /// Serves a connection to its end. Failures concern only this client.
    pub async fn serve(self, stream: tokio::net::TcpStream) {
        // Answers are written whole, so delaying them has no benefit.
        let _ = stream.set_nodelay(true);
        match self {
            Front::Null(null) => {
                let _ = null::serve(stream, null).await;
            }
            Front::Layered(layer) => layer.serve(stream).await,
        }
    }
}

/// Threads of a server, ended when dropped.
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    as_batch: bool,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread or runtime cannot be created, or the socket cannot be used.
    pub fn start(listener: TcpListener, count: usize, front: Front) -> io::Result<Workers> {
        listener.set_nonblocking(true)?;
        let (stop, stopped) = watch::channel(false);
        let as_batch = front.is_instrument();
        let mut workers = Workers { stop, as_batch, threads: Vec::new() };
        let mut others = Vec::new();
        for number in 1..count.max(1) {
            let (sender, connections) = unbounded_channel();
            others.push(sender);
            let (front, stopped) = (front.clone(), stopped.clone());
            workers.spawn(number, move |runtime| take(runtime, connections, front, stopped))?;
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
                let _ = hakobu_sys::priority::set_batch();
            }
            work(&runtime);
            // A file system call may hang; connections are closed by now.
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?);
        Ok(())
    }
}

impl Drop for Workers {
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
    front: Front,
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
fn take(
    runtime: &Runtime,
    mut connections: UnboundedReceiver<TcpStream>,
    front: Front,
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

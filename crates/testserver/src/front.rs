//! Dispatches connections to a server.

use super::layer::Layer;
use super::null;
use std::sync::Arc;
use tokio::net::TcpStream;

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
    pub async fn serve(self, stream: TcpStream) {
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

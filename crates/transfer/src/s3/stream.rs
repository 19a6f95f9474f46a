//! A stream to a server: address, TCP, TLS, and a sentence where that fails.

use super::address::Addresses;
use super::endpoint::Place;
use super::flow::Flow;
use hakobu_sys::socket::{TcpInfo, tcp_info};
use rustls_pki_types::ServerName;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Addresses tried before one try of a request counts as failed.
const ADDRESSES_MAX: usize = 3;

/// A handshake that takes longer is not waited for: the next one begins soon.
const HANDSHAKE_MAX: Duration = Duration::from_millis(900);

/// Bytes over TCP, with TLS or without.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum DialError {
    /// Trying again may help: a sentence.
    Failed(String),
    /// The time for it was over.
    TimedOut(String),
    /// The certificate is not trusted: a sentence.
    Certificate(String),
}

/// Opens a connection to a place, at another one of its addresses each time. The kernel receives
/// little ahead of a flow.
///
/// # Errors
/// As [`DialError`] says; sentences name the endpoint.
pub(super) async fn dial(
    addresses: &Addresses,
    place: &Place,
    tls: Option<&TlsConnector>,
    timeout: Duration,
    flow: Option<&Flow>,
) -> Result<Stream, DialError> {
    let cannot = |why: &str| format!("cannot connect to {}: {why}", place.url());
    let mut last = String::new();
    for _ in 0..ADDRESSES_MAX {
        let address = addresses
            .next(&place.host, place.port)
            .await
            .map_err(|why| DialError::Failed(cannot(&why)))?;
        match tokio::time::timeout(timeout, open(addresses, address, place, tls, flow)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => {
                if let Some(tls) = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>())
                    && let rustls::Error::InvalidCertificate(why) = tls
                {
                    return Err(DialError::Certificate(cannot(&format!(
                        "its certificate is not trusted ({why:?}); --ca-bundle names one to \
                         trust, --no-verify-ssl trusts all"
                    ))));
                }
                last = describe(&e, address);
            }
            Err(_) if addresses.drop_bad(&place.host, place.port, address) == 0 => {
                let why = format!("no answer from {address} within {} s", timeout.as_secs_f64());
                return Err(DialError::TimedOut(cannot(&why)));
            }
            Err(_) => continue,
        }
        if addresses.drop_bad(&place.host, place.port, address) == 0 {
            break;
        }
    }
    Err(DialError::Failed(cannot(&last)))
}

/// How long a TCP handshake with a place takes, in microseconds: a connection is opened and closed
/// at once. The kernel measures it between SYN and SYN-ACK, so that it does not matter how busy
/// this thread is. `None` where there is none in time, or the kernel does not tell.
pub(super) async fn handshake_us(addresses: &Addresses, place: &Place) -> Option<u64> {
    let address = addresses.next(&place.host, place.port).await.ok()?;
    let opened = tokio::time::timeout(HANDSHAKE_MAX, TcpStream::connect(address)).await;
    let rtt_us = tcp_info(opened.ok()?.ok()?).ok()?.rtt_us;
    (rtt_us > 0).then_some(u64::from(rtt_us))
}

fn describe(e: &io::Error, address: SocketAddr) -> String {
    match e.kind() {
        io::ErrorKind::ConnectionRefused => format!("nobody listens at {address}"),
        io::ErrorKind::UnexpectedEof => "it closes the connection; is it HTTPS at all?".to_owned(),
        _ => format!("{address}: {e}"),
    }
}

async fn open(
    addresses: &Addresses,
    address: SocketAddr,
    place: &Place,
    tls: Option<&TlsConnector>,
    flow: Option<&Flow>,
) -> io::Result<Stream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    if let Some(flow) = flow {
        // Before it connects: a window that was offered cannot be taken back (tcp(7)).
        socket.set_recv_buffer_size(flow.ahead(addresses.rtt()))?;
    }
    let begun = Instant::now();
    let tcp = socket.connect(address).await?;
    addresses.took(begun.elapsed());
    tcp.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Stream::Plain(tcp)) };
    let name = ServerName::try_from(place.host.clone()).map_err(io::Error::other)?;
    Ok(Stream::Tls(Box::new(tls.connect(name, tcp).await?)))
}

impl Stream {
    /// What the kernel knows of the connection.
    ///
    /// # Errors
    /// The system's.
    pub fn info(&self) -> io::Result<TcpInfo> {
        match self {
            Stream::Plain(tcp) => tcp_info(tcp),
            Stream::Tls(tls) => tcp_info(tls.get_ref().0),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(tcp) => tcp.is_write_vectored(),
            Stream::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

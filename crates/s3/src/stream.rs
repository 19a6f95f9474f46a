//! Opens streams to a server: address, TCP, TLS, with messages for failures.

use super::address::Addresses;
use super::endpoint::Place;
use super::error::Kind;
use hakobu_core::error::without_number;
use hakobu_sys::socket::{TcpInfo, tcp_info};
use rustls::CertificateError;
use rustls_pki_types::ServerName;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Addresses tried before an attempt fails.
const ADDRESSES_MAX: usize = 3;

/// Longest time to wait for a handshake; the next one starts soon.
const HANDSHAKE_MAX: Duration = Duration::from_millis(900);

/// Bytes received by one call for TLS, two records: rustls asks for 4 KiB at a time.
const TLS_READ_BYTES: usize = 32 << 10;

/// A TCP stream, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<BufReader<TcpStream>>>),
}

/// Opens a connection to a place, rotating through its addresses. The kernel's receive buffer is limited to
/// `ahead_bytes`.
///
/// # Errors
/// `Connection`, `TimedOut`, or `Settings` for an untrusted certificate, with a message that names the endpoint.
pub(super) async fn dial(
    addresses: &Addresses,
    place: &Place,
    tls: Option<&TlsConnector>,
    timeout: Duration,
    ahead_bytes: Option<u32>,
) -> Result<Stream, (Kind, String)> {
    let (host, port) = first_hop(place);
    let through = place.proxy.as_ref().map_or(String::new(), |proxy| {
        format!(" by way of the proxy {}:{}", proxy.host, proxy.port)
    });
    let cannot = |why: &str| format!("cannot connect to {}{through}: {why}", place.url());
    let mut last = String::new();
    for _ in 0..ADDRESSES_MAX {
        let address =
            addresses.next(host, port).await.map_err(|why| (Kind::Connection, cannot(&why)))?;
        match tokio::time::timeout(timeout, open(addresses, address, place, tls, ahead_bytes)).await
        {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => {
                if let Some(tls) = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>())
                    && let rustls::Error::InvalidCertificate(why) = tls
                {
                    let why = format!(
                        "its certificate is not trusted ({}); --ca-bundle names one to \
                         trust, --no-verify-ssl trusts all",
                        refusal(why)
                    );
                    return Err((Kind::Settings, cannot(&why)));
                }
                last = describe(&e, address);
            }
            Err(_) if addresses.drop_bad(host, port, address) == 0 => {
                let why = format!("no answer from {address} within {} s", timeout.as_secs_f64());
                return Err((Kind::TimedOut, cannot(&why)));
            }
            Err(_) => continue,
        }
        if addresses.drop_bad(host, port, address) == 0 {
            break;
        }
    }
    Err((Kind::Connection, cannot(&last)))
}

/// Duration of a TCP handshake with a place, microseconds: opens and closes a connection. The kernel measures
/// it between SYN and SYN-ACK, so the load of this thread has no influence. `None` on a timeout or if the
/// kernel does not report it.
pub(super) async fn handshake_us(addresses: &Addresses, place: &Place) -> Option<u64> {
    let (host, port) = first_hop(place);
    let address = addresses.next(host, port).await.ok()?;
    let opened = tokio::time::timeout(HANDSHAKE_MAX, TcpStream::connect(address)).await;
    let rtt_us = tcp_info(opened.ok()?.ok()?).ok()?.rtt_us;
    (rtt_us > 0).then_some(u64::from(rtt_us))
}

/// Address to connect to: the proxy, if there is one.
fn first_hop(place: &Place) -> (&str, u16) {
    let proxy = place.proxy.as_ref().map(|proxy| (proxy.host.as_str(), proxy.port));
    proxy.unwrap_or((&place.host, place.port))
}

/// Reason for rejecting a certificate.
fn refusal(why: &CertificateError) -> &'static str {
    use CertificateError as E;
    match why {
        E::Expired | E::ExpiredContext { .. } => "it has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet",
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another host name",
        E::UnknownIssuer => "its issuer is unknown",
        E::Revoked => "it was revoked",
        E::BadSignature => "its signature is wrong",
        E::BadEncoding => "it cannot be read",
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => "it is not for servers",
        // What a server has that is its own authority.
        E::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "it is signed by itself"
        }
        _ => "it is not acceptable",
    }
}

fn describe(e: &io::Error, address: SocketAddr) -> String {
    if let Some(tls) = e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
        return match tls {
            rustls::Error::InvalidMessage(_) => {
                "it does not answer by TLS: give http:// in place of https://".to_owned()
            }
            rustls::Error::AlertReceived(_) => "it refuses the TLS connection".to_owned(),
            _ => "the TLS connection failed".to_owned(),
        };
    }
    match e.kind() {
        io::ErrorKind::ConnectionRefused => format!("no server is listening at {address}"),
        io::ErrorKind::UnexpectedEof => "it closes the connection; is it HTTPS at all?".to_owned(),
        _ => format!("{address}: {}", without_number(&e.to_string())),
    }
}

async fn open(
    addresses: &Addresses,
    address: SocketAddr,
    place: &Place,
    tls: Option<&TlsConnector>,
    ahead_bytes: Option<u32>,
) -> io::Result<Stream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    if let Some(bytes) = ahead_bytes {
        // Before connecting: an advertised window cannot be reduced later (tcp(7)).
        socket.set_recv_buffer_size(bytes)?;
    }
    let begun = Instant::now();
    let mut tcp = socket.connect(address).await?;
    addresses.took(begun.elapsed());
    tcp.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Stream::Plain(tcp)) };
    if let Some(proxy) = &place.proxy {
        proxy.open_tunnel(&mut tcp, (&place.host, place.port)).await?;
    }
    let name = ServerName::try_from(place.host.clone()).map_err(io::Error::other)?;
    let tcp = BufReader::with_capacity(TLS_READ_BYTES, tcp);
    Ok(Stream::Tls(Box::new(tls.connect(name, tcp).await?)))
}

impl Stream {
    /// Kernel state of the connection.
    ///
    /// # Errors
    /// Those of the system.
    pub fn info(&self) -> io::Result<TcpInfo> {
        match self {
            Stream::Plain(tcp) => tcp_info(tcp),
            Stream::Tls(tls) => tcp_info(tls.get_ref().0.get_ref()),
        }
    }
}

/// Calls a method of the stream that there is.
macro_rules! on_either {
    ($stream:expr, $io:ident => $call:expr) => {
        match $stream {
            Stream::Plain($io) => $call,
            Stream::Tls($io) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        on_either!(self, io => io.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self.get_mut(), io => Pin::new(io).poll_shutdown(cx))
    }
}

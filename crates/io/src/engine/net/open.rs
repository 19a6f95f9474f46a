//! Makes the sockets of an end, and waits for the other one.

use super::datagrams::Datagrams;
use super::shared::{errno_of, set_up};
use super::stream::Stream;
use crate::engine::patience::{Failure, Patience, SILENCE, SLICE};
use crate::job::{Net as Options, Protocol};
use hakobu_sys::meta::identity;
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A sender tries for so long to reach a receiver that is not there yet, and so long each time.
const CONNECT: Duration = Duration::from_secs(10);
const TRY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);
/// Any machine (VMADDR_CID_ANY).
const ANY_MACHINE: u32 = u32::MAX;
/// Time to live of multicast without `ttl`.
const TTL: u32 = 1;

/// An end that is alone.
pub(super) enum Opened {
    /// A receiver that is listening, and the name of its socket.
    Listening { socket: Socket, _name: Option<Name> },
    /// A sender that knows where to, and at whose port.
    Calling(SockAddr),
    /// Either one.
    Datagrams(Datagrams),
}

/// A way to the other end.
pub(super) enum Way {
    Stream(Stream),
    Datagrams(Datagrams),
}

/// Name of a socket in the file system, which goes with the listening.
pub(super) struct Name {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for Name {
    fn drop(&mut self) {
        let is_ours = identity(&self.path).is_ok_and(|found| found == self.identity);
        if is_ours {
            // It may be gone already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// An end: a receiver listens from now on.
pub(super) fn open(
    options: &Options,
    clone: u32,
    sends: bool,
) -> std::result::Result<Opened, Failure> {
    let doing = if sends { "sending to" } else { "listening at" };
    let of_socket = |error: Error| {
        let place = Options { port: Some(options.port_of(clone)), ..options.clone() };
        Failure::of(&error, format!("ioengine=net: {doing} {place}: {error}"))
    };
    if options.protocol.has_datagrams() {
        let socket = datagrams(options, clone, sends).map_err(of_socket)?;
        return Ok(Opened::Datagrams(socket));
    }
    let address = address(options, clone, sends).map_err(of_socket)?;
    if sends {
        return Ok(Opened::Calling(address));
    }
    let listen = || {
        let socket = stream(&address, options)?;
        if matches!(options.protocol, Protocol::Tcp | Protocol::Tcp6) {
            // Connections of an earlier run that are not quite over do not matter.
            socket.set_reuse_address(true)?;
        }
        socket.bind(&address)?;
        let name = match &options.path {
            Some(path) => Some(Name { path: path.clone(), identity: identity(path)? }),
            None => None,
        };
        socket.listen(1)?;
        Ok(Opened::Listening { socket, _name: name })
    };
    listen().map_err(of_socket)
}

/// A socket for a stream. Its options have to be set before it connects, as they affect the negotiation.
fn stream(address: &SockAddr, options: &Options) -> Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    set_up(&socket, options)?;
    if let Some(bytes) = options.segment_bytes {
        socket.set_tcp_mss(bytes)?;
    }
    Ok(socket)
}

/// Address to connect to, or to listen on.
fn address(options: &Options, clone: u32, sends: bool) -> Result<SockAddr> {
    let port = options.port_of(clone);
    match options.protocol {
        Protocol::Unix => {
            let path = options.path.as_ref().ok_or(ErrorKind::InvalidInput)?;
            SockAddr::unix(path)
        }
        Protocol::Vsock => {
            let machine = match options.host.as_deref() {
                None => ANY_MACHINE,
                Some(text) => {
                    text.parse().map_err(|_| Error::other("hostname is not a number (CID)"))?
                }
            };
            Ok(SockAddr::vsock(machine, port))
        }
        _ => internet(options, port, sends).map(Into::into),
    }
}

/// An address of the protocol's version of IP.
fn internet(options: &Options, port: u32, sends: bool) -> Result<SocketAddr> {
    let port = u16::try_from(port).map_err(|_| Error::other("there is no such port"))?;
    let six = matches!(options.protocol, Protocol::Tcp6 | Protocol::Udp6);
    let Some(host) = options.host.as_deref() else {
        let any =
            if six { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
        return match sends {
            true => Err(Error::other("hostname is missing")),
            false => Ok(SocketAddr::new(any, port)),
        };
    };
    let mut found = (host, port).to_socket_addrs()?;
    let found = found.find(|address| address.is_ipv6() == six);
    found.ok_or_else(|| Error::other("this host has no address of that version of IP"))
}

/// A socket for datagrams.
fn datagrams(options: &Options, clone: u32, sends: bool) -> Result<Datagrams> {
    let address = internet(options, options.port_of(clone), sends)?;
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    set_up(&socket, options)?;
    let interface = options.interface.as_deref().map(str::parse::<Ipv4Addr>).transpose();
    let interface = interface.map_err(|_| Error::other("interface is not an IPv4 address"))?;
    if sends {
        if address.ip().is_multicast() {
            match address {
                SocketAddr::V4(_) => {
                    socket.set_multicast_ttl_v4(options.ttl.unwrap_or(TTL))?;
                    if let Some(interface) = &interface {
                        socket.set_multicast_if_v4(interface)?;
                    }
                }
                SocketAddr::V6(_) => socket.set_multicast_hops_v6(options.ttl.unwrap_or(TTL))?,
            }
        }
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        socket.bind(&any.into())?;
        return Ok(Datagrams::new(UdpSocket::from(socket), Some(address)));
    }
    if address.ip().is_multicast() {
        // Several receivers of one machine are in the group.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    match address.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            let interface = interface.unwrap_or(Ipv4Addr::UNSPECIFIED);
            socket.join_multicast_v4(&group, &interface)?;
        }
        IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
        _ => {}
    }
    Ok(Datagrams::new(UdpSocket::from(socket), None))
}

impl Opened {
    /// Waits for the other end; `None` if all is over meanwhile.
    pub(super) fn meet(
        self,
        options: &Options,
        patience: &Patience<'_>,
    ) -> std::result::Result<Option<Way>, Failure> {
        let met = match &self {
            Opened::Datagrams(_) => Ok(None),
            Opened::Listening { socket, .. } => accept(socket, patience),
            Opened::Calling(address) => call(address, options, patience),
        };
        let tell = |error: Error| {
            let doing = match &self {
                Opened::Calling(_) => "connecting to",
                _ => "waiting for a sender at",
            };
            Failure::of(&error, format!("ioengine=net: {doing} {options}: {error}"))
        };
        let met = match met {
            Ok(Some(socket)) => set_up(&socket, options).map(|()| Some(socket)).map_err(tell)?,
            Ok(None) => None,
            Err(error) => return Err(tell(error)),
        };
        if let (Some(socket), Protocol::Tcp | Protocol::Tcp6) = (&met, options.protocol) {
            socket.set_tcp_nodelay(options.no_delay).map_err(tell)?;
        }
        Ok(match self {
            Opened::Datagrams(socket) => Some(Way::Datagrams(socket)),
            _ => met.map(Stream::new).map(Way::Stream),
        })
    }
}

/// Waits for a sender.
fn accept(socket: &Socket, patience: &Patience<'_>) -> Result<Option<Socket>> {
    let began = Instant::now();
    while !patience.is_over() {
        match socket.accept() {
            Ok((socket, _)) => return Ok(Some(socket)),
            Err(error) if errno_of(&error).is_none() => {}
            // It went before it was greeted.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
        if began.elapsed() >= SILENCE {
            let seconds = SILENCE.as_secs();
            return Err(Error::new(ErrorKind::TimedOut, format!("none came in {seconds} seconds")));
        }
    }
    Ok(None)
}

/// Connects to a receiver, which may begin to listen later.
fn call(address: &SockAddr, options: &Options, patience: &Patience<'_>) -> Result<Option<Socket>> {
    let began = Instant::now();
    while !patience.is_over() {
        let socket = stream(address, options)?;
        let error = match socket.connect_timeout(address, TRY) {
            // A socket may be connected to itself if no process listens on the port, tcp(7).
            Ok(()) if options.path.is_none() && is_itself(&socket) => {
                Error::from(ErrorKind::ConnectionRefused)
            }
            Ok(()) => return Ok(Some(socket)),
            Err(error) => error,
        };
        use ErrorKind::{ConnectionRefused, ConnectionReset, NotFound, TimedOut, WouldBlock};
        let comes_perhaps = matches!(
            error.kind(),
            ConnectionRefused | ConnectionReset | NotFound | TimedOut | WouldBlock
        );
        if !comes_perhaps || began.elapsed() >= CONNECT {
            return Err(error);
        }
        std::thread::sleep(PAUSE.min(SLICE));
    }
    Ok(None)
}

fn is_itself(socket: &Socket) -> bool {
    let ends = socket.local_addr().ok().zip(socket.peer_addr().ok());
    let internet = |(own, other): (SockAddr, SockAddr)| own.as_socket().zip(other.as_socket());
    ends.and_then(internet).is_some_and(|(own, other)| own == other)
}

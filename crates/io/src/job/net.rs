//! The other end of a job with `ioengine=net`.

use std::fmt;
use std::path::PathBuf;

/// Protocol (`protocol`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP over IPv4.
    #[default]
    Tcp,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4.
    Udp,
    /// UDP over IPv6.
    Udp6,
    /// A stream socket with a name in the file system, unix(7).
    Unix,
    /// Between virtual machines and their host, vsock(7).
    Vsock,
}

impl Protocol {
    /// It has datagrams, not a stream.
    pub fn has_datagrams(self) -> bool {
        matches!(self, Protocol::Udp | Protocol::Udp6)
    }

    /// fio's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Tcp6 => "tcpv6",
            Protocol::Udp => "udp",
            Protocol::Udp6 => "udpv6",
            Protocol::Unix => "unix",
            Protocol::Vsock => "vsock",
        }
    }
}

/// Options of `ioengine=net`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// Protocol.
    pub protocol: Protocol,
    /// Name or address of the receiver; of one that listens, the address at which it does (`hostname`).
    pub host: Option<String>,
    /// Port of the first clone; the others have those that follow.
    pub port: Option<u32>,
    /// Name of a socket of `protocol=unix` (`filename`).
    pub path: Option<PathBuf>,
    /// It waits for the other end (`listen`).
    pub listens: bool,
    /// Each block is sent back (`pingpong`).
    pub ping_pong: bool,
    /// TCP_NODELAY.
    pub no_delay: bool,
    /// SO_SNDBUF and SO_RCVBUF (`window_size`).
    pub window_bytes: Option<u32>,
    /// TCP_MAXSEG (`mss`).
    pub segment_bytes: Option<u32>,
    /// Address of the interface for multicast.
    pub interface: Option<String>,
    /// Time to live of multicast.
    pub ttl: Option<u32>,
}

impl Net {
    /// Port of a clone.
    pub fn port_of(&self, clone: u32) -> u32 {
        self.port.unwrap_or_default().saturating_add(clone)
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.protocol.name())?;
        if let Some(path) = &self.path {
            return write!(f, " {}", path.display());
        }
        let host = self.host.as_deref().unwrap_or("*");
        write!(f, " {host}:{}", self.port.unwrap_or_default())
    }
}

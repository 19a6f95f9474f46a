//! Connections to NBD servers: the handshake, and the forms of requests and replies (the project NBD, doc/proto.md:
//! fixed newstyle negotiation, simple replies).

use crate::job::{NbdExport, NbdServer};
use hakobu_sys::errno;
use socket2::Socket;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for a server that connects or negotiates.
const PATIENCE: Duration = Duration::from_secs(10);

/// Magic numbers: a server, its options, a reply to an option, a request, a simple reply.
const SERVER: u64 = 0x4e42_444d_4147_4943;
const OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

/// Flags of both sides: options get replies, and no zeros stand behind an export's flags.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

const OPTION_EXPORT_NAME: u32 = 1;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = 0x8000_0001;
const REPLY_POLICY: u32 = 0x8000_0002;
const REPLY_TLS_REQUIRED: u32 = 0x8000_0005;
const REPLY_UNKNOWN: u32 = 0x8000_0006;
const REPLY_ERROR: u32 = 0x8000_0000;
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;
/// Longest reply to an option, and the most of them.
const OPTION_REPLY_BYTES_MAX: u32 = 64 << 10;
const OPTION_REPLIES_MAX: u32 = 64;

/// Most bytes of a request where the server names no limit.
const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Flags of an export.
const READ_ONLY: u16 = 1 << 1;
const HAS_FLUSH: u16 = 1 << 2;
const HAS_TRIM: u16 = 1 << 5;

/// Bytes of a request without its data, and of a reply.
pub(crate) const REQUEST_BYTES: usize = 28;
pub(crate) const REPLY_BYTES: usize = 16;

/// Command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Read = 0,
    Write = 1,
    /// The client leaves.
    Disconnect = 2,
    Flush = 3,
    Trim = 4,
}

/// Properties of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    flags: u16,
    /// Most bytes of one request.
    pub(crate) request_bytes_max: u32,
}

impl Size {
    pub(crate) fn is_read_only(&self) -> bool {
        self.flags & READ_ONLY != 0
    }

    pub(crate) fn has_flush(&self) -> bool {
        self.flags & HAS_FLUSH != 0
    }

    pub(crate) fn has_trim(&self) -> bool {
        self.flags & HAS_TRIM != 0
    }
}

/// Asks a server for the size of an export, and leaves.
///
/// # Errors
/// There is no such server or export, or it answers something else.
pub(crate) fn look(export: &NbdExport) -> Result<Size> {
    let (socket, size) = open(export)?;
    // The server notices it as well where this does not arrive.
    let _ = (&socket).write_all(&request(Command::Disconnect, 0, 0, 0));
    Ok(size)
}

/// Connects, and negotiates until requests may be sent. The socket has timeouts.
///
/// # Errors
/// Those of [`look`].
pub(crate) fn open(export: &NbdExport) -> Result<(Socket, Size)> {
    let socket = connect(&export.server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let size = negotiate(&socket, &export.name).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => {
            Error::new(error.kind(), "the server closed the connection while it was negotiated")
        }
        ErrorKind::WouldBlock => Error::new(ErrorKind::TimedOut, "the server does not answer"),
        _ => error,
    })?;
    Ok((socket, size))
}

fn connect(server: &NbdServer) -> Result<Socket> {
    match server {
        NbdServer::Unix(path) => Ok(UnixStream::connect(path)?.into()),
        NbdServer::Tcp(host, port) => {
            let mut last = Error::other("this host has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, PATIENCE) {
                    Ok(socket) => {
                        socket.set_nodelay(true)?;
                        return Ok(socket.into());
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

fn negotiate(mut socket: &Socket, name: &str) -> Result<Size> {
    let [magic, options] = [eight(socket)?, eight(socket)?];
    if magic != SERVER {
        return Err(Error::other("this is no NBD server"));
    }
    if options != OPTION {
        return Err(Error::other(
            "an NBD server of before 2011 (oldstyle), which is not supported",
        ));
    }
    let theirs = u16::from_be_bytes(next(socket)?);
    if theirs & FIXED_NEWSTYLE == 0 {
        return Err(Error::other("an NBD server without fixed newstyle, which is not supported"));
    }
    let ours = theirs & (FIXED_NEWSTYLE | NO_ZEROES);
    socket.write_all(&u32::from(ours).to_be_bytes())?;
    let mut asked = (name.len() as u32).to_be_bytes().to_vec();
    asked.extend_from_slice(name.as_bytes());
    asked.extend_from_slice(&1_u16.to_be_bytes());
    asked.extend_from_slice(&INFO_BLOCK_SIZE.to_be_bytes());
    send_option(socket, OPTION_GO, &asked)?;
    if let Some(size) = go(socket, name)? {
        return Ok(size);
    }
    // The older option has no replies: an error closes the connection.
    send_option(socket, OPTION_EXPORT_NAME, name.as_bytes())?;
    let (bytes, flags) = (eight(socket)?, u16::from_be_bytes(next(socket)?));
    let size = Size { bytes, flags, request_bytes_max: REQUEST_BYTES_MAX };
    if ours & NO_ZEROES == 0 {
        socket.read_exact(&mut [0; 124])?;
    }
    Ok(size)
}

fn send_option(mut socket: &Socket, option: u32, data: &[u8]) -> Result<()> {
    let mut sent = OPTION.to_be_bytes().to_vec();
    sent.extend_from_slice(&option.to_be_bytes());
    sent.extend_from_slice(&(data.len() as u32).to_be_bytes());
    sent.extend_from_slice(data);
    socket.write_all(&sent)
}

/// Replies to the option GO; `None` where the server does not know it.
fn go(mut socket: &Socket, name: &str) -> Result<Option<Size>> {
    let mut found = None;
    let mut request_bytes_max = REQUEST_BYTES_MAX;
    for _ in 0..OPTION_REPLIES_MAX {
        let (magic, option) = (eight(socket)?, four(socket)?);
        let (kind, bytes) = (four(socket)?, four(socket)?);
        if magic != OPTION_REPLY || option != OPTION_GO || bytes > OPTION_REPLY_BYTES_MAX {
            return Err(Error::other("the server answers something else than it was asked"));
        }
        let mut data = vec![0; bytes as usize];
        socket.read_exact(&mut data)?;
        match kind {
            REPLY_ACK => {
                let (bytes, flags) =
                    found.ok_or_else(|| Error::other("the server does not say how large it is"))?;
                return Ok(Some(Size { bytes, flags, request_bytes_max }));
            }
            REPLY_INFO => match (number(&data, 0, 2), bytes) {
                (0, 12) => found = Some((number(&data, 2, 8), number(&data, 10, 2) as u16)),
                (kind, 14) if kind == u64::from(INFO_BLOCK_SIZE) => {
                    request_bytes_max = number(&data, 10, 4) as u32;
                }
                (kind, _) if kind == u64::from(INFO_EXPORT) => {
                    return Err(Error::other("the server's description of the export is wrong"));
                }
                _ => {}
            },
            REPLY_UNSUPPORTED => return Ok(None),
            REPLY_UNKNOWN => {
                let why = format!("the server has no export '{name}'");
                return Err(Error::new(ErrorKind::NotFound, why));
            }
            REPLY_TLS_REQUIRED => {
                return Err(Error::other("the server wants TLS, which is not supported"));
            }
            REPLY_POLICY => {
                return Err(Error::new(ErrorKind::PermissionDenied, "the server forbids it"));
            }
            kind if kind & REPLY_ERROR != 0 => {
                let said = String::from_utf8_lossy(&data);
                let said: String = said.chars().filter(|c| !c.is_control()).take(200).collect();
                return Err(Error::other(format!("the server refuses (error {kind:#x}): {said}")));
            }
            _ => {}
        }
    }
    Err(Error::other("the server's answer has no end"))
}

/// A whole number of so many bytes in a reply; what is missing counts as zero.
fn number(data: &[u8], at: usize, bytes: usize) -> u64 {
    let found = data.get(at..at + bytes).unwrap_or_default();
    found.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Bytes that come next.
fn next<const N: usize>(mut socket: &Socket) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn four(socket: &Socket) -> Result<u32> {
    next(socket).map(u32::from_be_bytes)
}

fn eight(socket: &Socket) -> Result<u64> {
    next(socket).map(u64::from_be_bytes)
}

/// The head of a request; `handle` comes back in its reply.
pub(crate) fn request(
    command: Command,
    handle: u64,
    offset: u64,
    bytes: u32,
) -> [u8; REQUEST_BYTES] {
    let mut head = [0; REQUEST_BYTES];
    let parts: [&[u8]; 6] = [
        &REQUEST.to_be_bytes(),
        &0_u16.to_be_bytes(),
        &(command as u16).to_be_bytes(),
        &handle.to_be_bytes(),
        &offset.to_be_bytes(),
        &bytes.to_be_bytes(),
    ];
    for (to, from) in head.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    head
}

/// Errno (0 is none) and handle of a reply.
///
/// # Errors
/// It is no simple reply.
pub(crate) fn reply(head: &[u8; REPLY_BYTES]) -> Result<(i32, u64)> {
    if number(head, 0, 4) != u64::from(REPLY) {
        return Err(Error::other("the server sends something that is no reply"));
    }
    // Errors have the numbers of Linux.
    let errno = i32::try_from(number(head, 4, 4)).ok().filter(|errno| *errno < 4096);
    Ok((errno.unwrap_or(errno::EIO), number(head, 8, 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_replies_have_the_forms_of_the_protocol() {
        let head = request(Command::Trim, 0x0102, 0x0304_0506_0708, 0x1000);
        assert_eq!(
            head,
            [
                0x25, 0x60, 0x95, 0x13, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 5, 6, 7, 8,
                0, 0, 0x10, 0
            ]
        );
        let mut head = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(reply(&head).unwrap(), (errno::ENOSPC, 9));
        head[4] = 0xff;
        assert_eq!(reply(&head).unwrap().0, errno::EIO);
        head[0] = 0x66;
        assert!(reply(&head).is_err());
    }
}

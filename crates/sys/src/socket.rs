//! Socket calls that the standard library lacks.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, recvmsg, sendmsg, shutdown, sockopt,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::Duration;

/// Discards up to `bytes_max` received bytes of a TCP socket inside the kernel, without copying them: recv(2)
/// with `MSG_TRUNC`, tcp(7). Returns their number; 0 at the end of the stream.
///
/// # Errors
/// Those of recv(2); `WouldBlock` if a non-blocking socket has no data.
pub fn discard(socket: impl AsFd, bytes_max: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket does not access the buffer (tcp(7)); other sockets return EFAULT
    // for a null pointer.
    let taken = unsafe {
        libc::recv(
            socket.as_fd().as_raw_fd(),
            std::ptr::null_mut(),
            bytes_max.min(1 << 30),
            libc::MSG_TRUNC,
        )
    };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

/// Sends a message and two descriptors over a Unix socket: `SCM_RIGHTS`, unix(7).
///
/// # Errors
/// Those of sendmsg(2).
pub fn send_with_descriptors(
    socket: impl AsFd,
    message: &[u8],
    descriptors: [BorrowedFd<'_>; 2],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(socket, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives what [`send_with_descriptors`] has sent. Returns the length of the message and the descriptors, which programs
/// that this one starts do not get.
///
/// # Errors
/// Those of recvmsg(2); `InvalidData` if there are not two descriptors.
pub fn receive_with_descriptors(
    socket: impl AsFd,
    message: &mut [u8],
) -> io::Result<(usize, [OwnedFd; 2])> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(message)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for of in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = of {
            descriptors.extend(fds);
        }
    }
    let descriptors = descriptors.try_into();
    let descriptors = descriptors.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((received.bytes, descriptors))
}

/// Returns the user of the process at the other end of a Unix socket: `SO_PEERCRED`, unix(7).
///
/// # Errors
/// Those of getsockopt(2).
pub fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    Ok(sockopt::socket_peercred(socket)?.uid.as_raw())
}

/// Makes accept(2) of another thread return an error, as of now.
///
/// # Errors
/// Those of shutdown(2).
pub fn stop_listening(socket: impl AsFd) -> io::Result<()> {
    Ok(shutdown(socket, Shutdown::Both)?)
}

/// Waits at most `limit` until a descriptor has one of these states, or a signal arrives: poll(2).
pub(crate) fn poll_for(fd: impl AsFd, states: PollFlags, limit: Duration) -> io::Result<()> {
    let limit = limit.try_into().ok();
    match poll(&mut [PollFd::new(&fd, states)], limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// State of a TCP connection in the kernel: tcp(7), `TCP_INFO`; fields as in linux/tcp.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds; 0 before the first.
    pub rtt_us: u32,
    /// Smallest round-trip time, microseconds; `None` before the first, or before Linux 4.6.
    pub min_rtt_us: Option<u32>,
    /// Total retransmitted segments.
    pub retransmits: u32,
    /// Queued bytes that were never sent (Linux 4.6).
    pub unsent_bytes: u32,
    /// Pacing rate, bytes per second; `u64::MAX` without pacing.
    pub pacing_bytes_per_s: u64,
    /// Latest delivery rate, bytes per second (Linux 4.9).
    pub delivery_bytes_per_s: u64,
    /// Time with data to send, microseconds (Linux 4.10).
    pub busy_us: u64,
    /// Part of it limited by the peer's receive window, microseconds (Linux 4.10).
    pub receiver_limited_us: u64,
    /// Part of it limited by the send buffer, microseconds (Linux 4.10).
    pub buffer_limited_us: u64,
}

/// Bytes of `struct tcp_info` up to `tcpi_sndbuf_limited`.
const TCP_INFO_BYTES: usize = 192;

/// Reads the state of a TCP connection. Fields unknown to an older kernel are zero.
///
/// # Errors
/// Those of getsockopt(2); `ENOPROTOOPT` or `EOPNOTSUPP` if this is not a TCP socket.
pub fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; TCP_INFO_BYTES];
    let mut len = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `bytes`, which is that long, and then their number
    // into `len`; both outlive the call.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo::parse(&bytes))
}

impl TcpInfo {
    /// Parses `struct tcp_info` (linux/tcp.h): 8 bytes of small fields, 24 numbers of four bytes, 4 of eight,
    /// 6 of four, 4 of eight.
    fn parse(bytes: &[u8; TCP_INFO_BYTES]) -> TcpInfo {
        let four = |at: usize| {
            let found = bytes.get(at..at + 4).and_then(|found| found.try_into().ok());
            found.map_or(0, u32::from_ne_bytes)
        };
        let eight = |at: usize| {
            let found = bytes.get(at..at + 8).and_then(|found| found.try_into().ok());
            found.map_or(0, u64::from_ne_bytes)
        };
        TcpInfo {
            rtt_us: four(68),
            min_rtt_us: Some(four(148)).filter(|rtt| !matches!(*rtt, 0 | u32::MAX)),
            retransmits: four(100),
            unsent_bytes: four(144),
            pacing_bytes_per_s: eight(104),
            delivery_bytes_per_s: eight(160),
            busy_us: eight(168),
            receiver_limited_us: eight(176),
            buffer_limited_us: eight(184),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_whose_peer_does_not_read_says_so() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_peer, _) = listener.accept().unwrap();
        let before = tcp_info(&ours).unwrap();
        assert_eq!((before.unsent_bytes, before.busy_us), (0, 0));
        ours.set_nonblocking(true).unwrap();
        // Fill the peer's buffer and ours.
        while ours.write(&[0; 1 << 16]).is_ok() {}
        std::thread::sleep(std::time::Duration::from_millis(50));
        let after = tcp_info(&ours).unwrap();
        assert!(after.unsent_bytes > 0, "{after:?}");
        assert!(after.rtt_us > 0 && after.rtt_us < 1_000_000, "{after:?}");
        assert!(after.min_rtt_us.is_some_and(|rtt| rtt <= after.rtt_us + 1000), "{after:?}");
        assert!(after.busy_us >= after.receiver_limited_us, "{after:?}");
        assert!(after.busy_us > 30_000 && after.busy_us < 60_000_000, "{after:?}");
        assert!(after.receiver_limited_us > 0, "{after:?}");
        assert!(after.pacing_bytes_per_s > 0, "{after:?}");
    }

    #[test]
    fn what_is_no_tcp_socket_is_an_error() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_info(&udp).is_err());
    }
}

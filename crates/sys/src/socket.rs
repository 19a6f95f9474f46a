//! Sockets: what the standard library has no call for.

use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Takes up to `bytes_max` received bytes off a TCP socket and throws them away inside the kernel,
/// recv(2) with `MSG_TRUNC` as tcp(7) defines it: they are never copied. Returns how many; 0 is the
/// end of the stream.
///
/// # Errors
/// Those of recv(2); `WouldBlock` where a socket that does not block has nothing.
pub fn discard(socket: impl AsFd, bytes_max: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket does not touch the buffer (tcp(7)); another kind of
    // socket finds a null pointer and answers EFAULT.
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

//! Size of the terminal behind a descriptor.

use crate::AsFd;

/// Width in characters; `None` if there is no terminal.
pub fn columns(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Height in lines; `None` if there is no terminal.
pub fn rows(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_row > 0).then_some(usize::from(size.ws_row))
}

//! The terminal behind a descriptor.

use crate::AsFd;

/// How many characters fit in a line of the terminal; `None` where there is none.
pub fn columns(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// How many lines the terminal has; `None` where there is none.
pub fn rows(fd: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(fd).ok()?;
    (size.ws_row > 0).then_some(usize::from(size.ws_row))
}

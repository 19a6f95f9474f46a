//! Waits that a request to stop ends: for the other end of a FIFO, for input, for room in a pipe.
//!
//! A signal only sets a flag, and calls that block are restarted after its handler (`SA_RESTART`). So nothing here
//! blocks for longer than [`STEP`]: descriptors are opened with `O_NONBLOCK`, which has no effect on regular files,
//! or poll(2) says first that a call will not block.

use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd, errno};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::CStr;
use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// Time after which a wait sees the request to stop, at most.
const STEP: Duration = Duration::from_millis(50);
/// Bytes that a pipe takes without blocking when poll(2) says that it takes some (`PIPE_BUF`, pipe(7)).
const PIPE_BYTES: usize = 4096;
/// Time in which a reader may still take what a stopped program writes.
const LAST: Duration = Duration::from_millis(500);

/// Error of a wait that a request to stop ended.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Stopped {}

/// Error of a wait that was ended by a request to stop. Not of the kind `Interrupted`, which the standard library
/// repeats.
pub fn stopped() -> Error {
    Error::other(Stopped)
}

/// True for an error of [`stopped`].
pub fn is_stopped(error: &Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

/// True if calls on an open file may block for as long as another process likes.
pub fn may_block(fd: impl AsFd) -> bool {
    meta::of_fd(fd).is_ok_and(|meta| {
        matches!(meta.kind, Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::Unknown)
    })
}

/// Opens an existing FIFO for writing, when it has a reader. The descriptor does not block: see [`write_all`].
///
/// # Errors
/// [`stopped`]; those of openat(2).
pub fn open_fifo(dir: BorrowedFd<'_>, name: &CStr, stop: &dyn Fn() -> bool) -> Result<OwnedFd> {
    until_read(stop, || crate::file::open_write(dir, name))
}

/// Repeats opening a FIFO for writing until it has a reader (ENXIO before).
///
/// # Errors
/// [`stopped`]; those of `open`.
pub fn until_read<T>(stop: &dyn Fn() -> bool, mut open: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match open() {
            Err(error) if errno::is(&error, errno::ENXIO) => {}
            other => return other,
        }
        if stop() {
            return Err(stopped());
        }
        thread::sleep(STEP);
    }
}

/// Waits until bytes, the end or an error can be read.
fn until_readable(fd: impl AsFd, stop: &dyn Fn() -> bool) -> Result<()> {
    until(fd, PollFlags::IN, stop)
}

/// Waits until bytes can be written, or writing fails at once.
fn until_writable(fd: impl AsFd, stop: &dyn Fn() -> bool) -> Result<()> {
    until(fd, PollFlags::OUT, stop)
}

fn until(fd: impl AsFd, states: PollFlags, stop: &dyn Fn() -> bool) -> Result<()> {
    while !is_ready(&fd, states, STEP)? {
        if stop() {
            return Err(stopped());
        }
    }
    Ok(())
}

/// Returns whether a descriptor has one of these states, or has ended, within `limit`. A signal ends the wait.
fn is_ready(fd: impl AsFd, states: PollFlags, limit: Duration) -> Result<bool> {
    let limit = limit.try_into().ok();
    match poll(&mut [PollFd::new(&fd, states)], limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An open file that is read; a request to stop ends the wait for bytes.
#[derive(Debug)]
pub struct Input<S> {
    file: File,
    stop: S,
    may_block: bool,
}

impl<S: Fn() -> bool> Input<S> {
    /// Reads `file`, which may be open with `O_NONBLOCK`. A FIFO that never had a writer is waited for.
    pub fn new(file: impl Into<OwnedFd>, stop: S) -> Input<S> {
        let file = File::from(file.into());
        Input { may_block: may_block(&file), file, stop }
    }
}

impl<S: Fn() -> bool> Read for Input<S> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if !self.may_block {
            return crate::file::read(self.file.as_fd(), buffer);
        }
        loop {
            until_readable(&self.file, &self.stop)?;
            match crate::file::read(self.file.as_fd(), buffer) {
                // Another reader was faster.
                Err(error) if errno::is(&error, errno::EAGAIN) => {}
                other => return other,
            }
        }
    }
}

/// An open file that is written; a request to stop ends the wait for a reader that takes nothing.
#[derive(Debug)]
pub struct Output<S> {
    file: File,
    stop: S,
    may_block: bool,
}

impl<S: Fn() -> bool> Output<S> {
    /// Writes to `file`, which may be open with `O_NONBLOCK`.
    pub fn new(file: File, stop: S) -> Output<S> {
        Output { may_block: may_block(&file), file, stop }
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl<S: Fn() -> bool> Write for Output<S> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        if !self.may_block {
            return self.file.write(bytes);
        }
        let some = bytes.get(..PIPE_BYTES).unwrap_or(bytes);
        let mut given_up = None;
        loop {
            if is_ready(&self.file, PollFlags::OUT, STEP)? {
                match self.file.write(some) {
                    Err(error) if errno::is(&error, errno::EAGAIN) => {}
                    other => return other,
                }
            }
            if (self.stop)()
                && *given_up.get_or_insert_with(|| Instant::now() + LAST) < Instant::now()
            {
                return Err(stopped());
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

/// Writes all bytes to a descriptor that is open with `O_NONBLOCK`; a request to stop ends the wait for a reader.
///
/// # Errors
/// [`stopped`]; those of write(2).
pub fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8], stop: &dyn Fn() -> bool) -> Result<()> {
    while !bytes.is_empty() {
        match errno::until_uninterrupted(|| rustix::io::write(to, bytes)) {
            Ok(0) => return Err(Error::from_raw_os_error(errno::ENOSPC)),
            Ok(wrote) => bytes = bytes.get(wrote..).unwrap_or_default(),
            Err(error) if errno::is(&error, errno::EAGAIN) => until_writable(to, stop)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Becomes true at the third question.
    fn soon() -> impl Fn() -> bool {
        let asked = Cell::new(0);
        move || asked.replace(asked.get() + 1) >= 2
    }

    #[test]
    fn a_stop_ends_the_wait_for_input() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"ab").unwrap();
        let mut input = Input::new(reader, soon());
        let mut buffer = [0; 8];
        assert_eq!(input.read(&mut buffer).unwrap(), 2);
        let error = input.read(&mut buffer).unwrap_err();
        assert!(is_stopped(&error) && error.kind() != std::io::ErrorKind::Interrupted);
        drop(writer);
        assert_eq!(input.read(&mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_stop_ends_the_wait_for_room() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut output = Output::new(File::from(OwnedFd::from(writer)), soon());
        let error = loop {
            match output.write(&[0; 100_000]) {
                Ok(count) => assert!(count <= PIPE_BYTES),
                Err(error) => break error,
            }
        };
        assert!(is_stopped(&error));
        drop(reader);
        assert!(!is_stopped(&output.write(b"x").unwrap_err()));
    }

    #[test]
    fn regular_files_are_read_at_once() {
        let mut input = Input::new(File::open("/proc/version").unwrap(), || true);
        assert!(input.read(&mut [0; 8]).unwrap() > 0);
    }
}

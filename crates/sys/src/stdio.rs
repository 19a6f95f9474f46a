//! Standard input and output as the process was given them, waits that a request to stop ends (for the other end of a FIFO,
//! for input, for room in a pipe), and the size of the terminal.

use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd, errno};
use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Error, Read, Result, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// Whether standard input and standard output were closed when the process started.
static CLOSED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Makes the C library call [`look`] before `main`, and so before Rust's runtime opens `/dev/null`.
#[used]
// SAFETY: `.init_array` holds pointers to functions of the C ABI, which this is; the function needs nothing of Rust's
// runtime, and returns.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Finds out which of the two are closed, and puts a descriptor in their place that cannot be read, written, or opened
/// by a name in `/dev/fd`. It is closed in programs that this one starts, which get what this one was given.
extern "C" fn look() {
    let mut asked = [0, 1].map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the array has the given length and lives until the call returns, which does not wait.
    while unsafe { libc::poll(asked.as_mut_ptr(), 2, 0) } < 0 {
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
    }
    for (asked, closed) in asked.iter().zip(&CLOSED) {
        if asked.revents & libc::POLLNVAL != 0 {
            closed.store(true, Ordering::Relaxed);
            // The new descriptor gets the lowest free number, which is this one: smaller ones are open by now. If
            // there is none, the runtime opens /dev/null.
            // SAFETY: the call takes a flag only; nothing else uses this number yet.
            unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        }
    }
}

fn opened(number: usize, fd: impl AsFd) -> io::Result<File> {
    if CLOSED[number].load(Ordering::Relaxed) {
        return Err(io::Error::from_raw_os_error(errno::EBADF));
    }
    Ok(File::from(rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), 3)?))
}

/// Returns standard input, unbuffered.
///
/// # Errors
/// EBADF if it was closed at the start; EMFILE.
pub fn input() -> io::Result<File> {
    opened(0, io::stdin())
}

/// Returns standard output, unbuffered.
pub fn output() -> io::Result<File> {
    opened(1, io::stdout())
}

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

/// Returns whether bytes, the end or an error can be read within `limit`. A signal ends the wait.
///
/// # Errors
/// Those of poll(2).
pub fn is_readable(fd: impl AsFd, limit: Duration) -> Result<bool> {
    is_ready(fd, PollFlags::IN, limit)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::process::Command;

    /// Runs the test below in a process of its own, started by a shell with this redirection.
    fn child(redirection: &str) -> String {
        let test = "stdio::tests::closed_streams_are_errors_here_and_closed_in_children";
        let program = std::env::current_exe().unwrap();
        let script = format!("exec \"$0\" --exact {test} --nocapture {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(program).env("HAKOBU_TEST_CHILD", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{redirection}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[test]
    fn closed_streams_are_errors_here_and_closed_in_children() {
        if std::env::var_os("HAKOBU_TEST_CHILD").is_none() {
            for (redirection, expected) in [
                // Standard output is the test runner's; tests of the program close it.
                ("</dev/null", "in: 0 out: ok child: "),
                ("<&-", "in: 9 out: ok child: 0"),
                ("0>/dev/null", "in: 9 out: ok child: "),
            ] {
                let said = child(redirection);
                assert!(said.contains(&format!("<{expected}>")), "{redirection}: {said}");
            }
            return;
        }
        let code = |error: io::Error| error.raw_os_error().unwrap_or(-1);
        let read = input().and_then(|mut file| file.read(&mut [0])).map_or_else(code, |n| n as i32);
        let wrote = output().and_then(|mut file| file.write_all(b"x"));
        let wrote = wrote.map_or_else(|error| code(error).to_string(), |()| "ok".to_owned());
        let script =
            "for fd in 0 1; do test -e /proc/self/fd/$fd || set -- $@ $fd; done; echo $@ >&2";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stderr(std::process::Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let closed = String::from_utf8_lossy(&output.stderr).into_owned();
        eprintln!("<in: {read} out: {wrote} child: {}>", closed.trim());
    }

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

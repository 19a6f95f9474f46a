//! Destinations of lines: standard output, log files, standard error. Locked and buffered; a reader that went away is
//! not an error, and nothing here panics. Whatever is lost of standard output is remembered until it is told: by the
//! command, or by `main` at its end.

use super::{json, screen};
use crate::stopped;
use hakobu_core::error::without_number;
use hakobu_sys::paths::Links;
use hakobu_sys::{file, stdio};
use parking_lot::Mutex;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time of a line in the buffer while others come.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// The error that lost a part of standard output, until it is told.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// A stream that many threads write whole lines to.
pub struct Output {
    state: Mutex<OutputState>,
    is_terminal: bool,
}

/// A file whose reader is waited for until a signal comes.
type WaitingOutput = stdio::Output<fn() -> bool>;

struct OutputState {
    writer: Option<BufWriter<WaitingOutput>>,
    /// Reason that there is no writer, until something is written.
    closed: Option<io::Error>,
    is_stdout: bool,
    flushed: Instant,
    error: Option<io::Error>,
    /// The last line has no end: the next one replaces it, or begins below it.
    is_open: bool,
}

impl Output {
    /// Makes an output of an open file.
    pub fn new(file: File) -> Output {
        Output::of(Ok(file), false)
    }

    /// Makes an output of standard output. If it is closed, writing is an error.
    pub fn stdout() -> Output {
        Output::of(stdio::output(), true)
    }

    fn of(file: io::Result<File>, is_stdout: bool) -> Output {
        let (file, closed) = match file {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error)),
        };
        Output {
            is_terminal: file.as_ref().is_some_and(File::is_terminal),
            state: Mutex::new(OutputState {
                writer: file.map(|file| {
                    let file = WaitingOutput::new(file, stopped::is_stopped);
                    BufWriter::with_capacity(64 * 1024, file)
                }),
                closed,
                is_stdout,
                flushed: Instant::now(),
                error: None,
                is_open: false,
            }),
        }
    }

    /// Creates a file or appends to it. `links`: symlinks allowed in its path. Waits for the reader of a FIFO.
    ///
    /// # Errors
    /// It cannot be opened; a signal came.
    pub fn file(path: &Path, append: bool, links: &Links) -> io::Result<Output> {
        let opened = stdio::until_read(&stopped::is_stopped, || links.open_write(path, append));
        opened.map(|fd| Output::new(File::from(fd)))
    }

    /// Returns whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes whole lines. After a failure everything is dropped.
    pub fn write(&self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let due = self.is_terminal || state.flushed.elapsed() > FLUSH_AFTER;
        let below: &[u8] = if std::mem::take(&mut state.is_open) { b"\n" } else { b"" };
        state.write(&[below, lines], due);
    }

    /// Writes a line that begins with a carriage return and has no end, at once: the next one of its kind replaces it,
    /// other lines begin below it.
    pub fn write_state(&self, line: &[u8]) {
        let mut state = self.state.lock();
        state.is_open = true;
        state.write(&[line], true);
    }

    /// Writes the buffer, for a reader that waits.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        if let Some(Err(error)) = state.writer.as_mut().map(Write::flush) {
            state.fail(error);
        }
    }

    /// Writes the buffer and flushes the file. Returns the error that lost lines, if any; a closed pipe is none.
    pub fn finish(&self) -> Option<io::Error> {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.is_open) {
            state.write(&[b"\n"], false);
        }
        let written = state
            .writer
            .as_mut()
            .map(|writer| writer.flush().and_then(|()| file::flush(writer.get_ref().file())));
        if let Some(Err(error)) = written {
            state.fail(error);
        }
        if state.is_stdout { lost() } else { state.error.take() }
    }

    /// Returns whether the reader is gone, so that a listing may end.
    pub fn is_broken(&self) -> bool {
        let state = self.state.lock();
        state.writer.is_none() && state.closed.is_none()
    }
}

impl Drop for Output {
    /// Writes the rest of what nobody finished, and remembers whether that failed.
    fn drop(&mut self) {
        self.flush();
    }
}

impl OutputState {
    fn write(&mut self, parts: &[&[u8]], flush: bool) {
        let Some(writer) = self.writer.as_mut() else {
            if let Some(error) = self.closed.take() {
                self.fail(error);
            }
            return;
        };
        let written = parts.iter().try_for_each(|part| writer.write_all(part));
        let done = written.and_then(|()| if flush { writer.flush() } else { Ok(()) });
        if flush {
            self.flushed = Instant::now();
        }
        if let Err(error) = done {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        if let Some(writer) = self.writer.take() {
            // Otherwise dropping the writer would write the buffer again.
            let _ = writer.into_parts();
        }
        match self.is_stdout {
            true => lose(error),
            false if error.kind() == io::ErrorKind::BrokenPipe => {}
            false => self.error = Some(error),
        }
    }
}

/// Remembers an error of standard output, unless its reader went away.
fn lose(error: io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        LOST.lock().get_or_insert(error);
    }
}

/// Takes the error that lost a part of standard output, if it was not told yet.
pub fn lost() -> Option<io::Error> {
    LOST.lock().take()
}

/// Writes to standard output at once; flushes it, as some file systems report errors only at close(2), after the exit
/// code.
fn write_stdout(bytes: &[u8]) {
    let written = stdio::output().and_then(|mut stdout| {
        stdout.write_all(bytes)?;
        file::close(stdout)
    });
    if let Err(error) = written {
        lose(error);
    }
}

/// Writes one line to standard error, if it is open.
pub fn message(text: &str) {
    let text = without_number(text);
    // A hint belongs to the message above it.
    let name = if text.starts_with("hint: ") { "" } else { "hakobu: " };
    screen::beside(|| drop(writeln!(io::stderr().lock(), "{name}{text}")));
}

/// Writes a text to standard error unchanged, if it is open.
pub fn error_text(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a JSON line to standard output.
pub fn line(of: &impl Serialize) {
    write_stdout(&json::line(of));
}

/// Writes a text to standard output unchanged.
pub fn text(text: &str) {
    write_stdout(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_error() -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        drop(reader);
        let output = Output::new(File::from(std::os::fd::OwnedFd::from(writer)));
        output.write(b"a\n");
        assert!(output.finish().is_none());
        assert!(output.is_broken());
        output.write(b"b\n");
        Ok(())
    }

    #[test]
    fn lines_begin_below_a_state() -> io::Result<()> {
        let (mut reader, writer) = io::pipe()?;
        let output = Output::new(File::from(std::os::fd::OwnedFd::from(writer)));
        output.write_state(b"\r1");
        output.write_state(b"\r2");
        output.write(b"a\nb\n");
        output.write_state(b"\r3");
        assert!(output.finish().is_none());
        drop(output);
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text)?;
        assert_eq!(text, "\r1\r2\na\nb\n\r3\n");
        Ok(())
    }

    #[test]
    fn a_full_disk_is_one() -> io::Result<()> {
        let output = Output::file(Path::new("/dev/full"), true, &Links::Trusted)?;
        output.write(b"a\n");
        assert!(output.finish().is_some());
        assert!(output.finish().is_none());
        Ok(())
    }
}

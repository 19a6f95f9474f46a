//! Where lines go: standard output, log files, standard error. Locked and buffered; a reader that
//! went away is no error, and nothing here panics.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a line may wait in the buffer while others come.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// A stream that many threads write whole lines to.
pub struct Output {
    state: Mutex<State>,
    is_terminal: bool,
}

struct State {
    writer: Option<BufWriter<File>>,
    flushed: Instant,
    error: Option<io::Error>,
}

impl Output {
    fn new(file: File) -> Output {
        Output {
            is_terminal: file.is_terminal(),
            state: Mutex::new(State {
                writer: Some(BufWriter::with_capacity(64 * 1024, file)),
                flushed: Instant::now(),
                error: None,
            }),
        }
    }

    /// Standard output. Where it is closed, lines go nowhere.
    pub fn stdout() -> Output {
        match io::stdout().as_fd().try_clone_to_owned() {
            Ok(fd) => Output::new(File::from(fd)),
            Err(_) => Output {
                state: Mutex::new(State { writer: None, flushed: Instant::now(), error: None }),
                is_terminal: false,
            },
        }
    }

    /// A file that lines are appended to.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn append(path: &Path) -> io::Result<Output> {
        File::options().append(true).create(true).open(path).map(Output::new)
    }

    /// A file that is made anew.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> io::Result<Output> {
        File::create(path).map(Output::new)
    }

    /// Whether somebody is looking.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes whole lines. After a failure everything is dropped.
    pub fn write(&self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let due = self.is_terminal || state.flushed.elapsed() > FLUSH_AFTER;
        let Some(writer) = state.writer.as_mut() else { return };
        let done = writer.write_all(lines).and_then(|()| if due { writer.flush() } else { Ok(()) });
        if due {
            state.flushed = Instant::now();
        }
        if let Err(error) = done {
            state.fail(error);
        }
    }

    /// Writes what is buffered: somebody waits for these lines.
    pub fn flush(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = state.writer.as_mut().map(Write::flush) {
            state.fail(error);
        }
    }

    /// Writes what is buffered. Returns the error that made lines get lost, if any; a reader that
    /// went away is none.
    pub fn finish(&self) -> Option<io::Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = state.writer.as_mut().map(Write::flush) {
            state.fail(error);
        }
        state.error.take()
    }

    /// Whether lines no longer reach anybody: a listing may as well end.
    pub fn is_broken(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).writer.is_none()
    }
}

impl State {
    fn fail(&mut self, error: io::Error) {
        if let Some(writer) = self.writer.take() {
            // Without this the buffer would be written once more when it is dropped.
            let _ = writer.into_parts();
        }
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.error = Some(error);
        }
    }
}

/// Writes one line to standard error; where that is closed, nobody wants it.
pub fn message(text: &str) {
    let _ = writeln!(io::stderr().lock(), "hakobu: {text}");
}

/// Writes a text to standard error as it is; where that is closed, nobody wants it.
pub fn error_text(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a text to standard output as it is; where that is closed, nobody wants it.
pub fn text(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
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
    fn a_full_disk_is_one() -> io::Result<()> {
        let output = Output::append(Path::new("/dev/full"))?;
        output.write(b"a\n");
        assert!(output.finish().is_some());
        assert!(output.finish().is_none());
        Ok(())
    }
}

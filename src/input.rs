//! Input that the program waits for: standard input, and files that may be FIFOs or terminals. A signal ends the wait.

use crate::stopped;
use hakobu_sys::dir;
use hakobu_sys::paths::Links;
use hakobu_sys::stdio::{self, Input};
use std::ffi::{CString, OsStr};
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A file that is waited for until a signal comes.
pub type Waiting = Input<fn() -> bool>;

/// Returns standard input. All reads share one buffer.
///
/// # Errors
/// It is closed.
pub fn stdin() -> io::Result<MutexGuard<'static, BufReader<Waiting>>> {
    static STDIN: OnceLock<Mutex<BufReader<Waiting>>> = OnceLock::new();
    if STDIN.get().is_none() {
        let file = stdio::input()?;
        drop(STDIN.set(Mutex::new(BufReader::new(waiting(file.into())))));
    }
    let stdin = STDIN.get().ok_or(io::ErrorKind::NotFound)?;
    // A reader that panicked has left a valid buffer.
    Ok(stdin.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Opens a file for reading, through symlinks that `links` allows.
///
/// # Errors
/// Those of the system, and of `links`.
pub fn open(file: &OsStr, links: &Links) -> io::Result<Waiting> {
    let path = CString::new(file.as_bytes())?;
    links.open_read(dir::cwd(), &path).map(waiting)
}

fn waiting(file: hakobu_sys::OwnedFd) -> Waiting {
    Input::new(file, stopped::is_stopped)
}

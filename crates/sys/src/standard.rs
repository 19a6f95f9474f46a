//! Standard input and output as the process was given them. Rust's runtime opens `/dev/null` in place of a closed
//! one, and its handles take EBADF for success: a command would read nothing or write nowhere, and report that all
//! went well. The descriptors here return the error.

use crate::{AsFd, errno};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

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
///
/// # Errors
/// As [`input`].
pub fn output() -> io::Result<File> {
    opened(1, io::stdout())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::Command;

    /// Runs the test below in a process of its own, started by a shell with this redirection.
    fn child(redirection: &str) -> String {
        let test = "standard::tests::closed_streams_are_errors_here_and_closed_in_children";
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
}

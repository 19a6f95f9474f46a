//! A forked copy of this program that creates the process of a command: it excludes written pages from
//! inheritance, so that the peak memory of the process before exec(2) is a few pages. After a fork with
//! threads it may only make calls that are async-signal-safe.

use super::order::Order;
use super::raw;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Memory around errno that a child needs, bytes on each side.
const KEPT_BYTES: usize = 16 << 10;

/// Starts the process; returns the time just before. exec(2) has succeeded when this returns.
///
/// # Errors
/// Those of exec(2), fork(2), clone(2) and pipe(2).
pub(super) fn start(order: &Order) -> io::Result<Instant> {
    let (mut ready, tell_ready) = io::pipe()?;
    let (wait_go, mut go) = io::pipe()?;
    let (mut errors, tell_error) = io::pipe()?;
    // SAFETY: this function has exclusive access to the pages until the fork.
    unsafe { (*order.fixed()).errors = tell_error.as_raw_fd() };
    let hidden = if raw::IS_BARE { written_ranges() } else { Vec::new() };
    // The copy must not handle signals meant for this process.
    let blocked = Blocked::all()?;
    // SAFETY: the copy makes only calls that are safe after fork(2) in a program with threads, and ends by
    // _exit(2).
    let copy = unsafe { libc::fork() };
    if copy == 0 {
        // SAFETY: this is the forked copy; descriptors and pages were created above.
        unsafe {
            run_stage(
                order,
                &hidden,
                [ready.as_raw_fd(), go.as_raw_fd()],
                [tell_ready.as_raw_fd(), wait_go.as_raw_fd()],
            )
        }
    }
    let failed = (copy < 0).then(io::Error::last_os_error);
    drop(blocked);
    if let Some(error) = failed {
        return Err(error);
    }
    drop((tell_ready, wait_go, tell_error));
    let is_ready = ready.read_exact(&mut [0]);
    let began = Instant::now();
    let told = is_ready.and_then(|()| go.write_all(&[1]));
    wait_for(copy)?;
    told?;
    if order.pid() < 0 {
        return Err(io::Error::from_raw_os_error(-order.pid()));
    }
    // exec(2) closes the write end of the pipe.
    let mut why = Vec::new();
    errors.read_to_end(&mut why)?;
    match <[u8; 4]>::try_from(why) {
        Ok(why) => {
            wait_for(order.pid())?;
            Err(io::Error::from_raw_os_error(i32::from_ne_bytes(why)))
        }
        Err(_) => Ok(began),
    }
}

/// Reaps a child.
fn wait_for(pid: i32) -> io::Result<()> {
    loop {
        // SAFETY: the status pointer may be null.
        match unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(()),
        }
    }
}

/// Runs in the copy.
///
/// # Safety
/// Must only be called in a process just created by fork(2).
unsafe fn run_stage(
    order: &Order,
    hidden: &[(usize, usize)],
    close: [i32; 2],
    [ready, go]: [i32; 2],
) -> ! {
    let fixed = order.fixed();
    // SAFETY: these calls are async-signal-safe; all pointers are to memory that the copy has.
    unsafe {
        for fd in close {
            libc::close(fd);
        }
        // The process does not have the code of the handlers.
        for signal in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
            {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
        for (start, bytes) in hidden {
            libc::madvise(*start as *mut libc::c_void, *bytes, libc::MADV_DONTFORK);
        }
        let mut byte = 0_u8;
        let is_told = libc::write(ready, (&raw const byte).cast(), 1) == 1
            && libc::read(go, (&raw mut byte).cast(), 1) == 1;
        if is_told {
            let flags = libc::CLONE_PARENT | libc::SIGCHLD;
            let pid = raw::clone(order.stack(), flags, fixed.cast());
            (&raw mut (*fixed).pid).write_volatile(pid as i32);
        }
        libc::_exit(0)
    }
}

/// Private written memory without code, as start and length, which a child would inherit page by page. The
/// thread-local storage of the calling thread is excluded, because the kernel writes to it for restartable
/// sequences (rseq(2)). If the kernel does not list memory, there are no ranges, and the peak before exec(2)
/// is larger, but still measured.
fn written_ranges() -> Vec<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    // SAFETY: the call returns the address of this thread's errno.
    let local = unsafe { libc::__errno_location() } as usize;
    let kept =
        (local & !(KEPT_BYTES - 1)) - KEPT_BYTES..(local & !(KEPT_BYTES - 1)) + 2 * KEPT_BYTES;
    let mut ranges = Vec::new();
    let mut range = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        if let Some((start, end)) = first.split_once('-')
            && let (Some(start), Some(end)) = (number(start), number(end))
        {
            let is_data = second.ends_with('p') && !second.contains('x');
            range = is_data.then_some(start..end);
        } else if first == "Anonymous:"
            && second != "0"
            && let Some(range) = range.take()
        {
            let parts =
                [range.start..range.end.min(kept.start), range.start.max(kept.end)..range.end];
            ranges.extend(parts.into_iter().filter(|part| !part.is_empty()));
        }
    }
    ranges.into_iter().map(|range| (range.start, range.len())).collect()
}

/// Blocks all signals for the calling thread until dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> io::Result<Blocked> {
        // SAFETY: both sets are plain memory that the calls fill in.
        unsafe {
            let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            match libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old) {
                0 => Ok(Blocked(old)),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was returned by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

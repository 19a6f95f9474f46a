//! Starts commands such that their measured usage is their own. Linux includes the memory of the process
//! before exec(2) in `ru_maxrss`, and the time and faults between fork(2) and exec(2). So a copy of this
//! program (`stage`) is forked first, which excludes all written memory from inheritance by its children, and
//! starts the command as a child of this process. The usage of that child before exec(2) is recorded and
//! subtracted.

mod command;
mod order;
mod raw;
mod stage;

pub use command::{Command, Place};

use crate::child::{self, End};
use crate::usage::Used;
use order::Order;
use std::io;
use std::time::Instant;

/// Processes created per command: the copy of this program, and the command.
pub const PROCESSES: u64 = 2;

impl Command {
    /// Starts the command.
    ///
    /// # Errors
    /// Those of exec(2), fork(2) and the other calls.
    pub fn start(&self) -> io::Result<Started> {
        let order = Order::new(self)?;
        let began = stage::start(&order)?;
        let pid = u32::try_from(order.pid()).map_err(|_| io::ErrorKind::Other)?;
        Ok(Started { pid, began, before: order.used_before() })
    }
}

/// A running command.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// Process id, a child of this process.
    pub pid: u32,
    /// Time just before the start.
    pub began: Instant,
    /// Usage of its process before exec(2).
    before: Used,
}

impl Started {
    /// Bytes that it and its waited-for descendants passed to write(2) and similar calls: `wchar` of
    /// proc_pid_io(5). To be read between its end and [`Started::collect`]; `None` if the kernel does not
    /// count or reveal them.
    pub fn written_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.pid)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
    }

    /// Reaps it, waiting for its end if necessary; returns how it ended, and what it and its descendants
    /// used. [`Used::rss_is_bound`] tells if the peak memory is only an upper bound, that of the process
    /// before exec(2).
    ///
    /// # Errors
    /// It is no longer a child of this process.
    pub fn collect(&self) -> io::Result<(End, Used)> {
        let (end, used) = child::collect(self.pid)?;
        Ok((end, used.since(&self.before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::fd::AsRawFd;

    fn command(words: &[&str]) -> Command {
        Command::new(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn commands_are_started_with_what_they_are_given() {
        let (mut reader, writer) = io::pipe().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let script = "pwd; echo $HAKOBU_TEST; test $(ps -o sid= -p $$) = $$ && echo own; exit 7";
        let mut command = command(&["sh", "-c", script]);
        command.env.push(("HAKOBU_TEST".into(), "it's".into()));
        command.dir = Some(c"/usr".into());
        command.place = Place::Session;
        command.stdio = [null.as_raw_fd(), writer.as_raw_fd(), 2];
        let started = command.start().unwrap();
        drop(writer);
        let text = io::read_to_string(&mut reader).unwrap();
        assert_eq!(text, "/usr\nit's\nown\n");
        child::wait_for_end(started.pid).unwrap();
        assert!(started.written_bytes().is_none_or(|bytes| bytes >= text.len() as u64));
        assert_eq!(started.collect().unwrap().0, End::Exited(7));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        for (words, code) in [
            (&["no-such-program-anywhere"][..], libc::ENOENT),
            (&["/no/such"], libc::ENOENT),
            (&["/etc/passwd"], libc::EACCES),
            (&["/usr"], libc::EACCES),
        ] {
            let error = command(words).start().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(code), "{words:?}");
        }
        let mut nowhere = command(&["true"]);
        nowhere.dir = Some(c"/no/such".into());
        assert_eq!(nowhere.start().unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert!(command(&[]).start().is_err());
        assert!(command(&["a\0b"]).start().is_err());
    }

    #[test]
    fn few_cpus_and_few_pages() {
        // The command must not inherit the size of this process.
        let large = vec![1_u8; 64 << 20];
        let cpu = crate::task::affinity(0).unwrap()[0];
        let mut command =
            command(&["sh", "-c", "grep -q \"^Cpus_allowed_list:.$CPU$\" /proc/self/status"]);
        command.env.push(("CPU".into(), cpu.to_string().into()));
        command.cpus = vec![cpu];
        let started = command.start().unwrap();
        let (end, used) = started.collect().unwrap();
        assert_eq!(end, End::Exited(0));
        assert!(started.before.rss_bytes_max < 1 << 20, "{:?}", started.before);
        assert!(used.rss_bytes_max < 16 << 20 && !used.rss_is_bound, "{used:?}");
        assert!(large.iter().all(|byte| *byte == 1));
    }
}

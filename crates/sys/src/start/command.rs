//! A command with its arguments, environment, streams and search path.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// A command to start.
#[derive(Clone, Debug)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` for that of this process.
    pub dir: Option<CString>,
    /// Process group to join; 0 for a new one.
    pub group: u32,
    /// CPUs that it may use; empty for those of the calling thread.
    pub cpus: Vec<u32>,
    /// Descriptors of standard input, output and error: 0, 1 and 2 in their own positions are inherited.
    pub stdio: [RawFd; 3],
}

impl Command {
    /// A command with the environment and the standard streams of this process.
    pub fn new(argv: Vec<OsString>) -> Command {
        let env = std::env::vars_os().collect();
        Command { argv, env, dir: None, group: own_group(), cpus: Vec::new(), stdio: [0, 1, 2] }
    }

    /// Paths to try, like execvp(3): the program itself, or in each folder of PATH.
    pub(super) fn programs(&self) -> io::Result<Vec<CString>> {
        let name = self.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        let bytes = name.as_encoded_bytes();
        if bytes.contains(&b'/') || bytes.is_empty() {
            return Ok(vec![CString::new(bytes)?]);
        }
        let path = self.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.clone());
        let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
        let folders = std::env::split_paths(&path).map(|folder| match folder.as_os_str() {
            empty if empty.is_empty() => Path::new(".").join(name),
            _ => folder.join(name),
        });
        let names = folders.map(|path| CString::new(path.into_os_string().into_vec()));
        Ok(names.collect::<Result<_, _>>()?)
    }
}

/// Process group of this process; 0 if it is outside this namespace, as for the first process of a container
/// (pid_namespaces(7)): a command then gets its own group.
fn own_group() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::getpgrp() }.unsigned_abs()
}

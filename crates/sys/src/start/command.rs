//! A command with its arguments, environment, streams and search path.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The place of a process among sessions and process groups, credentials(7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the process group of this process: keys of the terminal reach both.
    #[default]
    Here,
    /// In a session of its own, without a controlling terminal: job control of a shell finds none that it could
    /// want to have, and nothing stops it for reading from one in the background. It is killed if this process
    /// ends before it.
    Session,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` for that of this process.
    pub dir: Option<CString>,
    /// Its place among sessions.
    pub place: Place,
    /// CPUs that it may use; empty for those of the calling thread.
    pub cpus: Vec<u32>,
    /// Descriptors of standard input, output and error: 0, 1 and 2 in their own positions are inherited.
    pub stdio: [RawFd; 3],
}

impl Command {
    /// A command with the environment and the standard streams of this process.
    pub fn new(argv: Vec<OsString>) -> Command {
        let env = std::env::vars_os().collect();
        let place = Place::Here;
        Command { argv, env, dir: None, place, cpus: Vec::new(), stdio: [0, 1, 2] }
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

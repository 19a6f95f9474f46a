//! Copies this program to another machine (`--install-agent`), in one login: a script there tells its system and whether the
//! program is there already; otherwise it takes it under a temporary name, checks and tries it, and renames it.

use crate::ssh::{RemoteHost, RemoteShell};
use hakobu_sys::host;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::process::{ExitStatus, Stdio};

/// This program as it is copied.
pub struct ProgramCopy {
    file: File,
    /// Its size.
    pub bytes: u64,
    /// Its name there: `VERSION-ARCHITECTURE`.
    pub name: String,
    hash: String,
    /// System and architecture, as `uname -sm` prints them.
    pub system: String,
}

/// Why this program is not on the other machine.
#[derive(Debug)]
pub enum InstallError {
    /// The remote shell cannot be started.
    Start(io::Error),
    /// It ended before all was done.
    Ended(ExitStatus),
    /// It printed something else.
    Said(Vec<u8>),
    /// The other machine has another system or architecture.
    System(String),
    /// What arrived is not what was sent.
    Damaged,
    /// The copy does not start there.
    Unfit,
}

/// Most bytes of a line of the script.
const LINE_BYTES_MAX: u64 = 256;
/// Bytes of the program that are read at once.
const READ_BYTES: usize = 128 << 10;
/// Begins its lines.
const MARK: &str = "hakobu ";

/// The script, without single quotes, backslashes and exclamation marks: each login shell passes it on as it is. Its
/// temporary file is removed at its end, whatever ends it, and an old one of a killed shell at the next installation.
const SCRIPT: &str = "d=$HOME/.cache/hakobu/agent; umask 077; \
    sum() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-64; }; \
    mkdir -p \"$d\" && cd \"$d\" || exit 1; \
    find . -type f -name \".NAME.*\" -mmin +60 -exec rm -f {} +; \
    if [ -x NAME ] && [ \"$(sum <NAME)\" = HASH ]; then echo \"hakobu present $(uname -sm)\"; exit 0; fi; \
    echo \"hakobu absent $(uname -sm)\"; \
    t=.NAME.$$; trap \"rm -f $t\" 0; trap \"exit 1\" 1 2 13 15; \
    cat >$t || exit 1; \
    if [ \"$(sum <$t)\" = HASH ]; then :; else echo \"hakobu damaged\"; exit 1; fi; \
    chmod 700 $t || exit 1; \
    if ./$t --version >/dev/null; then :; else echo \"hakobu unfit\"; exit 1; fi; \
    mv -f $t NAME && ln -s NAME $t && mv -f $t hakobu && echo \"hakobu done\"";

impl ProgramCopy {
    /// Reads the program that is running.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn of_this(version: &str) -> io::Result<ProgramCopy> {
        // Also after it was replaced.
        let mut file = host::open_program()?;
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let got = match file.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            hash.update(buffer.get(..got).unwrap_or_default());
            bytes += got as u64;
        }
        file.rewind()?;
        let hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{version}-{}", host::kernel().1);
        Ok(ProgramCopy { file, bytes, name, hash, system: host::system() })
    }

    /// Returns the command that starts the copy as the agent, but for its last word.
    pub fn command(&self) -> OsString {
        format!("sh -c 'exec \"$HOME/.cache/hakobu/agent/{}\" \"$@\"' sh", self.name).into()
    }

    /// Brings it to a host, unless it is there; `begins` is called before it is sent.
    ///
    /// # Errors
    /// It is not there.
    pub fn install(
        &self,
        shell: &RemoteShell,
        to: &RemoteHost,
        begins: impl FnOnce(),
    ) -> Result<(), InstallError> {
        let script = SCRIPT.replace("NAME", &self.name).replace("HASH", &self.hash);
        let mut command = shell.login(to, &[]);
        command.arg(format!("sh -c '{script}'")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(InstallError::Start)?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let talked = match (to, from) {
            (Some(to), Some(from)) => self.talk(to, BufReader::new(from), begins),
            _ => Err(None),
        };
        let status = child.wait().map_err(InstallError::Start)?;
        talked.map_err(|error| error.unwrap_or(InstallError::Ended(status)))
    }

    /// Talks to the script; an error of `None`: it has ended.
    fn talk(
        &self,
        mut to: impl io::Write,
        mut from: impl BufRead,
        begins: impl FnOnce(),
    ) -> Result<(), Option<InstallError>> {
        let first = line(&mut from)?;
        let (state, system) = first.split_once(' ').unwrap_or((&first, ""));
        if system != self.system {
            return Err(Some(InstallError::System(system.to_owned())));
        }
        match state {
            "present" => return Ok(()),
            "absent" => {}
            _ => return Err(Some(InstallError::Said(first.into_bytes()))),
        }
        begins();
        // An end that takes no more tells why.
        let _ = io::copy(&mut &self.file, &mut to).and_then(|_| to.flush());
        drop(to);
        match &*line(&mut from)? {
            "done" => Ok(()),
            "damaged" => Err(Some(InstallError::Damaged)),
            "unfit" => Err(Some(InstallError::Unfit)),
            other => Err(Some(InstallError::Said(other.as_bytes().to_vec()))),
        }
    }
}

/// Reads a line of the script, without its mark.
fn line(from: &mut impl BufRead) -> Result<String, Option<InstallError>> {
    let mut said = Vec::new();
    let read = from.take(LINE_BYTES_MAX).read_until(b'\n', &mut said);
    if read.is_err() || said.is_empty() {
        return Err(None);
    }
    let text = std::str::from_utf8(&said).ok().and_then(|text| text.strip_prefix(MARK));
    match text {
        Some(text) => Ok(text.trim_end().to_owned()),
        None => Err(Some(InstallError::Said(said))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_login_shell_passes_the_script_on() {
        assert!(!SCRIPT.contains(['\'', '\\', '!', '\n', '`']), "{SCRIPT}");
    }

    #[test]
    fn lines_of_the_script() {
        let read = |text: &str| line(&mut text.as_bytes());
        assert_eq!(read("hakobu absent Linux x86_64\n").unwrap(), "absent Linux x86_64");
        assert!(matches!(read(""), Err(None)));
        let long = "x".repeat(1 << 20);
        for noise in ["Welcome\n", &long] {
            let Err(Some(InstallError::Said(said))) = read(noise) else { panic!("{noise}") };
            assert!(said.len() as u64 <= LINE_BYTES_MAX);
        }
    }
}

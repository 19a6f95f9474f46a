//! What ssh is asked for beside the agent: a login that further channels can share, and a cipher that the CPU computes itself.
//! Only where the remote shell is ssh, and only what the user has not chosen.

use crate::join;
use crate::ssh::{RemoteHost, RemoteShell};
use hakobu_sys::host;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The cipher that is fastest on a CPU with AES.
const QUICK_CIPHER: &str = "aes128-gcm@openssh.com";

/// How a login is shared; see the module.
#[derive(Debug, Default)]
pub struct SshSession {
    /// Options of the first connection.
    pub options: Vec<OsString>,
    /// Options of a further channel of the same login; `None`: there are none.
    pub lane_options: Option<Vec<OsString>>,
    /// The socket of a login of our own. ssh removes it, unless it is killed.
    socket: Option<PathBuf>,
}

/// What ssh says about a channel that the other side does not open: there is a way without. `channel 4: open failed: ...`
const UNOPENED: [&[u8]; 2] = [b"channel ", b": open failed: "];

impl SshSession {
    /// Asks ssh how it would connect, and makes no connection.
    pub fn of(shell: &RemoteShell, host: &RemoteHost) -> SshSession {
        let program = shell.words.first().map_or(OsStr::new("ssh"), OsString::as_os_str);
        if Path::new(program).file_name() != Some(OsStr::new("ssh")) {
            return SshSession::default();
        }
        let mut by_itself = Command::new(program);
        by_itself.args(["-F", "none", "-G", "host"]);
        let asked = shell.login(host, &["-G".into()]);
        // Both at once: each takes some milliseconds.
        let (by_itself, asked) = (start(by_itself), start(asked));
        let Some(asked) = asked.and_then(settings) else { return SshSession::default() };
        let by_itself = by_itself.and_then(settings).unwrap_or_default();
        let mut session = SshSession::default();
        session.options.extend(quick_ciphers(&by_itself, &asked, host::has_aes()));
        // A lane never logs in: neither another key touch nor another password.
        let no_login =
            ["BatchMode=yes", "ControlMaster=no", "ClearAllForwardings=yes", "ProxyCommand=false"];
        let no_login = || no_login.iter().flat_map(|of| ["-o".into(), OsString::from(of)]);
        match asked.get("controlpath").map(String::as_str) {
            None | Some("none") => {
                let Ok(socket) = random_path() else { return session };
                let path = [OsString::from("-S"), escaped(&socket)];
                session.options.extend(path.clone());
                let own = ["ControlMaster=yes", "ControlPersist=no"];
                session.options.extend(own.iter().flat_map(|of| ["-o".into(), of.into()]));
                session.lane_options = Some(path.into_iter().chain(no_login()).collect());
                session.socket = Some(socket);
            }
            // The name of the user's socket may depend on the jump host, which a proxy command replaces.
            Some(_) if asked.contains_key("proxyjump") => {}
            Some(_) => session.lane_options = Some(no_login().collect()),
        }
        session
    }
}

impl SshSession {
    /// Returns whether ssh may speak of channels, which [`pass_on`] leaves out. A login of the user's may stay, with the same
    /// standard error.
    pub fn is_own(&self) -> bool {
        self.socket.is_some()
    }
}

/// Passes on what ssh says, but not about channels that are not opened, until it has ended.
pub fn pass_on(mut from: impl Read, mut to: impl Write) {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for byte in buffer.get(..got).unwrap_or_default() {
            line.push(*byte);
            let [start, rest] = UNOPENED;
            let is_start = line.starts_with(start) || start.starts_with(&line);
            if *byte == b'\n' || !is_start {
                let is_unopened =
                    line.starts_with(start) && line.windows(rest.len()).any(|part| part == rest);
                if !is_unopened {
                    // Without standard error there is nobody to tell.
                    let _ = to.write_all(&line);
                }
                line.clear();
            }
        }
        let _ = to.flush();
    }
    let _ = to.write_all(&line);
}

impl Drop for SshSession {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // It is gone, unless ssh was killed.
            let _ = fs::remove_file(socket);
        }
    }
}

fn random_path() -> io::Result<PathBuf> {
    let digits = join::random_digits()?;
    join::socket_path(&format!("ssh-{}", digits.get(..8).unwrap_or_default()))
}

/// Returns a path as ssh takes it: percent signs are doubled.
fn escaped(path: &Path) -> OsString {
    let doubled = |byte: &u8| std::iter::repeat_n(*byte, if *byte == b'%' { 2 } else { 1 });
    OsString::from_vec(path.as_os_str().as_bytes().iter().flat_map(doubled).collect())
}

fn start(mut command: Command) -> Option<std::process::Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// Reads what `ssh -G` prints: a name and a value in each line. `None` if it fails.
fn settings(asked: std::process::Child) -> Option<HashMap<String, String>> {
    let output = asked.wait_with_output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    // The first one counts, as everywhere in ssh.
    let mut found = HashMap::new();
    for (name, value) in pairs {
        found.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    Some(found)
}

/// Returns the option that puts the quick cipher first, where ssh takes its own list of them and would begin with a slower one.
/// The whole list, as the form that only names the first came with OpenSSH 8.1.
fn quick_ciphers(
    by_itself: &HashMap<String, String>,
    asked: &HashMap<String, String>,
    has_aes: bool,
) -> Vec<OsString> {
    let Some(all) = asked.get("ciphers").filter(|all| by_itself.get("ciphers") == Some(all)) else {
        return Vec::new();
    };
    let is_quick = |cipher: &str| cipher.contains("-gcm@");
    let first = all.split(',').next().unwrap_or_default();
    if !has_aes || is_quick(first) || !all.split(',').any(|cipher| cipher == QUICK_CIPHER) {
        return Vec::new();
    }
    let others = all.split(',').filter(|cipher| *cipher != QUICK_CIPHER);
    let list: Vec<&str> = std::iter::once(QUICK_CIPHER).chain(others).collect();
    vec!["-o".into(), format!("Ciphers={}", list.join(",")).into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cipher_is_chosen_where_nobody_chose_one() {
        let of = |ciphers: &str| HashMap::from([("ciphers".to_owned(), ciphers.to_owned())]);
        let usual = of("chacha20-poly1305@openssh.com,aes128-ctr,aes128-gcm@openssh.com");
        let quick =
            ["-o", "Ciphers=aes128-gcm@openssh.com,chacha20-poly1305@openssh.com,aes128-ctr"];
        assert_eq!(quick_ciphers(&usual, &usual, true), quick);
        let none: [&str; 0] = [];
        assert_eq!(quick_ciphers(&usual, &usual, false), none);
        assert_eq!(quick_ciphers(&usual, &of("aes256-ctr"), true), none);
        assert_eq!(quick_ciphers(&HashMap::new(), &usual, true), none);
        let newer = of("aes256-gcm@openssh.com,aes128-gcm@openssh.com");
        assert_eq!(quick_ciphers(&newer, &newer, true), none);
        let without = of("chacha20-poly1305@openssh.com");
        assert_eq!(quick_ciphers(&without, &without, true), none);
    }

    #[test]
    fn unopened_channels_are_left_out() {
        let said = "Warning: added.\nchannel 4: open failed: administratively prohibited: open failed\n\
            channel 5 is fine\nchannelling\nchannel";
        let mut passed = Vec::new();
        pass_on(said.as_bytes(), &mut passed);
        let passed = String::from_utf8(passed).unwrap();
        assert_eq!(passed, "Warning: added.\nchannel 5 is fine\nchannelling\nchannel");
    }

    #[test]
    fn other_shells_are_asked_for_nothing() {
        for words in [&["/some/shell.sh"][..], &["sshpass", "ssh"]] {
            let words = words.iter().map(OsString::from).collect();
            let shell = RemoteShell { words, ..RemoteShell::default() };
            let session = SshSession::of(&shell, &RemoteHost::default());
            assert!(session.options.is_empty() && session.lane_options.is_none());
        }
    }
}

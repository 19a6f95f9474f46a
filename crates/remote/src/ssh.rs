//! Starts the other end: `ssh HOST COMMAND`, or another remote shell (`-e`), with its standard input and output as the
//! lane. Prompts and messages of ssh go to the terminal, as always.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

/// What the agent writes before its first message: tells it from the output of a shell's start-up files.
pub const GREETING: &[u8; 16] = b"\0hakobu agent\r\n\0";

/// How the other end is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteShell {
    /// The words of `-e` or RSYNC_RSH; none: ssh.
    pub words: Vec<OsString>,
    /// `--rsync-path`: the command of the agent, for the shell there.
    pub program: Option<OsString>,
    /// `-4`, `-6`.
    pub family: Option<OsString>,
}

/// A host and how to log in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteHost {
    pub user: Option<OsString>,
    pub host: OsString,
    pub port: Option<u16>,
}

/// Looks for the agent where programs of a user are, as the PATH of a shell that nobody logged in to is short.
const SEARCH: &str = "sh -c 'PATH=\"$PATH:$HOME/.local/bin:/usr/local/bin:$HOME/.cache/hakobu/agent\"; \
    export PATH; exec hakobu agent'";

impl RemoteShell {
    /// Splits the words of `-e` as rsync does: at blanks, where a part in quotes is one word, and a doubled quote in it one.
    ///
    /// # Errors
    /// A quote without its end; no word.
    pub fn split(text: &OsStr) -> Result<Vec<OsString>, &'static str> {
        let mut words: Vec<OsString> = Vec::new();
        let mut word: Option<Vec<u8>> = None;
        let mut quote = None;
        let mut bytes = text.as_bytes().iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match (quote, byte) {
                (Some(open), _) if byte == open => match bytes.next_if_eq(&open) {
                    Some(_) => word.get_or_insert_default().push(open),
                    None => quote = None,
                },
                (Some(_), _) => word.get_or_insert_default().push(byte),
                (None, b'\'' | b'"') => {
                    quote = Some(byte);
                    word.get_or_insert_default();
                }
                (None, b' ' | b'\t') => words.extend(word.take().map(OsString::from_vec)),
                (None, _) => word.get_or_insert_default().push(byte),
            }
        }
        if quote.is_some() {
            return Err("a quote without its end");
        }
        words.extend(word.take().map(OsString::from_vec));
        if words.is_empty() { Err("no command") } else { Ok(words) }
    }

    /// Returns the remote shell with its options, `more` of them, and the host.
    pub(crate) fn login(&self, host: &RemoteHost, more: &[OsString]) -> Command {
        let (program, arguments) = match self.words.split_first() {
            Some((program, arguments)) => (program.clone(), arguments),
            None => ("ssh".into(), &[][..]),
        };
        let mut command = Command::new(program);
        command.args(arguments).args(&self.family).args(more);
        if let Some(port) = host.port {
            command.arg("-p").arg(port.to_string());
        }
        if let Some(user) = &host.user {
            command.arg("-l").arg(user);
        }
        command.arg(&host.host);
        command
    }

    /// Returns the command that starts the agent on a host; `more`: further options of ssh.
    pub fn command(&self, host: &RemoteHost, more: &[OsString]) -> Command {
        let mut command = self.login(host, more);
        match &self.program {
            Some(program) => {
                let mut words = program.clone();
                words.push(" agent");
                command.arg(words)
            }
            None => command.arg(SEARCH),
        };
        command
    }

    /// Starts the agent on a host; `more`: further options of ssh; `listens`: its standard error is read here.
    ///
    /// # Errors
    /// The remote shell cannot be started.
    pub fn start(
        &self,
        host: &RemoteHost,
        more: &[OsString],
        listens: bool,
    ) -> io::Result<RemoteAgent> {
        let mut command = self.command(host, more);
        if listens {
            command.stderr(Stdio::piped());
        }
        RemoteAgent::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    /// Starts an agent over a further channel of a login. What ssh has to say about that is nobody's concern: there is a
    /// way without.
    ///
    /// # Errors
    /// The remote shell cannot be started.
    pub fn start_lane(&self, host: &RemoteHost, more: &[OsString]) -> io::Result<RemoteAgent> {
        let mut command = self.command(host, more);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        RemoteAgent::start(command.stderr(Stdio::null()))
    }
}

impl RemoteAgent {
    fn start(command: &mut Command) -> io::Result<RemoteAgent> {
        let mut child = command.spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(to), Some(from)) => {
                Ok(RemoteAgent { said: child.stderr.take(), child, to, from })
            }
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// A running remote shell, and the ends of its pipes.
pub struct RemoteAgent {
    pub child: Child,
    pub to: ChildStdin,
    pub from: ChildStdout,
    /// Its standard error, if that is read here.
    pub said: Option<ChildStderr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<String>, &'static str> {
        let split = RemoteShell::split(OsStr::new(text))?;
        Ok(split.into_iter().map(|word| word.into_string().unwrap()).collect())
    }

    #[test]
    fn words_of_a_shell() {
        for (text, expected) in [
            ("ssh", vec!["ssh"]),
            ("  ssh  -p 2222 ", vec!["ssh", "-p", "2222"]),
            (r#"ssh -o 'ProxyCommand nc "%h" %p'"#, vec!["ssh", "-o", "ProxyCommand nc \"%h\" %p"]),
            (r#"a "b ""c"" d" ''"#, vec!["a", "b \"c\" d", ""]),
            ("a'b'c", vec!["abc"]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        assert_eq!(words("ssh 'a"), Err("a quote without its end"));
        assert_eq!(words(" "), Err("no command"));
    }

    #[test]
    fn commands_of_shells() {
        let of = |shell: &RemoteShell, host: &RemoteHost| -> Vec<String> {
            let command = shell.command(host, &[]);
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect()
        };
        let host = RemoteHost { user: None, host: "h".into(), port: None };
        assert_eq!(of(&RemoteShell::default(), &host), ["ssh", "h", SEARCH]);
        let shell = RemoteShell {
            words: vec!["my".into(), "-x".into()],
            program: Some("sudo hakobu".into()),
            family: Some("-6".into()),
        };
        let host = RemoteHost { user: Some("u".into()), host: "::1".into(), port: Some(22) };
        let words = ["my", "-x", "-6", "-p", "22", "-l", "u", "::1", "sudo hakobu agent"];
        assert_eq!(of(&shell, &host), words);
    }
}

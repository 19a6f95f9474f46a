//! The end of a command that is on another machine: which of its arguments are there, how the machine is reached, and what
//! its agent is told.

use crate::cli::{Group, OptArg, Typed, flag, put, titled, value};
use hakobu_core::error::{Fatal, quoted};
use hakobu_remote::ssh::{RemoteHost, RemoteShell};
use hakobu_transfer::far::TaskOption;
use hakobu_transfer::journal::text;
use hakobu_transfer::location::{Location, RemotePath, Side, Sources};
use hakobu_transfer::run::{AgentTask, RemoteEnd};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Exit code of a command line that is refused; `cp` and `verify` have their own.
const USAGE: u8 = 1;

pub(super) fn usage(message: impl Into<String>) -> Fatal {
    Fatal::new(USAGE, message.into())
}

// How the machine is reached.

/// The options read so far.
#[derive(Clone, Debug, Default)]
pub struct RemoteArgs {
    /// `-e`.
    shell: Option<OsString>,
    /// `--rsync-path`.
    program: Option<OsString>,
    /// `-4`, `-6`.
    family: Option<&'static str>,
    /// `--install-agent`.
    installs: bool,
    /// `--timeout`, `--contimeout`.
    silence: Option<Duration>,
    connecting: Option<Duration>,
}

/// Returns a time in seconds; `None`: it is not limited.
fn seconds(arg: &OptArg) -> Result<Option<Duration>, String> {
    let parsed = if arg.on { arg.parsed::<u32>() } else { Some(0) };
    let seconds = parsed.ok_or_else(|| arg.refuse("not a number of seconds"))?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds.into())))
}

/// Options of `sync`, `cp` and `verify`.
pub static OPTIONS: Group<RemoteArgs> = titled("Another machine").with(&[
    value("rsh", Some('e'), "COMMAND", "remote shell (default: RSYNC_RSH, else ssh)")
        .reads(|it, arg| put(&mut it.shell, Some(arg.value.clone()))),
    value("rsync-path", None, "PROGRAM", "hakobu on the other machine, for the shell there")
        .alias(&["remote-path"])
        .reads(|it, arg| put(&mut it.program, Some(arg.value.clone()))),
    flag("install-agent", None, "copy this program to the other machine if it is not there")
        .sets(|it, on| it.installs = on),
    value("timeout", None, "SECONDS", "end if the other machine says nothing for SECONDS")
        .off(&["no-timeout"])
        .reads(|it, arg| put(&mut it.silence, seconds(arg)?)),
    value("contimeout", None, "SECONDS", "end if the other machine is not there after SECONDS")
        .off(&["no-contimeout"])
        .reads(|it, arg| put(&mut it.connecting, seconds(arg)?)),
    flag("ipv4", Some('4'), "prefer IPv4").sets(|it, on| it.family = on.then_some("-4")),
    flag("ipv6", Some('6'), "prefer IPv6").sets(|it, on| it.family = on.then_some("-6")),
]);

impl RemoteArgs {
    /// Returns the side of `command` that is on a host, and what its agent is told.
    ///
    /// # Errors
    /// Those of the remote shell.
    pub fn end(
        &self,
        (side, host): (Side, RemoteHost),
        command: &'static str,
        options: Vec<TaskOption>,
    ) -> Result<RemoteEnd, Fatal> {
        if self.installs && self.program.is_some() {
            return Err(usage("--install-agent cannot be used with --rsync-path"));
        }
        let shell = self.shell()?;
        let RemoteArgs { silence, connecting, installs, .. } = *self;
        let (rule_files, list) = Default::default();
        Ok(RemoteEnd {
            side,
            host,
            shell,
            command,
            options,
            rule_files,
            list,
            installs,
            silence,
            connecting,
        })
    }

    /// Refuses options about another machine where there is none.
    ///
    /// # Errors
    /// A sentence that names one.
    pub fn refuse_unused(&self) -> Result<(), String> {
        let given = [
            (self.shell.is_some(), "--rsh"),
            (self.program.is_some(), "--rsync-path"),
            (self.installs, "--install-agent"),
            (self.silence.is_some(), "--timeout"),
            (self.connecting.is_some(), "--contimeout"),
            (self.family.is_some(), "--ipv4 or --ipv6"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Err(format!("{option} is for another machine (HOST:PATH), and none is given"))
            }
            None => Ok(()),
        }
    }

    /// Returns the options that are given, and have no effect where there is no other machine.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.silence.is_some(), "--timeout"),
            (self.connecting.is_some(), "--contimeout"),
            (self.installs, "--install-agent"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name)
    }

    /// Returns the remote shell.
    ///
    /// # Errors
    /// Words that cannot be split; a program that is rsync.
    fn shell(&self) -> Result<RemoteShell, Fatal> {
        let words = match self.shell.clone().or_else(|| std::env::var_os("RSYNC_RSH")) {
            None => Vec::new(),
            Some(words) => RemoteShell::split(&words)
                .map_err(|why| usage(format!("invalid --rsh {}: {why}", quoted(&words))))?,
        };
        let last = |program: &OsString| {
            let words = program.as_bytes().rsplit(u8::is_ascii_whitespace);
            let mut words = words.filter(|word| !word.is_empty());
            words.next().map(|word| PathBuf::from(OsStr::from_bytes(word)))
        };
        if let Some(program) = &self.program
            && last(program).is_some_and(|word| word.file_name() == Some(OsStr::new("rsync")))
        {
            return Err(usage(format!(
                "--rsync-path {}: that is rsync, and hakobu needs hakobu there\n\
                 hint: leave it out, or give the path of hakobu",
                quoted(program)
            )));
        }
        let (program, family) = (self.program.clone(), self.family.map(OsString::from));
        Ok(RemoteShell { words, program, family })
    }
}

// Arguments.

/// Sources and target of which one side is on another machine; paths there are as that machine has them.
#[derive(Debug, PartialEq, Eq)]
pub struct RemotePlaces {
    /// The side that is there.
    pub side: Side,
    pub host: RemoteHost,
    pub sources: Sources,
    pub target: Location,
}

/// Returns a path of another machine; an empty one is the home directory.
fn or_home(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() }
}

/// Takes the arguments of `command` if some of them are on another machine.
///
/// # Errors
/// Locations that do not go together, each with what to do instead.
pub fn places(
    sources: &[OsString],
    target: &OsStr,
    command: &str,
) -> Result<Option<RemotePlaces>, Fatal> {
    let parsed: Vec<Option<RemotePath>> =
        sources.iter().map(|path| RemotePath::parse(path)).collect::<Result<_, Fatal>>()?;
    let far_target = RemotePath::parse(target)?;
    let host = |path: &RemotePath| path.host.clone();
    let Some(first) = far_target.as_ref().or(parsed.iter().flatten().next()).map(host) else {
        return Ok(None);
    };
    let here = |path: &OsStr| match Location::parse(path)? {
        Location::S3(_) => Err(usage(format!(
            "{} is an object, and the other side is on another machine\n\
             hint: run it there: ssh {} hakobu {command} ...",
            quoted(path),
            first.host.display()
        ))),
        _ => Location::parse_local(path),
    };
    let Some(far) = far_target else {
        let same = |one: &&RemotePath| one.host == first;
        let paths = parsed.iter().map(|source| source.as_ref().filter(same));
        let paths = paths.map(|source| source.map(|source| or_home(&source.path)));
        let Some(paths) = paths.collect::<Option<Vec<PathBuf>>>() else {
            return Err(usage("sources are either all here or all on one other machine"));
        };
        let target = Location::Local(here(target)?);
        let sources = Sources::Paths(paths);
        return Ok(Some(RemotePlaces { side: Side::Source, host: first, sources, target }));
    };
    if parsed.iter().any(Option::is_some) {
        return Err(usage(format!(
            "source and target are both on other machines\n\
             hint: run it on one of them: ssh -A {} hakobu {command} ...",
            far.host.host.display()
        )));
    }
    let sources = sources.iter().map(|source| here(source)).collect::<Result<_, Fatal>>()?;
    Ok(Some(RemotePlaces {
        side: Side::Target,
        host: far.host,
        sources: Sources::Paths(sources),
        target: Location::Local(or_home(&far.path)),
    }))
}

/// Takes the one argument of a list if it is on another machine.
///
/// # Errors
/// A location that is not supported.
pub fn listed(path: &OsStr) -> Result<Option<RemotePlaces>, Fatal> {
    let path = RemotePath::parse(path)?;
    Ok(path.map(|RemotePath { host, path }| RemotePlaces {
        side: Side::Source,
        host,
        sources: Sources::Paths(vec![or_home(&path)]),
        target: Location::Null,
    }))
}

/// Returns the message of a command whose paths are all here, about one that is on another machine and names nothing here.
/// `there`: the command that does it on that machine.
pub fn elsewhere(paths: &[OsString], there: &str) -> Option<String> {
    paths.iter().find_map(|typed| {
        let RemotePath { host, path } = RemotePath::parse(typed).ok()??;
        let is_here = Path::new(typed).symlink_metadata().is_ok();
        let path = or_home(&path);
        (!is_here).then(|| {
            format!(
                "{}: no such file here, and other machines are not supported here\n\
                 hint: run it there: ssh {} {there} {}",
                quoted(typed),
                host.host.display(),
                quoted(&path)
            )
        })
    })
}

// What an agent is told: options as data, of which it takes those that it knows.

/// Returns the options of a command line that are in `far`, which the other end has to know.
pub fn task_options(typed: &Typed, far: &[&str]) -> Vec<TaskOption> {
    typed.options.iter().filter(|of| far.contains(&of.name)).map(task_option).collect()
}

/// Returns an option as it is sent.
pub fn task_option(of: &OptArg) -> TaskOption {
    let (name, value) = (of.name.to_owned(), text(of.value.as_bytes()));
    TaskOption { name, on: of.on, count: of.count, value }
}

/// Reads the options of a task; those in `noted` have no effect but on what is shown. The paths stand for those of the task,
/// which no rule for arguments applies to.
///
/// # Errors
/// An option that is not in `far` nor in `noted`.
pub fn read_options(
    task: &AgentTask,
    far: &[&'static str],
    noted: &[&'static str],
) -> Result<Typed, Fatal> {
    let mut typed = Typed::default();
    for (name, on, count, value) in &task.options {
        let of = |name| OptArg { name, on: *on, count: *count, value: value.clone() };
        let known =
            |names: &[&'static str]| names.iter().copied().find(|known| known == name).map(of);
        if let Some(option) = known(far) {
            typed.options.push(option);
        } else if let Some(option) = known(noted) {
            typed.noted.push(option);
        } else {
            return Err(usage(format!("the agent does not take --{name}")));
        }
    }
    typed.paths = match task.reads {
        true => task.paths.iter().map(|_| "/".into()).chain(["null:".into()]).collect(),
        false => vec!["/".into(), "/".into()],
    };
    Ok(typed)
}

/// Returns the paths of a task in the place of those that stood for them.
///
/// # Errors
/// A task that writes has one path.
pub fn task_places(
    task: &AgentTask,
    places: (Sources, Location),
) -> Result<(Sources, Location), Fatal> {
    match (task.reads, &*task.paths) {
        (true, paths) => Ok((Sources::Paths(paths.to_vec()), places.1)),
        (false, [target]) => Ok((places.0, Location::Local(target.clone()))),
        (false, _) => Err(usage("a task has one target")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(line: &str) -> String {
        let mut words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let target = words.pop().unwrap_or_default();
        match places(&words, &target, "sync") {
            Ok(None) => "none".to_owned(),
            Ok(Some(RemotePlaces { side, host, sources, target })) => {
                let (sources, target) = (sources.paths().to_vec(), target.as_typed());
                format!("{side:?} {} {sources:?} {target:?}", host.host.display())
            }
            Err(fatal) => fatal.message,
        }
    }

    #[test]
    fn sides() {
        for (line, expected) in [
            ("a b", "none"),
            ("s3://bucket/a b", "none"),
            ("a h:b", r#"Target h ["a"] "b""#),
            ("a b h:", r#"Target h ["a", "b"] ".""#),
            ("h:a h:b c", r#"Source h ["a", "b"] "c""#),
            ("h: .", r#"Source h ["."] ".""#),
            ("h:a g:b c", "sources are either all here or all on one other machine"),
            ("h:a b c", "sources are either all here or all on one other machine"),
        ] {
            assert_eq!(placed(line), expected, "{line}");
        }
        for (line, expected) in [
            ("h:a g:b", "ssh -A g hakobu sync"),
            ("s3://bucket h:b", "ssh h hakobu sync"),
            ("h:a s3://bucket", "ssh h hakobu sync"),
            ("h::m b", "modules of an rsync daemon"),
            ("rsync://h/m g:b", "rsync:// locations are not supported"),
        ] {
            assert!(placed(line).contains(expected), "{line}: {}", placed(line));
        }
    }

    #[test]
    fn programs_that_are_rsync() {
        let shell = |program: &str| {
            RemoteArgs { program: Some(program.into()), ..RemoteArgs::default() }.shell()
        };
        for rsync in ["rsync", "/usr/bin/rsync", "sudo rsync", "sudo -n /usr/bin/rsync "] {
            assert!(shell(rsync).is_err(), "{rsync}");
        }
        for fine in ["hakobu", "sudo hakobu", "/opt/rsync/hakobu", "/srv/my-rsync"] {
            assert!(shell(fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn paths_that_are_elsewhere() {
        let of = |path: &str| elsewhere(&[path.into()], "hakobu rm");
        assert!(of("h:a b").is_some_and(|said| said.contains("ssh h hakobu rm 'a b'")));
        assert_eq!((of("a"), of("./h:a"), of("s3://bucket/a")), (None, None, None));
    }
}

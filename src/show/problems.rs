//! Messages of problems, the first ones of a kind by name and the others counted, with advice.

use super::escape::Escape;
use crate::number::grouped;
use hakobu_core::error::{Cause, DIRECTORY_STAYS, ENTRY_STAYS, ErrorClass, Operation, Problem};
use hakobu_sys::{errno, process};
use std::borrow::Cow;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum number of kinds of problems; further ones are only counted.
const GROUPS_MAX: usize = 64;
/// Problems of one kind that are listed by name.
const NAMED_MAX: usize = 3;

/// Returns a problem as a sentence without a full stop.
pub fn sentence(problem: &Problem, escape: Escape) -> String {
    let quote = |path: &Path| format!("'{}'", escape.path(path));
    let (source, target) = (problem.source.as_deref(), problem.target.as_deref());
    let reads = matches!(problem.operation, Operation::Read | Operation::List | Operation::Filter);
    let (main, other) = if reads { (source, target) } else { (target, source) };
    let name = main.or(other).map(quote).unwrap_or_default();
    match problem.class {
        ErrorClass::Vanished => format!("{name} vanished before it could be copied"),
        ErrorClass::Notice => format!("skipped {name}: {}", problem.cause),
        // GNU's words.
        _ if problem.operation == Operation::Overwrite => {
            let from = source.map(quote).unwrap_or_default();
            let to = target.map(quote).unwrap_or_default();
            let cause = Some(problem.cause.to_string()).filter(|cause| !cause.is_empty());
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("will not overwrite just-created {to} with {from}{cause}")
        }
        _ if matches!(problem.cause, Cause::Reason(DIRECTORY_STAYS)) => {
            format!("cannot overwrite directory {name} with non-directory")
        }
        _ if matches!(problem.cause, Cause::Reason(ENTRY_STAYS)) => {
            let from = source.map(quote).unwrap_or_default();
            format!("cannot overwrite non-directory {name} with directory {from}")
        }
        _ if problem.operation == Operation::Move => {
            let from = source.map(quote).unwrap_or_default();
            let to = target.map(quote).unwrap_or_default();
            format!("cannot move {from} to {to}: {}", problem.cause)
        }
        _ => {
            let with = match (main, other) {
                (Some(_), Some(from)) if !reads && problem.operation != Operation::Remove => {
                    format!(" (from {})", quote(from))
                }
                _ => String::new(),
            };
            format!("cannot {} {name}{with}: {}", problem.operation.words(), problem.cause)
        }
    }
}

/// Returns advice to a user of `command` about a cause, if there is any. It names only options that the command has.
/// `styled`: the style of filter patterns was given, so there is none about it.
pub fn advice(problem: &Problem, command: &str, styled: bool) -> Option<&'static str> {
    if styled && problem.operation == Operation::Filter {
        return None;
    }
    advice_to(problem, command, process::euid() == 0)
}

fn advice_to(problem: &Problem, command: &str, is_root: bool) -> Option<&'static str> {
    let error = match &problem.cause {
        Cause::System(error) => error,
        Cause::Said(_)
            if problem.operation == Operation::Filter && problem.class == ErrorClass::Notice =>
        {
            return Some(
                "rules are read as rsync reads them; --filter-style=aws (or s5cmd) reads patterns as that program does",
            );
        }
        // Reason from the engine, which did not even try.
        Cause::Reason(_) if problem.operation == Operation::SetOwner => {
            return Some(owner(command, false));
        }
        Cause::Reason(_) | Cause::Said(_) => return None,
    };
    let code = error.raw_os_error()?;
    if let Some(text) = attribute(problem.operation, code, command, is_root) {
        return Some(text);
    }
    Some(match code {
        errno::ENOENT if has_wildcard(problem) => {
            "the shell expands wildcards of local paths: remove the quotes, or copy the directory with -r"
        }
        errno::ENOSPC => {
            "the target is full (bytes or inodes: df, df -i): make room, then run the same command again"
        }
        errno::EDQUOT => {
            "your quota on the target is used up (quota -s): make room, then run the same command again"
        }
        errno::EROFS if problem.target.is_none() => "the source is mounted read-only",
        errno::EROFS => "the target is mounted read-only",
        errno::EACCES if problem.operation == Operation::Read => {
            "run as root to read files owned by others"
        }
        errno::EMFILE | errno::ENFILE => match command {
            "sync" | "cp" | "mv" | "rm" | "verify" => {
                "too many open files: raise the limit (ulimit -n) or use fewer jobs (-j)"
            }
            _ => "too many open files: raise the limit (ulimit -n)",
        },
        errno::EIO => "the device reports errors: look at the kernel's log (dmesg)",
        errno::ESTALE => "the network file system lost the file: run the same command again",
        errno::ENAMETOOLONG => "the target's file system allows only shorter names",
        errno::EFBIG => "the target's file system cannot hold a file this large",
        errno::EMLINK => "the target's file system allows fewer hard links to a file",
        errno::ETXTBSY if command == "sync" => {
            "the program is running: stop it, or leave --inplace out"
        }
        errno::ETXTBSY => "the program is running: stop it",
        errno::ELOOP => {
            "a symlink stood where a file was expected: another process may be changing the tree"
        }
        _ => return None,
    })
}

/// Returns whether a source that does not exist has a wildcard in its name, as s5cmd takes it in quotes.
fn has_wildcard(problem: &Problem) -> bool {
    let source = problem.source.as_ref().filter(|_| problem.operation != Operation::Filter);
    source.is_some_and(|path| {
        path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
    })
}

/// Returns advice about an attribute or a link that the target cannot keep, though it has room for contents.
fn attribute(
    operation: Operation,
    code: i32,
    command: &str,
    is_root: bool,
) -> Option<&'static str> {
    let keeps = command == "cp" || command == "mv";
    Some(match (operation, code) {
        (Operation::SetXattr, errno::ENOSPC | errno::EDQUOT | errno::E2BIG | errno::ERANGE) => {
            match keeps {
                true => {
                    "the target's file system has no room for extended attributes of this size; contents are complete; --no-preserve=xattr leaves the attributes out"
                }
                false => {
                    "the target's file system has no room for extended attributes of this size; contents are complete; leave -X out"
                }
            }
        }
        (Operation::SetXattr, errno::EOPNOTSUPP) => match keeps {
            true => {
                "the target's file system lacks these extended attributes; --no-preserve=xattr leaves them out"
            }
            false => "the target's file system lacks these extended attributes; leave -X out",
        },
        (Operation::SetAcl, errno::ENOSPC | errno::EDQUOT | errno::E2BIG | errno::ERANGE) => {
            match keeps {
                true => {
                    "the target's file system has no room for an ACL of this size; contents are complete; --no-preserve=mode leaves it out"
                }
                false => {
                    "the target's file system has no room for an ACL of this size; contents are complete; leave -A out"
                }
            }
        }
        (Operation::SetAcl, errno::EOPNOTSUPP) => match keeps {
            true => "the target's file system has no ACLs; --no-preserve=mode leaves them out",
            false => "the target's file system has no ACLs; leave -A out",
        },
        (Operation::SetOwner, errno::EPERM | errno::EINVAL | errno::EOPNOTSUPP) => {
            owner(command, is_root)
        }
        (Operation::SetMode, errno::EPERM | errno::EOPNOTSUPP) if is_root => match command {
            "cp" | "mv" => {
                "the target's file system lacks such modes; --no-preserve=mode leaves them out"
            }
            "sync" => "the target's file system lacks such modes; leave -p out",
            _ => return None,
        },
        (Operation::Link, errno::EPERM | errno::EOPNOTSUPP) => match command {
            "cp" | "mv" => {
                "the target's file system has no hard links, or not to files of others; --no-preserve=links makes copies"
            }
            "sync" => {
                "the target's file system has no hard links, or not to files of others; leave -H out"
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns advice for an owner or group that may not be set. `is_root`: the file system refuses it to root as well.
fn owner(command: &str, is_root: bool) -> &'static str {
    match (command, is_root) {
        ("sync", true) => {
            "the target's file system, or its server, keeps no such owners: leave -o, -g and --chown out"
        }
        ("cp" | "mv", true) => {
            "the target's file system, or its server, keeps no such owners; --no-preserve=ownership leaves them out"
        }
        (_, true) => "the target's file system, or its server, keeps no such owners",
        ("sync", false) => {
            "only root can change owners: run as root, or leave out -o, -g and --chown"
        }
        ("cp", false) => {
            "only root can change owners: run as root, or leave out --preserve=ownership and -p"
        }
        ("mv", false) => {
            "only root can change owners: run as root, or give --no-preserve=ownership"
        }
        _ => "only root can change owners: run as root",
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Reason {
    Errno(i32),
    Kind(std::io::ErrorKind),
    Text(Cow<'static, str>),
}

struct ProblemGroup {
    /// Sentences of the first problems.
    first: Vec<String>,
    advice: Option<&'static str>,
    class: ErrorClass,
    more: u64,
}

/// Problems grouped by kind.
#[derive(Default)]
pub struct ProblemGroups {
    command: &'static str,
    styled: bool,
    places: HashMap<(Operation, ErrorClass, Reason), usize>,
    groups: Vec<ProblemGroup>,
    ungrouped: u64,
}

impl ProblemGroups {
    /// Makes groups for the problems of `command`. `styled`: the style of filter patterns was given.
    pub fn new(command: &'static str, styled: bool) -> ProblemGroups {
        ProblemGroups { command, styled, ..ProblemGroups::default() }
    }

    /// Adds one problem.
    pub fn add(&mut self, problem: &Problem, escape: Escape) {
        let reason = match &problem.cause {
            Cause::System(error) => match error.raw_os_error() {
                Some(code) => Reason::Errno(code),
                None => Reason::Kind(error.kind()),
            },
            Cause::Reason(text) => Reason::Text(Cow::Borrowed(text)),
            Cause::Said(text) => Reason::Text(Cow::Owned(text.clone())),
        };
        let key = (problem.operation, problem.class, reason);
        if let Some(group) = self.places.get(&key).and_then(|at| self.groups.get_mut(*at)) {
            match group.first.len() < NAMED_MAX {
                true => group.first.push(sentence(problem, escape)),
                false => group.more += 1,
            }
        } else if self.groups.len() < GROUPS_MAX {
            self.places.insert(key, self.groups.len());
            self.groups.push(ProblemGroup {
                first: vec![sentence(problem, escape)],
                advice: advice(problem, self.command, self.styled),
                class: problem.class,
                more: 0,
            });
        } else {
            self.ungrouped += 1;
        }
    }

    /// Returns lines for each group, in the order of their first problems, each followed by its advice, if there is
    /// any. With `printed` every problem was printed already, so that only advice is left. `fatal` is the message of
    /// what stopped the run: it stands for the problems that did, after all others.
    pub fn lines(&self, printed: bool, fatal: Option<&str>) -> Vec<String> {
        let mut lines = Vec::new();
        let advise = |lines: &mut Vec<String>, group: &ProblemGroup| {
            let hint = group.advice.map(|advice| format!("hint: {advice}"));
            lines.extend(hint.filter(|hint| !lines.contains(hint)));
        };
        let stopped = |group: &&ProblemGroup| fatal.is_some() && group.class == ErrorClass::Fatal;
        for group in self.groups.iter().filter(|group| !stopped(group)) {
            if !printed {
                lines.extend(group.first.iter().cloned());
                if group.more > 0 {
                    lines.push(format!(
                        "and {} more like these (-v shows all)",
                        grouped(group.more)
                    ));
                }
            }
            advise(&mut lines, group);
        }
        if self.ungrouped > 0 && !printed {
            lines.push(format!(
                "and {} problems of other kinds (-v shows all)",
                grouped(self.ungrouped)
            ));
        }
        lines.extend(fatal.map(str::to_owned));
        for group in self.groups.iter().filter(stopped) {
            advise(&mut lines, group);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;

    fn problem(operation: Operation, class: ErrorClass, code: i32, name: &str) -> Problem {
        Problem {
            operation,
            source: Some(PathBuf::from("/s").join(name)),
            target: Some(PathBuf::from("/t").join(name)),
            cause: Cause::System(io::Error::from_raw_os_error(code)),
            class,
        }
    }

    #[test]
    fn sentences() {
        let read = problem(Operation::Read, ErrorClass::Partial, errno::EACCES, "a\nb");
        let make = problem(Operation::Create, ErrorClass::Partial, errno::ENOSPC, "a");
        let gone =
            Problem { target: None, ..problem(Operation::Stat, ErrorClass::Vanished, 2, "a") };
        let odd = Problem {
            cause: Cause::Reason("it is a device"),
            target: None,
            ..problem(Operation::Read, ErrorClass::Notice, 0, "a")
        };
        for (problem, text) in [
            (read, "cannot read '/s/a\\#012b': Permission denied"),
            (make, "cannot create '/t/a' (from '/s/a'): No space left on device"),
            (gone, "'/s/a' vanished before it could be copied"),
            (odd, "skipped '/s/a': it is a device"),
        ] {
            assert_eq!(sentence(&problem, Escape::Utf8), text);
        }
    }

    #[test]
    fn of_ten_thousand_three_are_named() {
        let mut groups = ProblemGroups::default();
        for n in 0..10_000 {
            let problem =
                problem(Operation::Read, ErrorClass::Partial, errno::EACCES, &n.to_string());
            groups.add(&problem, Escape::Utf8);
        }
        groups.add(&problem(Operation::Write, ErrorClass::Fatal, errno::ENOSPC, "x"), Escape::Utf8);
        assert_eq!(
            groups.lines(false, Some("cannot write '/t/x': No space left on device")),
            [
                "cannot read '/s/0': Permission denied",
                "cannot read '/s/1': Permission denied",
                "cannot read '/s/2': Permission denied",
                "and 9,997 more like these (-v shows all)",
                "hint: run as root to read files owned by others",
                "cannot write '/t/x': No space left on device",
                "hint: the target is full (bytes or inodes: df, df -i): make room, then run the same command again",
            ]
        );
        assert_eq!(groups.lines(false, None).len(), 7);
        assert_eq!(groups.lines(true, None).len(), 2);
    }

    #[test]
    fn advice_names_the_options_of_the_command() {
        let refused = problem(Operation::SetOwner, ErrorClass::Partial, errno::EPERM, "a");
        let untried = Problem {
            cause: Cause::Reason("only the superuser may"),
            ..problem(Operation::SetOwner, ErrorClass::Partial, 0, "a")
        };
        for (command, option) in [("sync", "--chown"), ("cp", "--preserve"), ("mv", "as root")] {
            for problem in [&refused, &untried] {
                let text = advice_to(problem, command, false);
                assert!(text.is_some_and(|text| text.contains(option)));
            }
        }
        let space = problem(Operation::SetXattr, ErrorClass::Partial, errno::ENOSPC, "a");
        let link = problem(Operation::Link, ErrorClass::Partial, errno::EPERM, "a");
        let acl = problem(Operation::SetAcl, ErrorClass::Partial, errno::EOPNOTSUPP, "a");
        for (problem, of_sync, of_mv) in [
            (&refused, "leave -o, -g", "--no-preserve=ownership"),
            (&space, "leave -X out", "--no-preserve=xattr"),
            (&link, "leave -H out", "--no-preserve=links"),
            (&acl, "leave -A out", "--no-preserve=mode"),
        ] {
            for (command, option) in [("sync", of_sync), ("cp", of_mv), ("mv", of_mv)] {
                let text = advice_to(problem, command, true).unwrap_or_default();
                assert!(text.contains(option) && !text.contains("full"), "{command}: {text}");
            }
        }
    }

    #[test]
    fn memory_has_a_bound() {
        let mut groups = ProblemGroups::default();
        for code in 1..=100 {
            groups.add(&problem(Operation::Read, ErrorClass::Partial, code, "x"), Escape::Utf8);
        }
        assert_eq!(groups.groups.len(), GROUPS_MAX);
        let last = groups.lines(false, None).pop();
        assert_eq!(last.as_deref(), Some("and 36 problems of other kinds (-v shows all)"));
    }
}

//! Problems in words, the same ones counted instead of repeated, and what to do about them.

use super::escape::Escape;
use crate::number::grouped;
use hakobu_sys::errno;
use hakobu_transfer::error::{Cause, Class, Operation, Problem};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// Kinds of problems that are told apart; what comes after these is only counted.
const GROUPS_MAX: usize = 64;

/// A problem as a sentence without a full stop.
pub fn sentence(problem: &Problem, escape: Escape) -> String {
    let quote = |path: &Path| format!("'{}'", escape.path(path));
    let (source, target) = (problem.source.as_deref(), problem.target.as_deref());
    let reads = matches!(problem.operation, Operation::Read | Operation::List | Operation::Filter);
    let (main, other) = if reads { (source, target) } else { (target, source) };
    let name = main.or(other).map(quote).unwrap_or_default();
    match problem.class {
        Class::Vanished => format!("{name} vanished before it could be copied"),
        Class::Notice => format!("skipped {name}: {}", problem.cause),
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

/// What a user of `command` can do about a cause, where that is known.
pub fn advice(problem: &Problem, command: &str) -> Option<&'static str> {
    let error = match &problem.cause {
        Cause::System(error) => error,
        // The engine says so itself where it does not even try.
        Cause::Reason(_) if problem.operation == Operation::SetOwner => return owner(command),
        Cause::Reason(_) | Cause::Said(_) => return None,
    };
    Some(match error.raw_os_error()? {
        errno::ENOSPC => {
            "the target is full (bytes or inodes: df, df -i): make room, then run the same command again"
        }
        errno::EDQUOT => {
            "your quota on the target is used up (quota -s): make room, then run the same command again"
        }
        errno::EROFS => "the target is mounted read-only",
        errno::EACCES if problem.operation == Operation::Read => {
            "files of others can be read only as root"
        }
        errno::EPERM if problem.operation == Operation::SetOwner => return owner(command),
        errno::EMFILE | errno::ENFILE => {
            "too many open files: raise the limit (ulimit -n) or use fewer jobs (-j)"
        }
        errno::EIO => "the device reports errors: look at the kernel's log (dmesg)",
        errno::ESTALE => "the network file system lost the file: run the same command again",
        errno::ENAMETOOLONG => "the target's file system allows only shorter names",
        errno::EFBIG => "the target's file system cannot hold a file this large",
        errno::EOPNOTSUPP if problem.operation == Operation::SetAcl => {
            "the target's file system has no ACLs; leave -A out"
        }
        errno::EOPNOTSUPP if problem.operation == Operation::SetXattr => {
            "the target's file system lacks these extended attributes; leave -X out"
        }
        errno::EMLINK => "the target's file system allows fewer hard links to a file",
        errno::ETXTBSY => "the program is running: stop it, or leave --inplace out",
        errno::ELOOP => {
            "a symlink stood where a file was expected: somebody may be changing the tree"
        }
        _ => return None,
    })
}

/// What to do where an owner or group may not be set.
fn owner(command: &str) -> Option<&'static str> {
    Some(match command {
        "sync" => "only root may give files away: leave -o, -g and --chown out, or run as root",
        "cp" => {
            "only root may give files away: leave --preserve=ownership and -p out, or run as root"
        }
        _ => "only root may give files away: run as root",
    })
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Reason {
    Errno(i32),
    Kind(std::io::ErrorKind),
    Text(Cow<'static, str>),
}

struct Group {
    first: String,
    advice: Option<&'static str>,
    class: Class,
    more: u64,
}

/// Problems that were told already or are yet to be told.
#[derive(Default)]
pub struct Groups {
    command: &'static str,
    places: HashMap<(Operation, Class, Reason), usize>,
    groups: Vec<Group>,
    ungrouped: u64,
}

impl Groups {
    /// For the problems of `command`.
    pub fn new(command: &'static str) -> Groups {
        Groups { command, ..Groups::default() }
    }

    /// Takes one problem into account.
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
            group.more += 1;
        } else if self.groups.len() < GROUPS_MAX {
            self.places.insert(key, self.groups.len());
            self.groups.push(Group {
                first: sentence(problem, escape),
                advice: advice(problem, self.command),
                class: problem.class,
                more: 0,
            });
        } else {
            self.ungrouped += 1;
        }
    }

    /// One line for each group, in the order of their first problems, and the advice below those
    /// that have one. With `told` every problem had its line already, so that only advice is left.
    /// `fatal` says that what stopped the run gets its own line elsewhere.
    pub fn lines(&self, told: bool, fatal: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for group in &self.groups {
            let elsewhere = told || (fatal && group.class == Class::Fatal);
            if !elsewhere {
                lines.push(match group.more {
                    0 => group.first.clone(),
                    n => format!("{} (and {} more like it)", group.first, grouped(n)),
                });
            }
            let hint = group.advice.map(|advice| format!("  hint: {advice}"));
            lines.extend(hint.filter(|hint| !lines.contains(hint)));
        }
        if self.ungrouped > 0 && !told {
            lines.push(format!(
                "and {} problems of other kinds (-v shows all)",
                grouped(self.ungrouped)
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;

    fn problem(operation: Operation, class: Class, code: i32, name: &str) -> Problem {
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
        let read = problem(Operation::Read, Class::Partial, errno::EACCES, "a\nb");
        let make = problem(Operation::Create, Class::Partial, errno::ENOSPC, "a");
        let gone = Problem { target: None, ..problem(Operation::Stat, Class::Vanished, 2, "a") };
        let odd = Problem {
            cause: Cause::Reason("it is a device"),
            target: None,
            ..problem(Operation::Read, Class::Notice, 0, "a")
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
    fn ten_thousand_are_one_line() {
        let mut groups = Groups::default();
        for n in 0..10_000 {
            let problem = problem(Operation::Read, Class::Partial, errno::EACCES, &n.to_string());
            groups.add(&problem, Escape::Utf8);
        }
        groups.add(&problem(Operation::Write, Class::Fatal, errno::ENOSPC, "x"), Escape::Utf8);
        assert_eq!(
            groups.lines(false, true),
            [
                "cannot read '/s/0': Permission denied (and 9,999 more like it)",
                "  hint: files of others can be read only as root",
                "  hint: the target is full (bytes or inodes: df, df -i): make room, then run the same command again",
            ]
        );
        assert_eq!(groups.lines(false, false).len(), 4);
        assert_eq!(groups.lines(true, false).len(), 2);
    }

    #[test]
    fn advice_names_the_options_of_the_command() {
        let refused = problem(Operation::SetOwner, Class::Partial, errno::EPERM, "a");
        let untried = Problem {
            cause: Cause::Reason("only the superuser may"),
            ..problem(Operation::SetOwner, Class::Partial, 0, "a")
        };
        for (command, option) in [("sync", "--chown"), ("cp", "--preserve"), ("mv", "as root")] {
            for problem in [&refused, &untried] {
                assert!(advice(problem, command).is_some_and(|text| text.contains(option)));
            }
        }
    }

    #[test]
    fn memory_has_a_bound() {
        let mut groups = Groups::default();
        for code in 1..=100 {
            groups.add(&problem(Operation::Read, Class::Partial, code, "x"), Escape::Utf8);
        }
        assert_eq!(groups.groups.len(), GROUPS_MAX);
        let last = groups.lines(false, false).pop();
        assert_eq!(last.as_deref(), Some("and 36 problems of other kinds (-v shows all)"));
    }
}

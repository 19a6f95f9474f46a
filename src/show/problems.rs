//! Messages of problems, the first ones of a kind by name and the others counted, with advice.

use super::escape::Escape;
use crate::number::grouped;
use hakobu_core::error::{Cause, Class, Operation, Problem};
use hakobu_sys::errno;
use std::borrow::Cow;
use std::collections::HashMap;
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
        Class::Vanished => format!("{name} vanished before it could be copied"),
        Class::Notice => format!("skipped {name}: {}", problem.cause),
        // GNU's words.
        _ if problem.operation == Operation::Overwrite => {
            let from = source.map(quote).unwrap_or_default();
            let to = target.map(quote).unwrap_or_default();
            let cause = Some(problem.cause.to_string()).filter(|cause| !cause.is_empty());
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("will not overwrite just-created {to} with {from}{cause}")
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

/// Returns advice to a user of `command` about a cause, if there is any.
pub fn advice(problem: &Problem, command: &str) -> Option<&'static str> {
    let error = match &problem.cause {
        Cause::System(error) => error,
        Cause::Said(_)
            if problem.operation == Operation::Filter && problem.class == Class::Notice =>
        {
            return Some(
                "rules are read as rsync reads them; --filter-style=aws (or s5cmd) reads patterns as that program does",
            );
        }
        // Reason from the engine, which did not even try.
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
            "a symlink stood where a file was expected: another process may be changing the tree"
        }
        _ => return None,
    })
}

/// Returns advice for an owner or group that may not be set.
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
    /// Sentences of the first problems.
    first: Vec<String>,
    advice: Option<&'static str>,
    class: Class,
    more: u64,
}

/// Problems grouped by kind.
#[derive(Default)]
pub struct Groups {
    command: &'static str,
    places: HashMap<(Operation, Class, Reason), usize>,
    groups: Vec<Group>,
    ungrouped: u64,
}

impl Groups {
    /// Makes groups for the problems of `command`.
    pub fn new(command: &'static str) -> Groups {
        Groups { command, ..Groups::default() }
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
            self.groups.push(Group {
                first: vec![sentence(problem, escape)],
                advice: advice(problem, self.command),
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
        let advise = |lines: &mut Vec<String>, group: &Group| {
            let hint = group.advice.map(|advice| format!("  hint: {advice}"));
            lines.extend(hint.filter(|hint| !lines.contains(hint)));
        };
        let stopped = |group: &&Group| fatal.is_some() && group.class == Class::Fatal;
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
    fn of_ten_thousand_three_are_named() {
        let mut groups = Groups::default();
        for n in 0..10_000 {
            let problem = problem(Operation::Read, Class::Partial, errno::EACCES, &n.to_string());
            groups.add(&problem, Escape::Utf8);
        }
        groups.add(&problem(Operation::Write, Class::Fatal, errno::ENOSPC, "x"), Escape::Utf8);
        assert_eq!(
            groups.lines(false, Some("cannot write '/t/x': No space left on device")),
            [
                "cannot read '/s/0': Permission denied",
                "cannot read '/s/1': Permission denied",
                "cannot read '/s/2': Permission denied",
                "and 9,997 more like these (-v shows all)",
                "  hint: files of others can be read only as root",
                "cannot write '/t/x': No space left on device",
                "  hint: the target is full (bytes or inodes: df, df -i): make room, then run the same command again",
            ]
        );
        assert_eq!(groups.lines(false, None).len(), 7);
        assert_eq!(groups.lines(true, None).len(), 2);
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
        let last = groups.lines(false, None).pop();
        assert_eq!(last.as_deref(), Some("and 36 problems of other kinds (-v shows all)"));
    }
}

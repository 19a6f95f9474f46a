//! What a `cp` command line means: from options in their order to a `Spec`.

use crate::commands::sync::filters;
use crate::commands::{Places, places};
use crate::effort::Effort;
use crate::names;
use crate::objects::{Asked, Concerned};
use crate::options::{Given, Typed};
use crate::show::{Line, Wanted, ask};
use hakobu_transfer::policy::{ChmodRules, Content, Policy, Reflink, Sparse, Symlinks};
use hakobu_transfer::run::{Layout, Spec};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What the options have said so far.
#[derive(Default)]
struct Reading {
    policy: Policy,
    wanted: Wanted,
    /// `-L`, `-P`: the last one counts.
    symlinks: Option<Symlinks>,
    no_mode: bool,
    parents: bool,
    no_target_dir: bool,
    target_dir: Option<OsString>,
    files_from: Option<OsString>,
    nul: bool,
    effort: Effort,
    verbose: bool,
    objects: Asked,
}

/// Builds the description of the copy and of what is shown.
///
/// # Errors
/// What is wrong with the command line.
pub fn of(typed: &Typed) -> Result<(Spec, Wanted), String> {
    let mut reading = Reading::default();
    for given in &typed.options {
        reading.take(given)?;
    }
    reading.finish(typed)
}

impl Reading {
    fn take(&mut self, given: &Given) -> Result<(), String> {
        if self.objects.take(given)? || self.effort.take(given)? {
            return Ok(());
        }
        let policy = &mut self.policy;
        match given.name {
            "recursive" | "R" => policy.recurse = true,
            "archive" => {
                policy.recurse = true;
                self.symlinks = Some(Symlinks::Keep);
                self.preserve("all", true)?;
            }
            "p" => self.preserve(USUAL, true)?,
            "d" => (self.symlinks, policy.hard_links) = (Some(Symlinks::Keep), true),
            "dereference" => self.symlinks = Some(Symlinks::Follow),
            "no-dereference" => self.symlinks = Some(Symlinks::Keep),
            "H" => (self.symlinks, policy.follow_args) = (Some(Symlinks::Keep), true),
            "preserve" => {
                let list = given.value.to_string_lossy();
                let list = if list.is_empty() { USUAL } else { &*list };
                self.preserve(list, true)?;
                let named = |name: &str| list.split(',').any(|word| word == name);
                let keep = &mut self.policy.preserve;
                keep.owner_explicit |= named("ownership");
                keep.xattrs_explicit |= named("xattr");
            }
            "no-preserve" => self.preserve(&given.value.to_string_lossy(), false)?,
            "no-clobber" => (policy.ignore_existing, policy.ask) = (true, None),
            "interactive" => {
                (policy.ignore_existing, policy.ask) = (false, Some(ask("cp", "overwrite")));
            }
            "update" => match given.value.to_str() {
                Some("" | "older") => (policy.update, policy.update_same) = (true, true),
                _ => return Err(format!("--update={} is not built", given.value.display())),
            },
            "size-only" => policy.size_only = true,
            // Built with their order in `sync::filters`.
            "exclude" | "include" | "exclude-from" | "include-from" => {}
            "dry-run" => policy.dry_run = true,
            // What cannot be opened is replaced anyway, as everything is.
            "force" => {}
            "link" => set_content(policy, Content::HardLink)?,
            "symbolic-link" => set_content(policy, Content::Symlink)?,
            "target-directory" => self.target_dir = Some(given.value.clone()),
            "no-target-directory" => self.no_target_dir = true,
            "parents" => self.parents = true,
            "reflink" => {
                policy.reflink = match given.value.to_str() {
                    Some("" | "always") => Reflink::Always,
                    Some("auto") => Reflink::Auto,
                    Some("never") => Reflink::Never,
                    _ => return Err(wrong(given, "is none of auto, always, never")),
                }
            }
            "sparse" => {
                policy.sparse = match given.value.to_str() {
                    Some("auto") => Sparse::Auto,
                    Some("always") => Sparse::Always,
                    Some("never") => Sparse::Never,
                    _ => return Err(wrong(given, "is none of auto, always, never")),
                }
            }
            "one-file-system" => policy.one_file_system = true,
            "files-from" => self.files_from = Some(given.value.clone()),
            "from0" => self.nul = true,
            "joblog" => self.wanted.joblog = Some(given.value.clone()),
            "verbose" => self.verbose = true,
            "progress" => self.wanted.progress = true,
            "json" => self.wanted.json = true,
            name => return Err(format!("--{name} is not built")),
        }
        Ok(())
    }

    /// Takes a list of attributes to keep or not to keep.
    fn preserve(&mut self, list: &str, on: bool) -> Result<(), String> {
        let policy = &mut self.policy;
        let keep = &mut policy.preserve;
        for attribute in list.split(',') {
            let all = attribute == "all";
            match attribute {
                "mode" | "ownership" | "timestamps" | "links" | "xattr" | "all" => {}
                "context" => return Err("--preserve=context is not built".into()),
                other => return Err(format!("'{other}' is no attribute that can be kept")),
            }
            if all || attribute == "mode" {
                (keep.mode, keep.acls, self.no_mode) = (on, on, !on);
            }
            if all || attribute == "ownership" {
                (keep.owner, keep.group) = (on, on);
                keep.owner_explicit &= on;
            }
            if all || attribute == "timestamps" {
                (keep.times, keep.atimes) = (on, on);
            }
            if all || attribute == "links" {
                policy.hard_links = on;
            }
            if all || attribute == "xattr" {
                keep.xattrs = on;
                keep.xattrs_explicit &= on;
            }
        }
        Ok(())
    }

    fn finish(mut self, typed: &Typed) -> Result<(Spec, Wanted), String> {
        let listed = match &self.files_from {
            None => Vec::new(),
            Some(file) => names::split_plain(&names::read_whole(file)?, self.nul)
                .into_iter()
                .map(|name| PathBuf::from(OsString::from_vec(name)))
                .collect(),
        };
        let paths = typed.paths.iter().map(PathBuf::from).collect();
        let target_dir = self.target_dir.as_deref();
        let Places { sources, target, is_dir } =
            places(paths, listed, target_dir, self.no_target_dir, true)?;
        let policy = &mut self.policy;
        let unless_asked = if policy.recurse { Symlinks::Keep } else { Symlinks::Follow };
        policy.symlinks = self.symlinks.unwrap_or(unless_asked);
        policy.follow_args &= policy.symlinks == Symlinks::Keep;
        (policy.devices, policy.specials) = (policy.recurse, policy.recurse);
        // cp copies whatever is there already; -u alone looks at the times.
        (policy.ignore_times, policy.modify_window_s) = (true, -1);
        policy.cp_targets = true;
        policy.suffix = b"~".to_vec();
        if self.no_mode {
            // cp(1): without the source's mode new files get the usual one, less the umask.
            let mut rules = ChmodRules::default();
            rules.add("D777,F666", 0).map_err(|error| error.to_string())?;
            policy.chmod = Some(rules);
        }
        if policy.reflink == Reflink::Always && policy.sparse != Sparse::Auto {
            return Err("--reflink goes only with --sparse=auto".into());
        }
        policy.check().map_err(|fatal| fatal.message)?;
        let context =
            filters::Context { nul: self.nul, delete_excluded: false, protect_suffix: None };
        policy.filter = filters::build(&typed.options, &context).map_err(|fatal| fatal.message)?;
        let concerned = Concerned::of(&sources, &target)?;
        let operations_per_s_max = self.effort.operations_per_s_max(concerned.any())?;
        self.wanted.explain = self.effort.explain;
        self.wanted.priority = self.effort.priority;
        self.wanted.stat = self.objects.stat;
        let objects = self.objects.fit("cp", &typed.options, concerned, policy)?;
        let wanted = &mut self.wanted;
        (wanted.command, wanted.done) = ("cp", "copied");
        wanted.resume = "run the same command again to go on";
        wanted.dry_run = policy.dry_run;
        wanted.line = match (self.verbose || policy.dry_run, wanted.json) {
            (false, _) => Line::None,
            (true, false) if policy.dry_run => Line::Mapping("cp"),
            (true, false) => Line::Arrow(""),
            (true, true) => Line::Json,
        };
        (wanted.problems, wanted.totals) = (self.verbose, wanted.progress);
        let spec = Spec {
            sources,
            target,
            layout: Layout::Cp {
                no_target_dir: self.no_target_dir,
                target_is_dir: is_dir,
                parents: self.parents,
            },
            files_from: None,
            jobs: self.effort.jobs,
            bytes_per_s_max: self.effort.bytes_per_s_max,
            operations_per_s_max,
            memory_bytes_max: self.effort.memory_bytes_max,
            remember: self.effort.remember,
            prove: self.effort.prove,
            items: self.wanted.items(),
            items_unchanged: false,
            mkpath: false,
            check_space: !self.policy.dry_run,
            objects,
            policy: self.policy,
        };
        Ok((spec, self.wanted))
    }
}

/// What `-p` and a bare `--preserve` keep.
const USUAL: &str = "mode,ownership,timestamps";

fn set_content(policy: &mut Policy, content: Content) -> Result<(), String> {
    if policy.content != Content::Copy && policy.content != content {
        return Err("-l and -s cannot be used together".into());
    }
    policy.content = content;
    Ok(())
}

fn wrong(given: &Given, why: &str) -> String {
    format!("--{}={} {why}", given.name, given.value.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::cp::TABLE;

    fn read(line: &str) -> Result<Spec, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
        of(&typed).map(|(spec, _)| spec)
    }

    /// Recursive, mode, owner, times, links, xattrs, ACLs; then what is explicit; then symlinks.
    fn bits(line: &str) -> String {
        let policy = match read(line) {
            Ok(spec) => spec.policy,
            Err(message) => return message,
        };
        let keep = policy.preserve;
        let mut out: String = [
            ('r', policy.recurse),
            ('m', keep.mode),
            ('o', keep.owner && keep.group),
            ('t', keep.times && keep.atimes),
            ('l', policy.hard_links),
            ('x', keep.xattrs),
            ('a', keep.acls),
            ('O', keep.owner_explicit),
            ('X', keep.xattrs_explicit),
            ('H', policy.follow_args),
        ]
        .iter()
        .filter_map(|(letter, on)| on.then_some(*letter))
        .collect();
        out.push_str(match policy.symlinks {
            Symlinks::Skip => " skip",
            Symlinks::Keep => " keep",
            Symlinks::Follow => " follow",
        });
        out
    }

    #[test]
    fn what_is_kept() {
        for (line, expected) in [
            ("a b", " follow"),
            ("-r a b", "r keep"),
            ("-R a b", "r keep"),
            ("-rL a b", "r follow"),
            ("-rH a b", "rH keep"),
            ("-P a b", " keep"),
            ("-a a b", "rmotlxa keep"),
            ("-aL a b", "rmotlxa follow"),
            ("-d a b", "l keep"),
            ("-p a b", "mota follow"),
            ("--preserve a b", "motaO follow"),
            ("--preserve=mode,xattr a b", "mxaX follow"),
            ("--preserve=all a b", "motlxa follow"),
            ("-a --no-preserve=mode,ownership a b", "rtlx keep"),
            ("--preserve=context a b", "--preserve=context is not built"),
            ("--preserve=colour a b", "'colour' is no attribute that can be kept"),
        ] {
            assert_eq!(bits(line), expected, "{line}");
        }
    }

    #[test]
    fn overwriting() {
        let policy = |line: &str| read(line).map(|spec| spec.policy).unwrap_or_default();
        assert!(policy("-n a b").ignore_existing);
        assert!(policy("-i a b").ask.is_some());
        assert!(policy("-i -n a b").ask.is_none());
        assert!(!policy("-n -i a b").ignore_existing);
        assert!(policy("-u a b").update && policy("--update=older a b").update_same);
        assert!(policy("-f a b").cp_targets && policy("a b").ignore_times);
        let chmod = |line| policy(line).chmod.map(|rules| rules.apply(0o4755, false));
        assert_eq!(chmod("--no-preserve=mode a b"), Some(0o666));
        assert_eq!(chmod("a b"), None);
    }

    #[test]
    fn refused() {
        for (line, expected) in [
            ("--reflink=x a b", "--reflink=x is none of auto, always, never"),
            ("--reflink --sparse=always a b", "--reflink goes only with --sparse=auto"),
            ("--update=none a b", "--update=none is not built"),
            ("-ls a b", "-l and -s cannot be used together"),
            ("a", "give a target after 'a'"),
            ("-T a b c", "-T takes one source"),
        ] {
            assert_eq!(read(line).err().as_deref(), Some(expected), "{line}");
        }
    }
}

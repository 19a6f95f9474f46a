//! Evaluation of a `cp` command line: from options in order to a `Spec`.

use super::options::{Reading, TABLE};
use crate::commands::operands::{Operands, folder_targets, operands, without_slashes};
use crate::objects::Concerned;
use crate::options::Typed;
use crate::show::{Line, Wanted};
use crate::{backups, filters, names};
use hakobu_sys::paths::Links;
use hakobu_transfer::policy::{ChmodRules, Content, Reflink, Sparse, Symlinks};
use hakobu_transfer::run::{Layout, Spec};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStringExt;

/// Returns the description of the copy and of its output.
///
/// # Errors
/// An invalid command line.
pub fn of(typed: &Typed) -> Result<(Spec, Wanted), String> {
    TABLE.read(typed, Reading::default())?.finish(typed)
}

impl Reading {
    fn finish(mut self, typed: &Typed) -> Result<(Spec, Wanted), String> {
        self.wanted.links = std::mem::take(&mut self.links).links()?;
        let links = &self.wanted.links;
        let listed = match &self.files_from {
            None => Vec::new(),
            Some(file) => names::read_list(file, links, self.filters.nul, names::split_plain)?
                .into_iter()
                .map(OsString::from_vec)
                .collect(),
        };
        let target_dir = self.target_dir.as_deref();
        let stripped = self.strips.then(|| without_slashes(&typed.paths, target_dir.is_some()));
        let typed_paths = stripped.as_ref().unwrap_or(&typed.paths);
        let Operands { sources, target, is_dir } =
            operands(typed_paths, listed, target_dir, self.no_target_dir, true)?;
        let policy = &mut self.policy;
        let backup = std::mem::take(&mut self.backups).backup(policy.ignore_existing)?;
        // cp(1): with -l symlinks are followed unless an option says otherwise, also with -r.
        let keeps_links = policy.recurse && policy.content != Content::HardLink;
        let unless_asked = if keeps_links { Symlinks::Keep } else { Symlinks::Follow };
        policy.symlinks = self.symlinks.unwrap_or(unless_asked);
        policy.follow_args &= policy.symlinks == Symlinks::Keep;
        (policy.devices, policy.specials) = (policy.recurse, policy.recurse);
        // cp overwrites existing files; only -u compares times.
        policy.ignore_times = true;
        policy.cp_targets = true;
        policy.links = Links::Any;
        policy.backup = backup.is_some();
        policy.numbering = backup.as_ref().map(|backup| backup.numbering).unwrap_or_default();
        policy.suffix = backup.map_or_else(|| backups::SUFFIX.to_vec(), |backup| backup.suffix);
        if self.no_mode {
            // cp(1): without the source's mode new files get the default one, minus the umask.
            let mut rules = ChmodRules::default();
            rules.add("D777,F666", 0).map_err(|error| error.to_string())?;
            policy.chmod = Some(rules);
        }
        if policy.reflink == Reflink::Always && policy.sparse != Sparse::Auto {
            return Err("--reflink goes only with --sparse=auto".into());
        }
        policy.check().map_err(|fatal| fatal.message)?;
        let context = filters::Context { links: links.clone(), ..filters::Context::default() };
        policy.filter = self.filters.build(&context).map_err(|fatal| fatal.message)?;
        let concerned = Concerned::of(&sources, &target);
        let limits = self.limits.of_run(concerned.any())?;
        self.wanted.explain = self.limits.explain;
        self.wanted.priority = self.limits.priority;
        self.wanted.stat = self.objects.stat;
        TABLE.check_places(typed, concerned.any(), concerned.target)?;
        let objects = self.objects.fit(concerned, policy)?;
        let wanted = &mut self.wanted;
        wanted.notes.extend(self.filters.note(concerned.any())?);
        wanted.styled = self.filters.is_styled();
        if concerned.any()
            && policy.recurse
            && !objects.flatten
            && !(wanted.quiet || wanted.json)
            && (policy.dry_run || std::io::stderr().is_terminal())
        {
            let into = if self.no_target_dir { Some(false) } else { is_dir.then_some(true) };
            wanted.notes.extend(folder_targets(&sources, &target, into));
        }
        (wanted.command, wanted.done) = ("cp", "copied");
        wanted.resume = "run the same command again to continue";
        wanted.dry_run = policy.dry_run;
        wanted.line = match (self.verbose || policy.dry_run, wanted.json) {
            (false, _) => Line::None,
            _ if wanted.quiet => Line::None,
            (true, false) if policy.dry_run => Line::Mapping("cp"),
            (true, false) => Line::Arrow(""),
            (true, true) => Line::Json,
        };
        (wanted.problems, wanted.totals) = (self.verbose, wanted.progress == Some(true));
        let layout = Layout::Cp {
            no_target_dir: self.no_target_dir,
            target_is_dir: is_dir,
            parents: self.parents,
        };
        let spec = Spec {
            items: self.wanted.items(),
            check_space: !self.policy.dry_run,
            objects,
            ..self.limits.spec(limits, (sources, target), layout, self.policy)
        };
        Ok((spec, self.wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Spec, String> {
        let typed = TABLE.parse_line(line)?;
        of(&typed).map(|(spec, _)| spec)
    }

    /// Recursive, mode, owner, times, links, xattrs, ACLs; then the explicit ones; then symlinks.
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
    fn kept_attributes() {
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
            ("--preserve=context a b", "--preserve=context is not supported"),
            ("--preserve=colour a b", "'colour' is not an attribute that can be kept"),
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
            (
                "--update=none-fail a b",
                "--update=none-fail is not supported: all, none and older are",
            ),
            ("-bn a b", "-b and -n cannot be used together"),
            (
                "--backup=x a b",
                "--backup=x is none of none, off, simple, never, existing, nil, numbered, t",
            ),
            ("-ls a b", "-l and -s cannot be used together"),
            ("a", "give a target after 'a'"),
            ("-T a b c", "-T takes one source"),
        ] {
            assert_eq!(read(line).err().as_deref(), Some(expected), "{line}");
        }
    }
}

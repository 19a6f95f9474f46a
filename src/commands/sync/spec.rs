//! Evaluation of a `sync` command line: from options in order to a `Spec`. Reads the files and looks up the names
//! that the command line mentions.

use super::accepted;
use super::options::TABLE;
use super::reading::{Fake, Reading};
use crate::commands::cluster::ClusterArgs;
use crate::filters;
use crate::objects::Concerned;
use crate::options::Typed;
use crate::show::escape::Escape;
use crate::show::{Line, Wanted};
use crate::{exit, names};
use hakobu_core::error::{Fatal, quoted};
use hakobu_core::event::Remarks;
use hakobu_core::unit::Jobs;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::object::list::Pattern;
use hakobu_transfer::policy::filter::Doubtful;
use hakobu_transfer::policy::{Append, Delete, Digest, FakeSides, Symlinks};
use hakobu_transfer::run::{Layout, Spec};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the description of the transfer and of its output.
///
/// # Errors
/// An invalid command line or file that it names, with rsync's exit code.
pub fn of(typed: &mut Typed) -> Result<(Spec, Wanted, ClusterArgs), Fatal> {
    let mut reading = Reading::default();
    let wanted = &mut reading.wanted;
    (wanted.command, wanted.done) = ("sync", "copied");
    wanted.resume = "run the same command again to continue";
    TABLE.read(typed, reading).map_err(usage)?.finish(typed)
}

fn usage(message: String) -> Fatal {
    Fatal::new(exit::SYNC_USAGE, message)
}

/// Folder in which rsync's `--delay-updates` keeps finished files, in each directory.
const DELAYED_DIR: &str = ".~tmp~";

const STORED_REMARKS: &str =
    "note: without effect with s3://: --info=backup, --info=skip, --debug=filter";

const UNORDERED: &str = "names are in order with -j 1 only";

impl Reading {
    fn finish(mut self, typed: &mut Typed) -> Result<(Spec, Wanted, ClusterArgs), Fatal> {
        accepted::check(&typed.noted).map_err(usage)?;
        let (sources, target) = self.paths(typed)?;
        let links = std::mem::take(&mut self.trusted).links().map_err(usage)?;
        self.wanted.links = links.clone();
        let policy = &mut self.policy;
        policy.links = links.clone();
        policy.symlinks = match (self.copy_links, self.links) {
            (true, _) => Symlinks::Follow,
            (false, true) => Symlinks::Keep,
            (false, false) => Symlinks::Skip,
        };
        // A bucket is a tree: aws and s5cmd always sync recursively.
        let stored = Concerned::of(&sources, &target).any();
        let implied = stored && self.files_from.is_none() && !self.no_recursive;
        policy.recurse |= implied && !policy.list_only;
        if policy.list_only {
            // A list shows everything, even entries that a copy would skip.
            if policy.symlinks == Symlinks::Skip {
                policy.symlinks = Symlinks::Keep;
            }
            (policy.devices, policy.specials) = (true, true);
        }
        if self.files_from.is_some() && self.recurse_by_archive {
            policy.recurse = false;
        }
        let lists = self.files_from.is_some() || policy.list_only;
        policy.dirs = self.dirs.unwrap_or(lists && !policy.recurse);
        if self.drop_specials {
            (policy.devices, policy.specials) = (false, false);
        }
        policy.preserve.owner_explicit |= self.superuser && policy.preserve.owner;
        if !policy.preserve.owner {
            policy.chown_uid = None;
        }
        if !policy.preserve.group {
            policy.chown_gid = None;
        }
        if self.numeric_ids {
            policy.users.forget_names();
            policy.groups.forget_names();
        }
        policy.delete = when(self.delete, &self.delete_when)?;
        let beside = policy.backup_dir.is_none();
        policy.backup |= !beside;
        let suffix = if beside { b"~".to_vec() } else { Vec::new() };
        policy.suffix = self.suffix.take().unwrap_or(suffix);
        if !self.superuser && !policy.as_user {
            let Fake { both, target, not_target } = self.fake;
            policy.fake = FakeSides { source: both, target: (both || target) && !not_target };
        }
        let fakes = policy.fake != FakeSides::default();
        if fakes && policy.preserve.xattrs && !policy.preserve.hides_reserved {
            return Err(usage("-XX cannot be used with --fake-super".into()));
        }
        if policy.as_user {
            (policy.preserve.owner, policy.preserve.owner_explicit) = (false, false);
            policy.devices = false;
        }
        let deletes = policy.delete != Delete::No;
        // rsync(1), --backup: both are forced if backups are beside their files.
        policy.preserve.omit_dir_times |= policy.backup && beside;
        let protects = policy.backup && beside && deletes && !policy.delete_excluded;
        // A killed rsync leaves files there; they are not part of the tree, and go when the file is complete.
        if policy.delay_updates && policy.partial_dir.is_none() {
            policy.partial_dir = Some(DELAYED_DIR.into());
        }
        let partial_dir = policy.partial_dir.as_deref().filter(|path| path.is_relative());
        let context = filters::Context {
            delete_excluded: policy.delete_excluded,
            protect_suffix: protects.then(|| policy.suffix.clone()),
            left_out: partial_dir.map(|path| path.as_os_str().as_bytes().to_vec()),
            links: links.clone(),
        };
        let concerned = Concerned::of(&sources, &target);
        self.wanted.notes.extend(self.filters.note(concerned.any()).map_err(usage)?);
        self.wanted.styled = self.filters.is_styled();
        if concerned.any() && policy.list_only {
            return Err(usage("a list of s3:// is made by hakobu ls".into()));
        }
        let limits = self.limits.of_run(concerned.any()).map_err(usage)?;
        self.wanted.explain = self.limits.explain;
        self.wanted.priority = self.limits.priority;
        let objects = std::mem::take(&mut self.objects);
        self.wanted.stat = objects.stat;
        TABLE.check_places(typed, concerned.any(), concerned.target).map_err(usage)?;
        let objects = objects.fit(concerned, policy).map_err(usage)?;
        policy.check()?;
        if self.whole && policy.append != Append::No {
            return Err(usage("--append cannot be used with --whole-file".into()));
        }
        policy.filter = self.filters.build(&context)?;
        let doubtful = policy.filter.as_ref().map(|filter| filter.doubtful().clone());
        let files_from = match &self.files_from {
            None => None,
            Some(file) => {
                let listed = names::read_list(file, &links, self.filters.nul, names::split);
                Some(listed.map_err(usage)?)
            }
        };
        self.show(concerned);
        self.doubt(&doubtful.unwrap_or_default());
        self.wanted.unchanged = self.itemize > 1 || self.verbosity() > 1;
        let (remarks, digest) = (self.remarks(concerned), self.digest(typed, concerned)?);
        let relative = self.relative.unwrap_or(files_from.is_some());
        if self.ordered && limits.jobs != Jobs::Fixed(1) {
            self.without.push(("--no-inc-recursive".into(), UNORDERED));
        }
        typed.notes.append(&mut self.without);
        let spec = Spec {
            ordered: self.ordered,
            files_from,
            items: self.wanted.items(),
            items_unchanged: self.wanted.unchanged,
            remarks,
            digest,
            mkpath: self.mkpath,
            check_space: !self.policy.dry_run && !self.policy.list_only,
            log_file: self.wanted.log_file.as_ref().map(std::path::PathBuf::from),
            objects,
            ..self.limits.spec(limits, (sources, target), Layout::Rsync { relative }, self.policy)
        };
        Ok((spec, self.wanted, self.cluster))
    }

    fn paths(&mut self, typed: &Typed) -> Result<(Sources, Location), Fatal> {
        let (sources, target) = match typed.paths.as_slice() {
            [] => return Err(usage("give a source and a target (hakobu sync --help)".into())),
            [source] => {
                // rsync(1), --list-only: a single argument is a source to list.
                self.policy.list_only = true;
                (std::slice::from_ref(source), Location::Null)
            }
            [sources @ .., target] => (sources, Location::parse(target)?),
        };
        let sources: Result<Vec<Location>, Fatal> =
            sources.iter().map(|source| self.source_location(source)).collect();
        let sources = Sources::of(sources?)?;
        if self.files_from.is_some() && sources.len() > 1 {
            return Err(usage("--files-from takes one source, the directory of its names".into()));
        }
        Ok((sources, target))
    }

    /// Parses a source: a local path, or in S3, where a trailing star means the whole prefix.
    fn source_location(&mut self, typed: &OsStr) -> Result<Location, Fatal> {
        let mut url = match Location::parse(typed)? {
            Location::S3(url) => url,
            Location::Null => return Location::parse_local(typed).map(Location::Local),
            local => return Ok(local),
        };
        if self.objects.is_raw() || Pattern::parse(&url.key).is_none() {
            return Ok(Location::S3(url));
        }
        let prefix = url.key.strip_suffix(b"*").map(<[u8]>::to_vec);
        let is_whole = |prefix: &Vec<u8>| {
            (prefix.is_empty() || prefix.ends_with(b"/")) && Pattern::parse(prefix).is_none()
        };
        if let Some(prefix) = prefix.filter(is_whole) {
            url.key = prefix;
            return Ok(Location::S3(url));
        }
        if self.delete || !self.delete_when.is_empty() {
            self.wanted.notes.push(format!(
                "note: --delete removes nothing with the wildcard {}: give the prefix, and filters",
                quoted(typed)
            ));
        }
        Ok(Location::S3(url))
    }

    /// Returns the level of names: that of `--info`, else that of `-v`.
    fn verbosity(&self) -> u8 {
        self.names.unwrap_or(self.verbose)
    }

    /// Returns the requested messages besides the lines of entries. rsync has both from `-vv` on.
    fn remarks(&mut self, concerned: Concerned) -> Remarks {
        let asked = [self.backups, self.skips, self.rules].contains(&Some(true));
        if concerned.any() && asked {
            self.wanted.notes.push(STORED_REMARKS.into());
        }
        let of = |asked: Option<bool>| asked.unwrap_or(self.verbose > 1) && !self.wanted.quiet;
        let formats = self.wanted.format.iter().any(|format| format.has(b'i'));
        let named = matches!(self.wanted.line, Line::Name { .. });
        let told = named || self.itemize > 0 || formats;
        let made = told && !self.wanted.quiet && !self.wanted.json && !self.policy.list_only;
        Remarks { backups: of(self.backups), skips: of(self.skips), filters: of(self.rules), made }
    }

    /// Adds rsync's messages about rules that are probably not meant as they are.
    fn doubt(&mut self, rules: &Doubtful) {
        let shown = |rule: &Vec<u8>| Escape::of_locale().path(Path::new(OsStr::from_bytes(rule)));
        self.wanted.notes.extend(
            rules
                .overlong
                .iter()
                .map(|rule| format!("discarding over-long filter: {}", shown(rule))),
        );
        if self.rules == Some(true) && !self.wanted.quiet {
            self.wanted.told.extend(rules.spaced.iter().map(|rule| {
                format!("[client] add_rule({}) -- CAUTION: trailing whitespace!", shown(rule))
            }));
        }
    }

    /// Returns the kind of checksum that a requested format shows.
    fn digest(&self, typed: &Typed, concerned: Concerned) -> Result<Option<Digest>, Fatal> {
        let formats = [&self.wanted.format, &self.wanted.log_format];
        if !formats.into_iter().flatten().any(|format| format.has(b'C')) {
            return Ok(None);
        }
        if concerned.any() {
            return Err(usage(
                "%C is not supported for s3://: hakobu head shows stored checksums".into(),
            ));
        }
        accepted::digest(&typed.noted, self.policy.checksum).map(Some).map_err(usage)
    }

    /// Determines the output from the levels of verbosity.
    fn show(&mut self, concerned: Concerned) {
        let verbosity = self.verbosity();
        let wanted = &mut self.wanted;
        // rsync prints names with `--progress`. On a terminal the bar shows it instead.
        let hushed = wanted.quiet || wanted.json || self.policy.list_only;
        let states = !hushed && !std::io::stdout().is_terminal();
        wanted.transfers &= states && self.names != Some(0);
        wanted.whole &= states;
        let asked = verbosity > 0
            || self.itemize > 0
            || self.policy.list_only
            || wanted.format.is_some()
            || wanted.transfers;
        wanted.line = if wanted.quiet || !asked {
            Line::None
        } else if wanted.json {
            Line::Json
        } else if self.policy.list_only {
            Line::List { links: self.links }
        } else if wanted.format.is_some() {
            Line::Format
        } else if self.itemize > 0 {
            Line::Itemized
        } else {
            Line::Name { all: verbosity > 1 }
        };
        // A dry run shows the mapping of names if names change.
        if self.policy.dry_run && concerned.any() && wanted.line == Line::None && !wanted.quiet {
            wanted.line = if wanted.json { Line::Json } else { Line::Mapping("cp") };
        }
        wanted.problems = verbosity > 0 && !wanted.quiet;
        let stats = self.stats.unwrap_or(u8::from(self.verbose > 0));
        wanted.stats = stats > 1;
        wanted.ending = stats > 0 && !wanted.quiet && !wanted.json;
        wanted.totals = wanted.stats || wanted.progress == Some(true);
        wanted.dry_run = self.policy.dry_run;
        wanted.transfers &= !wanted.dry_run;
        wanted.whole &= !wanted.dry_run;
    }
}

/// Returns the time of deletion; two different times are an error.
fn when(delete: bool, times: &[(&'static str, Delete)]) -> Result<Delete, Fatal> {
    match times {
        [] if delete => Ok(Delete::During),
        [] => Ok(Delete::No),
        [(first, when), rest @ ..] => match rest.iter().find(|(other, _)| other != first) {
            None => Ok(*when),
            Some((other, _)) => Err(usage(format!("--{first} and --{other} cannot both be done"))),
        },
    }
}

//! What a `sync` command line means: from options in their order to a `Spec`. Reads the files and
//! looks up the names that the command line mentions.

use super::filters;
use crate::effort::Effort;
use crate::number::Digits;
use crate::objects::{Asked, Concerned};
use crate::options::{Given, Typed};
use crate::show::{Line, Wanted};
use crate::{exit, names, owner, size};
use hakobu_sys::process;
use hakobu_transfer::error::Fatal;
use hakobu_transfer::location::{Location, NULL};
use hakobu_transfer::policy::{ChmodRules, Delete, Policy, Sparse, Symlinks};
use hakobu_transfer::run::{Layout, Spec};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What the options have said so far.
#[derive(Default)]
struct Reading {
    policy: Policy,
    wanted: Wanted,
    /// `-a` without a `-r` of its own does not count with `--files-from`.
    recurse_by_archive: bool,
    links: bool,
    copy_links: bool,
    dirs: Option<bool>,
    relative: Option<bool>,
    delete: bool,
    /// The options that say when, each once.
    delete_when: Vec<(&'static str, Delete)>,
    nul: bool,
    files_from: Option<OsString>,
    effort: Effort,
    mkpath: bool,
    suffix: Option<Vec<u8>>,
    verbose: u8,
    itemize: u8,
    objects: Asked,
}

/// Builds the description of the transfer and of what is shown.
///
/// # Errors
/// What is wrong with the command line or the files it names, with rsync's exit code.
pub fn of(typed: &Typed) -> Result<(Spec, Wanted), Fatal> {
    let mut reading = Reading::default();
    let wanted = &mut reading.wanted;
    (wanted.command, wanted.done) = ("sync", "copied");
    wanted.resume = "run the same command again to go on";
    for given in &typed.options {
        reading.take(given).map_err(usage)?;
    }
    reading.finish(typed)
}

fn usage(message: String) -> Fatal {
    Fatal::new(exit::SYNC_USAGE, message)
}

impl Reading {
    /// Takes the next option. A sentence says what is wrong with it.
    fn take(&mut self, given: &Given) -> Result<(), String> {
        if self.objects.take(given)? || self.effort.take(given)? {
            return Ok(());
        }
        let on = given.on;
        let policy = &mut self.policy;
        match given.name {
            "archive" => {
                self.recurse_by_archive |= !policy.recurse;
                policy.recurse = true;
                self.links = true;
                let keep = &mut policy.preserve;
                (keep.mode, keep.times, keep.owner, keep.group) = (true, true, true, true);
                (policy.devices, policy.specials) = (true, true);
            }
            "recursive" => (policy.recurse, self.recurse_by_archive) = (on, false),
            "dirs" => self.dirs = Some(on),
            "relative" => self.relative = Some(on),
            "links" => self.links = on,
            "copy-links" => self.copy_links = true,
            "copy-dirlinks" => policy.copy_dirlinks = true,
            "keep-dirlinks" => policy.keep_dirlinks = true,
            "safe-links" => policy.safe_links = true,
            "D" => (policy.devices, policy.specials) = (on, on),
            "devices" => policy.devices = on,
            "specials" => policy.specials = on,
            "one-file-system" if given.count > 1 => {
                return Err("-xx (leaving mount points out) is not built".into());
            }
            "one-file-system" => policy.one_file_system = on,
            "prune-empty-dirs" => policy.prune_empty_dirs = on,
            "files-from" => self.files_from = Some(given.value.clone()),
            "max-size" => policy.max_size = Some(size_of(given)?),
            "min-size" => policy.min_size = Some(size_of(given)?),
            "hard-links" => policy.hard_links = on,
            "perms" => policy.preserve.mode = on,
            "owner" => {
                (policy.preserve.owner, policy.preserve.owner_explicit) = (on, on);
            }
            "group" => policy.preserve.group = on,
            "times" => policy.preserve.times = on,
            "omit-dir-times" => policy.preserve.omit_dir_times = on,
            "acls" => {
                policy.preserve.acls_explicit = on;
                policy.preserve.acls = on;
                policy.preserve.mode |= on;
            }
            "xattrs" => (policy.preserve.xattrs, policy.preserve.xattrs_explicit) = (on, on),
            "sparse" => policy.sparse = if on { Sparse::Always } else { Sparse::Auto },
            "chmod" => add_chmod(policy, given)?,
            "chown" => set_owner(policy, given)?,
            // Names and numbers are those of one machine: they stay what they are.
            "numeric-ids" => {}
            "checksum" => policy.checksum = on,
            "update" => policy.update = true,
            "size-only" => policy.size_only = true,
            "ignore-times" => policy.ignore_times = true,
            "modify-window" => {
                policy.modify_window_s =
                    number(given).ok_or_else(|| wrong(given, "is not a number of seconds"))?;
            }
            "existing" => policy.existing = true,
            "ignore-existing" => policy.ignore_existing = true,
            // Built with their order in `filters`.
            "filter" | "exclude" | "include" | "exclude-from" | "include-from" | "F"
            | "cvs-exclude" => {}
            "from0" => self.nul = on,
            "delete" => self.delete = true,
            "delete-before" => self.delete_when.push((given.name, Delete::Before)),
            "delete-during" => self.delete_when.push((given.name, Delete::During)),
            "delete-delay" | "delete-after" => {
                self.delete_when.push((given.name, Delete::After));
            }
            "delete-excluded" => (self.delete, policy.delete_excluded) = (true, true),
            "max-delete" => {
                let most = number(given).and_then(|n| u64::try_from(n).ok());
                policy.max_delete = Some(most.ok_or_else(|| wrong(given, "is not a number"))?);
            }
            "ignore-errors" => policy.ignore_errors = on,
            "force" => policy.force = on,
            "remove-source-files" => policy.remove_source_files = true,
            "backup" => policy.backup = on,
            "suffix" => self.suffix = Some(given.value.as_bytes().to_vec()),
            "inplace" => policy.inplace = on,
            "partial" => policy.partial = on,
            "P" => (policy.partial, self.wanted.progress) = (true, true),
            "temp-dir" => policy.temp_dir = Some(PathBuf::from(&given.value)),
            "link-dest" => policy.link_dest.push(PathBuf::from(&given.value)),
            // rsync's way between local paths whatever is asked for; it has no other here.
            "whole-file" => {}
            "fsync" => policy.fsync = true,
            "mkpath" => self.mkpath = on,
            "joblog" => self.wanted.joblog = Some(given.value.clone()),
            "dry-run" => policy.dry_run = true,
            "verbose" => self.verbose = given.count,
            "quiet" => self.wanted.quiet = true,
            "itemize-changes" => self.itemize = given.count,
            "human-readable" if !on => self.wanted.digits = Digits::Plain,
            "human-readable" => self.wanted.digits = Digits::of_level(given.count),
            "stats" => self.wanted.stats = true,
            "progress" => self.wanted.progress = on,
            "info" => self.info(given)?,
            "list-only" => policy.list_only = true,
            "8-bit-output" => self.wanted.eight_bit = on,
            "log-file" => self.wanted.log_file = Some(given.value.clone()),
            "json" => self.wanted.json = true,
            name => return Err(format!("--{name} is not built")),
        }
        Ok(())
    }

    fn info(&mut self, given: &Given) -> Result<(), String> {
        for flag in given.value.to_string_lossy().split(',') {
            match flag {
                "progress2" => self.wanted.progress = true,
                _ => return Err(format!("--info={flag} is not built (progress2 is)")),
            }
        }
        Ok(())
    }

    fn finish(mut self, typed: &Typed) -> Result<(Spec, Wanted), Fatal> {
        let (sources, target) = self.paths(typed)?;
        let policy = &mut self.policy;
        policy.symlinks = match (self.copy_links, self.links) {
            (true, _) => Symlinks::Follow,
            (false, true) => Symlinks::Keep,
            (false, false) => Symlinks::Skip,
        };
        if policy.list_only {
            // A list has everything, whatever a copy would leave out.
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
        if !policy.preserve.owner {
            policy.chown_uid = None;
        }
        if !policy.preserve.group {
            policy.chown_gid = None;
        }
        policy.delete = when(self.delete, &self.delete_when)?;
        policy.suffix = self.suffix.take().unwrap_or_else(|| b"~".to_vec());
        let deletes = policy.delete != Delete::No;
        // rsync(1), --backup: both are forced where backups lie beside their files.
        policy.preserve.omit_dir_times |= policy.backup;
        let protects = policy.backup && deletes && !policy.delete_excluded;
        let context = filters::Context {
            nul: self.nul,
            delete_excluded: policy.delete_excluded,
            protect_suffix: protects.then(|| policy.suffix.clone()),
        };
        let concerned = Concerned::of(&sources, &target).map_err(usage)?;
        if concerned.any() && policy.list_only {
            return Err(usage("a list of s3:// is made by hakobu ls".into()));
        }
        let operations_per_s_max =
            self.effort.operations_per_s_max(concerned.any()).map_err(usage)?;
        self.wanted.explain = self.effort.explain;
        self.wanted.priority = self.effort.priority;
        let objects = std::mem::take(&mut self.objects);
        self.wanted.stat = objects.stat;
        let objects = objects.fit("sync", &typed.options, concerned, policy).map_err(usage)?;
        policy.check()?;
        policy.filter = filters::build(&typed.options, &context)?;
        let files_from = match &self.files_from {
            None => None,
            Some(file) => Some(names::split(&names::read_whole(file).map_err(usage)?, self.nul)),
        };
        self.show(concerned);
        let relative = self.relative.unwrap_or(files_from.is_some());
        let spec = Spec {
            sources,
            target,
            layout: Layout::Rsync { relative },
            files_from,
            jobs: self.effort.jobs,
            bytes_per_s_max: self.effort.bytes_per_s_max,
            operations_per_s_max,
            memory_bytes_max: self.effort.memory_bytes_max,
            remember: self.effort.remember,
            prove: self.effort.prove,
            items: self.wanted.items(),
            items_unchanged: self.itemize > 1 || self.verbose > 1,
            mkpath: self.mkpath,
            check_space: !self.policy.dry_run && !self.policy.list_only,
            objects,
            policy: self.policy,
        };
        Ok((spec, self.wanted))
    }

    fn paths(&mut self, typed: &Typed) -> Result<(Vec<PathBuf>, PathBuf), Fatal> {
        let (sources, target) = match typed.paths.as_slice() {
            [] => return Err(usage("give a source and a target (hakobu sync --help)".into())),
            [source] => {
                // rsync(1), --list-only: one argument is a source to be listed.
                self.policy.list_only = true;
                (std::slice::from_ref(source), OsStr::new(NULL))
            }
            [sources @ .., target] => (sources, target.as_os_str()),
        };
        let sources: Result<Vec<PathBuf>, Fatal> =
            sources.iter().map(|source| source_path(source)).collect();
        let sources = sources?;
        Location::parse(target)?;
        if self.files_from.is_some() && sources.len() > 1 {
            return Err(usage("--files-from takes one source, the directory of its names".into()));
        }
        Ok((sources, PathBuf::from(target)))
    }

    /// Decides what is shown from how often it was asked for.
    fn show(&mut self, concerned: Concerned) {
        let wanted = &mut self.wanted;
        let asked = self.verbose > 0 || self.itemize > 0 || self.policy.list_only;
        wanted.line = if wanted.quiet || !asked {
            Line::None
        } else if wanted.json {
            Line::Json
        } else if self.policy.list_only {
            Line::List { links: self.links }
        } else if self.itemize > 0 {
            Line::Itemized
        } else {
            Line::Name { all: self.verbose > 1 }
        };
        // Which name becomes which is what a dry run is for where names change.
        if self.policy.dry_run && concerned.any() && wanted.line == Line::None && !wanted.quiet {
            wanted.line = if wanted.json { Line::Json } else { Line::Mapping("cp") };
        }
        wanted.problems = self.verbose > 0 && !wanted.quiet;
        wanted.totals = self.verbose > 0 || wanted.stats || wanted.progress;
        wanted.dry_run = self.policy.dry_run;
    }
}

/// A source: a path of this machine, or in S3.
fn source_path(typed: &OsStr) -> Result<PathBuf, Fatal> {
    match Location::parse(typed)? {
        Location::S3(_) => Ok(PathBuf::from(typed)),
        _ => Location::parse_local(typed),
    }
}

/// When to delete; two different answers are none.
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

fn wrong(given: &Given, why: &str) -> String {
    format!("--{}={} {why}", given.name, given.value.to_string_lossy())
}

fn size_of(given: &Given) -> Result<u64, String> {
    size::parse(&given.value, 1).map_err(|why| wrong(given, why))
}

fn number(given: &Given) -> Option<i64> {
    given.value.to_str()?.parse().ok()
}

fn add_chmod(policy: &mut Policy, given: &Given) -> Result<(), String> {
    // The mask can be read only by setting it; no other thread runs yet.
    let umask = process::set_umask(0o022);
    process::set_umask(umask);
    let text = given.value.to_str().ok_or("--chmod: changes are text")?;
    let rules = policy.chmod.get_or_insert_with(ChmodRules::default);
    rules.add(text, umask).map_err(|error| format!("--chmod: {error}"))
}

fn set_owner(policy: &mut Policy, given: &Given) -> Result<(), String> {
    let owner = owner::parse(&given.value)?;
    (policy.chown_uid, policy.chown_gid) = (owner.uid, owner.gid);
    let keep = &mut policy.preserve;
    if owner.uid.is_some() {
        (keep.owner, keep.owner_explicit) = (true, true);
    }
    if owner.gid.is_some() {
        (keep.group, keep.owner_explicit) = (true, true);
    }
    Ok(())
}

//! `hakobu sync`: rsync's command line on hakobu's engine.

mod options;

use self::options::{check_accepted, help_of_flags, shown_digest};
use super::cluster;
use super::cluster::ClusterArgs;
use super::compression::CompressionArgs;
use super::operands::folder_targets;
use super::remote::{self, RemoteArgs, RemotePlaces};
use super::session::run_transfer;
use super::tool::refuse;
use crate::cli::{HelpLength, OptArg, Refused, Syntax, Typed, parts};
use crate::filters::{self, Filters};
use crate::limits::LimitArgs;
use crate::objects::{Concerned, ObjectArgs};
use crate::show::escape::Escape;
use crate::show::{Line, ShowOptions, output};
use crate::{exit, names, owner, textfile};
use hakobu_core::error::{Fatal, quoted};
use hakobu_core::event::Remarks;
use hakobu_core::unit::Jobs;
use hakobu_sys::paths::Links;
use hakobu_transfer::far::TaskOption;
use hakobu_transfer::journal::text;
use hakobu_transfer::location::{Location, RemotePath, Side, Sources};
use hakobu_transfer::object::list::Pattern;
use hakobu_transfer::policy::filter::Doubtful;
use hakobu_transfer::policy::{Append, Delete, Digest, FakeSides, Policy, Symlinks};
use hakobu_transfer::run::{AgentTask, Layout, RemoteEnd, Spec};
pub use options::TABLE;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    // As in rsync, -h means help only if it is alone.
    if arguments.len() == 1 && arguments[0] == "-h" {
        output::text(&TABLE.help(HelpLength::Short));
        return exit::OK.into();
    }
    let code = match read(&arguments) {
        Ok((spec, wanted, args)) if args.is_alone() => run_transfer(&spec, wanted, exit::of_sync),
        Ok((spec, wanted, args)) => cluster::submit::sync_cluster(&arguments, spec, wanted, &args),
        Err(refused) => refuse(refused, exit::SYNC_USAGE),
    };
    textfile::settle(code);
    code.into()
}

// Parser of a `sync` command line, for `sync` itself and for runs on many machines.

/// Returns the spec of a command line, its requested output, and the options for many machines.
pub fn read(arguments: &[OsString]) -> Result<(Spec, ShowOptions, ClusterArgs), Refused> {
    let mut typed = TABLE.parse(arguments).map_err(|refused| match refused {
        // A location on another machine matters more than any option error.
        Refused::Usage(message) => Refused::Usage(not_here(arguments).unwrap_or(message)),
        other => other,
    })?;
    if let Some(text) = help_of_flags(arguments, &typed) {
        return Err(Refused::Help(text));
    }
    let (spec, mut wanted, args) = read_plan(&mut typed)?;
    if spec.digest.is_some() {
        // `%C` shows what they choose.
        typed.notes.retain(|(option, _)| {
            !option.starts_with("--checksum-choice") && !option.starts_with("--cc")
        });
    }
    wanted.notes.extend(typed.note().filter(|_| !wanted.quiet));
    Ok((spec, wanted, args))
}

/// Returns the message about a location on another machine for a command line with invalid options, whose arguments
/// are therefore unknown: checks the last word, or the one before it, if no option has such a value.
fn not_here(arguments: &[OsString]) -> Option<String> {
    let mut words = arguments.iter().rev().filter(|word| !word.as_bytes().starts_with(b"-"));
    let last = words.next()?;
    let before = words.next().filter(|word| {
        let text = word.to_string_lossy();
        let host = text.split_once(':').map_or("", |(host, _)| host);
        host == "rsync" || host.contains('@') || text.contains("::")
    });
    [Some(last), before].into_iter().flatten().find_map(|word| match RemotePath::parse(word) {
        Ok(Some(_)) => None,
        Ok(None) => Location::parse(word).err().map(|refused| refused.message),
        Err(refused) => Some(refused.message),
    })
}

// The options of `sync` read so far.

/// Options read so far; see the module.
#[derive(Default)]
pub struct SyncArgs {
    pub(super) policy: Policy,
    pub(super) wanted: ShowOptions,
    /// `-a` without a separate `-r` has no effect with `--files-from`.
    pub(super) recurse_by_archive: bool,
    /// `--no-r` is respected with `s3://`, too.
    pub(super) no_recursive: bool,
    /// `--super`.
    pub(super) superuser: bool,
    /// `--fake-super`.
    pub(super) fake: Fake,
    /// `--numeric-ids`: no ID has a name in `--usermap` and `--groupmap`.
    pub(super) numeric_ids: bool,
    pub(super) owners: OwnerArgs,
    /// `-M`, each.
    pub(super) far_options: Vec<OptArg>,
    /// The names of `--files-from`, for the agent of another machine.
    pub(super) told_names: Option<Vec<Vec<u8>>>,
    pub(super) end: End,
    /// `--drop-D`.
    pub(super) drop_specials: bool,
    /// `--whole-file`; `--no-whole-file`: false.
    pub(super) whole: Option<bool>,
    pub(super) links: bool,
    pub(super) copy_links: bool,
    pub(super) dirs: Option<bool>,
    pub(super) relative: Option<bool>,
    pub(super) delete: bool,
    /// The options that set the time of deletion, each once.
    pub(super) delete_when: Vec<(&'static str, Delete)>,
    pub(super) filters: Filters,
    pub(super) files_from: Option<OsString>,
    pub(super) limits: LimitArgs,
    pub(super) mkpath: bool,
    pub(super) suffix: Option<Vec<u8>>,
    pub(super) verbose: u8,
    /// `--info=name`: replaces the level of `-v` for names.
    pub(super) names: Option<u8>,
    /// `--info=backup`; without it from `-vv`.
    pub(super) backups: Option<bool>,
    /// `--info=skip`; without it from `-vv`.
    pub(super) skips: Option<bool>,
    /// Options without effect, by their values, each with the reason.
    pub(super) without: Vec<(String, &'static str)>,
    /// `--no-inc-recursive`.
    pub(super) ordered: bool,
    /// `--debug=filter`; without it from `-vv`.
    pub(super) rules: Option<bool>,
    /// Level of `--info=stats` (2 for `--stats`); without it 1 with `-v`.
    pub(super) stats: Option<u8>,
    pub(super) itemize: u8,
    pub(super) objects: ObjectArgs,
    pub(super) trusted: names::LinkArgs,
    pub(super) cluster: ClusterArgs,
    pub(super) remote: RemoteArgs,
    compression: CompressionArgs,
    /// The end that is on another machine.
    pub(super) remote_end: Option<RemoteEnd>,
}

/// The end of a transfer that a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Both,
    Source,
    Target,
}

/// Values of `--chown`, `--usermap` and `--groupmap`. Their names are looked up at the target.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnerArgs {
    pub owner: Option<OsString>,
    pub users: Option<OsString>,
    pub groups: Option<OsString>,
}

impl OwnerArgs {
    fn halves(&self) -> (&str, &str) {
        self.owner.as_deref().and_then(|text| owner::halves(text).ok()).unwrap_or_default()
    }

    /// Returns whether `--chown` names a user.
    pub fn has_user(&self) -> bool {
        !self.halves().0.is_empty()
    }

    /// Returns whether `--chown` names a group.
    pub fn has_group(&self) -> bool {
        !self.halves().1.is_empty()
    }

    /// Looks the names up.
    ///
    /// # Errors
    /// There is no such name.
    fn look_up(&self, policy: &mut Policy, is_far: bool) -> Result<(), String> {
        if let Some(text) = &self.owner {
            let owner = owner::parse(text)?;
            (policy.chown_uid, policy.chown_gid) = (owner.uid, owner.gid);
        }
        if let Some(text) = &self.users {
            policy.users = owner::map("usermap", text, &owner::USERS, is_far)?;
        }
        if let Some(text) = &self.groups {
            policy.groups = owner::map("groupmap", text, &owner::GROUPS, is_far)?;
        }
        Ok(())
    }
}

/// Requests for `--fake-super`.
#[derive(Clone, Copy, Default)]
pub(super) struct Fake {
    /// On both sides.
    pub both: bool,
    /// `-M--fake-super`: at the target.
    pub target: bool,
    /// `-M--super`: not at the target.
    pub not_target: bool,
}

parts!(SyncArgs {
    objects: ObjectArgs,
    limits: LimitArgs,
    filters: Filters,
    trusted: names::LinkArgs,
    cluster: ClusterArgs,
    remote: RemoteArgs,
    compression: CompressionArgs
});

// Evaluation of a `sync` command line: from options in order to a `Spec`. Reads the files and looks up the names
// that the command line mentions.

/// Returns the description of the transfer and of its output.
///
/// # Errors
/// An invalid command line or file that it names, with rsync's exit code.
pub fn read_plan(typed: &mut Typed) -> Result<(Spec, ShowOptions, ClusterArgs), Fatal> {
    read_plan_from(typed, SyncArgs::default())
}

/// As [`read_plan`], after what is known already.
fn read_plan_from(
    typed: &mut Typed,
    mut reading: SyncArgs,
) -> Result<(Spec, ShowOptions, ClusterArgs), Fatal> {
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

const NO_MACHINE: &str = "no other machine";

const UNORDERED: &str = "names are in order with -j 1 only";

impl SyncArgs {
    /// Turns the options into a transfer, by subject: which entries, their owners, deletion and backups, rules, output.
    fn finish(mut self, typed: &mut Typed) -> Result<(Spec, ShowOptions, ClusterArgs), Fatal> {
        check_accepted(&typed.noted).map_err(usage)?;
        let (sources, target) = self.paths(typed)?;
        self.apply_far_options()?;
        let concerned = Concerned::of(&sources, &target);
        let links = std::mem::take(&mut self.trusted).links().map_err(usage)?;
        (self.wanted.links, self.policy.links) = (links.clone(), links.clone());
        self.set_entries(concerned.any());
        self.set_owners()?;
        let deletes_beside_backups = self.set_deletion()?;
        let partial_dir = self.policy.partial_dir.as_deref().filter(|path| path.is_relative());
        let context = filters::Context {
            delete_excluded: self.policy.delete_excluded,
            protect_suffix: deletes_beside_backups.then(|| self.policy.suffix.clone()),
            left_out: partial_dir.map(|path| path.as_os_str().as_bytes().to_vec()),
            links: links.clone(),
        };
        self.wanted.notes.extend(self.filters.note(concerned.any()).map_err(usage)?);
        if concerned.any() && self.policy.list_only {
            return Err(usage("--list-only does not list s3:// (hakobu ls does)".into()));
        }
        let limits = self.limits.of_run(concerned.any()).map_err(usage)?;
        let objects = std::mem::take(&mut self.objects);
        self.wanted.stat = objects.stat;
        TABLE.check_places(typed, concerned.any(), concerned.target).map_err(usage)?;
        let objects = objects.fit(concerned, &mut self.policy).map_err(usage)?;
        self.policy.check()?;
        if self.whole == Some(true) && self.policy.append != Append::No {
            return Err(usage("--append cannot be used with --whole-file".into()));
        }
        let mut rule_files = Vec::new();
        self.policy.filter = self.filters.build_from(&context, &mut rule_files)?;
        self.policy.whole_file = self.whole == Some(true);
        let packing = self.compression.packing()?;
        match &mut self.remote_end {
            None => self.without.extend(
                self.compression.typed().map(|option| (option.to_owned(), options::COMPRESS)),
            ),
            Some(remote) => {
                remote.rule_files = rule_files;
                let note = self.compression.note();
                self.wanted.notes.extend(note.filter(|_| packing.is_some()));
            }
        }
        if self.whole == Some(false) && self.remote_end.is_none() {
            self.without.push(("--no-whole-file".into(), options::WHOLE));
        }
        self.check_remote()?;
        let files_from = self.listed(&links)?;
        self.show(concerned);
        self.wanted.check_manifest().map_err(usage)?;
        let (remarks, digest) = (self.remarks(concerned), self.digest(typed, concerned)?);
        self.wanted.digest = digest.map(|digest| match digest {
            Digest::Xxh128 => "XXH128",
            Digest::Md5 => "MD5",
        });
        let relative = self.relative.unwrap_or(files_from.is_some());
        if self.ordered && limits.jobs != Jobs::Fixed(1) {
            self.without.push(("--no-inc-recursive".into(), UNORDERED));
        }
        if self.remote_end.is_none() {
            let unused = self.remote.without_effect().map(|name| (name.to_owned(), NO_MACHINE));
            self.without.extend(unused);
        }
        typed.notes.append(&mut self.without);
        let targets = self.directory_targets(&sources, &target, relative);
        self.wanted.targets = targets;
        let spec = Spec {
            ordered: self.ordered,
            files_from,
            items: self.wanted.items(),
            items_unchanged: self.wanted.items_unchanged(),
            remarks,
            digest,
            mkpath: self.mkpath,
            check_space: !self.policy.dry_run && !self.policy.list_only,
            log_file: self.wanted.log_file.as_ref().map(std::path::PathBuf::from),
            objects,
            remote: self.remote_end,
            packing,
            ..self.limits.spec(limits, (sources, target), Layout::Rsync { relative }, self.policy)
        };
        Ok((spec, self.wanted, self.cluster))
    }

    /// Returns the names of `--files-from`. Those of a list on the other machine are read there.
    fn listed(&mut self, links: &Links) -> Result<Option<Vec<Vec<u8>>>, Fatal> {
        let Some(file) = &self.files_from else { return Ok(None) };
        if self.told_names.is_some() {
            return Ok(self.told_names.take());
        }
        if let Some(remote) = &mut self.remote_end {
            let there = match file.as_bytes().strip_prefix(b":") {
                Some(path) => Some(PathBuf::from(OsStr::from_bytes(path))),
                None => match RemotePath::parse(file)? {
                    Some(there) if there.host.host != remote.host.host => {
                        return Err(usage(
                            "the list of --files-from is on another machine than SRC or DST".into(),
                        ));
                    }
                    there => there.map(|there| there.path),
                },
            };
            if let Some(path) = there {
                if path.as_os_str().is_empty() {
                    return Err(usage("--files-from names no file".into()));
                }
                // A file of that name, as no other standard input is there.
                let is_dash = path.as_os_str() == "-";
                let path = if is_dash { PathBuf::from("./-") } else { path };
                // The agent reads it.
                if remote.side == Side::Source
                    && let Some(option) =
                        remote.options.iter_mut().find(|of| of.name == "files-from")
                {
                    option.value = text(path.as_os_str().as_bytes());
                }
                remote.list = Some((path, self.filters.nul));
                return Ok(Some(Vec::new()));
            }
        }
        let listed = names::read_list(file, links, self.filters.nul, names::split);
        listed.map(Some).map_err(usage)
    }

    /// Applies `-M`: to the target of a local copy, or else to the end on another machine.
    fn apply_far_options(&mut self) -> Result<(), Fatal> {
        if self.remote_end.is_none() {
            return options::set_target_options(self).map_err(usage);
        }
        let options = options::far_options(self).map_err(usage)?;
        if let Some(remote) = &mut self.remote_end {
            remote.options.extend(options.iter().map(remote::task_option));
        }
        Ok(())
    }

    /// Returns the target of each directory that goes to or comes from S3: aws and s5cmd copy `DIR` into `p`, rsync into
    /// `p/DIR`.
    fn directory_targets(
        &self,
        sources: &Sources,
        target: &Location,
        relative: bool,
    ) -> Vec<String> {
        let is_watched = self.policy.dry_run || std::io::stderr().is_terminal();
        let is_quiet = self.wanted.quiet || self.wanted.json || self.policy.list_only;
        let is_upload = target.is_s3() && !sources.are_s3();
        let is_download = sources.are_s3() && !target.is_s3() && std::io::stderr().is_terminal();
        let is_meant = is_upload || is_download;
        match is_watched && !is_quiet && is_meant && !relative && self.policy.recurse {
            true => folder_targets(sources, target, Some(true)),
            false => Vec::new(),
        }
    }

    /// Determines which entries are copied. With a store on a side (`with_store`) trees are: a bucket is one, and aws and
    /// s5cmd always sync recursively.
    fn set_entries(&mut self, with_store: bool) {
        let policy = &mut self.policy;
        policy.symlinks = match (self.copy_links, self.links) {
            (true, _) => Symlinks::Follow,
            (false, true) => Symlinks::Keep,
            (false, false) => Symlinks::Skip,
        };
        let implied = with_store && self.files_from.is_none() && !self.no_recursive;
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
    }

    /// Determines whose entries become, and what `--fake-super` stores instead.
    fn set_owners(&mut self) -> Result<(), Fatal> {
        let policy = &mut self.policy;
        policy.numeric_ids = self.numeric_ids;
        if self.end != End::Source {
            self.owners.look_up(policy, self.end == End::Target).map_err(usage)?;
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
        if !self.superuser && !policy.as_user {
            let Fake { both, target, not_target } = self.fake;
            policy.fake = match self.end {
                End::Both => FakeSides { source: both, target: (both || target) && !not_target },
                // As in rsync, of the end that is here.
                End::Source => FakeSides { source: both, target: false },
                End::Target => FakeSides { source: false, target: both },
            };
        }
        let fakes = policy.fake != FakeSides::default();
        if fakes && policy.preserve.xattrs && !policy.preserve.hides_reserved {
            return Err(usage("-XX cannot be used with --fake-super".into()));
        }
        if policy.as_user {
            (policy.preserve.owner, policy.preserve.owner_explicit) = (false, false);
            policy.devices = false;
        }
        Ok(())
    }

    /// Determines what is removed, and where backups and late files go. Returns whether backups have to be protected
    /// from deletion because they are beside their files.
    fn set_deletion(&mut self) -> Result<bool, Fatal> {
        let policy = &mut self.policy;
        policy.delete = when(self.delete, &self.delete_when)?;
        let beside = policy.backup_dir.is_none();
        policy.backup |= !beside;
        let suffix = if beside { b"~".to_vec() } else { Vec::new() };
        policy.suffix = self.suffix.take().unwrap_or(suffix);
        // rsync(1), --backup: both are forced if backups are beside their files.
        policy.preserve.omit_dir_times |= policy.backup && beside;
        // A killed rsync leaves files there; they are not part of the tree, and go when the file is complete.
        if policy.delay_updates && policy.partial_dir.is_none() {
            policy.partial_dir = Some(DELAYED_DIR.into());
        }
        let deletes = policy.delete != Delete::No;
        Ok(policy.backup && beside && deletes && !policy.delete_excluded)
    }

    /// Takes the paths of another machine, if there are any.
    fn remote_paths(&mut self, typed: &Typed) -> Result<Option<(Sources, Location)>, Fatal> {
        let Some((target, sources)) = typed.paths.split_last() else { return Ok(None) };
        // rsync(1), --list-only: a single argument is a source to list.
        let lists = sources.is_empty();
        let places = match lists {
            true => remote::listed(target)?,
            false => remote::places(sources, target, "sync")?,
        };
        let Some(RemotePlaces { side, host, sources, target }) = places else { return Ok(None) };
        self.policy.list_only |= lists;
        let mut options = remote::task_options(typed, FAR);
        // A noted option chooses what `%C` shows.
        let noted = typed.noted.iter().filter(|of| of.name == CHECKSUM_CHOICE);
        options.extend(noted.map(remote::task_option));
        if lists {
            let name = "list-only".to_owned();
            options.push(TaskOption { name, on: true, count: 1, ..TaskOption::default() });
        }
        self.end = if side == Side::Target { End::Source } else { End::Target };
        self.remote_end = Some(self.remote.end((side, host), "sync", options)?);
        Ok(Some((sources, target)))
    }

    /// Refuses options that have no meaning with another machine.
    fn check_remote(&self) -> Result<(), Fatal> {
        if self.remote_end.is_some() && !self.cluster.is_alone() {
            return Err(usage(
                "a transfer by many machines (--cluster, --run) has no end on another machine
\
                 hint: run it where both sides can be mounted, or without these options"
                    .into(),
            ));
        }
        if self.wanted.manifest.is_some() && !self.cluster.is_alone() {
            // Each of them sees a part of the entries.
            let message =
                "--manifest is not supported for a transfer by many machines (--cluster, --run)";
            return Err(usage(message.into()));
        }
        Ok(())
    }

    fn paths(&mut self, typed: &Typed) -> Result<(Sources, Location), Fatal> {
        if let Some(places) = self.remote_paths(typed)? {
            return Ok(places);
        }
        let (sources, target) = match typed.paths.as_slice() {
            [] => return Err(usage("missing source and destination (hakobu sync --help)".into())),
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
                "%C is not supported for s3:// (hakobu head shows stored checksums)".into(),
            ));
        }
        shown_digest(&typed.noted, self.policy.checksum).map(Some).map_err(usage)
    }

    /// Determines the output from the levels of verbosity.
    fn show(&mut self, concerned: Concerned) {
        let verbosity = self.verbosity();
        let doubtful = self.policy.filter.as_ref().map(|filter| filter.doubtful().clone());
        self.doubt(&doubtful.unwrap_or_default());
        let wanted = &mut self.wanted;
        wanted.styled = self.filters.is_styled();
        (wanted.explain, wanted.proves) = (self.limits.explain, self.limits.prove);
        wanted.priority = self.limits.priority;
        wanted.language = self.limits.language;
        wanted.textfile = self.limits.textfile.clone();
        wanted.unchanged = self.itemize > 1 || verbosity > 1;
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

const CHECKSUM_CHOICE: &str = "checksum-choice";

/// Options that the other end has to know.
pub const FAR: &[&str] = &[
    "archive",
    "recursive",
    "dirs",
    "relative",
    "no-implied-dirs",
    "links",
    "copy-links",
    "copy-dirlinks",
    "safe-links",
    "copy-unsafe-links",
    "D",
    "drop-D",
    "P",
    "devices",
    "specials",
    "one-file-system",
    "prune-empty-dirs",
    "ignore-missing-args",
    "max-size",
    "min-size",
    "hard-links",
    "perms",
    "owner",
    "group",
    "times",
    "atimes",
    "open-noatime",
    "executability",
    "omit-link-times",
    "omit-dir-times",
    "acls",
    "xattrs",
    "sparse",
    "chmod",
    "chown",
    "usermap",
    "groupmap",
    "super",
    "numeric-ids",
    "checksum",
    "update",
    "size-or-newer",
    "size-only",
    "ignore-times",
    "modify-window",
    "existing",
    "ignore-existing",
    "keep-dirlinks",
    "backup",
    "backup-dir",
    "suffix",
    "link-dest",
    "copy-dest",
    "compare-dest",
    "inplace",
    "append",
    "append-verify",
    "copy-devices",
    "write-devices",
    "preallocate",
    "delay-updates",
    "partial-dir",
    "partial",
    "temp-dir",
    "confine-root",
    "whole-file",
    "compress",
    "compress-choice",
    "compress-level",
    "skip-compress",
    "fsync",
    "mkpath",
    "dry-run",
    "delete",
    "delete-before",
    "delete-during",
    "delete-delay",
    "delete-after",
    "delete-excluded",
    "delete-missing-args",
    "max-delete",
    "ignore-errors",
    "remove-source-files",
    "force",
    "exclude",
    "include",
    "filter-style",
    "exclude-from",
    "include-from",
    "filter",
    "F",
    "cvs-exclude",
    "from0",
    "files-from",
    "list-only",
    "insecure-links",
    "verbose",
    "quiet",
    "debug",
    "itemize-changes",
    "out-format",
    "info",
    "jobs",
    "bwlimit",
];

/// Those that it has by `-M` only.
const FAR_ALONE: &[&str] = &["fake-super"];

/// Reads the options of a task, for the agent of another machine.
///
/// # Errors
/// An option that this end does not know or does not take.
pub fn read_task(task: &AgentTask) -> Result<Spec, Fatal> {
    let mut typed = remote::read_options(task, &[FAR, FAR_ALONE].concat(), &[CHECKSUM_CHOICE])?;
    let end = if task.reads { End::Source } else { End::Target };
    // The target end needs none of the names.
    let told_names = task.names.clone().or_else(|| (!task.reads).then(Vec::new));
    let mut reading = SyncArgs { end, told_names, ..SyncArgs::default() };
    reading.filters.told = Some(task.rule_files.clone());
    let (spec, _, _) = read_plan_from(&mut typed, reading)?;
    let (sources, target) = remote::task_places(task, (spec.sources, spec.target))?;
    Ok(Spec { sources, target, ..spec })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use hakobu_core::unit::Jobs;
    use hakobu_transfer::policy::{Delete, Symlinks};
    use hakobu_transfer::run::Layout;

    fn prepared(line: &str) -> Result<(Spec, ShowOptions), String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let read = read(&arguments).map(|(spec, wanted, _)| (spec, wanted));
        read.map_err(|refused| match refused {
            Refused::Help(_) => "help".to_owned(),
            Refused::Usage(message) => format!("{} {message}", exit::SYNC_USAGE),
            Refused::Failed { code, message } => format!("{code} {message}"),
        })
    }

    fn spec(line: &str) -> Spec {
        match prepared(line) {
            Ok((spec, _)) => spec,
            Err(message) => panic!("{line}: {message}"),
        }
    }

    fn error(line: &str) -> String {
        let message = prepared(line).err().unwrap_or_default();
        message.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn archive_and_what_is_taken_off_again() {
        /// Recursive, links, perms, times, owner, group, devices, specials.
        fn bits(line: &str) -> String {
            let policy = spec(line).policy;
            let keep = policy.preserve;
            [
                ('r', policy.recurse),
                ('l', policy.symlinks == Symlinks::Keep),
                ('p', keep.mode),
                ('t', keep.times),
                ('o', keep.owner),
                ('g', keep.group),
                ('d', policy.devices),
                ('s', policy.specials),
            ]
            .iter()
            .filter_map(|(letter, on)| on.then_some(*letter))
            .collect()
        }
        for (line, expected) in [
            ("-a s d", "rlptogds"),
            ("-rlptgoD s d", "rlptogds"),
            ("s d", ""),
            ("-a --no-o s d", "rlptgds"),
            ("--no-o -a s d", "rlptogds"),
            ("-a --no-times --no-D s d", "rlpog"),
            ("-a --no-devices s d", "rlptogs"),
            ("-a --no-r s d", "lptogds"),
            ("-a --no-links s d", "rptogds"),
            ("-A s d", "p"),
            ("-A --no-p s d", ""),
            ("--chown=5:6 s d", "og"),
            ("--chown=:6 s d", "g"),
            ("-a --files-from=/dev/null s d", "lptogds"),
            ("-ar --files-from=/dev/null s d", "rlptogds"),
            ("-ra --files-from=/dev/null s d", "rlptogds"),
        ] {
            assert_eq!(bits(line), expected, "{line}");
        }
        assert_eq!(spec("-lL s d").policy.symlinks, Symlinks::Follow);
        assert!(spec("-o s d").policy.preserve.owner_explicit);
        assert!(!spec("-a s d").policy.preserve.owner_explicit);
        assert!(!spec("-ao --no-o -a s d").policy.preserve.owner_explicit);
    }

    #[test]
    fn files_from_implies() {
        let spec1 = spec("--files-from=/dev/null s d");
        assert_eq!(spec1.layout, Layout::Rsync { relative: true });
        assert!(spec1.policy.dirs && spec1.files_from == Some(Vec::new()));
        let spec2 = spec("--files-from=/dev/null --no-R --no-d s d");
        assert_eq!(spec2.layout, Layout::Rsync { relative: false });
        assert!(!spec2.policy.dirs);
        assert!(error("--files-from=/dev/null a b d").starts_with("1 --files-from"));
    }

    #[test]
    fn deletion() {
        for (line, when) in [
            ("-r s d", Delete::No),
            ("-r --delete s d", Delete::During),
            ("-r --del s d", Delete::During),
            ("-r --delete --delete-before s d", Delete::Before),
            ("-r --delete-delay --delete s d", Delete::After),
            ("-r --delete-after s d", Delete::After),
            ("-r --delete-excluded s d", Delete::During),
            ("-d --delete s d", Delete::During),
        ] {
            assert_eq!(spec(line).policy.delete, when, "{line}");
        }
        assert!(spec("-r --delete-excluded s d").policy.delete_excluded);
        assert_eq!(spec("-r --del --max-delete=7 s d").policy.max_delete, Some(7));
        assert!(error("-r --del --delete-after s d").starts_with("1 "));
        assert!(error("--delete s d").starts_with("1 --delete does not work without"));
    }

    #[test]
    fn values() {
        let it = spec(
            "-n -xHXS -uc --size-only -I --existing --ignore-existing --max-size=1.5m --min-size=1k \
             --bwlimit=100 --modify-window=-1 --inplace --partial -T tmp --no-S \
             --link-dest=a --link-dest b --fsync --mkpath --remove-source-files --force \
             --ignore-errors -b --suffix=.bak -kK --safe-links -m -j 3 s1 s2 d",
        );
        let policy = &it.policy;
        assert!(policy.dry_run && policy.one_file_system && policy.hard_links);
        assert!(policy.preserve.xattrs && policy.update && policy.checksum && policy.size_only);
        assert!(policy.ignore_times && policy.existing && policy.ignore_existing);
        assert_eq!((policy.max_size, policy.min_size), (Some(1_572_864), Some(1024)));
        assert_eq!(it.limits.bytes_per_s_max, Some(102_400));
        assert_eq!(policy.modify_window_s, Some(-1));
        assert!(policy.inplace && policy.partial && policy.fsync && it.mkpath);
        assert_eq!(policy.temp_dir.as_deref(), Some("tmp".as_ref()));
        assert_eq!(policy.basis_dirs.len(), 2);
        assert!(policy.remove_source_files && policy.force && policy.ignore_errors);
        assert!(policy.backup && policy.suffix == b".bak" && policy.preserve.omit_dir_times);
        assert!(policy.copy_dirlinks && policy.keep_dirlinks && policy.safe_links);
        assert!(policy.prune_empty_dirs && !it.check_space);
        assert_eq!((it.limits.jobs, it.sources.len()), (Jobs::Fixed(3), 2));
        assert_eq!(spec("-b s d").policy.suffix, b"~");
        assert_eq!(
            spec("--chmod=u=rw --chmod D+x s d").policy.chmod.map(|c| c.apply(0, true)),
            Some(0o711)
        );
        assert!(spec("-a s d").check_space);
    }

    #[test]
    fn attributes_stored_with_objects() {
        let fitted = |line: &str| {
            let it = spec(&format!("{line} s s3://abc/d"));
            assert!(!it.policy.devices, "{line}");
            let options = it.objects.options;
            let kept =
                (options.keep_times, options.keep_modes, options.keep_owner, options.keep_group);
            (kept, options.if_none_match)
        };
        assert_eq!(fitted("-r"), ((false, false, false, false), false));
        assert_eq!(fitted("-a"), ((true, true, true, true), false));
        assert_eq!(fitted("-a --no-o"), ((true, true, false, true), false));
        assert_eq!(fitted("-ro"), ((false, false, true, false), false));
        assert_eq!(fitted("-rg"), ((false, false, false, true), false));
        assert_eq!(fitted("-a --no-t"), ((false, true, true, true), false));
        assert_eq!(fitted("-r --no-clobber"), ((false, false, false, false), true));
    }

    #[test]
    fn only_what_was_typed_is_refused_with_objects() {
        let refused = |line: &str| error(line).contains("is not supported for s3://");
        assert!(refused("-rH s s3://abc/d") && refused("-rH s3://abc/s d"));
        assert!(!refused("-r --no-H s s3://abc/d") && !refused("-a s s3://abc/d"));
        assert!(!refused("-rH s d"));
        assert!(refused("-rm s s3://abc/d") && !refused("-rm s3://abc/s d"));
        assert!(refused("-r --force s s3://abc/d"));
    }

    #[test]
    fn listing() {
        let it = spec("s");
        assert!(it.policy.list_only && it.policy.dirs && it.items);
        assert!(spec("-r s").policy.list_only);
        assert!(!spec("--no-d s").policy.dirs);
        assert!(spec("--list-only s d").policy.list_only);
    }

    #[test]
    fn requested_output() {
        use crate::number::Digits;
        use crate::show::Line;
        let wanted = |line: &str| prepared(line).map(|(_, wanted)| wanted).unwrap_or_default();
        assert_eq!(wanted("-v s d").line, Line::Name { all: false });
        assert_eq!(wanted("-vi s d").line, Line::Itemized);
        assert_eq!(wanted("-vi --json s d").line, Line::Json);
        assert_eq!(wanted("--json s d").line, Line::None);
        assert_eq!(wanted("-q -v s d").line, Line::None);
        assert_eq!(wanted("-hh s d").digits, Digits::Kibi);
        assert_eq!(wanted("--no-h s d").digits, Digits::Plain);
        assert!(wanted("-P s d").progress == Some(true) && spec("-P s d").policy.partial);
        assert_eq!(wanted("--info=progress2 s d").progress, Some(true));
        assert_eq!(wanted("-P --no-progress s d").progress, Some(false));
        assert_eq!(wanted("s d").progress, None);
        for (line, items, unchanged) in [
            ("s d", false, false),
            ("-v s d", true, false),
            ("-vv s d", true, true),
            ("-ii s d", true, true),
            ("--joblog=x s d", true, false),
            ("--log-file=x s d", true, false),
        ] {
            let spec = spec(line);
            assert_eq!((spec.items, spec.items_unchanged), (items, unchanged), "{line}");
        }
    }

    #[test]
    fn refused() {
        for (line, expected) in [
            ("", "1 missing source and destination (hakobu sync --help)"),
            ("--backup-dir= s d", "1 --backup-dir needs a directory"),
            ("--inplace --delay-updates s d", "1 --inplace cannot be used with --delay-updates"),
            (
                "--link-dest=a --compare-dest=b s d",
                "1 --compare-dest cannot be used with --link-dest",
            ),
            (
                "--partial-dir=a/b s d",
                "1 invalid --partial-dir 'a/b': neither the name of a directory nor an absolute path",
            ),
            ("--stop-after=0 s d", "1 invalid --stop-after '0': not a number of minutes"),
            (
                "--max-size=1z s d",
                "1 invalid --max-size '1z': not a size (examples: 500, 1.5m, 2GiB, 1MB-1)",
            ),
            (
                "--bwlimit=1b s d",
                "1 invalid --bwlimit '1b': too small (at least 512 bytes, or 0 for no limit)",
            ),
            ("--max-delete=x s d", "1 invalid --max-delete 'x': not a number"),
            ("--modify-window=x s d", "1 invalid --modify-window 'x': not a number of seconds"),
            ("--chmod=u+q s d", "1 --chmod: 'u+q' is not a change of mode bits"),
            (
                "--chown=no-such-user-here s d",
                "1 --chown=no-such-user-here: there is no user 'no-such-user-here'",
            ),
            ("--max-alloc=0 s d", "1 invalid --max-alloc '0': max-alloc must be greater than zero"),
            ("--info=frob s d", "1 --info=frob: there is no such flag (--info=help lists them)"),
            (
                "-j x s d",
                "1 invalid -j 'x': not a number of jobs (examples: 8, +2, 50%, 0, auto; at most 4096)",
            ),
            (
                "rsync://h/m d",
                "1 'rsync://h/m': rsync:// locations are not supported; with a login there, write HOST:PATH",
            ),
            ("--files-from=/no/such s d", "1 cannot read '/no/such': No such file or directory"),
            ("--exclude-from=/no/such s d", "11 cannot read '/no/such': No such file or directory"),
            ("-aXX --fake-super s d", "1 -XX cannot be used with --fake-super"),
            (
                "-M--log-file=x s d",
                "1 invalid --remote-option '--log-file=x': only --fake-super and --super, as there is \
                 no other machine",
            ),
            ("-r --delete -b --suffix= s d", "1 --backup needs a suffix that is not empty"),
            ("--nonsense s d", "1 unexpected argument '--nonsense' found (hakobu sync --help)"),
            ("--help", "help"),
        ] {
            assert_eq!(error(line), expected, "{line}");
        }
    }
}

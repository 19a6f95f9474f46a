//! Mode, owner, times, ACLs and extended attributes: computes and sets the wanted ones.
//!
//! The order is fixed (see [`settle_all`]): owner, ACL and xattrs, mode, times.

use super::engine::{Context, Station};
use super::fake_super as fake;
use super::fake_super::{AttributeHandle, XattrNames};
use super::source::{SourceName, attributes_of};
use super::target_dir::TargetDir;
use crate::failure::Failure;
use crate::policy::filter::{SidedRules, XattrSides};
use crate::policy::{Grain, Policy, same_time};
use crate::publish::{DirName, Scratch, TempNames};
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_remote::message::Xattr;
use hakobu_sys::{BorrowedFd, disk, errno, meta, xattr};
use parking_lot::Mutex;
use std::ffi::CStr;
use std::io;

/// The attributes that an entry should have at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    /// Permission bits.
    pub mode: u32,
    /// Owner, if we may set it.
    pub uid: Option<u32>,
    /// Group, if we may set it.
    pub gid: Option<u32>,
    /// Access and modification time.
    pub times: Option<(Option<Time>, Option<Time>)>,
    /// Device number that a file stands for (`--fake-super`).
    pub rdev: u64,
}

impl Want {
    /// Returns how mode, owner and group of an entry differ from the wanted ones.
    pub(super) fn change_of(&self, there: &Meta) -> Change {
        Change {
            mode: there.kind != Kind::Symlink && self.mode != there.mode,
            owner: self.uid.is_some_and(|uid| uid != there.uid),
            group: self.gid.is_some_and(|gid| gid != there.gid),
            ..Change::default()
        }
    }
}

/// The current attributes of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Have {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device that holds the entry.
    pub dev: u64,
}

impl From<&Meta> for Have {
    fn from(meta: &Meta) -> Have {
        Have { mode: meta.mode, uid: meta.uid, gid: meta.gid, dev: meta.dev }
    }
}

/// The entry whose attributes are set: open, or given by its name.
enum Subject<'a> {
    Open(BorrowedFd<'a>),
    Named(BorrowedFd<'a>, &'a CStr, Kind),
}

impl Subject<'_> {
    fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        match self {
            Subject::Open(fd) => meta::set_owner_fd(fd, uid, gid),
            Subject::Named(dir, name, _) => meta::set_owner(*dir, name, uid, gid),
        }
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        match self {
            Subject::Open(fd) => meta::set_mode_fd(fd, mode),
            // A symlink has no mode of its own on Linux.
            Subject::Named(_, _, Kind::Symlink) => Ok(()),
            Subject::Named(dir, name, _) => meta::set_mode(*dir, name, mode),
        }
    }

    fn set_times(&self, dev: u64, atime: Option<Time>, mtime: Option<Time>) -> io::Result<()> {
        match self {
            Subject::Open(fd) => meta::stamp_fd(dev, fd, atime, mtime),
            Subject::Named(dir, name, _) => meta::stamp(dev, *dir, name, atime, mtime),
        }
    }
}

/// Sets owner, ACLs and xattrs (`xattrs`), mode and times, in this order: a change of owner clears setuid bits and
/// capabilities, the mode of a file may forbid setting its xattrs, an ACL must exist before the mode opens its mask,
/// and every change affects the times. `opens`: setting xattrs needs write permission (xattr(7)), which is granted
/// temporarily; `remasks`: they change the mode. Continues after a failure and returns the first one.
fn settle_all(
    subject: &Subject<'_>,
    want: &Want,
    have: Have,
    (opens, remasks): (bool, bool),
    xattrs: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut first = Ok(());
    let mut note = |result: Result<(), Failure>| {
        let failed = result.is_err();
        if first.is_ok() {
            first = result;
        }
        failed
    };
    let uid = want.uid.filter(|uid| *uid != have.uid);
    let gid = want.gid.filter(|gid| *gid != have.gid);
    let mut mode = want.mode;
    let mut sets_mode = have.mode != want.mode || remasks;
    if uid.is_some() || gid.is_some() {
        let changed = subject.set_owner(uid, gid).map_err(Failure::of(Operation::SetOwner));
        if note(changed) {
            // A setuid bit is meant for the original owner only.
            mode &= !0o6000 | have.mode;
        }
        // The kernel clears some of these bits by rules of its own when the owner changes.
        sets_mode |= (have.mode | mode) & 0o6000 != 0;
    }
    if opens && have.mode & 0o200 == 0 {
        // If this fails, setting the attribute fails and reports the cause.
        sets_mode |= subject.set_mode(have.mode | 0o200).is_ok();
    }
    note(xattrs());
    if sets_mode {
        note(subject.set_mode(mode).map_err(Failure::of(Operation::SetMode)));
    }
    if let Some((atime, mtime)) = want.times {
        note(subject.set_times(have.dev, atime, mtime).map_err(Failure::of(Operation::SetTimes)));
    }
    first
}

/// As [`settle_all`] with `--fake-super`: the file gets a mode that lets its owner read and write it, and stands for
/// the wanted attributes. `kind`: what it stands for; `None` for itself.
fn settle_fake(
    place: &AttributeHandle<'_>,
    subject: &Subject<'_>,
    kind: Option<Kind>,
    want: &Want,
    have: Have,
    xattrs: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let real = place.real().map_err(Failure::of(Operation::Stat))?;
    if matches!(real.kind, Kind::File | Kind::Dir) {
        let owner = (want.uid.unwrap_or(have.uid), want.gid.unwrap_or(have.gid));
        let (wanted, mode) = fake::wanted(kind.unwrap_or(real.kind), want.mode, want.rdev, owner);
        // First the mode: without write permission no attribute can be set.
        if real.mode != mode {
            subject.set_mode(mode).map_err(Failure::of(Operation::SetMode))?;
        }
        xattrs()?;
        place.stand_for(&real, wanted).map_err(Failure::of(Operation::SetXattr))?;
    }
    match want.times {
        Some((atime, mtime)) => {
            subject.set_times(have.dev, atime, mtime).map_err(Failure::of(Operation::SetTimes))
        }
        None => Ok(()),
    }
}

/// Returns the mode of a file that is executable if its source is (rsync(1), `--executability`).
fn executable_as(source: u32, target: u32) -> u32 {
    match (source & 0o111 != 0, target & 0o111 != 0) {
        (false, _) => target & !0o111,
        (true, false) => target | (target & 0o444) >> 2,
        (true, true) => target,
    }
}

/// Computes and sets the attributes of entries. One instance per worker.
pub(super) struct Attributes<'a> {
    context: Context<'a>,
    pub(super) xattrs: Xattrs<'a>,
    /// Number of owners and groups that this user may not set, since the last query.
    unprivileged: u64,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(context: Context<'a>) -> Attributes<'a> {
        Attributes { context, xattrs: Xattrs::new(context), unprivileged: 0 }
    }

    /// Returns the number of attributes that were skipped because this user may not set them, since the last call.
    pub(super) fn take_unprivileged(&mut self) -> u64 {
        std::mem::take(&mut self.unprivileged) + self.xattrs.take_unprivileged()
    }

    /// Selects the rules for extended attributes: those of the directory `rules` that holds the entries which follow,
    /// or those of the options.
    pub(super) fn within(&mut self, rules: Option<&SidedRules>) -> &mut Self {
        if self.context.policy.preserve.xattrs {
            let of_options = || self.context.policy.xattr_rules();
            self.xattrs.rules = rules.map_or_else(of_options, SidedRules::xattrs);
        }
        self
    }

    /// Returns the attributes that a copy of `source` should have, given the existing target.
    ///
    /// Modes follow rsync(1), `--perms`: kept with `-p`; otherwise existing entries keep theirs and new ones get the
    /// source's bits minus the umask (or as the default ACL allows, if there is one).
    pub(super) fn want(
        &self,
        source: &Meta,
        existing: Option<&Meta>,
        dir: Option<&TargetDir>,
    ) -> Want {
        let policy = self.context.policy;
        let existing = existing.filter(|_| !policy.makes_anew() || source.kind == Kind::Dir);
        let preserve = policy.preserve;
        let root = self.context.is_root();
        let bits = self.bits(source);
        let mode = match (existing, dir.and_then(|dir| dir.default_bits)) {
            _ if preserve.mode => bits,
            (Some(target), _) if target.kind == source.kind => match source.kind {
                Kind::File if preserve.executability => executable_as(bits, target.mode),
                _ => target.mode,
            },
            (_, Some(default_bits)) => bits & default_bits,
            // cp keeps the sticky bit of a directory.
            _ if policy.cp_targets && source.kind == Kind::Dir => {
                bits & 0o1777 & !self.context.umask
            }
            _ => bits & 0o777 & !self.context.umask,
        };
        let cp_keeps = existing.filter(|_| policy.cp_targets && root);
        let uid = policy.chown_uid.filter(|_| !policy.as_user).or(match preserve.owner {
            true if root => Some(policy.users.of(source.uid)),
            _ => cp_keeps.map(|target| target.uid),
        });
        let group = policy.group_of(source.gid);
        let may_group = || root || hakobu_sys::process::in_group(group);
        let gid = policy.chown_gid.filter(|_| !policy.as_user).or(match preserve.group {
            true if may_group() => Some(group),
            _ => cp_keeps.map(|target| target.gid),
        });
        // cp and mv clear setuid if the owner is not kept; rsync keeps it.
        let clears = policy.cp_targets || policy.remove_source_dirs;
        let not_kept = preserve.owner && uid.is_none() && source.uid != self.context.euid
            || preserve.group && gid.is_none() && source.gid != self.context.egid;
        let mode = match clears && not_kept && preserve.mode && source.kind != Kind::Dir {
            true => mode & !0o6000,
            false => mode,
        };
        let omitted = source.kind == Kind::Dir && preserve.omit_dir_times
            || source.kind == Kind::Symlink && preserve.omit_link_times;
        let of_file = preserve.file_atimes && source.kind == Kind::File;
        let atime = (preserve.atimes || of_file).then_some(source.atime);
        let mtime = (preserve.times && !omitted).then_some(source.mtime);
        let times = (mtime.is_some() || of_file).then_some((atime, mtime));
        // The highest number is no ID: chown(2) takes it for "unchanged".
        let [uid, gid] = [uid, gid].map(|id| id.filter(|id| *id != u32::MAX));
        Want { mode, uid, gid, times, rdev: source.rdev }
    }

    /// Returns the permission bits of a source, with the requested changes.
    pub(super) fn bits(&self, source: &Meta) -> u32 {
        match &self.context.policy.chmod {
            Some(rules) if source.kind != Kind::Symlink => {
                rules.apply(source.mode, source.kind == Kind::Dir)
            }
            _ => source.mode,
        }
    }

    /// Counts owners and groups that this user may not set. Returns whether that is a failure.
    pub(super) fn count_unprivileged(&mut self, source: &Meta, want: &Want) -> bool {
        let preserve = self.context.policy.preserve;
        let owner = preserve.owner && want.uid.is_none() && source.uid != self.context.euid;
        let group = preserve.group && want.gid.is_none() && source.gid != self.context.egid;
        if owner || group {
            self.unprivileged += 1;
        }
        (owner || group) && preserve.owner_explicit
    }

    /// Returns whether ACLs or extended attributes are compared.
    pub(super) fn wants_xattrs(&self) -> bool {
        self.context.policy.preserve.xattrs || self.context.policy.preserve.acls
    }

    /// Returns whether setting an ACL changes the wanted mode: the ACL is the source's, the mode is not.
    fn remasks(&self) -> bool {
        let policy = self.context.policy;
        policy.preserve.acls && !policy.preserve.mode && !policy.fake.target
    }

    /// Returns whether an entry without write permission has to get it while its xattrs are set, as in rsync.
    pub(super) fn lends_write(&self) -> bool {
        self.context.policy.preserve.xattrs && self.context.euid != 0
    }

    /// Sets the wanted attributes of an open file or directory.
    ///
    /// `fresh`: it has no xattrs of its own and inherited none.
    ///
    /// # Errors
    /// The first failure; the other attributes are set nevertheless.
    pub(super) fn settle(
        &mut self,
        at: &Station<'_>,
        from: Option<AttributeHandle<'_>>,
        to: BorrowedFd<'_>,
        want: &Want,
        have: Have,
        fresh: bool,
    ) -> Result<(), Failure> {
        let (wanted, opens) = (self.wants_xattrs(), from.is_some() && self.lends_write());
        let remasks = self.remasks();
        let kept = &mut self.xattrs;
        let remasks = from.is_some() && remasks;
        let xattrs = || match from.filter(|_| wanted) {
            Some(from) => kept.copy(from, AttributeHandle::Open(to), fresh).map(drop),
            None => Ok(()),
        };
        at.step(Phase::Settle, 1);
        if self.context.policy.fake.target {
            let place = AttributeHandle::Open(to);
            return settle_fake(&place, &Subject::Open(to), None, want, have, xattrs);
        }
        settle_all(&Subject::Open(to), want, have, (opens, remasks), xattrs)
    }

    /// Sets the wanted attributes of an entry by name, without opening it: symlinks, nodes, and files whose content
    /// is right. `sets_xattrs`: ACLs and xattrs as well.
    pub(super) fn settle_named(
        &mut self,
        at: &Station<'_>,
        (from, (dir, name)): (SourceName<'_>, DirName<'_>),
        kind: Kind,
        want: &Want,
        have: Have,
        sets_xattrs: bool,
    ) -> Result<(), Failure> {
        let opens = sets_xattrs && matches!(kind, Kind::File | Kind::Dir) && self.lends_write();
        let remasks = sets_xattrs && self.remasks();
        let kept = &mut self.xattrs;
        let xattrs = || {
            if !sets_xattrs {
                return Ok(());
            }
            let source = attributes_of(from).map_err(Failure::of(Operation::Stat))?;
            let target =
                AttributeHandle::named(dir, name).map_err(Failure::of(Operation::SetXattr))?;
            kept.copy(source, target, false).map(drop)
        };
        at.step(Phase::Settle, 1);
        let subject = Subject::Named(dir, name, kind);
        if self.context.policy.fake.target {
            let place =
                AttributeHandle::named(dir, name).map_err(Failure::of(Operation::SetXattr))?;
            // The entry itself is a file, or is left alone.
            let real = if kind == Kind::Dir { Kind::Dir } else { Kind::File };
            let subject = Subject::Named(dir, name, real);
            return settle_fake(&place, &subject, Some(kind), want, have, xattrs);
        }
        settle_all(&subject, want, have, (opens, remasks), xattrs)
    }

    /// Returns how the attributes of an existing target differ from the wanted ones; times that agree at `grain` are
    /// equal. ACLs and extended attributes are compared if they are kept.
    pub(super) fn changes(
        &mut self,
        (from, to): (SourceName<'_>, DirName<'_>),
        target: &Meta,
        want: &Want,
        grain: Grain,
    ) -> Result<Change, Failure> {
        let window_s = self.context.policy.modify_window_s;
        let same = |mtime| same_time(mtime, target.mtime, window_s, grain);
        let mut change = Change {
            time: want.times.is_some_and(|(_, mtime)| mtime.is_some_and(|mtime| !same(mtime))),
            atime: self.context.policy.preserve.file_atimes
                && want.times.is_some_and(|(atime, _)| atime.is_some_and(|a| a != target.atime)),
            ..want.change_of(target)
        };
        if self.wants_xattrs() {
            let from = attributes_of(from).map_err(Failure::of(Operation::Stat))?;
            let to = AttributeHandle::named(to.0, to.1).map_err(Failure::of(Operation::Compare))?;
            (change.acl, change.xattr) = self.xattrs.compare(from, to)?;
        }
        Ok(change)
    }

    /// Removes the ACLs inherited by a new directory if those of its source are kept and its mode is not: a mode
    /// under an inherited mask would be neither the source's nor the target's.
    pub(super) fn disinherit(&self, dir: BorrowedFd<'_>) -> Result<bool, Failure> {
        if self.remasks() {
            remove_acls(dir)?;
        }
        Ok(self.remasks())
    }
}

// Granularities of times, determined on demand: only if two times differ by less than the coarsest granularity.
// Ordinary file systems keep what was set, so most runs need no probe.

/// Granularities measured by setting times and reading them back, by file system.
#[derive(Default)]
pub(crate) struct Grains {
    known: Mutex<Vec<(u64, Grain)>>,
}

/// One side of a comparison: the entry, and an open directory on its file system.
pub(crate) type AttributeSide<'a> = (&'a Meta, Option<BorrowedFd<'a>>);

impl Grains {
    /// Returns the coarser granularity of source and target, and whether the time of the target's directory changed
    /// by probing. `probes` makes temporary names if a file may be created at the target; without it, and for the
    /// source, the entries' own times are evaluated.
    pub fn of(
        &self,
        policy: &Policy,
        source: AttributeSide<'_>,
        target: AttributeSide<'_>,
        probes: Option<&TempNames>,
    ) -> (Grain, bool) {
        if policy.modify_window_s.is_some() || !Grain::matters(source.0.mtime, target.0.mtime) {
            return (Grain::NS, false);
        }
        let (grain, named) = self.of_target(target, probes);
        (Grains::shown(source).max(grain), named)
    }

    /// Returns the granularity of a target; see [`Grains::of`].
    pub fn of_target(
        &self,
        target: AttributeSide<'_>,
        probes: Option<&TempNames>,
    ) -> (Grain, bool) {
        let (meta, dir) = target;
        let known = self.known.lock().iter().find(|(dev, _)| *dev == meta.dev).copied();
        let (learnt, named) = match (known, probes, dir) {
            (Some((_, grain)), ..) => (Some(grain), false),
            (None, Some(names), Some(dir)) => self.learn(meta.dev, dir, names),
            (None, ..) => (None, false),
        };
        (learnt.unwrap_or_else(|| Grains::shown(target)), named)
    }

    /// Returns the granularity shown by an entry's own times and the type of its file system.
    pub fn shown((meta, dir): AttributeSide<'_>) -> Grain {
        let grain = Grain::shown_by(meta.mtime, meta.ctime);
        match grain == Grain::S && dir.is_some_and(disk::is_fat) {
            true => Grain::TWO_S,
            false => grain,
        }
    }

    fn learn(&self, dev: u64, dir: BorrowedFd<'_>, names: &TempNames) -> (Option<Grain>, bool) {
        if !hakobu_sys::meta::of_fd(dir).is_ok_and(|there| there.dev == dev) {
            return (None, false);
        }
        // A directory that does not allow creating a file is no failure.
        let Ok(scratch) = Scratch::new(dir, names) else { return (None, false) };
        let read_back = Grain::PROBES.iter().map(|set| Some((*set, scratch.keep(*set).ok()?)));
        let grain =
            read_back.collect::<Option<Vec<_>>>().and_then(|pairs| Grain::read_back(&pairs));
        self.known.lock().extend(grain.map(|grain| (dev, grain)));
        (grain, scratch.is_named())
    }
}

// Extended attributes and ACLs (which Linux stores as extended attributes) that a run keeps.

/// Buffers for attribute lists and values.
#[derive(Default)]
struct XattrBuffers {
    from_list: Vec<u8>,
    from_value: Vec<u8>,
    to_list: Vec<u8>,
    to_value: Vec<u8>,
}

/// An entry, and how its attributes are named.
struct Handle<'a> {
    place: AttributeHandle<'a>,
    names: XattrNames,
}

impl Handle<'_> {
    fn list<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        if self.names == XattrNames::Plain {
            return self.place.list(buffer);
        }
        let shown: Vec<_> = names(self.place.list(buffer)?)
            .filter_map(|name| Some(self.names.shown(name)?.into_owned()))
            .collect();
        buffer.clear();
        shown.iter().for_each(|name| buffer.extend_from_slice(name.as_bytes_with_nul()));
        Ok(buffer)
    }

    fn get<'b>(&self, name: &CStr, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let bytes = match self.place.get(&self.names.kept(name), buffer) {
            // A source may have it under its own name.
            Err(error) if self.names == XattrNames::Source && xattr::is_absent(&error) => {
                return self.place.get(name, buffer);
            }
            other => other?.len(),
        };
        let kept = buffer.get(..bytes).unwrap_or_default();
        let mode = || Ok(self.place.meta()?.mode);
        match self.names.decode(name, kept, mode)? {
            Some(value) => {
                buffer.clear();
                buffer.extend_from_slice(&value);
                Ok(buffer)
            }
            None => Ok(buffer.get(..bytes).unwrap_or_default()),
        }
    }

    fn set(&self, name: &CStr, value: &[u8]) -> io::Result<()> {
        self.place.set(&self.names.kept(name), &self.names.encode(name, value))
    }

    fn remove(&self, name: &CStr) -> io::Result<()> {
        self.place.remove(&self.names.kept(name))
    }
}

/// Splits a list of NUL-terminated names as xattr calls return it.
fn names(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|byte| *byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// Copies the extended attributes that are kept.
pub(super) struct Xattrs<'a> {
    context: Context<'a>,
    /// The rules for names in the directory of the entries that follow.
    pub rules: XattrSides,
    scratch: XattrBuffers,
    unprivileged: u64,
}

impl<'a> Xattrs<'a> {
    pub(super) fn new(context: Context<'a>) -> Xattrs<'a> {
        let rules = XattrSides::default();
        Xattrs { context, rules, scratch: XattrBuffers::default(), unprivileged: 0 }
    }

    /// Returns the number of attributes that were skipped because this user may not set them, since the last call.
    pub(super) fn take_unprivileged(&mut self) -> u64 {
        std::mem::take(&mut self.unprivileged)
    }

    /// Returns names and values of the attributes of a source that are kept.
    pub(super) fn told(&mut self, place: AttributeHandle<'_>) -> Result<Vec<Xattr>, Failure> {
        let (context, mut list, mut value) = (self.context, Vec::new(), Vec::new());
        let of = Handle { place, names: context.source_names() };
        let reads_as_root = context.reads_as_root();
        let list = match of.list(&mut list) {
            Ok(list) => list,
            Err(error) if xattr::is_unsupported(&error) => return Ok(Vec::new()),
            Err(error) => return Err(Failure { operation: Operation::Read, error }),
        };
        let mut told = Vec::new();
        for name in names(list) {
            if !context.policy.copies_xattr(name.to_bytes(), reads_as_root, &self.rules) {
                continue;
            }
            match of.get(name, &mut value) {
                Ok(value) => told.push((name.to_bytes().to_vec(), value.to_vec())),
                Err(error) if xattr::is_absent(&error) => {}
                Err(error) => return Err(Failure { operation: Operation::Read, error }),
            }
        }
        Ok(told)
    }

    /// Makes the kept attributes of `to` equal to those of `from`; `fresh`: `to` has none. Returns whether ACLs and
    /// whether xattrs differed.
    pub(super) fn copy(
        &mut self,
        from: AttributeHandle<'_>,
        to: AttributeHandle<'_>,
        fresh: bool,
    ) -> Result<(bool, bool), Failure> {
        self.unite(from, to, fresh, false)
    }

    /// Returns whether ACLs and whether xattrs differ.
    pub(super) fn compare(
        &mut self,
        from: AttributeHandle<'_>,
        to: AttributeHandle<'_>,
    ) -> Result<(bool, bool), Failure> {
        self.unite(from, to, false, true)
    }

    fn unite(
        &mut self,
        from: AttributeHandle<'_>,
        to: AttributeHandle<'_>,
        fresh: bool,
        only_compare: bool,
    ) -> Result<(bool, bool), Failure> {
        let from = Handle { place: from, names: self.context.source_names() };
        let to = Handle { place: to, names: self.context.target_names() };
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.copy_with(&mut scratch, &from, &to, fresh, only_compare);
        self.scratch = scratch;
        result
    }

    fn copy_with(
        &mut self,
        scratch: &mut XattrBuffers,
        from: &Handle<'_>,
        to: &Handle<'_>,
        fresh: bool,
        only_compare: bool,
    ) -> Result<(bool, bool), Failure> {
        let XattrBuffers { from_list, from_value, to_list, to_value } = scratch;
        let context = self.context;
        let (policy, rules) = (context.policy, self.rules.clone());
        let copies =
            |name: &CStr| policy.copies_xattr(name.to_bytes(), context.reads_as_root(), &rules);
        let removes =
            |name: &CStr| policy.removes_xattr(name.to_bytes(), context.is_root(), &rules);
        let (mut acl, mut other) = (false, false);
        let from_list = match from.list(from_list) {
            Ok(list) => list,
            Err(error) if xattr::is_unsupported(&error) => &[],
            Err(error) => return Err(Failure { operation: Operation::Read, error }),
        };
        let to_list = match fresh {
            true => &[][..],
            false => match to.list(to_list) {
                Ok(list) => list,
                Err(error) if xattr::is_unsupported(&error) => &[],
                Err(error) => return Err(Failure { operation: Operation::SetXattr, error }),
            },
        };
        let mut differs = |name: &CStr| match is_acl(name) {
            true => acl = true,
            false => other = true,
        };
        for name in names(from_list).filter(|name| copies(name)) {
            let bytes = match from.get(name, from_value) {
                Ok(value) => value.len(),
                Err(error) if xattr::is_absent(&error) => continue,
                Err(error) => return Err(Failure { operation: Operation::Read, error }),
            };
            let Some(value) = from_value.get_mut(..bytes) else { continue };
            if is_acl(name) && policy.maps_ids() {
                map_ids(value, |id| policy.user_of(id), |id| policy.group_of(id));
            }
            let value = &*value;
            let exists = names(to_list).any(|there| there == name);
            if exists && to.get(name, to_value).is_ok_and(|there| there == value) {
                continue;
            }
            differs(name);
            if !only_compare && let Err(error) = to.set(name, value) {
                self.refused(name, error)?;
            }
        }
        for name in names(to_list).filter(|name| removes(name)) {
            if !names(from_list).any(|there| there == name && copies(name)) {
                differs(name);
                if !only_compare
                    && let Err(error) = to.remove(name)
                    && !xattr::is_absent(&error)
                {
                    self.refused(name, error)?;
                }
            }
        }
        Ok((acl, other))
    }

    /// Handles an attribute that could not be set: a failure if attributes were requested by name, otherwise counted.
    fn refused(&mut self, name: &CStr, error: io::Error) -> Result<(), Failure> {
        let acl = is_acl(name);
        let by_right = matches!(error.raw_os_error(), Some(errno::EPERM | errno::EOPNOTSUPP));
        let preserve = self.context.policy.preserve;
        let explicit = if acl { preserve.acls_explicit } else { preserve.xattrs_explicit };
        if by_right && !explicit {
            self.unprivileged += 1;
            return Ok(());
        }
        let operation = if acl { Operation::SetAcl } else { Operation::SetXattr };
        Err(Failure { operation, error })
    }

    /// Returns the permission bits that the default ACL of an open directory leaves to new entries; `None` if it has
    /// none.
    pub(super) fn default_bits(&mut self, dir: BorrowedFd<'_>) -> Result<Option<u32>, Failure> {
        match xattr::get(dir, xattr::ACL_DEFAULT, &mut self.scratch.to_value) {
            Ok(value) => Ok(Some(mode_bits(value))),
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(None),
            Err(error) => Err(Failure { operation: Operation::Stat, error }),
        }
    }
}

pub(super) fn is_acl(name: &CStr) -> bool {
    name == xattr::ACL_ACCESS || name == xattr::ACL_DEFAULT
}

/// Removes both ACLs of an open directory.
pub(super) fn remove_acls(dir: BorrowedFd<'_>) -> Result<(), Failure> {
    for name in [xattr::ACL_DEFAULT, xattr::ACL_ACCESS] {
        match xattr::remove(dir, name) {
            Err(error) if !xattr::is_absent(&error) && !xattr::is_unsupported(&error) => {
                return Err(Failure { operation: Operation::SetAcl, error });
            }
            _ => {}
        }
    }
    Ok(())
}

// POSIX ACLs in Linux's xattr format: a version, then entries of tag, permissions and ID, all little-endian
// (linux/posix_acl_xattr.h).

/// Size of the version, in bytes.
const HEAD_BYTES: usize = 4;
const VERSION: u32 = 2;
/// Size of an entry, in bytes.
const ENTRY_BYTES: usize = 8;

pub(super) const USER_OBJ: u16 = 0x01;
pub(super) const USER: u16 = 0x02;
pub(super) const GROUP_OBJ: u16 = 0x04;
pub(super) const GROUP: u16 = 0x08;
pub(super) const MASK: u16 = 0x10;
pub(super) const OTHER: u16 = 0x20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct AttributeEntry {
    pub tag: u16,
    pub bits: u16,
    pub id: u32,
}

/// Returns the entries of an ACL.
pub(super) fn entries(value: &[u8]) -> impl Iterator<Item = AttributeEntry> {
    let all = value.get(HEAD_BYTES..).unwrap_or_default();
    all.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
        let (tag, rest) = entry.split_first_chunk()?;
        let (bits, rest) = rest.split_first_chunk()?;
        let (id, _) = rest.split_first_chunk()?;
        let (tag, bits) = (u16::from_le_bytes(*tag), u16::from_le_bytes(*bits));
        Some(AttributeEntry { tag, bits, id: u32::from_le_bytes(*id) })
    })
}

/// Returns the ACL of `entries`, which are in the kernel's order.
pub(super) fn value_of(entries: &[AttributeEntry]) -> Vec<u8> {
    let head = VERSION.to_le_bytes().into_iter();
    let rest = entries.iter().flat_map(|entry| {
        let (tag, bits, id) =
            (entry.tag.to_le_bytes(), entry.bits.to_le_bytes(), entry.id.to_le_bytes());
        tag.into_iter().chain(bits).chain(id)
    });
    head.chain(rest).collect()
}

/// Returns the permission bits that a default ACL leaves to a new entry.
pub(super) fn mode_bits(value: &[u8]) -> u32 {
    let of = |tag| entries(value).find(|entry| entry.tag == tag).map(|entry| u32::from(entry.bits));
    let bits = |found: Option<u32>| found.unwrap_or(7) & 7;
    bits(of(USER_OBJ)) << 6 | bits(of(MASK).or_else(|| of(GROUP_OBJ))) << 3 | bits(of(OTHER))
}

/// Replaces the user and group IDs in an ACL. Entries stay in the order that the kernel requires.
pub(super) fn map_ids(
    value: &mut [u8],
    mut user: impl FnMut(u32) -> u32,
    mut group: impl FnMut(u32) -> u32,
) {
    let mut all: Vec<AttributeEntry> = entries(value).collect();
    for entry in &mut all {
        match entry.tag {
            USER => entry.id = user(entry.id),
            GROUP => entry.id = group(entry.id),
            _ => {}
        }
    }
    // IDs of the other tags have no meaning and are all equal.
    all.sort_by_key(|entry| (entry.tag, entry.id));
    value.iter_mut().zip(value_of(&all)).skip(HEAD_BYTES).for_each(|(to, from)| *to = from);
}

/// Returns the users and groups that an extended attribute names, if it is an ACL: whether it is a group, and its number.
pub fn ids_of_acl((name, value): &Xattr) -> impl Iterator<Item = (bool, u32)> {
    let names = [xattr::ACL_ACCESS, xattr::ACL_DEFAULT];
    let is_acl = names.iter().any(|acl| acl.to_bytes() == name.as_slice());
    let named = entries(value).filter(move |entry| is_acl && matches!(entry.tag, USER | GROUP));
    named.map(|entry| (entry.tag == GROUP, entry.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(of: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut value = 2u32.to_le_bytes().to_vec();
        for (tag, bits, id) in of {
            value.extend(tag.to_le_bytes());
            value.extend(bits.to_le_bytes());
            value.extend(id.to_le_bytes());
        }
        value
    }

    #[test]
    fn the_mask_stands_for_the_group() {
        let none = u32::MAX;
        assert_eq!(mode_bits(&acl(&[(1, 7, none), (4, 5, none), (32, 4, none)])), 0o754);
        let masked = [(1, 7, none), (2, 7, 5), (4, 5, none), (16, 6, none), (32, 0, none)];
        assert_eq!(mode_bits(&acl(&masked)), 0o760);
        assert_eq!(mode_bits(b""), 0o777);
    }

    #[test]
    fn numbers_become_others_in_order() {
        let none = u32::MAX;
        let mut value = acl(&[(1, 7, none), (2, 4, 5), (2, 6, 9), (4, 5, none), (8, 1, 5)]);
        map_ids(&mut value, |id| if id == 9 { 1 } else { id }, |id| id + 1);
        let expected = acl(&[(1, 7, none), (2, 6, 1), (2, 4, 5), (4, 5, none), (8, 1, 6)]);
        assert!(value == expected);
    }
}

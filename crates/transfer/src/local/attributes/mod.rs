//! Mode, owner, times, ACLs and extended attributes: computes and sets the wanted ones.
//!
//! The order is fixed (see [`settle_all`]): owner, ACL and xattrs, mode, times.

mod grains;
mod xattrs;

pub(crate) use grains::Grains;

use super::context::Context;
use super::fake::{self, Place};
use super::node::TargetDir;
use super::pace::Station;
use crate::failure::Failure;
use crate::policy::filter::SidedRules;
use crate::policy::{Grain, same_time};
use crate::publish::DirName;
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::{BorrowedFd, meta, stamp};
use std::ffi::CStr;
use std::io;
use xattrs::Xattrs;

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
            Subject::Open(fd) => stamp::set_fd(dev, fd, atime, mtime),
            Subject::Named(dir, name, _) => stamp::set(dev, *dir, name, atime, mtime),
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
    place: &Place<'_>,
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
        from: Option<BorrowedFd<'_>>,
        to: BorrowedFd<'_>,
        want: &Want,
        have: Have,
        fresh: bool,
    ) -> Result<(), Failure> {
        let (wanted, opens) = (self.wants_xattrs(), from.is_some() && self.lends_write());
        let remasks = self.remasks();
        let kept = &mut self.xattrs;
        let xattrs = || match from.filter(|_| wanted) {
            Some(from) => kept.copy(Place::Open(from), Place::Open(to), fresh).map(drop),
            None => Ok(()),
        };
        at.step(Phase::Settle, 1);
        let remasks = from.is_some() && remasks;
        if self.context.policy.fake.target {
            let place = Place::Open(to);
            return settle_fake(&place, &Subject::Open(to), None, want, have, xattrs);
        }
        settle_all(&Subject::Open(to), want, have, (opens, remasks), xattrs)
    }

    /// Sets the wanted attributes of an entry by name, without opening it: symlinks, nodes, and files whose content
    /// is right. `sets_xattrs`: ACLs and xattrs as well.
    ///
    /// # Errors
    /// As [`Attributes::settle`].
    pub(super) fn settle_named(
        &mut self,
        at: &Station<'_>,
        (from, (dir, name)): (DirName<'_>, DirName<'_>),
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
            let source = Place::named(from.0, from.1).map_err(Failure::of(Operation::Stat))?;
            let target = Place::named(dir, name).map_err(Failure::of(Operation::SetXattr))?;
            kept.copy(source, target, false).map(drop)
        };
        at.step(Phase::Settle, 1);
        let subject = Subject::Named(dir, name, kind);
        if self.context.policy.fake.target {
            let place = Place::named(dir, name).map_err(Failure::of(Operation::SetXattr))?;
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
        (from, to): (DirName<'_>, DirName<'_>),
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
            let from = Place::named(from.0, from.1).map_err(Failure::of(Operation::Stat))?;
            let to = Place::named(to.0, to.1).map_err(Failure::of(Operation::Compare))?;
            (change.acl, change.xattr) = self.xattrs.compare(from, to)?;
        }
        Ok(change)
    }

    /// Removes the ACLs inherited by a new directory if those of its source are kept and its mode is not: a mode
    /// under an inherited mask would be neither the source's nor the target's.
    pub(super) fn disinherit(&self, dir: BorrowedFd<'_>) -> Result<bool, Failure> {
        if self.remasks() {
            xattrs::remove_acls(dir)?;
        }
        Ok(self.remasks())
    }
}

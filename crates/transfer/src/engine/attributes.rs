//! Mode, owner, times, ACLs and extended attributes: what an entry should have, and giving it.
//!
//! The order is fixed (see [`settle_all`]): owner, ACL and xattrs, mode, times.

use super::node::{Failure, TargetDir};
use super::{Engine, State};
use crate::error::Operation;
use crate::event::Change;
use crate::meter::Phase;
use crate::unit::{Kind, Meta, Time};
use hakobu_sys::{AsFd, BorrowedFd, errno, file, meta, xattr};
use std::ffi::CStr;
use std::io;

/// Buffers for attribute lists and values.
#[derive(Default)]
pub struct Scratch {
    from_list: Vec<u8>,
    from_value: Vec<u8>,
    to_list: Vec<u8>,
    to_value: Vec<u8>,
}

/// The attributes that an entry should end up with.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Permission bits.
    pub mode: u32,
    /// Owner, where it is ours to set.
    pub uid: Option<u32>,
    /// Group, where it is ours to set.
    pub gid: Option<u32>,
    /// Access and modification time.
    pub times: Option<(Option<Time>, Time)>,
}

/// The attributes that an entry has now.
#[derive(Clone, Copy, Debug)]
pub struct Have {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl From<&Meta> for Have {
    fn from(meta: &Meta) -> Have {
        Have { mode: meta.mode, uid: meta.uid, gid: meta.gid }
    }
}

/// An entry whose attributes are read or set: open, or only named.
pub enum Handle<'a> {
    /// An open file or directory.
    Fd(BorrowedFd<'a>),
    /// An `O_PATH` descriptor by way of `/proc`.
    Named(xattr::Named),
}

impl Handle<'_> {
    /// Names an entry without opening it for reading.
    pub fn named(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Handle<'static>> {
        Ok(Handle::Named(xattr::Named::new(file::open_path(dir, name)?)))
    }

    fn list<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        match self {
            Handle::Fd(fd) => xattr::list(*fd, buffer),
            Handle::Named(named) => named.list(buffer),
        }
    }

    fn get<'b>(&self, name: &CStr, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        match self {
            Handle::Fd(fd) => xattr::get(*fd, name, buffer),
            Handle::Named(named) => named.get(name, buffer),
        }
    }

    fn set(&self, name: &CStr, value: &[u8]) -> io::Result<()> {
        match self {
            Handle::Fd(fd) => xattr::set(*fd, name, value),
            Handle::Named(named) => named.set(name, value),
        }
    }

    fn remove(&self, name: &CStr) -> io::Result<()> {
        match self {
            Handle::Fd(fd) => xattr::remove(*fd, name),
            Handle::Named(named) => named.remove(name),
        }
    }
}

/// The names in a list of NUL-terminated strings, as xattr calls return it.
fn names(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|byte| *byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// What attributes are set on.
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

    fn set_times(&self, atime: Option<Time>, mtime: Time) -> io::Result<()> {
        match self {
            Subject::Open(fd) => meta::set_times_fd(fd, atime, mtime),
            Subject::Named(dir, name, _) => meta::set_times(*dir, name, atime, mtime),
        }
    }
}

/// Sets owner, ACLs and xattrs (`xattrs`), mode and times, in this order: a change of owner clears
/// setuid bits and capabilities, the mode of a file may forbid to set its xattrs, an ACL must be
/// there before the mode opens its mask, and everything changes the times. Goes on after a
/// failure; the first one is returned.
fn settle_all(
    state: &mut State,
    subject: &Subject<'_>,
    want: &Want,
    have: Have,
    xattrs: impl FnOnce(&mut State) -> Result<(), Failure>,
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
    let mut sets_mode = have.mode != want.mode;
    if uid.is_some() || gid.is_some() {
        let changed = subject.set_owner(uid, gid).map_err(Failure::of(Operation::SetOwner));
        if note(changed) {
            // Setuid is for the owner it was meant for.
            mode &= !0o6000 | have.mode;
        }
        // The kernel clears some of these bits when the owner changes, by rules of its own.
        sets_mode |= (have.mode | mode) & 0o6000 != 0;
    }
    note(xattrs(state));
    if sets_mode {
        note(subject.set_mode(mode).map_err(Failure::of(Operation::SetMode)));
    }
    if let Some((atime, mtime)) = want.times {
        note(subject.set_times(atime, mtime).map_err(Failure::of(Operation::SetTimes)));
    }
    first
}

impl Engine<'_> {
    /// What a copy of `source` should have, given what is at the target already.
    ///
    /// Modes follow rsync(1), `--perms`: kept with `-p`; else existing entries keep theirs and
    /// new ones get the source's bits less the umask (less the default ACL where there is one).
    pub(super) fn want(
        &self,
        source: &Meta,
        existing: Option<&Meta>,
        dir: Option<&TargetDir>,
    ) -> Want {
        let policy = self.policy;
        let preserve = policy.preserve;
        let root = self.euid == 0;
        let bits = match &policy.chmod {
            Some(rules) => rules.apply(source.mode, source.kind == Kind::Dir),
            None => source.mode,
        };
        let mode = match existing {
            _ if preserve.mode => bits,
            Some(target) if target.kind == source.kind => target.mode,
            _ if dir.is_some_and(|dir| dir.default_acl) => bits & 0o777,
            // cp keeps the sticky bit of a directory.
            _ if policy.cp_targets && source.kind == Kind::Dir => bits & 0o1777 & !self.umask,
            _ => bits & 0o777 & !self.umask,
        };
        let cp_keeps = existing.filter(|_| policy.cp_targets && root);
        let uid = policy.chown_uid.or(match preserve.owner {
            true if root => Some(source.uid),
            _ => cp_keeps.map(|target| target.uid),
        });
        let may_group = || root || hakobu_sys::process::in_group(source.gid);
        let gid = policy.chown_gid.or(match preserve.group {
            true if may_group() => Some(source.gid),
            _ => cp_keeps.map(|target| target.gid),
        });
        // Setuid is for the owner it was meant for, say cp and mv; rsync keeps it.
        let clears = policy.cp_targets || policy.remove_source_dirs;
        let not_kept = preserve.owner && uid.is_none() && source.uid != self.euid
            || preserve.group && gid.is_none() && source.gid != self.egid;
        let mode = match clears && not_kept && preserve.mode && source.kind != Kind::Dir {
            true => mode & !0o6000,
            false => mode,
        };
        let dir_times = source.kind == Kind::Dir && preserve.omit_dir_times;
        let times = (preserve.times && !dir_times)
            .then_some((preserve.atimes.then_some(source.atime), source.mtime));
        Want { mode, uid, gid, times }
    }

    /// Counts owners and groups that this user may not set. Returns whether that is a failure.
    pub(super) fn count_unprivileged(&self, source: &Meta, want: &Want, state: &mut State) -> bool {
        let preserve = self.policy.preserve;
        let owner = preserve.owner && want.uid.is_none() && source.uid != self.euid;
        let group = preserve.group && want.gid.is_none() && source.gid != self.egid;
        if owner || group {
            state.totals.unprivileged += 1;
        }
        (owner || group) && preserve.owner_explicit
    }

    /// Whether ACLs or extended attributes are looked at.
    pub(super) fn wants_xattrs(&self) -> bool {
        self.policy.preserve.xattrs || self.policy.preserve.acls
    }

    /// Gives an open file or directory the attributes it should have.
    ///
    /// `fresh`: it has no xattrs of its own and inherited none.
    ///
    /// # Errors
    /// The first failure; the other attributes are set all the same.
    pub(super) fn settle(
        &self,
        state: &mut State,
        from: Option<BorrowedFd<'_>>,
        to: BorrowedFd<'_>,
        want: &Want,
        have: Have,
        fresh: bool,
    ) -> Result<(), Failure> {
        let xattrs = |state: &mut State| match from.filter(|_| self.wants_xattrs()) {
            Some(from) => {
                self.copy_xattrs(state, &Handle::Fd(from), &Handle::Fd(to), fresh, false).map(drop)
            }
            None => Ok(()),
        };
        self.step(&state.station, Phase::Settle, 1);
        settle_all(state, &Subject::Open(to), want, have, xattrs)
    }

    /// Gives an entry the attributes it should have by its name, without opening it: symlinks,
    /// nodes, and files whose content is right.
    ///
    /// # Errors
    /// As [`Engine::settle`].
    #[expect(clippy::too_many_arguments, reason = "one entry on both sides takes two of each")]
    pub(super) fn settle_named(
        &self,
        state: &mut State,
        from: (BorrowedFd<'_>, &CStr),
        to: (BorrowedFd<'_>, &CStr),
        kind: Kind,
        want: &Want,
        have: Have,
        change: &Change,
    ) -> Result<(), Failure> {
        let (dir, name) = to;
        let xattrs = |state: &mut State| {
            if !(change.created || change.acl || change.xattr) {
                return Ok(());
            }
            let source = Handle::named(from.0, from.1).map_err(Failure::of(Operation::Stat))?;
            let target = Handle::named(dir, name).map_err(Failure::of(Operation::SetXattr))?;
            self.copy_xattrs(state, &source, &target, false, false).map(drop)
        };
        self.step(&state.station, Phase::Settle, 1);
        settle_all(state, &Subject::Named(dir, name, kind), want, have, xattrs)
    }

    /// How the attributes of an existing target differ from what they should be. ACLs and
    /// extended attributes are compared when they are kept.
    pub(super) fn attribute_changes(
        &self,
        state: &mut State,
        from: (BorrowedFd<'_>, &CStr),
        to: (BorrowedFd<'_>, &CStr),
        target: &Meta,
        want: &Want,
    ) -> Result<Change, Failure> {
        let window_s = self.policy.modify_window_s;
        let same = |mtime| crate::policy::same_time(mtime, target.mtime, window_s);
        let mut change = Change {
            time: want.times.is_some_and(|(_, mtime)| !same(mtime)),
            mode: target.kind != Kind::Symlink && want.mode != target.mode,
            owner: want.uid.is_some_and(|uid| uid != target.uid),
            group: want.gid.is_some_and(|gid| gid != target.gid),
            ..Change::default()
        };
        if self.wants_xattrs() {
            let source = Handle::named(from.0, from.1).map_err(Failure::of(Operation::Stat))?;
            let target = Handle::named(to.0, to.1).map_err(Failure::of(Operation::Compare))?;
            let (acl, xattr) = self.copy_xattrs(state, &source, &target, false, true)?;
            change.acl = acl;
            change.xattr = xattr;
        }
        Ok(change)
    }

    fn is_kept(&self, name: &CStr) -> bool {
        self.policy.preserve.keeps_xattr(name.to_bytes(), self.euid == 0)
    }

    /// Makes the kept attributes of `to` those of `from`. `fresh` skips looking at what `to`
    /// has; `only_compare` changes nothing. Returns whether ACLs and whether xattrs differ.
    pub(super) fn copy_xattrs(
        &self,
        state: &mut State,
        from: &Handle<'_>,
        to: &Handle<'_>,
        fresh: bool,
        only_compare: bool,
    ) -> Result<(bool, bool), Failure> {
        let mut scratch = std::mem::take(&mut state.xattrs);
        let result = self.copy_xattrs_with(state, &mut scratch, from, to, fresh, only_compare);
        state.xattrs = scratch;
        result
    }

    fn copy_xattrs_with(
        &self,
        state: &mut State,
        scratch: &mut Scratch,
        from: &Handle<'_>,
        to: &Handle<'_>,
        fresh: bool,
        only_compare: bool,
    ) -> Result<(bool, bool), Failure> {
        let Scratch { from_list, from_value, to_list, to_value } = scratch;
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
        let mut differs =
            |name: &CStr| match name == xattr::ACL_ACCESS || name == xattr::ACL_DEFAULT {
                true => acl = true,
                false => other = true,
            };
        for name in names(from_list).filter(|name| self.is_kept(name)) {
            let value = match from.get(name, from_value) {
                Ok(value) => value,
                Err(error) if xattr::is_absent(&error) => continue,
                Err(error) => return Err(Failure { operation: Operation::Read, error }),
            };
            let exists = names(to_list).any(|there| there == name);
            if exists && to.get(name, to_value).is_ok_and(|there| there == value) {
                continue;
            }
            differs(name);
            if !only_compare && let Err(error) = to.set(name, value) {
                self.refused(state, name, error)?;
            }
        }
        for name in names(to_list).filter(|name| self.is_kept(name)) {
            if !names(from_list).any(|there| there == name) {
                differs(name);
                if !only_compare
                    && let Err(error) = to.remove(name)
                    && !xattr::is_absent(&error)
                {
                    self.refused(state, name, error)?;
                }
            }
        }
        Ok((acl, other))
    }

    /// An attribute that could not be set: a failure where attributes were asked for by name,
    /// else a count.
    fn refused(&self, state: &mut State, name: &CStr, error: io::Error) -> Result<(), Failure> {
        let acl = name == xattr::ACL_ACCESS || name == xattr::ACL_DEFAULT;
        let by_right = matches!(error.raw_os_error(), Some(errno::EPERM | errno::EOPNOTSUPP));
        let preserve = self.policy.preserve;
        let explicit = if acl { preserve.acls_explicit } else { preserve.xattrs_explicit };
        if by_right && !explicit {
            state.totals.unprivileged += 1;
            return Ok(());
        }
        let operation = if acl { Operation::SetAcl } else { Operation::SetXattr };
        Err(Failure { operation, error })
    }

    /// Whether new entries of an open directory inherit an ACL.
    pub(super) fn has_default_acl(
        &self,
        state: &mut State,
        dir: &impl AsFd,
    ) -> Result<bool, Failure> {
        match xattr::get(dir.as_fd(), xattr::ACL_DEFAULT, &mut state.xattrs.to_value) {
            Ok(_) => Ok(true),
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(false),
            Err(error) => Err(Failure { operation: Operation::Stat, error }),
        }
    }
}

//! Extended attributes and ACLs (which Linux stores as extended attributes) that a run keeps.

use crate::local::acl;
use crate::local::context::Context;
use crate::local::fake::{Names, Place};
use crate::failure::Failure;
use crate::policy::filter::XattrSides;
use hakobu_core::error::Operation;
use hakobu_sys::{BorrowedFd, errno, xattr};
use std::ffi::CStr;
use std::io;

/// Buffers for attribute lists and values.
#[derive(Default)]
struct Scratch {
    from_list: Vec<u8>,
    from_value: Vec<u8>,
    to_list: Vec<u8>,
    to_value: Vec<u8>,
}

/// An entry, and how its attributes are named.
struct Handle<'a> {
    place: Place<'a>,
    names: Names,
}

impl Handle<'_> {
    fn list<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        if self.names == Names::Plain {
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
            Err(error) if self.names == Names::Source && xattr::is_absent(&error) => {
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
pub(in crate::local) struct Xattrs<'a> {
    context: Context<'a>,
    /// The rules for names in the directory of the entries that follow.
    pub rules: XattrSides,
    scratch: Scratch,
    unprivileged: u64,
}

impl<'a> Xattrs<'a> {
    pub(super) fn new(context: Context<'a>) -> Xattrs<'a> {
        let rules = XattrSides::default();
        Xattrs { context, rules, scratch: Scratch::default(), unprivileged: 0 }
    }

    /// Returns the number of attributes that were skipped because this user may not set them, since the last call.
    pub(super) fn take_unprivileged(&mut self) -> u64 {
        std::mem::take(&mut self.unprivileged)
    }

    /// Makes the kept attributes of `to` equal to those of `from`; `fresh`: `to` has none. Returns whether ACLs and
    /// whether xattrs differed.
    pub(in crate::local) fn copy(
        &mut self,
        from: Place<'_>,
        to: Place<'_>,
        fresh: bool,
    ) -> Result<(bool, bool), Failure> {
        self.unite(from, to, fresh, false)
    }

    /// Returns whether ACLs and whether xattrs differ.
    pub(super) fn compare(
        &mut self,
        from: Place<'_>,
        to: Place<'_>,
    ) -> Result<(bool, bool), Failure> {
        self.unite(from, to, false, true)
    }

    fn unite(
        &mut self,
        from: Place<'_>,
        to: Place<'_>,
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
        scratch: &mut Scratch,
        from: &Handle<'_>,
        to: &Handle<'_>,
        fresh: bool,
        only_compare: bool,
    ) -> Result<(bool, bool), Failure> {
        let Scratch { from_list, from_value, to_list, to_value } = scratch;
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
                acl::map_ids(value, |id| policy.user_of(id), |id| policy.group_of(id));
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
    pub(in crate::local) fn default_bits(
        &mut self,
        dir: BorrowedFd<'_>,
    ) -> Result<Option<u32>, Failure> {
        match xattr::get(dir, xattr::ACL_DEFAULT, &mut self.scratch.to_value) {
            Ok(value) => Ok(Some(acl::mode_bits(value))),
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(None),
            Err(error) => Err(Failure { operation: Operation::Stat, error }),
        }
    }
}

fn is_acl(name: &CStr) -> bool {
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

//! Compares extended attributes and ACLs of two entries by `O_PATH` descriptors, so that it works for symlinks, nodes
//! and files without read permission.

use crate::local::Side;
use crate::policy::Preserve;
use hakobu_sys::xattr::{self, Named};
use hakobu_sys::{BorrowedFd, process};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::io;

/// A worker's buffers for values.
#[derive(Default)]
pub struct Scratch {
    source: Vec<u8>,
    target: Vec<u8>,
}

/// Two entries whose attributes are compared.
pub struct Pair<'a> {
    source: Named<'a>,
    target: Named<'a>,
}

type Failed = (Side, io::Error);

impl<'a> Pair<'a> {
    /// Takes both entries.
    ///
    /// # Errors
    /// The side that cannot be used, and the reason.
    pub fn open(
        source: (BorrowedFd<'a>, &'a CStr),
        target: (BorrowedFd<'a>, &'a CStr),
    ) -> Result<Pair<'a>, Failed> {
        let source = Named::new(source.0, source.1).map_err(|error| (Side::Source, error))?;
        let target = Named::new(target.0, target.1).map_err(|error| (Side::Target, error))?;
        Ok(Pair { source, target })
    }

    /// Returns whether both have the same value of one attribute, or neither has it.
    fn same(&self, name: &CStr, scratch: &mut Scratch) -> Result<bool, Failed> {
        let a = value(&self.source, name, &mut scratch.source).map_err(|e| (Side::Source, e))?;
        let b = value(&self.target, name, &mut scratch.target).map_err(|e| (Side::Target, e))?;
        Ok(a == b)
    }

    /// Returns whether the access ACLs, of directories also the default ACLs, are equal.
    ///
    /// # Errors
    /// The side that could not be read, and the reason.
    pub fn same_acl(&self, is_dir: bool, scratch: &mut Scratch) -> Result<bool, Failed> {
        Ok(self.same(xattr::ACL_ACCESS, scratch)?
            && (!is_dir || self.same(xattr::ACL_DEFAULT, scratch)?))
    }

    /// Returns whether all other attributes are equal.
    ///
    /// # Errors
    /// The side that could not be read, and the reason.
    pub fn same_xattrs(&self, scratch: &mut Scratch) -> Result<bool, Failed> {
        // The attributes that a copy by this user would keep; ACLs are compared separately.
        let kept = Preserve { xattrs: true, ..Preserve::default() };
        let is_root = process::euid() == 0;
        let names = |named: &Named<'_>, buffer: &mut Vec<u8>| -> io::Result<BTreeSet<CString>> {
            let list = match named.list(buffer) {
                Err(error) if xattr::is_unsupported(&error) => return Ok(BTreeSet::new()),
                list => list?,
            };
            let names = list.split(|&byte| byte == 0).filter(|name| !name.is_empty());
            let names = names.filter(|name| kept.keeps_xattr(name, is_root));
            Ok(names.filter_map(|name| CString::new(name).ok()).collect())
        };
        let a = names(&self.source, &mut scratch.source).map_err(|e| (Side::Source, e))?;
        let b = names(&self.target, &mut scratch.target).map_err(|e| (Side::Target, e))?;
        if a != b {
            return Ok(false);
        }
        for name in &a {
            if !self.same(name, scratch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn value<'a>(
    named: &Named<'_>,
    name: &CStr,
    buffer: &'a mut Vec<u8>,
) -> io::Result<Option<&'a [u8]>> {
    match named.get(name, buffer) {
        Ok(value) => Ok(Some(value)),
        Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

//! Names of extended attributes on a side of `--fake-super`: those outside of `user.` lie under `user.rsync.`, ACLs
//! in a format of rsync's, and the names that rsync keeps for itself are hidden.

use super::acl;
use hakobu_sys::xattr;
use std::borrow::Cow;
use std::ffi::{CStr, CString};

const PREFIX: &[u8] = b"user.rsync.";
const ACCESS: &CStr = c"user.rsync.%aacl";
const DEFAULT: &CStr = c"user.rsync.%dacl";

/// How the names of a side are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::local) enum Names {
    /// They are what they are.
    Plain,
    /// A source of `--fake-super`: names outside of `user.` may be there as themselves, too.
    Source,
    /// A target of `--fake-super`.
    Target,
}

impl Names {
    /// Returns the name to the outside of an attribute that a file has; `None` if it is hidden.
    pub(in crate::local) fn shown(self, name: &CStr) -> Option<Cow<'_, CStr>> {
        let bytes = name.to_bytes();
        let below = bytes.strip_prefix(PREFIX);
        match (self, below) {
            (Names::Plain, _) => Some(name.into()),
            (_, Some(_)) if name == ACCESS => Some(xattr::ACL_ACCESS.into()),
            (_, Some(_)) if name == DEFAULT => Some(xattr::ACL_DEFAULT.into()),
            (_, Some([b'%', ..] | [])) => None,
            (_, Some(below)) => CString::new(below).ok().map(Cow::Owned),
            _ if name == xattr::ACL_ACCESS || name == xattr::ACL_DEFAULT => None,
            (Names::Target, _) if !bytes.starts_with(b"user.") => None,
            _ => Some(name.into()),
        }
    }

    /// Returns the name under which a file keeps an attribute.
    pub(in crate::local) fn kept(self, name: &CStr) -> Cow<'_, CStr> {
        if self == Names::Plain {
            return name.into();
        }
        match name.to_bytes() {
            _ if name == xattr::ACL_ACCESS => ACCESS.into(),
            _ if name == xattr::ACL_DEFAULT => DEFAULT.into(),
            bytes if bytes.starts_with(b"user.") => name.into(),
            bytes => {
                let whole = [PREFIX, bytes].concat();
                CString::new(whole).map_or(name.into(), Cow::Owned)
            }
        }
    }

    /// Returns the value that a file keeps for `value`.
    pub(in crate::local) fn encode<'v>(self, name: &CStr, value: &'v [u8]) -> Cow<'v, [u8]> {
        let access = name == xattr::ACL_ACCESS;
        match self != Names::Plain && (access || name == xattr::ACL_DEFAULT) {
            true => Cow::Owned(acl::encode(value, access)),
            false => value.into(),
        }
    }

    /// Returns the value that a kept one stands for if it differs: that of an ACL. `mode`: permission bits of the
    /// file. `Err` if it is no ACL of rsync's.
    pub(in crate::local) fn decode(
        self,
        name: &CStr,
        kept: &[u8],
        mode: impl FnOnce() -> std::io::Result<u32>,
    ) -> std::io::Result<Option<Vec<u8>>> {
        let access = name == xattr::ACL_ACCESS;
        if self == Names::Plain || !(access || name == xattr::ACL_DEFAULT) {
            return Ok(None);
        }
        let mode = if access { Some(mode()?) } else { None };
        let broken = || std::io::Error::other("its ACL is not in the format of --fake-super");
        acl::decode(kept, mode).map(Some).ok_or_else(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_translated_both_ways() {
        for (inside, outside) in [
            (c"user.a", c"user.a"),
            (c"user.rsync.trusted.a", c"trusted.a"),
            (c"user.rsync.%aacl", xattr::ACL_ACCESS),
            (c"user.rsync.%dacl", xattr::ACL_DEFAULT),
        ] {
            for names in [Names::Source, Names::Target] {
                assert_eq!(names.shown(inside).as_deref(), Some(outside));
                assert_eq!(&*names.kept(outside), inside);
            }
        }
        for names in [Names::Source, Names::Target] {
            assert_eq!(names.shown(c"user.rsync.%stat"), None);
        }
        assert_eq!(Names::Source.shown(c"trusted.a").as_deref(), Some(c"trusted.a"));
        assert_eq!(Names::Target.shown(c"trusted.a"), None);
        assert_eq!(Names::Source.shown(xattr::ACL_ACCESS), None);
        assert_eq!(Names::Plain.shown(c"user.rsync.a").as_deref(), Some(c"user.rsync.a"));
    }
}

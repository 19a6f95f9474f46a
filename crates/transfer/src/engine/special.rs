//! Entries without content: symlinks, devices, FIFOs, sockets.

use super::attributes::Have;
use super::entry::{Done, Entry};
use super::node::Failure;
use super::{Engine, State};
use crate::error::Operation;
use crate::event::Change;
use crate::meter::Phase;
use crate::unit::{Kind, Meta};
use hakobu_sys::{BorrowedFd, dir, meta};
use std::ffi::CStr;
use std::io;

/// What is made at the target.
pub enum Special<'a> {
    /// A symlink with this text.
    Symlink(&'a CStr),
    /// The source's device, FIFO or socket.
    Node,
}

impl Engine<'_> {
    /// Makes a symlink or node, over what is there if something is.
    ///
    /// # Errors
    /// The first failure; the entry that was there before is then still there.
    pub(super) fn make_special(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        source: &Meta,
        existing: Option<&Meta>,
        what: &Special<'_>,
    ) -> Result<Done, Failure> {
        let Some((target_dir, dir_info)) = entry.target else { return Ok(Done::default()) };
        let want = self.want(source, existing, Some(&dir_info));
        let kind = match what {
            Special::Symlink(_) => Kind::Symlink,
            Special::Node => source.kind,
        };
        let make = |name: &CStr| -> io::Result<()> {
            match what {
                Special::Symlink(text) => dir::symlink(text, target_dir, name),
                Special::Node => {
                    dir::make_node(target_dir, name, source.kind, want.mode & 0o777, source.rdev)
                }
            }
        };
        // A new one appears complete where a later run would not look at it again.
        let temp = (existing.is_some() || !self.direct).then(|| self.temp_names.make());
        let name = temp.as_deref().unwrap_or(entry.target_name);
        self.step(&state.station, Phase::Create, 1);
        make(name).map_err(Failure::of(Operation::Create))?;
        let attributes = self.settle_special(state, entry, target_dir, name, kind, &want);
        if let Some(temp) = &temp {
            self.step(&state.station, Phase::Create, 1);
            let moved = self.put_in_place(target_dir, temp, target_dir, entry, existing);
            if let Err(failure) = moved {
                drop(dir::unlink(target_dir, temp));
                return Err(failure);
            }
        }
        let unprivileged = self.count_unprivileged(source, &want, state);
        let checked = attributes.is_ok() && !unprivileged;
        Ok(Done { checked, attributes: attributes.err(), unprivileged, ..Done::default() })
    }

    fn settle_special(
        &self,
        state: &mut State,
        entry: &Entry<'_>,
        target_dir: BorrowedFd<'_>,
        name: &CStr,
        kind: Kind,
        want: &super::attributes::Want,
    ) -> Result<(), Failure> {
        let have = meta::of(target_dir, name, false).map_err(Failure::of(Operation::Create))?;
        let mut want = *want;
        let inherits = entry.target.is_some_and(|(_, info)| info.default_acl);
        if inherits && !self.policy.preserve.mode {
            want.mode = have.mode;
        }
        let want = &want;
        let change = Change { created: self.wants_xattrs(), ..Change::default() };
        let from = (entry.source_dir()?, entry.name);
        self.settle_named(state, from, (target_dir, name), kind, want, Have::from(&have), &change)
    }
}

/// Whether the text of a symlink leads out of the transferred tree (rsync(1), `--safe-links`):
/// absolute, empty, or with more `..` than it lies deep. `path` is the link's own path in the
/// transfer.
pub fn is_unsafe_link(text: &[u8], path: &[u8]) -> bool {
    if text.is_empty() || text.starts_with(b"/") {
        return true;
    }
    let deep = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut depth = deep.count() as i64 - 1;
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'/').collect();
    let mut named = false;
    for part in &parts {
        match *part {
            b"" | b"." => {}
            b".." => {
                // rsync distrusts `..` after a name: that name may itself be a symlink.
                if named {
                    return true;
                }
                depth -= 1;
                if depth < 0 {
                    return true;
                }
            }
            _ => {
                named = true;
                depth += 1;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_unsafe_link;

    #[test]
    fn links_that_lead_out_are_unsafe() {
        let cases: [(&[u8], &[u8], bool); 9] = [
            (b"x", b"link", false),
            (b"/etc/passwd", b"link", true),
            (b"", b"link", true),
            (b"../x", b"link", true),
            (b"../x", b"a/link", false),
            (b"../../x", b"a/link", true),
            (b"../../x", b"a/b/link", false),
            (b"b/../../x", b"a/link", true),
            (b"./x/y", b"link", false),
        ];
        for (text, path, unsafe_) in cases {
            assert_eq!(is_unsafe_link(text, path), unsafe_, "{text:?} at {path:?}");
        }
    }
}

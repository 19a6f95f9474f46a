//! The absolute paths of a transfer's two ends, for rules that refer to places outside of it: those with absolute
//! paths and those that read files above it.

use super::matcher::{Anchor, Ends};

/// The paths of one source argument.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The absolute path of the directory that transfer paths start in: `/a/b` for `/a/b/`, `/a` for `/a/b`.
    pub source: &'a [u8],
    /// The absolute path of the target directory.
    pub target: &'a [u8],
    /// The transfer path of the first walked directory: empty for `/a/b/`, `b` for `/a/b`.
    pub first: &'a [u8],
}

impl Origin<'_> {
    pub(super) fn ends(&self) -> Ends {
        let end = |path: &[u8]| normal(&[path]).get(1..).unwrap_or_default().to_vec();
        Ends { source: end(self.source), target: end(self.target) }
    }

    /// Returns the directories above the first walked one, from the root down. All end in a slash.
    pub(super) fn above(&self) -> Vec<Vec<u8>> {
        let first = normal(&[self.source, self.first]);
        let inner = first.get(..first.len() - 1).unwrap_or_default();
        let slashes = inner.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| first.get(..=at).unwrap_or_default().to_vec()).collect()
    }

    /// Returns whether a dir-merge rule with the directory part `lead` reads its file in `dir`, which is above the
    /// first walked directory. A relative `lead` starts in that one.
    pub(super) fn covers(&self, lead: &[u8], dir: &[u8]) -> bool {
        let from = if lead.starts_with(b"/") {
            normal(&[lead])
        } else {
            normal(&[self.source, self.first, lead])
        };
        dir.starts_with(&from)
    }

    /// Returns where patterns anchored in `dir` begin. `dir` ends in a slash.
    pub(super) fn anchor(&self, dir: &[u8]) -> Anchor {
        let source = normal(&[self.source]);
        match (source.strip_prefix(dir), dir.strip_prefix(&*source)) {
            (_, Some(below)) => Anchor::Below(below.to_vec()),
            (Some(lead), None) => Anchor::Above(lead.to_vec()),
            // Unreachable: `dir` is above or below the source.
            (None, None) => Anchor::Below(Vec::new()),
        }
    }
}

/// Joins the parts to one absolute path without `.`, `..` and doubled slashes, ending in a slash.
fn normal(parts: &[&[u8]]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for component in parts.iter().flat_map(|part| part.split(|byte| *byte == b'/')) {
        match component {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            _ => kept.push(component),
        }
    }
    [b'/'].into_iter().chain(kept.iter().flat_map(|part| [part, &b"/"[..]].concat())).collect()
}

//! The lines of a usage report: a tree of names with sizes, built in any order and emitted depth first, sorted by
//! name, each directory after its content.

use crate::names::push_name;
use std::ffi::CStr;

/// Number of a line.
pub type Id = u32;

/// Stands for no line; the number of lines stays below it.
const NONE: Id = Id::MAX;

struct Line {
    /// [`NONE`] for a top.
    parent: Id,
    name: Box<[u8]>,
    bytes: u64,
}

/// Lines being collected.
#[derive(Default)]
pub struct Lines(Vec<Line>);

impl Lines {
    /// Adds a line below another one, or a top.
    pub fn add(&mut self, parent: Option<Id>, name: &CStr, bytes: u64) -> Id {
        let id = Id::try_from(self.0.len()).unwrap_or(Id::MAX);
        let parent = parent.unwrap_or(NONE);
        self.0.push(Line { parent, name: name.to_bytes().into(), bytes });
        id
    }

    /// Sets the size of a line in bytes.
    pub fn set(&mut self, id: Id, bytes: u64) {
        if let Some(line) = self.0.get_mut(id as usize) {
            line.bytes = bytes;
        }
    }

    /// Calls `each` with path and size of every line.
    pub fn emit(self, each: &mut dyn FnMut(&[u8], u64)) {
        let lines = self.0;
        let mut order: Vec<Id> = (0..lines.len()).filter_map(|id| Id::try_from(id).ok()).collect();
        let line = |id: &Id| lines.get(*id as usize);
        order.sort_unstable_by(|a, b| {
            let key = |id| line(id).map(|line| (line.parent, &line.name));
            key(a).cmp(&key(b))
        });
        // The children of a line are adjacent now; `first` holds where they start.
        let mut first = vec![usize::MAX; lines.len()];
        for (at, id) in order.iter().enumerate().rev() {
            if let Some(line) = line(id)
                && let Some(slot) = first.get_mut(line.parent as usize)
            {
                *slot = at;
            }
        }
        let mut path = Vec::new();
        for top in order.iter().filter(|id| line(id).is_some_and(|line| line.parent == NONE)) {
            // For each line on the current path: the line, the position of its next child, and the length of the path
            // without it.
            let mut stack = vec![(*top, first.get(*top as usize).copied(), 0)];
            path.clear();
            path.extend_from_slice(line(top).map(|line| &*line.name).unwrap_or_default());
            while let Some((id, next, parent_len)) = stack.last_mut() {
                let at = next.unwrap_or(usize::MAX);
                let child = order.get(at).copied().and_then(|child| {
                    line(&child).filter(|line| line.parent == *id).map(|l| (child, l))
                });
                match child {
                    Some((child, found)) => {
                        *next = Some(at + 1);
                        let len = path.len();
                        push_name(&mut path, &found.name);
                        stack.push((child, first.get(child as usize).copied(), len));
                    }
                    None => {
                        each(&path, line(id).map_or(0, |line| line.bytes));
                        path.truncate(*parent_len);
                        stack.pop();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_depth_first_sorted_and_parents_last() {
        let mut lines = Lines::default();
        let top = lines.add(None, c"b/", 1);
        let b = lines.add(Some(top), c"b", 2);
        let a = lines.add(Some(top), c"a", 3);
        lines.add(Some(b), c"z", 4);
        lines.add(Some(a), c"y", 5);
        lines.add(Some(top), c"a.b", 6);
        lines.add(Some(b), c"c", 7);
        let other = lines.add(None, c"other", 0);
        lines.set(other, 8);
        let mut lines_out = Vec::new();
        lines.emit(&mut |path, bytes| {
            lines_out.push(format!("{bytes} {}", String::from_utf8_lossy(path)));
        });
        assert_eq!(
            lines_out,
            ["5 b/a/y", "3 b/a", "6 b/a.b", "7 b/b/c", "4 b/b/z", "2 b/b", "1 b/", "8 other"]
        );
    }
}

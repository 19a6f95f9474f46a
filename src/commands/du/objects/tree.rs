//! Sums of the prefixes of a sorted listing.

use crate::commands::du::line::{Lines, Sum};
use hakobu_sys::paths::split;
use hakobu_transfer::location::s3_path;
use std::os::unix::ffi::OsStrExt;

/// Open prefixes of a sorted listing: as many as the depth of the tree.
pub struct Tree<'a> {
    lines: &'a Lines<'a>,
    bucket: &'a str,
    /// Common prefix of the names.
    root: Vec<u8>,
    /// Lengths of the open prefixes' names, outermost first, and their sums.
    open: Vec<(usize, Sum)>,
    /// The innermost open prefix's name.
    name: Vec<u8>,
    whole: Sum,
}

impl<'a> Tree<'a> {
    /// Starts below a prefix.
    pub fn new(lines: &'a Lines<'a>, bucket: &'a str, root: &[u8]) -> Tree<'a> {
        let (open, name, whole) = (Vec::new(), Vec::new(), Sum::default());
        Tree { lines, bucket, root: root.to_vec(), open, name, whole }
    }

    /// Adds an object.
    pub fn take(&mut self, name: &[u8], bytes: u64) {
        let sum = Sum { bytes, objects: 1 };
        let folder = split(name).0.len();
        while self
            .open
            .last()
            .is_some_and(|(length, _)| *length > folder || self.name[..*length] != name[..*length])
        {
            self.close();
        }
        let from = self.open.last().map_or(0, |(length, _)| *length);
        self.name.truncate(from);
        for (at, byte) in name[..folder].iter().enumerate().skip(from) {
            self.name.push(*byte);
            if *byte == b'/' {
                self.open.push((at + 1, Sum::default()));
            }
        }
        let shown = self.lines.plan.levels.is_none_or(|max| self.open.len() < max);
        if self.lines.plan.options.files && shown && name.len() > folder {
            self.line(name, sum);
        }
        match self.open.last_mut() {
            Some((_, of)) => of.add(sum),
            None => self.whole.add(sum),
        }
    }

    /// Ends all prefixes; returns the sum of everything.
    pub fn end(mut self) -> Sum {
        while !self.open.is_empty() {
            self.close();
        }
        self.whole
    }

    /// Ends the innermost prefix.
    fn close(&mut self) {
        let Some((length, sum)) = self.open.pop() else { return };
        let depth = self.open.len() + 1;
        if self.lines.plan.levels.is_none_or(|max| depth <= max) {
            let name = self.name[..length].to_vec();
            self.line(&name, sum);
        }
        match self.open.last_mut() {
            Some((_, of)) => of.add(sum),
            None => self.whole.add(sum),
        }
    }

    fn line(&self, name: &[u8], sum: Sum) {
        let url = s3_path(self.bucket, &[&self.root, name]);
        self.lines.write(Some(url.as_os_str().as_bytes()), None, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::du::objects::tests::planned;
    use crate::show::output::Output;

    #[test]
    fn prefixes_are_summed_as_they_end() {
        let plan = planned("-b s3://abc").unwrap();
        let out = Output::stdout();
        let lines = Lines::new(&plan, &out);
        let mut tree = Tree::new(&lines, "abc", b"");
        for (name, open) in [
            ("a", "0"),
            ("b/", "1"),
            ("b/c/d", "2"),
            ("b/c/e", "2"),
            ("b/f", "1"),
            ("b0", "0"),
            ("c//x", "2"),
        ] {
            tree.take(name.as_bytes(), 10);
            assert_eq!(tree.open.len().to_string(), open, "{name}");
        }
        assert_eq!(tree.end(), Sum { bytes: 70, objects: 7 });
    }
}

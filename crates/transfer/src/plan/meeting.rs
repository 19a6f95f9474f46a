//! Transfers of one run (the lines of a run file) that may write one name, or write what another one moves. Known from
//! the command lines alone, so that all others run at once and are not remembered.

use super::paths::{or_here, parent};
use super::{Layout, Spec};
use crate::location::{Location, s3_path};
use crate::object::Root;
use crate::object::list::Pattern;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What several transfers of a run know of each other; by their numbers, in their order.
#[derive(Default)]
pub struct Lines {
    meets: Vec<bool>,
    collides: Vec<bool>,
    /// Sources of transfers that move, with their numbers: a file, an object, or a folder or prefix.
    moved: HashMap<Vec<u8>, Vec<usize>>,
    /// Wildcards of such transfers: what comes before the key, the key.
    wild: Vec<(Vec<u8>, Pattern, usize)>,
}

impl Lines {
    /// Compares transfers with each other.
    pub fn of<'a>(specs: impl IntoIterator<Item = &'a Spec>) -> Lines {
        let (mut lines, mut count) = (Lines::default(), 0);
        let (mut places, mut likely) = (Vec::new(), Vec::new());
        for (number, spec) in specs.into_iter().enumerate() {
            let (some, more) = targets(spec);
            places.extend(some.iter().chain(&more).cloned().map(|place| (place, number)));
            likely.extend(some.into_iter().map(|place| (place, number)));
            count += 1;
            if spec.policy.remove_source_files {
                spec.sources.locations().for_each(|source| lines.add(spec, &source, number));
            }
        }
        let meeting = |places: &[(Vec<u8>, usize)]| {
            let places = places.iter().map(|(place, number)| (components(place), *number));
            meeting(places.collect(), count)
        };
        (lines.meets, lines.collides) = (meeting(&places), meeting(&likely));
        lines
    }

    fn add(&mut self, spec: &Spec, source: &Location, number: usize) {
        let mut bytes = identity(source);
        if let Location::S3(url) = source
            && !spec.objects.raw
            && let Some(pattern) = Pattern::parse(&url.key)
        {
            bytes.truncate(bytes.len() - url.key.len());
            self.wild.push((bytes, pattern, number));
            return;
        }
        while bytes.len() > 1 && bytes.ends_with(b"/") {
            bytes.pop();
        }
        let numbers = self.moved.entry(bytes).or_default();
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }

    /// Returns whether another transfer may write what this one writes, at, above or below its target.
    pub fn meets(&self, number: usize) -> bool {
        self.meets.get(number).is_some_and(|meets| *meets)
    }

    /// Returns whether that is to be expected, so that their order decides who gets a name.
    pub fn collides(&self, number: usize) -> bool {
        self.collides.get(number).is_some_and(|collides| *collides)
    }

    /// Returns whether a name of the target of one transfer is, or may be, a source that another one moves. `place`:
    /// the canonical path of a local target, with a slash at its end.
    pub fn has_source(&self, target: &Root, place: &[u8], name: &[u8], number: usize) -> bool {
        if self.moved.is_empty() && self.wild.is_empty() {
            return false;
        }
        let path = match target {
            Root::Null => return false,
            Root::Store { bucket, prefix } => {
                s3_path(bucket, &[prefix, name]).into_os_string().into_encoded_bytes()
            }
            Root::Local { .. } => [place, name].concat(),
        };
        let is_other = |path: &[u8]| {
            let numbers = self.moved.get(path);
            numbers.is_some_and(|numbers| numbers.iter().any(|other| *other != number))
        };
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        is_other(&path)
            || ends.clone().any(|end| is_other(&path[..end]))
            || self.wild.iter().any(|(before, pattern, other)| {
                let key = path.strip_prefix(&**before);
                *other != number && key.is_some_and(|key| pattern.matches(key))
            })
    }
}

/// Returns where a transfer writes, at and below these paths; and where else, if a source turns out to be a folder.
fn targets(spec: &Spec) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let target = identity(&spec.target);
    if spec.target == Location::Null || spec.files_from.is_some() || spec.objects.flatten {
        return (vec![target], Vec::new());
    }
    let is_folder = target.ends_with(b"/") || is_bucket(&spec.target);
    let is_dir = || spec.target.local().is_some_and(|path| or_here(path).is_dir());
    let (inside, certain) = match spec.layout {
        Layout::Cp { no_target_dir: true, .. } => (false, true),
        Layout::Cp { target_is_dir: true, .. } => (true, true),
        _ => (is_folder || is_dir(), is_folder),
    };
    let (mut places, mut more) = (Vec::new(), Vec::new());
    for source in spec.sources.locations() {
        match last_name(spec, &source).filter(|_| inside) {
            None => places.push(target.clone()),
            Some(name) => {
                places.push([&target, &b"/"[..], &name].concat());
                // A folder becomes an existing one that was typed without a slash.
                more.extend((!certain && spec.policy.recurse).then(|| target.clone()));
            }
        }
    }
    (places, more)
}

fn is_bucket(location: &Location) -> bool {
    matches!(location, Location::S3(url) if url.key.is_empty())
}

/// Returns the name that a source keeps in a target folder; `None` for a folder's content and for wildcards.
fn last_name(spec: &Spec, source: &Location) -> Option<Vec<u8>> {
    let bytes = match source {
        Location::Null => return None,
        Location::Local(path) => path.as_os_str().as_bytes().to_vec(),
        Location::S3(url) if !spec.objects.raw && Pattern::parse(&url.key).is_some() => {
            return None;
        }
        Location::S3(url) => url.key.clone(),
    };
    let name = bytes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    (!matches!(name, b"" | b"." | b"..")).then(|| name.to_vec())
}

/// Returns a path that is the same for every spelling, as far as its folders exist; a slash at its end is kept.
fn identity(location: &Location) -> Vec<u8> {
    let Location::Local(path) = location else {
        return match location {
            Location::S3(url) => {
                s3_path(&url.bucket, &[&url.key]).into_os_string().into_encoded_bytes()
            }
            _ => location.as_typed().into_os_string().into_encoded_bytes(),
        };
    };
    let above = || {
        let name = path.file_name()?;
        Some(parent(path).canonicalize().ok()?.join(name))
    };
    let known = or_here(path).canonicalize().ok().or_else(above);
    let known = known.or_else(|| std::path::absolute(or_here(path)).ok());
    let known = known.as_deref().unwrap_or(path);
    let slash = path.as_os_str().as_bytes().ends_with(b"/") && known != Path::new("/");
    [known.as_os_str().as_bytes(), if slash { b"/" } else { b"" }].concat()
}

fn components(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|one| !one.is_empty()).collect()
}

/// Returns which of so many writers have a place at, above or below that of another one. A place is a path by its
/// components, with the number of its writer.
pub fn meeting(mut places: Vec<(Vec<&[u8]>, usize)>, count: usize) -> Vec<bool> {
    let mut meets = vec![false; count];
    // Everything below a place follows it.
    places.sort_unstable();
    let mut above: Vec<(&[&[u8]], usize)> = Vec::new();
    for (place, number) in &places {
        while above.last().is_some_and(|(other, _)| !place.starts_with(other)) {
            above.pop();
        }
        for (_, other) in above.iter().filter(|(_, other)| other != number) {
            for writer in [*other, *number] {
                if let Some(meets) = meets.get_mut(writer) {
                    *meets = true;
                }
            }
        }
        // One writer of each of equal places stands for all: they are marked by it.
        if above.last().is_none_or(|(other, _)| *other != place.as_slice()) {
            above.push((place, *number));
        }
    }
    meets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_at_above_and_below_each_other_meet() {
        for (places, expected) in [
            (&[("a/f", 0), ("a/g", 1), ("a/f-", 2)][..], [false, false, false]),
            (&[("a/f", 0), ("a/g", 1), ("a/f", 2)], [true, false, true]),
            (&[("a", 0), ("a-/f", 1), ("a/f/g", 2)], [true, false, true]),
            (&[("a", 0), ("a", 0), ("b", 1)], [false, false, false]),
            (&[("a", 0), ("a", 0), ("a/b", 0), ("a/b/c", 1)], [true, true, false]),
            (&[("", 0), ("x", 1), ("y/z", 2)], [true, true, true]),
        ] {
            let all = places.iter().map(|(place, number)| (components(place.as_bytes()), *number));
            assert_eq!(meeting(all.collect(), 3), expected, "{places:?}");
        }
    }
}

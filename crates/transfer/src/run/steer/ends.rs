//! Both ends of a run for its controller: stores, disks and others, and their names in the journal.

use crate::location::Location;
use crate::plan::Spec;
use crate::plan::objects::Stores;
use hakobu_explain::tune::Medium;
use hakobu_explain::verdict::Side;
use hakobu_s3::S3Session;
use hakobu_sys::{disk, volume};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum number of source arguments examined: further ones are assumed to be in the same place.
const SOURCES_MAX: usize = 8;

/// One end.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub side: Side,
    /// Whether it is a store.
    pub is_store: bool,
    /// The device number of a path's file system.
    pub dev: Option<u64>,
    /// The kind of the underlying disk.
    pub medium: Medium,
    /// Its name in the journal.
    pub name: String,
}

/// All ends of a run, the first one of each side first.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Ends(pub(super) Vec<End>);

impl Ends {
    /// Determines the ends of a description. Ends that cannot be examined are left out.
    pub(in super::super) fn of(spec: &Spec, stores: &Stores) -> Ends {
        let mut ends: Vec<End> = Vec::new();
        for source in spec.sources.locations().take(SOURCES_MAX) {
            ends.extend(end(Side::Source, &source, stores.source.as_deref()));
        }
        ends.extend(end(Side::Target, &spec.target, stores.target.as_deref()));
        ends.dedup_by(|a, b| a.side == b.side && a.name == b.name);
        Ends(ends)
    }

    /// Determines the ends of walked trees.
    pub(super) fn of_paths(paths: &[&Path]) -> Ends {
        let mut ends: Vec<End> = Vec::new();
        ends.extend(paths.iter().take(SOURCES_MAX).filter_map(|path| local(Side::Source, path)));
        ends.dedup_by(|a, b| a.name == b.name);
        Ends(ends)
    }

    /// Returns the device numbers of the file systems of all local ends.
    pub(super) fn devs(&self) -> Vec<u64> {
        self.0.iter().filter_map(|end| end.dev).collect()
    }

    /// Returns whether any is a store.
    pub(super) fn has_store(&self) -> bool {
        self.0.iter().any(|end| end.is_store)
    }

    /// Returns whether the ends of a side are stores.
    pub(super) fn is_store(&self, side: Side) -> bool {
        self.0.iter().any(|end| end.side == side && end.is_store)
    }

    /// Returns the name in the journal of the first end of a side; `-` for `null:`.
    pub(super) fn name(&self, side: Side) -> &str {
        self.0.iter().find(|end| end.side == side).map_or("-", |end| &end.name)
    }

    /// Returns the kinds of the disks of all local ends.
    pub(super) fn mediums(&self) -> Vec<Medium> {
        self.0.iter().filter(|end| !end.is_store).map(|end| end.medium).collect()
    }
}

fn end(side: Side, location: &Location, store: Option<&S3Session>) -> Option<End> {
    match location {
        Location::S3(url) => Some(End {
            side,
            is_store: true,
            dev: None,
            medium: Medium::Memory,
            name: format!("{}/{}", store?.endpoint(), url.bucket),
        }),
        Location::Null => None,
        Location::Local(path) => local(side, path),
    }
}

/// Returns the end of a path, or of the folder that it will be created in.
fn local(side: Side, path: &Path) -> Option<End> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let places = [path, parent.unwrap_or(Path::new("."))];
    let (place, meta) = places.iter().find_map(|place| Some((*place, place.metadata().ok()?)))?;
    let dev = meta.dev();
    let (medium, kind) = match disk::is_rotational(dev) {
        _ if volume::is_foreign(place) => (Medium::Foreign, "foreign"),
        Some(true) => (Medium::Rotating, "rotating"),
        Some(false) => (Medium::Solid, "solid"),
        None => (Medium::Memory, "volume"),
    };
    let name = format!("{kind}:{dev}");
    Some(End { side, is_store: false, dev: Some(dev), medium, name })
}

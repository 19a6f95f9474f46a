//! Both ends of a run, as far as whoever steers it wants to know them: stores, disks, or what is
//! neither; and what they are remembered by.

use crate::location::Location;
use crate::plan::Spec;
use crate::plan::objects::Stores;
use crate::tune::Medium;
use crate::verdict::Side;
use hakobu_sys::volume;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Source arguments that are looked at: more than these lie where the first ones do.
const SOURCES_MAX: usize = 8;

/// One end.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub side: Side,
    /// It is a store.
    pub is_store: bool,
    /// The device number of the file system, of a path.
    pub dev: Option<u64>,
    /// What the disk below is.
    pub medium: Medium,
    /// It is a file system over a network or in a program: no disk of this machine.
    pub is_foreign: bool,
    /// What it is remembered by.
    pub name: String,
}

/// All ends of a run, the first one of each side first.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Ends(pub(super) Vec<End>);

impl Ends {
    /// Looks at the ends that a description names. What cannot be looked at is left out.
    pub(in super::super) fn of(spec: &Spec, stores: &Stores) -> Ends {
        let mut ends: Vec<End> = Vec::new();
        for source in spec.sources.iter().take(SOURCES_MAX) {
            let store = stores.source.as_ref().map(|store| store.endpoint());
            ends.extend(end(Side::Source, source, store.as_deref()));
        }
        let store = stores.target.as_ref().map(|store| store.endpoint());
        ends.extend(end(Side::Target, &spec.target, store.as_deref()));
        ends.dedup_by(|a, b| a.side == b.side && a.name == b.name);
        Ends(ends)
    }

    /// The device numbers of the file systems of all local ends.
    pub(super) fn devs(&self) -> Vec<u64> {
        self.0.iter().filter_map(|end| end.dev).collect()
    }

    /// Whether any is a store.
    pub(super) fn has_store(&self) -> bool {
        self.0.iter().any(|end| end.is_store)
    }

    /// Whether the ends of a side are stores.
    pub(super) fn is_store(&self, side: Side) -> bool {
        self.0.iter().any(|end| end.side == side && end.is_store)
    }

    /// What the first end of a side is remembered by; `-` for nowhere.
    pub(super) fn name(&self, side: Side) -> &str {
        self.0.iter().find(|end| end.side == side).map_or("-", |end| &end.name)
    }

    /// What the disks of all local ends are.
    pub(super) fn mediums(&self) -> Vec<Medium> {
        self.0.iter().filter(|end| !end.is_store).map(|end| end.medium).collect()
    }
}

fn end(side: Side, typed: &Path, endpoint: Option<&str>) -> Option<End> {
    match Location::parse(typed.as_os_str()) {
        Ok(Location::S3(url)) => Some(End {
            side,
            is_store: true,
            dev: None,
            medium: Medium::Memory,
            is_foreign: false,
            name: format!("{}/{}", endpoint?, url.bucket),
        }),
        Ok(Location::Null) if side == Side::Target => None,
        _ => local(side, typed),
    }
}

/// A path, or the folder that it will be made in.
fn local(side: Side, path: &Path) -> Option<End> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let places = [path, parent.unwrap_or(Path::new("."))];
    let (place, meta) = places.iter().find_map(|place| Some((*place, place.metadata().ok()?)))?;
    let dev = meta.dev();
    let medium = match volume::is_rotational(dev) {
        Some(true) => Medium::Rotating,
        Some(false) => Medium::Solid,
        None => Medium::Memory,
    };
    let kind = match medium {
        Medium::Rotating => "rotating",
        Medium::Solid => "solid",
        Medium::Memory => "volume",
    };
    let is_foreign = volume::is_foreign(place);
    let name = format!("{}:{dev}", if is_foreign { "foreign" } else { kind });
    Some(End { side, is_store: false, dev: Some(dev), medium, is_foreign, name })
}

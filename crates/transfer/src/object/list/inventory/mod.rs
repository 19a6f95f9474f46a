//! A listing from an S3 Inventory: rows of CSV files that a manifest names, in no order, compared
//! with their checksums, sorted here. It is as old as the inventory is, so it is for plans: what
//! moves looks at each object again.

mod files;
mod manifest;
mod rows;
mod sorted;

pub use rows::Counts;

use super::{Item, Listing, Pattern, Trouble, send_all};
use crate::location::{Location, S3Url};
use hakobu_core::error::{Fatal, quoted};
use hakobu_s3::Settings;
use manifest::Manifest;
use sorted::{Sorted, Sorter};
use std::sync::Arc;

/// Bytes of entries that are sorted in memory.
const SORTED_BYTES: usize = 48 << 20;

/// The entries of an inventory below a prefix, sorted by their names.
#[derive(Debug)]
pub struct Inventory {
    sorted: Sorted,
    /// Rows by what became of them.
    pub counts: Counts,
}

impl Inventory {
    /// Reads an inventory: `manifest` names its `manifest.json`, `settings` are of its store, and
    /// `source` is the prefix whose objects are meant. Rows of older versions and delete markers, and
    /// keys outside of the prefix, are left out.
    ///
    /// # Errors
    /// Code 1: it is no inventory of this bucket, or its files are not CSV. Code 11: it cannot be
    /// read, or a file is not what its checksum says. Nothing of it is used then.
    pub fn read(
        manifest: &Location,
        settings: &Settings,
        source: &S3Url,
    ) -> Result<Inventory, Fatal> {
        let shown = quoted(manifest.as_typed());
        let refused = |why: String| Fatal::new(1, format!("cannot use inventory {shown}: {why}"));
        let failed = |why: String| Fatal::new(11, format!("cannot read inventory {shown}: {why}"));
        let whole = source.key.is_empty() || source.key.ends_with(b"/");
        if !whole || Pattern::parse(&source.key).is_some() {
            return Err(refused("it needs a prefix with a slash at its end as the source".into()));
        }
        let files = files::Files::open(manifest, settings).map_err(failed)?;
        let content = files.manifest().map_err(failed)?;
        let Manifest { bucket, columns, files: named } =
            manifest::parse(&content).map_err(refused)?;
        if bucket != source.bucket {
            let other = &source.bucket;
            return Err(refused(format!("it is one of bucket '{bucket}', not of '{other}'")));
        }
        let wanted = rows::Wanted { bucket: &bucket, prefix: &source.key, columns: &columns };
        let mut sorter = Sorter::new(SORTED_BYTES);
        let mut counts = Counts::default();
        for file in &named {
            let in_file = |why: String| failed(format!("{}: {why}", quoted(&file.key)));
            let content = files.data(file).map_err(in_file)?;
            rows::read(content, &wanted, &mut counts, &mut sorter).map_err(in_file)?;
        }
        Ok(Inventory { sorted: sorter.finish(), counts })
    }
}

/// Lists an inventory. Two rows for one key are found as two entries of one name in any listing.
pub fn inventory(of: &Arc<Inventory>) -> Listing {
    let (sender, listing) = Listing::channel(false, false);
    let of = Arc::clone(of);
    Listing::start(sender, "list-inventory", move |sender| {
        let entries = of.sorted.entries().map(|read| -> Item {
            read.map_err(|error| Trouble::Failed(super::failed(sorted::message(&error))))
        });
        send_all(&sender, entries);
    });
    listing
}

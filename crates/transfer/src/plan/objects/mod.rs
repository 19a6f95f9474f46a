//! Transfers with a store on a side: what each source argument means there, and the feeding of
//! the object engine from sorted listings.

mod ask;
mod feed;
mod listings;
mod place;
mod source;

pub use feed::{Pass, feed};
pub use source::Missing;

use super::{Layout, Spec};
use crate::error::{Fatal, quoted};
use crate::location::Location;
use crate::object::list::Pattern;
use crate::object::{Entry, Pair, Root};
use crate::s3::Store;
use ask::Asker;
use place::Place;
use std::path::Path;
use std::sync::Arc;

/// The stores of a run.
#[derive(Clone, Default)]
pub struct Stores {
    /// Of the sources.
    pub source: Option<Arc<Store>>,
    /// Of the targets.
    pub target: Option<Arc<Store>>,
}

impl Stores {
    /// All of them, each once.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Store>> {
        let other = self.target.as_ref().filter(|target| {
            self.source.as_ref().is_none_or(|source| !Arc::ptr_eq(source, target))
        });
        self.source.iter().chain(other)
    }
}

/// What one source argument asks for.
pub struct Stretch {
    /// Both ends.
    pub pair: Arc<Pair>,
    /// What lies between.
    pub what: What,
    /// Nothing can be at the target: a dry run would have to make its folder first.
    pub target_is_new: bool,
}

impl Stretch {
    /// Whether anything at its target could be extraneous.
    pub fn may_delete(&self) -> bool {
        matches!(&self.what, What::Tree { pattern: None })
            && !matches!(self.pair.target, Root::Null)
    }
}

/// See [`Stretch`].
pub enum What {
    /// One file or object.
    One {
        /// It.
        entry: Entry,
        /// Its name from the target's root.
        name: Vec<u8>,
    },
    /// All that a listing of the source finds; every name stays what it is.
    Tree {
        /// Only names that match.
        pattern: Option<Pattern>,
    },
    /// These names only, from a list.
    Given(Vec<Vec<u8>>),
}

/// Takes the arguments of a transfer apart and finds out what they name.
///
/// # Errors
/// Bad arguments, a store that cannot be asked, a target that cannot be used. A source that does
/// not exist comes back among the missing ones: the others go on.
pub fn stretches(
    spec: &Spec,
    stores: &Stores,
    umask: u32,
) -> Result<(Vec<Stretch>, Vec<Missing>), Fatal> {
    let asker = |store: &Option<Arc<Store>>| store.as_ref().map(Asker::new);
    let source_asker = asker(&stores.source);
    let target_asker = asker(&stores.target);
    let place = Place::of(spec, target_asker.as_ref())?;
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for typed in &spec.sources {
        match source::stretch(spec, typed, &place, source_asker.as_ref(), umask)? {
            Ok(stretch) => found.push(stretch),
            Err(gone) => missing.push(gone),
        }
    }
    refuse_overlaps(spec, &found)?;
    Ok((found, missing))
}

/// Where things are removed, two sources must not share a part of the target: each would take what
/// the other brings for extraneous.
fn refuse_overlaps(spec: &Spec, found: &[Stretch]) -> Result<(), Fatal> {
    if spec.policy.delete == crate::policy::Delete::No {
        return Ok(());
    }
    let trees = found.iter().filter(|stretch| matches!(stretch.what, What::Tree { .. }));
    let leads: Vec<&[u8]> = trees.map(|stretch| stretch.pair.lead.as_slice()).collect();
    for (number, lead) in leads.iter().enumerate() {
        let meets = |other: &&[u8]| other.starts_with(lead) || lead.starts_with(other);
        if leads.iter().skip(number + 1).any(meets) {
            let message = "--delete with several sources that fill one folder is not built for S3";
            return Err(Fatal::new(1, message));
        }
    }
    Ok(())
}

/// Whether a path names something in S3.
pub fn is_s3(path: &Path) -> bool {
    matches!(Location::parse(path.as_os_str()), Ok(Location::S3(_)))
}

/// Whether what is at the target has to be known before deciding.
pub(super) fn needs_target(spec: &Spec) -> bool {
    let policy = &spec.policy;
    let sync = matches!(spec.layout, Layout::Rsync { .. });
    sync || policy.size_only
        || policy.update
        || policy.ignore_existing
        || policy.existing
        || policy.checksum
}

/// Refuses what cannot be in a bucket or come from one.
///
/// # Errors
/// Code 1 and a sentence that names the option.
pub fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let unfit = [
        (policy.inplace, "--inplace"),
        (policy.partial, "--partial (see --resume)"),
        (policy.backup, "--backup"),
        (!policy.link_dest.is_empty(), "--link-dest"),
        (policy.temp_dir.is_some(), "--temp-dir"),
        (policy.hard_links, "--hard-links"),
        (policy.list_only, "--list-only"),
        (policy.content != crate::policy::Content::Copy, "--link and --symbolic-link"),
        (policy.chmod.is_some(), "--chmod"),
        (policy.ask.is_some(), "--interactive"),
        (policy.copy_dirlinks, "--copy-dirlinks"),
        // A list of names implies it, and keeps the names below the source as they are.
        (
            matches!(spec.layout, Layout::Rsync { relative: true }) && spec.files_from.is_none(),
            "--relative",
        ),
        (matches!(spec.layout, Layout::Cp { parents: true, .. }), "--parents"),
    ];
    if let Some((_, name)) = unfit.iter().find(|(given, _)| *given) {
        let message = format!("{name} is not built for transfers with s3:// on a side");
        return Err(Fatal::new(1, message));
    }
    let merge_files = policy.filter.as_ref().is_some_and(|filter| filter.has_merge_files());
    if let Some(source) = spec.sources.iter().find(|source| merge_files && is_s3(source)) {
        let message = format!(
            "{}: filter rules in files of each directory (-F, ': FILE') need a local source",
            quoted(source)
        );
        return Err(Fatal::new(1, message));
    }
    Ok(())
}

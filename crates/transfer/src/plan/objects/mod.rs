//! Transfers with a store on a side: resolves each source argument, and feeds the object engine from sorted listings.

mod apart;
mod ask;
mod feed;
mod flat;
mod known;
mod listings;
mod place;
mod planned;
mod source;

pub use apart::are_apart;
pub use feed::feed;
pub use flat::BaseNames;
pub use known::{Claims, Known};
pub use planned::{PlannedSource, Stores, What};

use super::argument::Line;
use super::{Layout, Spec};
use crate::location::Location;
use crate::object::list;
use hakobu_core::error::{Fatal, Problem};
use place::Place;
use std::collections::HashSet;

/// Resolves the arguments of a transfer.
///
/// # Errors
/// Bad arguments, failed requests, an unusable target. A missing source is returned separately: the others continue.
pub fn resolve_sources(
    spec: &Spec,
    stores: &Stores,
    umask: u32,
) -> Result<(Vec<PlannedSource>, Vec<Problem>), Fatal> {
    let place = Place::of(spec, stores.target.as_ref())?;
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for source in spec.sources.locations() {
        for (source, list) in parts(spec, source) {
            match source::resolve(spec, source, list, &place, stores.source.as_ref(), umask)? {
                Ok(planned) => found.push(planned),
                Err(gone) => missing.push(gone),
            }
        }
    }
    refuse_overlaps(spec, &found)?;
    Ok((found, missing))
}

/// Splits a source argument: itself, or with a list of names the folders that they are cut off from (`FOLDER/./NAME`,
/// rsync's `--relative`), each with its names. Of names that are the same at the target the first one counts.
fn parts(spec: &Spec, source: Location) -> Vec<(Location, Option<Vec<Vec<u8>>>)> {
    let Some(list) = &spec.files_from else { return vec![(source, None)] };
    // A key may contain any of it; --raw takes names literally.
    let cuts = matches!(spec.layout, Layout::Rsync { relative: true });
    let cuts = cuts && !(source.is_s3() && spec.objects.raw);
    // The output of `find .` begins with `./`.
    let bare = |name: &Vec<u8>| match name.strip_prefix(b"./") {
        Some(rest) if cuts => rest.to_vec(),
        _ => name.clone(),
    };
    let list: Vec<Vec<u8>> = list.iter().map(bare).collect();
    let is_cut = |name: &&Vec<u8>| cuts && name.windows(3).any(|part| part == b"/./");
    let (cut, plain): (Vec<_>, Vec<_>) = list.iter().partition(is_cut);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    if !cut.is_empty() {
        seen.extend(plain.iter().map(|name| list::plain(name)));
    }
    let mut parts: Vec<(Location, Option<Vec<Vec<u8>>>)> = Vec::new();
    if !plain.is_empty() || cut.is_empty() {
        parts.push((source.clone(), Some(plain.into_iter().cloned().collect())));
    }
    for name in cut {
        let line = Line::new(name, true);
        let name = line.names.join(&b'/');
        if !seen.insert(name.clone()) {
            continue;
        }
        let slash = if line.slash { &b"/"[..] } else { b"" };
        let name = [&name, slash].concat();
        let folder = match line.lead.is_empty() {
            true => source.clone(),
            false => source.join(&[&line.lead.join(&b'/'), &b"/"[..]].concat()),
        };
        match parts.iter_mut().find(|(other, _)| *other == folder) {
            Some((_, Some(names))) => names.push(name),
            _ => parts.push((folder, Some(vec![name]))),
        }
    }
    parts
}

/// Rejects sources that share a part of the target if entries may be removed: each would take the other's entries for
/// extraneous.
fn refuse_overlaps(spec: &Spec, found: &[PlannedSource]) -> Result<(), Fatal> {
    if spec.policy.delete == crate::policy::Delete::No {
        return Ok(());
    }
    let trees = found.iter().filter(|planned| matches!(planned.what, What::Tree { .. }));
    if !apart::have_own_targets(trees) {
        let message = "--delete with several sources that fill one folder is not supported for S3";
        return Err(Fatal::new(1, message));
    }
    Ok(())
}

/// Rejects options that are impossible with a bucket.
///
/// # Errors
/// Code 1 and a sentence that names the option.
pub fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let unfit = [
        (policy.inplace, "--inplace"),
        (policy.partial, "--partial (see --resume)"),
        (policy.backup, "--backup"),
        (!policy.basis_dirs.is_empty(), policy.basis.option()),
        (policy.temp_dir.is_some(), "--temp-dir"),
        (policy.hard_links, "--hard-links"),
        (policy.list_only, "--list-only"),
        (policy.content != crate::policy::Content::Copy, "--link and --symbolic-link"),
        (policy.chmod.is_some(), "--chmod"),
        (policy.ask.is_some(), "--interactive"),
        (policy.copy_dirlinks, "--copy-dirlinks"),
        // A list of names implies it, and keeps the names below the source unchanged.
        (
            matches!(spec.layout, Layout::Rsync { relative: true }) && spec.files_from.is_none(),
            "--relative",
        ),
        (matches!(spec.layout, Layout::Cp { parents: true, .. }), "--parents"),
    ];
    if spec.objects.flatten && spec.objects.options.dir_markers {
        return Err(Fatal::new(1, "--flatten leaves no folders for --dir-markers"));
    }
    if let Some((_, name)) = unfit.iter().find(|(rejects, _)| *rejects) {
        let message = format!("{name} is not supported for transfers with s3:// on a side");
        return Err(Fatal::new(1, message));
    }
    Ok(())
}

//! `hakobu mv` with `s3://` on a side: a copy that removes each source once its target is complete
//! and checked.

use super::options::Reading;
use crate::commands::operands::Operands;
use crate::objects::Concerned;
use crate::show::Line;
use hakobu_transfer::plan::mv::Existing;
use hakobu_transfer::policy::{Policy, Preserve, Symlinks};
use hakobu_transfer::run::{Layout, Spec};

/// Describes the move.
///
/// # Errors
/// An option without meaning here.
pub fn spec(
    reading: &mut Reading,
    places: &Operands,
    concerned: Concerned,
) -> Result<Spec, String> {
    let mut policy = Policy {
        recurse: true,
        symlinks: reading.symlinks.unwrap_or(Symlinks::Keep),
        filter: reading.filters.of_names()?,
        preserve: Preserve { mode: true, times: true, ..Preserve::default() },
        ignore_times: true,
        modify_window_s: Some(-1),
        ignore_existing: matches!(reading.options.existing, Existing::Keep),
        update: reading.options.update,
        update_same: reading.options.update,
        size_only: reading.size_only,
        remove_source_files: true,
        remove_source_dirs: true,
        cp_targets: true,
        dry_run: reading.dry_run,
        suffix: b"~".to_vec(),
        ..Policy::default()
    };
    let args = std::mem::take(&mut reading.objects);
    let objects = args.fit(concerned, &mut policy)?;
    let wanted = &mut reading.wanted;
    wanted.notes.extend(reading.filters.note(true)?);
    wanted.styled = reading.filters.is_styled();
    wanted.dry_run = policy.dry_run;
    wanted.resume = "each file is complete, at its source or its target; run the same command again \
                     to continue";
    wanted.line = match (reading.verbose || policy.dry_run, wanted.json) {
        (false, _) => Line::None,
        _ if wanted.quiet => Line::None,
        (true, true) => Line::Json,
        (true, false) if policy.dry_run => Line::Mapping("mv"),
        (true, false) => Line::Arrow("moved"),
    };
    let layout = Layout::Cp {
        no_target_dir: reading.no_target_dir,
        target_is_dir: places.is_dir,
        parents: false,
    };
    Ok(Spec {
        items: wanted.items(),
        objects,
        ..reading.limits.spec(
            reading.within,
            (places.sources.clone(), places.target.clone()),
            layout,
            policy,
        )
    })
}

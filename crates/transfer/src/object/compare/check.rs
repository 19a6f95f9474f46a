//! Proving that two entries are the same, for `verify`: nothing is moved, whoever asked is told.

use super::contents::{self, Compared, Contents};
use super::{Heads, heads, touch};
use crate::error::Operation;
use crate::object::Side;
use crate::object::core::Core;
use crate::object::metadata;
use crate::object::moving::{Failed, Moving};
use crate::unit::{Meta, Totals};
use std::sync::mpsc::Sender;

/// Who asks for a proof, and what counts.
#[derive(Clone, Debug)]
pub struct Checking {
    /// Contents.
    pub contents: bool,
    /// Times and modes, where both sides have them: those of files travel in metadata.
    pub attributes: bool,
    /// Who hears of it.
    pub told: Sender<Checked>,
}

/// What was found out about two entries of equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Contents are the same, or were not asked for.
    Same,
    /// Contents are different, from this byte on where that is known.
    Differ(Option<u64>),
    /// It could not be found out; the problem was told of.
    Failed,
}

/// A pair that was compared.
#[derive(Debug)]
pub struct Checked {
    /// From the roots.
    pub name: Box<[u8]>,
    /// The source, with the time and mode that its metadata has where it is an object.
    pub source: Meta,
    /// The target likewise.
    pub target: Meta,
    /// Whether both sides have a time that can be compared.
    pub times: bool,
    /// Whether both sides have a mode.
    pub modes: bool,
    /// About the contents.
    pub finding: Finding,
}

/// Compares, and tells.
pub(in crate::object) async fn check(core: &Core<'_>, moving: Moving, asked: &Checking) {
    let target = match &moving.existing {
        Some(existing) => existing.meta,
        None => moving.entry.meta,
    };
    let mut checked = Checked {
        name: moving.entry.name.clone(),
        source: moving.entry.meta,
        target,
        times: false,
        modes: false,
        finding: Finding::Same,
    };
    if let Err(failed) = look(core, &moving, asked, &mut checked).await {
        checked.finding = Finding::Failed;
        let mut totals = Totals::default();
        core.failed(&moving, failed, &mut totals);
        core.add(totals);
    }
    if checked.finding != Finding::Failed {
        core.doing.lane().items(1);
    }
    // Nobody listens any more where the comparison was broken off.
    let _ = asked.told.send(checked);
}

async fn look(
    core: &Core<'_>,
    moving: &Moving,
    asked: &Checking,
    checked: &mut Checked,
) -> Result<(), Failed> {
    let Heads { source, target } = heads(core, moving).await?;
    if asked.attributes {
        let has = |head: &Option<_>| match head {
            None => (true, true),
            Some(head) => {
                let head: &crate::s3::ops::Head = head;
                let kept = metadata::read(&head.metadata);
                (kept.mtime.is_some(), kept.mode.is_some())
            }
        };
        let (a, b) = (has(&source), has(&target));
        checked.times = a.0 && b.0;
        checked.modes = a.1 && b.1;
    }
    checked.source = touch::as_file(&checked.source, source.as_ref());
    checked.target = touch::as_file(&checked.target, target.as_ref());
    // It changed since it was listed: what is compared is what is there now.
    if checked.source.size != checked.target.size || !asked.contents {
        return Ok(());
    }
    if let Some(size) = source.as_ref().map(|head| head.size)
        && size != moving.entry.meta.size
    {
        let reason = "it changed while it was being compared";
        return Err(Failed::Reason(Operation::Compare, Side::Source, reason));
    }
    let what = Compared { moving, source: source.as_ref(), target: target.as_ref(), strict: true };
    checked.finding = match contents::compare(core, &what).await? {
        Contents::Same => Finding::Same,
        Contents::Differ(offset) => Finding::Differ(offset),
    };
    Ok(())
}

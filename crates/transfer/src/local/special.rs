//! Entries without content: symlinks, devices, FIFOs, sockets.

use super::attributes::{Have, Want};
use super::context::Context;
use super::entry::{Done, Entry};
use super::fake;
use super::publisher::Publisher;
use super::worker::Worker;
use crate::failure::Failure;
use crate::publish::{DirName, TempEntry};
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{dir, meta};
use std::ffi::CStr;
use std::sync::Arc;

/// Creates special files. One instance serves all workers.
pub(super) struct Specials<'a> {
    context: Context<'a>,
    publisher: Arc<Publisher<'a>>,
}

impl<'a> Specials<'a> {
    pub(super) fn new((context, publisher): (Context<'a>, Arc<Publisher<'a>>)) -> Specials<'a> {
        Specials { context, publisher }
    }

    /// Creates a symlink with this text, or the source's device, FIFO or socket, and replaces an existing entry.
    ///
    /// # Errors
    /// The first failure; an existing entry is unchanged then.
    pub(super) fn make(
        &self,
        worker: &mut Worker<'_>,
        entry: &Entry<'_>,
        source: &Meta,
        existing: Option<&Meta>,
        text: Option<&CStr>,
    ) -> Result<Done, Failure> {
        let (Some(place), Some((dir, dir_info))) = (entry.place(), entry.target) else {
            return Ok(Done::default());
        };
        let want = worker.attributes.want(source, existing, Some(dir_info));
        let kind = if text.is_some() { Kind::Symlink } else { source.kind };
        let make = |name: &CStr| match text {
            _ if self.context.policy.fake.target => fake::make(dir, name, text),
            Some(text) => dir::symlink(text, dir, name),
            None => dir::make_node(dir, name, source.kind, want.mode & 0o777, source.rdev),
        };
        // A temporary name makes the new entry appear complete, as a later run may not examine it again.
        let temp = (existing.is_some() || !self.publisher.drafts.direct.is_allowed())
            .then(|| self.publisher.drafts.temp_names.make());
        let name = temp.as_deref().unwrap_or(entry.target_name);
        worker.at.step(Phase::Create, 1);
        make(name).map_err(Failure::of(Operation::Create))?;
        let inherits = dir_info.default_bits.is_some() && !self.context.policy.preserve.mode;
        let attributes = settle(worker, entry, (dir, name), kind, want, inherits);
        if let Some(temp) = temp {
            worker.at.step(Phase::Create, 1);
            let mut made = TempEntry::new(dir, temp);
            self.publisher.rename(&mut made, place, existing, entry.node)?;
        }
        let unprivileged = worker.attributes.count_unprivileged(source, &want);
        let checked = attributes.is_ok() && !unprivileged;
        Ok(Done { checked, attributes: attributes.err(), unprivileged, ..Done::default() })
    }
}

/// Sets the attributes of a new entry; `inherits`: it keeps the mode that it was created with.
fn settle(
    worker: &mut Worker<'_>,
    entry: &Entry<'_>,
    to: DirName<'_>,
    kind: Kind,
    mut want: Want,
    inherits: bool,
) -> Result<(), Failure> {
    let have = meta::of(to.0, to.1, false).map_err(Failure::of(Operation::Create))?;
    if inherits {
        want.mode = have.mode;
    }
    let sets_xattrs = worker.attributes.wants_xattrs();
    let (from, have) = (entry.source()?, Have::from(&have));
    let attributes = worker.attributes.within(entry.node.rules.as_ref());
    attributes.settle_named(&worker.at, (from, to), kind, &want, have, sets_xattrs)
}

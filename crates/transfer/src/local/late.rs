//! Work after every entry has been handled: delayed renames, and removal of sources that other sources may have led
//! to.

use super::node::Node;
use super::removal::Removal;
use super::state::Engine;
use super::worker::Worker;
use crate::failure::Failure;
use hakobu_sys::errno;
use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::Arc;

impl Engine<'_> {
    /// Gives delayed files their final names. Called after the walk. Returns the sources that may be removed then;
    /// their directories are finished.
    pub fn name_delayed(&self) -> Vec<Removal> {
        let mut worker = self.worker(0);
        let mut lost: HashSet<(usize, CString)> = HashSet::new();
        let key = |node: &Arc<Node>, name: &CStr| (Arc::as_ptr(node) as usize, name.to_owned());
        for delayed in self.publisher.take_delayed() {
            let node = &delayed.node;
            let stopped = self.is_over();
            let named = self.publisher.name_delayed(&delayed, stopped);
            node.touch();
            if stopped || named.is_err() {
                lost.insert(key(node, &delayed.name));
            }
            if let Err(failure) = named {
                let target = node.target_path(&delayed.name);
                self.fail(&mut worker, failure, (None, Some(target)));
            }
            self.release(&mut worker, node);
        }
        let mut removals = std::mem::take(&mut *self.removals.lock());
        removals.retain(|Removal { member, .. }| {
            self.release(&mut worker, &member.node);
            !lost.contains(&key(&member.node, member.at_target()))
        });
        self.flush(&mut worker);
        removals
    }

    /// Removes sources whose targets are complete, unless the run was asked to stop.
    pub fn remove_sources(&self, removals: Vec<Removal>) {
        if self.is_over() {
            return;
        }
        let mut worker = self.worker(0);
        // Links last: a symlink can be followed only while its referent exists.
        let (links, others): (Vec<Removal>, Vec<Removal>) =
            removals.into_iter().partition(Removal::is_link);
        let looked: Vec<_> = links.iter().map(Removal::look).collect();
        for (removal, looked) in links.iter().zip(looked) {
            let done = looked.and_then(|()| removal.unlink());
            self.removed(&mut worker, removal, done);
        }
        for removal in &others {
            self.removed(&mut worker, removal, removal.remove());
        }
        self.flush(&mut worker);
    }

    fn removed(&self, worker: &mut Worker<'_>, removal: &Removal, done: Result<(), Failure>) {
        let node = &removal.member.node;
        match done {
            Ok(()) => worker.totals.removed_sources += 1,
            // Removed already through another name that leads to it.
            Err(failure) if errno::is(&failure.error, errno::ENOENT) => {}
            Err(failure) => {
                let source = node.source_path(removal.member.side, &removal.member.name);
                self.fail(worker, failure, (Some(source), None));
            }
        }
    }
}

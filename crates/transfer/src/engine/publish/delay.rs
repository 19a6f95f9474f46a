//! Files that get their names when all are complete (`--delay-updates`). Until then each has a temporary name in its
//! directory, so a killed run leaves nothing that the next one does not remove.

use super::draft::{Delayed, Draft, DraftName, Publisher};
use crate::engine::failure::Failure;
use crate::engine::node::Node;
use hakobu_core::error::Operation;
use hakobu_core::unit::Meta;
use hakobu_sys::{AsFd, BorrowedFd, close, dir, errno, file};
use std::io;
use std::sync::Arc;

impl Publisher<'_> {
    /// Closes a finished file and keeps it under a temporary name.
    pub(super) fn delay(
        &self,
        draft: Draft<'_>,
        existing: Option<&Meta>,
        node: &Arc<Node>,
    ) -> Result<(), Failure> {
        let Draft { fd, dir, name, target, foreign, .. } = draft;
        let temp = match name {
            DraftName::Temporary(temp) => temp,
            _ => {
                let temp = self.temp_names.make();
                let named = file::publish(fd.as_fd(), dir, &temp);
                named.map_err(Failure::of(Operation::Create))?;
                temp
            }
        };
        if let Err(error) = close::close(fd) {
            drop(dir::unlink(dir, &temp));
            return Err(Failure { operation: Operation::Write, error });
        }
        node.hold();
        let (node, name, existing) = (Arc::clone(node), target.1.to_owned(), existing.copied());
        self.delayed.lock().push(Delayed { node, name, temp, foreign, existing });
        Ok(())
    }

    /// Takes all files that wait for their names.
    pub(in crate::engine) fn take_delayed(&self) -> Vec<Delayed> {
        std::mem::take(&mut self.delayed.lock())
    }

    /// Gives a finished file its name, or with `gives_up` removes it.
    ///
    /// # Errors
    /// It could not be named, and is gone.
    pub(in crate::engine) fn name_delayed(
        &self,
        delayed: &Delayed,
        gives_up: bool,
    ) -> Result<(), Failure> {
        let node = &delayed.node;
        let lost = || Failure::of(Operation::Rename);
        let fds = node.fds().map_err(lost())?;
        let gone = || lost()(io::Error::from_raw_os_error(errno::ENOENT));
        let target = fds.target().ok_or_else(gone)?;
        let temp_dir: Option<BorrowedFd<'_>> = self.temp_dir.as_ref().map(|(fd, _)| fd.as_fd());
        let temp = (temp_dir.filter(|_| delayed.foreign).unwrap_or(target), &*delayed.temp);
        let place = (target, &*delayed.name);
        let moved = match gives_up {
            true => Ok(()),
            false => self.rename(temp, place, delayed.existing.as_ref(), node),
        };
        if gives_up || moved.is_err() {
            drop(dir::unlink(temp.0, temp.1));
        } else {
            self.forget_partial(place);
        }
        moved
    }
}

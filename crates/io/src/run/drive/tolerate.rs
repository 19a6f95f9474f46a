//! Errors that do not end a job (`continue_on_error`, `ignore_error`).

use super::Drive;
use crate::engine::Engine;
use crate::run::flight::Flight;
use hakobu_sys::errno;

impl<E: Engine> Drive<'_, E> {
    /// Returns whether the job continues after an error of an operation, and counts it in that case. Without a list,
    /// errors of a device are tolerated, as in fio.
    pub(super) fn tolerates(&mut self, flight: &Flight, errno: i32) -> bool {
        let of = &self.job.tolerates;
        let kind = usize::from(flight.block.write || flight.sync);
        let listed = &of.ignores[kind];
        let is_meant = match listed.is_empty() {
            true => errno == errno::EIO || errno == errno::EILSEQ,
            false => listed.contains(&errno),
        };
        if self.verifying || !of.goes_on[kind] || !is_meant {
            return false;
        }
        if self.tolerated.0 == 0 {
            self.tolerated.1 = errno;
        }
        self.tolerated.0 += 1;
        true
    }
}

//! Errors that do not end a job (`continue_on_error`, `ignore_error`).

use super::Drive;
use crate::engine::Engine;
use crate::run::flight::Flight;
use hakobu_sys::errno;

impl<E: Engine> Drive<'_, E> {
    /// Whether the job goes on after an error of an operation; if so it is counted. Without a list of errors those
    /// of a device are meant, as in fio.
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

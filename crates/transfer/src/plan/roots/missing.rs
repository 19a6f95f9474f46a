//! Missing arguments (`--delete-missing-args`).

use super::Roots;
use crate::engine::failure::{Failure, c_string};
use crate::plan::Argument;
use crate::policy::MissingArgs;
use hakobu_core::error::Operation;
use hakobu_sys::errno;

impl Roots<'_, '_> {
    /// Returns whether a missing argument is removed from the target.
    pub(super) fn is_removed(&self, failure: &Failure) -> bool {
        self.policy.missing_args == MissingArgs::Delete && errno::is(&failure.error, errno::ENOENT)
    }

    /// Removes the target entry of a missing argument.
    pub(super) fn remove_missing(&mut self, argument: &Argument) -> Result<(), Failure> {
        let Some((last, above)) = argument.names.split_last() else { return Ok(()) };
        let c = |name: &[u8]| c_string(name).map_err(Failure::of(Operation::Remove));
        let mut node = self.base(argument, last)?;
        for (depth, name) in above.iter().enumerate() {
            let path = argument.names[..=depth].join(&b'/');
            match self.implied(argument, &path, &node, &c(name)?)? {
                Some(next) => node = next,
                None => return Ok(()),
            }
        }
        let name = c(last)?;
        self.engine.remove_missing(&node, self.place.name.as_deref().unwrap_or(&name))
    }
}

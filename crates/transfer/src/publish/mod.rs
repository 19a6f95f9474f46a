//! Files being written: local copies, downloads, exports and reports get their names here and nowhere else.
//! (Records of runs, which a user never sees, are replaced by `hakobu_sys::file::replace`.)
//!
//! The rules, for a program killed at any moment:
//! - What stands under a final name is complete, or a later run can tell that it is not ([`Direct`] has the rule for files
//!   that get their final name before their content).
//! - Otherwise a file has no name until it is complete (`O_TMPFILE`), or a temporary one ([`TempNames`]), which identifies
//!   its process, so that a later run removes it.
//! - Replacing uses a temporary name in the same directory and rename(2). What was absent when it was looked for is never
//!   replaced ([`rename_into_place`]).
//! - A file that could not be closed, or is given up, loses its name again ([`Draft::discard`]).
//! - A worker whose lease has ended names nothing ([`Drafts::check_lease`]).

mod backup_name;
mod direct;
mod draft;
mod output_file;
mod temp_name;

pub(crate) use backup_name::{back_up, back_up_as, backup_name, set_aside};
pub(crate) use direct::{Direct, Scratch, UNFINISHED, unfinished};
pub(crate) use draft::{
    DirName, Draft, DraftName, Drafts, TempEntry, cannot_link, is_node, reserve, reserve_ahead,
    unlink_any,
};
pub use output_file::OutputFile;
pub use temp_name::LEFT_OUT;
pub(crate) use temp_name::TempNames;

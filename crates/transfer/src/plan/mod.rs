//! From arguments to the start of the engine: pairs source directories with target directories, and determines names.

mod ahead;
mod arguments;
mod beside;
mod feed;
mod known;
mod meeting;
pub mod mv;
pub mod objects;
mod roots;
mod target;

pub use crate::plan::ahead::AheadCount;
pub use crate::plan::arguments::{Argument, Expected, Layout, Objects, Spec, arguments, listed};
pub use crate::plan::target::{Count, warn_of_space};
pub use crate::policy::{EntrySelection, NOT_AS_PLANNED};
pub use beside::compare_beside;
pub use meeting::Lines;
pub use roots::{batches, chosen_roots, roots};
pub use target::{TargetPlace, basis_dirs, place};

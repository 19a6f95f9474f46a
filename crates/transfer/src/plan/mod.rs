//! From arguments to the start of the engine: pairs source directories with target directories, and determines names.

mod argument;
mod beside;
mod meeting;
pub mod mv;
pub mod objects;
mod path;
mod roots;
mod space;
mod spec;
mod target;

pub use crate::policy::{Chosen, NOT_AS_PLANNED};
pub use argument::{Argument, arguments, listed};
pub use beside::compare_beside;
pub use meeting::Lines;
pub use roots::{batches, chosen_roots, roots};
pub use space::{Count, warn_of_space};
pub use spec::{Expected, Layout, Objects, Spec};
pub use target::{Place, basis_dirs, place};

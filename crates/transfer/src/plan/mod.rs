//! From arguments to the start of the engine: pairs source directories with target directories, and determines names.

mod argument;
mod basis;
pub mod mv;
pub mod objects;
mod roots;
mod space;
mod spec;
mod target;

pub use argument::{Argument, arguments, listed};
pub use basis::basis_dirs;
pub use roots::{chosen_roots, roots};
pub use space::warn_of_space;
pub use spec::{Chosen, Expected, Layout, NOT_AS_PLANNED, Objects, Spec};
pub use target::{Place, place};

//! From arguments to the places where the engine begins: which source directory meets which
//! target directory, and under which names.

mod argument;
pub mod mv;
pub mod objects;
mod seeds;
mod space;
mod spec;
mod target;

pub use argument::{Argument, arguments};
pub use seeds::seed;
pub use space::warn_of_space;
pub use spec::{Layout, Objects, Spec};
pub use target::{Place, place};

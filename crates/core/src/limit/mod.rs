//! Limits: rates that all workers share, how many of them may work, and the most that there may ever be.

mod controls;
mod gate;
mod limits;
mod rate;

pub use controls::Controls;
pub use gate::Gate;
pub use limits::{Limits, Work, check_memory, memory_bytes_min};
pub use rate::Limiter;

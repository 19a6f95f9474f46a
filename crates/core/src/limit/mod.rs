//! Limits: rates shared by all workers, the number of active workers, and the maximum numbers.

mod controls;
mod gate;
mod limits;
mod rate;

pub use controls::Controls;
pub use gate::Gate;
pub use limits::{Limits, Work, check_memory, memory_bytes_min};
pub use rate::Limiter;

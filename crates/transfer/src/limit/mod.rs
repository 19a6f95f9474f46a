//! How much now: rates that all workers share, and how many of them may work.

mod gate;
mod helm;
mod rate;

pub use gate::Gate;
pub use helm::Helm;
pub use rate::Limiter;

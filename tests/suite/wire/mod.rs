//! Network and server faults: the real binary against servers that break, delay and falsify on demand. Either
//! everything arrives intact, or exit code and counts show what did not, and nothing incomplete is left.

mod answers;
mod bodies;
mod conditions;
mod hidden;
mod hostile;
mod killed;
mod lies;
mod listed;
mod listings;
mod owners;
mod points;
mod rates;
mod resume;
pub mod server;
mod skew;
mod spoken;
mod targets;
mod versions;
mod waiting;

//! One transfer on many machines that an existing engine schedules.
//!
//! All that the machines share is a run folder, on a file system or in S3. `planner` writes what is
//! to be done into it as shards, `work` does shards, `status` reads how far it is. Claims are
//! advisory: work is idempotent, so two workers on one shard do no harm, and the last word is an
//! ordinary transfer over both ends. No clocks of two machines are compared.

pub mod beat;
mod choice;
pub mod claim;
pub mod comparing;
pub mod folder;
mod moving;
pub mod phase;
pub mod plan;
pub mod planner;
mod problems;
mod queue;
pub mod shard;
pub mod status;
pub mod verdict;
pub mod work;
mod worker;

pub use folder::{Folder, Trouble};
pub use plan::Plan;

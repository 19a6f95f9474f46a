//! One transfer on many machines that an existing engine schedules.
//!
//! All that the machines share is a run folder, on a file system or in S3. `planner` cuts the names of a transfer into
//! ranges; `worker` lists ranges, writes what is to be done as shards, does shards, and looks at both ends once more;
//! `results` reads how far it is; `collect` has the last word. Claims are advisory: work is idempotent, so two workers on
//! one shard do no harm, and only `collect` removes anything. No clocks of two machines are compared.

mod claims;
pub mod collect;
pub mod folder;
pub mod heartbeat;
pub mod known;
pub mod plan;
pub mod planner;
mod queue;
pub mod ranges;
pub mod results;
mod shard;
pub mod shares;
#[cfg(test)]
mod simulation;
pub mod submitted;
pub mod verify;
pub mod worker;

//! One transfer on many machines that an existing engine schedules.
//!
//! All that the machines share is a run folder, on a file system or in S3. `planner` writes what is
//! to be done into it as shards, `worker` does shards, `results` reads how far it is. Claims are
//! advisory: work is idempotent, so two workers on one shard do no harm, and the last word is an
//! ordinary transfer over both ends. No clocks of two machines are compared.

mod claims;
pub mod folder;
pub mod heartbeat;
pub mod plan;
pub mod planner;
pub mod results;
mod shard;
pub mod verify;
pub mod worker;

//! Campaigns: described sets of measurements. `spec` parses the description (TOML), `data` makes data sets,
//! `tools` knows the programs, `plan` resolves all of it to commands; `run` executes them in seeded random
//! blocks, with a clock and a machine that tests can replace, and writes [`crate::results`].

pub mod data;
pub mod own;
pub mod plan;
mod planned;
mod resolved;
pub mod run;
pub mod spec;
pub mod tools;

pub(crate) use planned::add_controls;
pub use planned::{DiskLimits, ExitCodes, Launch, OutputSink, PlannedCell, RunAction, RunCheck};
pub use resolved::{CampaignPlan, RepeatRules, ServerPlan};

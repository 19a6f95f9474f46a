//! Options of how fast, with how much memory and how politely things are moved, and of what is
//! said about it at the end: shared by the commands that move.

use super::{Opt, flag, value};
use crate::priority;

const LIMITS: &str = "Limits";
const OUTPUT: &str = "Output";

/// The rate of content.
pub const BWLIMIT: &[Opt] =
    &[value("bwlimit", None, "RATE", "bytes a second in all; a plain number is KiB")
        .off(&["no-bwlimit"])
        .in_group(LIMITS)];

/// The rate of requests.
pub const RPS: &[Opt] =
    &[value("rps-limit", None, "N", "requests a second in all, with s3://").in_group(LIMITS)];

/// The rate of operations on files; what is remembered of a transfer and said about it.
pub const STEER: &[Opt] = &[
    value("iops-limit", None, "N", "operations on files a second in all, between paths")
        .in_group(LIMITS),
    flag("no-memory", None, "-j auto: begin with no remembered number, and remember none")
        .in_group(LIMITS),
    flag("explain", None, "say what limits the run, with all evidence").in_group(OUTPUT),
    flag("prove", None, "try during the run what limits it, and say it").in_group(OUTPUT),
];

/// The budget of memory.
pub const MEMORY: &[Opt] =
    &[value("memory", None, "SIZE", "bytes in flight and in buffers, at most").in_group(LIMITS)];

/// How politely.
pub const PRIORITY: &[Opt] = &[
    value("nice", None, "N", priority::NICE_HELP).in_group(LIMITS),
    value("ionice", None, "CLASS[:LEVEL]", priority::IONICE_HELP).in_group(LIMITS),
];

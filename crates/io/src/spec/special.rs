//! Options that few jobs have: I/O priorities, and what belongs to single engines.

use super::known::{Known, put, value};
use super::units::Bare;
use super::{draft, priority, units};
use crate::job::NbdExport;

/// I/O priorities.
pub const PRIORITY: &[Known] = &[
    value("prioclass", |d, v| put(&mut d.priorities.own.0, priority::class(v).map(Some))),
    value("prio", |d, v| put(&mut d.priorities.own.1, priority::level(v).map(Some))),
    value("cmdprio_percentage", |d, v| {
        put(&mut d.priorities.percent, units::sides(v, units::percent))
    })
    .commas(),
    value("cmdprio_class", |d, v| put(&mut d.priorities.class, units::sides(v, priority::class)))
        .commas(),
    value("cmdprio", |d, v| put(&mut d.priorities.level, units::sides(v, priority::level)))
        .commas(),
    value("cmdprio_bssplit", |d, v| put(&mut d.priorities.split, priority::split(v, d.base)))
        .commas(),
    value("log_prio", |d, v| put(&mut d.job.log_priority, units::truth(v))),
];

/// The engine `exec`.
pub const EXEC: &[Known] = &[
    value("program", |d, v| put(&mut d.job.exec.program, Ok(v.into()))).commas(),
    value("arguments", |d, v| put(&mut d.job.exec.arguments, Ok(v.to_owned()))).commas(),
    value("grace_time", |d, v| put(&mut d.job.exec.grace, draft::time(v, Bare::Seconds))),
    value("std_redirect", |d, v| put(&mut d.job.exec.redirects, units::truth(v))),
];

/// The engine `nbd`.
pub const NBD: &[Known] = &[value("uri", |d, v| {
    // A variable that is not set: the job can be read, and does not run.
    let export = if v.is_empty() { Ok(None) } else { NbdExport::parse(v).map(Some) };
    put(&mut d.job.nbd, export)
})
.commas()];

/// The engine `e4defrag`.
pub const E4DEFRAG: &[Known] = &[
    value("donorname", |d, v| put(&mut d.job.donor, Ok((!v.is_empty()).then(|| v.into()))))
        .commas(),
    value("inplace", |d, v| put(&mut d.job.in_place, units::truth(v))),
];

//! Options of `hakobu io` that few jobs have: I/O priorities.

use super::handed::{Handed, handed, job};

pub const PRIORITY: Handed = handed("I/O priorities").with(&[
    job("prioclass", "CLASS", "I/O class of the job: 0 none, 1 realtime, 2 best-effort, 3 idle"),
    job("prio", "LEVEL", "I/O priority of the job: from 0, the highest, to 7"),
    job("cmdprio_percentage", "N[,N]", "percentage of blocks with the priority below"),
    job("cmdprio_class", "CLASS[,CLASS]", "its class (default 1, realtime); for reads, for writes"),
    job("cmdprio", "LEVEL[,LEVEL]", "its level (default 0)"),
    job(
        "cmdprio_bssplit",
        "LIST",
        "SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:...: shares of the blocks of these sizes",
    ),
    job("log_prio", "BOOL", "latency logs have the full value of the priority"),
]);

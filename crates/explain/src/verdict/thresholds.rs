//! Thresholds of signals.

/// Share of time waiting for a CPU from which threads lack CPUs.
pub(super) const RUN_DELAY: f64 = 0.1;
/// The same for pressure, which includes threads of other processes.
pub(super) const PRESSURE: f64 = 0.3;
/// Share of the time in which a thread has to be on a CPU or waiting for one, if others' use of CPUs limits the work: it
/// is never left to itself.
pub(super) const RUNNABLE: f64 = 0.9;
/// Throttled share of quota periods.
pub(super) const QUOTA: f64 = 0.1;
/// Stolen share of each CPU.
pub(super) const STOLEN: f64 = 0.1;
/// Share of the threads' time blocked.
pub(super) const BLOCKED: f64 = 0.4;
/// Share of the CPUs' time idle with I/O in flight.
pub(super) const IOWAIT: f64 = 0.1;
/// Traffic from which a command may be limited by the network.
pub(super) const TRAFFIC_BYTES_PER_S: f64 = 65_536.0;
/// Share of samples with a thread that waits for a lock.
pub(super) const LOCKED: f64 = 0.3;
/// Share of answers that ask to slow down.
pub(super) const THROTTLED: f64 = 0.01;
/// Bytes in queueing disciplines from which packets count as queued.
pub(super) const BACKLOG_BYTES: f64 = 65_536.0;

//! Failures: nothing is lost, nothing incomplete passes for complete, and the exit code shows the failure.

mod deletion;
mod ends;
mod full;
mod hang;
mod itself;
mod kill;
mod large;
mod late;
mod limits;
mod names;
mod partial;
mod process;
mod race;
mod same;
mod signal;
mod together;
mod unfinished;
mod user;
mod vanish;
mod writeback;

//! The list of all commands.

use super::{
    Command, bench, buckets, cat, compare, cp, demo, du, head, io, ls, manual, mpu, mv, pipe,
    presign, report, results, rm, run, serve, sync, verify, watch,
};
use crate::options::{self, tools};

/// All of them, in the order of the overview.
pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "sync",
        about: "make DST like SRC (rsync's options)",
        run: sync::run,
        table: &options::sync::TABLE,
    },
    Command { name: "cp", about: "copy (cp's options)", run: cp::run, table: &options::cp::TABLE },
    Command {
        name: "mv",
        about: "rename or move (mv's options)",
        run: mv::run,
        table: &options::mv::TABLE,
    },
    Command {
        name: "verify",
        about: "say where two trees differ",
        run: verify::run,
        table: &options::verify::TABLE,
    },
    Command {
        name: "rm",
        about: "remove files and trees (rm's options)",
        run: rm::run,
        table: &options::rm::TABLE,
    },
    Command {
        name: "ls",
        about: "list directories and files (ls's options)",
        run: ls::run,
        table: &options::ls::TABLE,
    },
    Command {
        name: "du",
        about: "count the room that trees take (du's options)",
        run: du::run,
        table: &options::du::TABLE,
    },
    Command { name: "cat", about: "objects to standard output", run: cat::run, table: &tools::CAT },
    Command {
        name: "pipe",
        about: "standard input to an object",
        run: pipe::run,
        table: &tools::PIPE,
    },
    Command {
        name: "head",
        about: "what headers say of objects and buckets",
        run: head::run,
        table: &tools::HEAD,
    },
    Command { name: "stat", about: "the same as head", run: head::run, table: &tools::HEAD },
    Command { name: "mb", about: "make buckets", run: buckets::make, table: &tools::MB },
    Command { name: "rb", about: "remove buckets", run: buckets::remove, table: &tools::RB },
    Command {
        name: "presign",
        about: "URLs that let anybody read an object",
        run: presign::run,
        table: &tools::PRESIGN,
    },
    Command {
        name: "mpu",
        about: "list or abort unfinished multipart uploads",
        run: mpu::run,
        table: &tools::MPU,
    },
    Command {
        name: "run",
        about: "commands from a file, one a line, in parallel",
        run: run::run,
        table: &tools::RUN,
    },
    Command {
        name: "watch",
        about: "record a command as time and vmstat would",
        run: watch::run,
        table: &options::watch::TABLE,
    },
    Command {
        name: "bench",
        about: "measure commands or a campaign of them",
        run: bench::run,
        table: &options::bench::TABLE,
    },
    Command {
        name: "io",
        about: "measure devices and file systems (fio's options and job files)",
        run: io::run,
        table: &options::io::TABLE,
    },
    Command {
        name: "results",
        about: "what bench measured: ls, show, rm, export",
        run: results::run,
        table: &options::results::TABLE,
    },
    Command {
        name: "report",
        about: "make a page of what campaigns found",
        run: report::run,
        table: &options::report::TABLE,
    },
    Command {
        name: "compare",
        about: "results of several machines, with prices",
        run: compare::run,
        table: &options::compare::TABLE,
    },
    Command {
        name: "demo",
        about: "carry files of its own up, down, proven",
        run: demo::run,
        table: &options::demo::TABLE,
    },
    Command {
        name: "serve",
        about: "serve S3 for tests and measurements",
        run: serve::run,
        table: &options::serve::TABLE,
    },
    Command {
        name: "man",
        about: "manual pages of these commands",
        run: manual::man,
        table: &options::manual::MAN,
    },
    Command {
        name: "completions",
        about: "completions for a shell",
        run: manual::completions,
        table: &options::manual::COMPLETIONS,
    },
];

//! The list of all commands.

use super::command::Command;
use super::command::Run::{Alone, Among};
#[cfg(all(feature = "lab", feature = "serve"))]
use super::demo;
#[cfg(feature = "io")]
use super::io;
#[cfg(feature = "serve")]
use super::serve;
#[cfg(feature = "lab")]
use super::{bench, compare, report, results, watch};
use super::{
    bucket_version, buckets, cat, cluster, completions, cp, du, head, ls, manual, mpu, mv, pipe,
    presign, rm, run, sync, verify,
};

/// All of them, in the order of the overview.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "sync",
        about: "synchronise DST with SRC (rsync's options)",
        run: Alone(sync::run),
        table: &sync::TABLE,
    },
    Command { name: "cp", about: "copy (cp's options)", run: Alone(cp::run), table: &cp::TABLE },
    Command {
        name: "mv",
        about: "rename or move (mv's options)",
        run: Alone(mv::run),
        table: &mv::TABLE,
    },
    Command {
        name: "verify",
        about: "compare two trees",
        run: Alone(verify::run),
        table: &verify::TABLE,
    },
    Command {
        name: "rm",
        about: "remove files and trees (rm's options)",
        run: Alone(rm::run),
        table: &rm::TABLE,
    },
    Command {
        name: "ls",
        about: "list directories and files (ls's options)",
        run: Alone(ls::run),
        table: &ls::TABLE,
    },
    Command {
        name: "du",
        about: "report disk usage (du's options)",
        run: Alone(du::run),
        table: &du::TABLE,
    },
    Command {
        name: "cat",
        about: "objects to standard output",
        run: Alone(cat::run),
        table: &cat::TABLE,
    },
    Command {
        name: "pipe",
        about: "standard input to an object",
        run: Alone(pipe::run),
        table: &pipe::TABLE,
    },
    Command {
        name: "head",
        about: "headers of objects, existence of buckets",
        run: Alone(head::run),
        table: &head::TABLE,
    },
    Command { name: "stat", about: "the same as head", run: Alone(head::run), table: &head::TABLE },
    Command { name: "mb", about: "make buckets", run: Alone(buckets::make), table: &buckets::MB },
    Command {
        name: "rb",
        about: "remove buckets",
        run: Alone(buckets::remove),
        table: &buckets::RB,
    },
    Command {
        name: "bucket-version",
        about: "whether buckets keep versions of their objects",
        run: Alone(bucket_version::run),
        table: &bucket_version::TABLE,
    },
    Command {
        name: "presign",
        about: "URLs that give read access to an object",
        run: Alone(presign::run),
        table: &presign::TABLE,
    },
    Command {
        name: "mpu",
        about: "list or abort unfinished multipart uploads",
        run: Alone(mpu::run),
        table: &mpu::TABLE,
    },
    Command {
        name: "run",
        about: "commands from a file, one a line, in parallel",
        run: Among(run::run),
        table: &run::TABLE,
    },
    Command {
        name: "cluster",
        about: "one transfer on many machines: plan, work, status, collect, submit",
        run: Alone(cluster::run),
        table: &cluster::TABLE,
    },
    #[cfg(feature = "lab")]
    Command {
        name: "watch",
        about: "record a command as time and vmstat would",
        run: Alone(watch::run),
        table: &watch::TABLE,
    },
    #[cfg(feature = "lab")]
    Command {
        name: "bench",
        about: "measure commands or a campaign of them",
        run: Alone(bench::run),
        table: &bench::TABLE,
    },
    #[cfg(feature = "io")]
    Command {
        name: "io",
        about: "measure devices and file systems (fio's options and job files)",
        run: Alone(io::run),
        table: &io::TABLE,
    },
    #[cfg(feature = "lab")]
    Command {
        name: "results",
        about: "what bench measured: ls, show, rm, export",
        run: Alone(results::run),
        table: &results::TABLE,
    },
    #[cfg(feature = "lab")]
    Command {
        name: "report",
        about: "make a page of what campaigns found",
        run: Alone(report::run),
        table: &report::TABLE,
    },
    #[cfg(feature = "lab")]
    Command {
        name: "compare",
        about: "results of several machines, with prices",
        run: Alone(compare::run),
        table: &compare::TABLE,
    },
    #[cfg(all(feature = "lab", feature = "serve"))]
    Command {
        name: "demo",
        about: "upload, download and verify generated files",
        run: Alone(demo::run),
        table: &demo::TABLE,
    },
    #[cfg(feature = "serve")]
    Command {
        name: "serve",
        about: "serve S3 for tests and measurements",
        run: Alone(serve::run),
        table: &serve::TABLE,
    },
    Command {
        name: "man",
        about: "manual pages of these commands",
        run: Among(manual::man),
        table: &manual::MAN,
    },
    Command {
        name: "completions",
        about: "completions for a shell",
        run: Among(completions::run),
        table: &completions::TABLE,
    },
];

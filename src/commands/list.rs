//! The list of all commands.

use super::command::Run::{Alone, Among};
use super::command::{Command, Run};
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
use crate::options::Syntax;

const fn row(
    name: &'static str,
    about: &'static str,
    run: Run,
    table: &'static dyn Syntax,
) -> Command {
    Command { name, about, run, table }
}

/// All of them, in the order of the overview.
pub const COMMANDS: &[Command] = &[
    row("sync", "synchronise DST with SRC (rsync's options)", Alone(sync::run), &sync::TABLE),
    row("cp", "copy (cp's options)", Alone(cp::run), &cp::TABLE),
    row("mv", "rename or move (mv's options)", Alone(mv::run), &mv::TABLE),
    row("verify", "compare two trees", Alone(verify::run), &verify::TABLE),
    row("rm", "remove files and trees (rm's options)", Alone(rm::run), &rm::TABLE),
    row("ls", "list buckets and objects", Alone(ls::run), &ls::TABLE),
    row("du", "report disk usage (du's options)", Alone(du::run), &du::TABLE),
    row("cat", "objects to standard output", Alone(cat::run), &cat::TABLE),
    row("pipe", "standard input to an object", Alone(pipe::run), &pipe::TABLE),
    row("head", "headers of objects, existence of buckets", Alone(head::run), &head::TABLE),
    row("stat", "the same as head", Alone(head::run), &head::TABLE),
    row("mb", "make buckets", Alone(buckets::make), &buckets::MB),
    row("rb", "remove buckets", Alone(buckets::remove), &buckets::RB),
    row(
        "bucket-version",
        "whether buckets keep versions of their objects",
        Alone(bucket_version::run),
        &bucket_version::TABLE,
    ),
    row("presign", "URLs that give read access to an object", Alone(presign::run), &presign::TABLE),
    row("mpu", "list or abort unfinished multipart uploads", Alone(mpu::run), &mpu::TABLE),
    row("run", "commands from a file, one a line, in parallel", Among(run::run), &run::TABLE),
    row(
        "cluster",
        "one transfer on many machines: plan, work, status, collect, submit",
        Alone(cluster::run),
        &cluster::TABLE,
    ),
    #[cfg(feature = "lab")]
    row("watch", "record a command as time and vmstat would", Alone(watch::run), &watch::TABLE),
    #[cfg(feature = "lab")]
    row("bench", "measure commands or a campaign of them", Alone(bench::run), &bench::TABLE),
    #[cfg(feature = "io")]
    row(
        "io",
        "measure devices and file systems (fio's options and job files)",
        Alone(io::run),
        &io::TABLE,
    ),
    #[cfg(feature = "lab")]
    row(
        "results",
        "what bench measured: ls, show, rm, export",
        Alone(results::run),
        &results::TABLE,
    ),
    #[cfg(feature = "lab")]
    row("report", "make a page of what campaigns found", Alone(report::run), &report::TABLE),
    #[cfg(feature = "lab")]
    row(
        "compare",
        "results of several machines, with prices",
        Alone(compare::run),
        &compare::TABLE,
    ),
    #[cfg(all(feature = "lab", feature = "serve"))]
    row("demo", "upload, download and verify generated files", Alone(demo::run), &demo::TABLE),
    #[cfg(feature = "serve")]
    row("serve", "serve S3 for tests and measurements", Alone(serve::run), &serve::TABLE),
    row("man", "manual pages of these commands", Among(manual::man), &manual::MAN),
    row("completions", "completions for a shell", Among(completions::run), &completions::TABLE),
];

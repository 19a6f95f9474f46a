//! The options of `hakobu demo`.

use super::area::Data;
use crate::number;
use crate::options::{Opt, OptArg, Table, flag, parts, put, value};

/// The command line of `demo`.
pub static TABLE: Table<Reading> = Table {
    command: "demo",
    about: "Upload generated files to a store, download them, and verify both copies",
    usage: "hakobu demo [OPTIONS]",
    after: "Creates a folder in TMPDIR (else /tmp) with incompressible files, the same ones \
            in each run, serves a store on a free port of this machine, uploads, uploads again \
            (which transfers nothing), downloads, and compares both copies with the files, all \
            in one process and with the functions of sync and verify. It needs no settings and \
            no credentials, and removes the folder at the end.\n\
            SIZE takes K, M, G (1024), KB, MB, GB (1000), and a fraction.\n\
            Exit codes: 0 all copies are complete, 1 something differs or failed, or a signal \
            ended it, 2 usage.",
    options: &[&OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

/// Maximum number of files of a demonstration.
const FILES_MAX: u64 = 1_000_000;

/// The options read so far.
#[derive(Default)]
pub struct Reading {
    pub(super) data: Data,
    pub(super) keep: bool,
}

parts!(Reading {});

const OPTIONS: &[Opt<Reading>] = &[
    value("files", None, "N", "small files (default 2000)")
        .reads(|it, arg| put(&mut it.data.files, files(arg)?)),
    value("size", None, "SIZE", "bytes of a small file (default 16K)")
        .reads(|it, arg| put(&mut it.data.file_bytes, bytes(arg)?)),
    value("large", None, "SIZE", "bytes of the large file (default 64M; 0: none)")
        .reads(|it, arg| put(&mut it.data.large_bytes, bytes(arg)?)),
    flag("keep", None, "keep the folder with files, store and copy").sets(|it, on| it.keep = on),
];

fn files(arg: &OptArg) -> Result<u64, String> {
    arg.parsed().filter(|files| *files <= FILES_MAX).ok_or_else(|| {
        let most = number::grouped(FILES_MAX);
        arg.wrong(&format!("give a number up to {most}"))
    })
}

fn bytes(arg: &OptArg) -> Result<u64, String> {
    hakobu_core::number::parse_size(&arg.value, 1).map_err(|why| arg.wrong(why))
}

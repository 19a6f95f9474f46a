//! The options of `hakobu demo`.

use super::{Opt, Table, flag, value};

/// The command line of `demo`.
pub const TABLE: Table = Table {
    command: "demo",
    about: "Carry files of its own up into a store and down again, and prove that they arrived",
    usage: "hakobu demo [OPTIONS]",
    after: "In a folder of its own in TMPDIR (else /tmp) it makes files that cannot be compressed, \
            the same ones every time, serves a store on a free port of this machine, uploads, \
            uploads again (which moves nothing), downloads, and compares both copies with the \
            files, in this one process and with the functions of sync and verify. No setting of \
            the environment and no key is needed. At the end the folder is removed.\n\
            SIZE takes K, M, G (1024), KB, MB, GB (1000), and a fraction.\n\
            Exit codes: 0 everything arrived, 1 something did not, or a signal ended it, 2 usage.",
    options: &[OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const OPTIONS: &[Opt] = &[
    value("files", None, "N", "small files (default 2000)"),
    value("size", None, "SIZE", "bytes of a small file (default 16K)"),
    value("large", None, "SIZE", "bytes of the large file (default 64M; 0: none)"),
    flag("keep", None, "leave the folder where it is, with files, store and copy"),
];

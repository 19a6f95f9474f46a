//! The options of rsync 3.5 that `hakobu sync` refuses, each with a reason or "".

const REMOTE: &str = "there is no remote shell and no daemon; SRC and DST are local paths (a mounted \
                      file system is one) or s3://";
const BATCH: &str = "runs cannot be replayed; -n with s3:// prints a file for hakobu run";
const ICONV: &str = "names are bytes and stay what they are; convmv(1) converts them";
const VERSION: &str = "the version is an option of hakobu itself: hakobu --version";

/// Grouped by reason.
pub const UNBUILT: &[(&str, &str)] = &[
    (
        "--rsh -e --daemon --server --sender --config --dparam --detach \
         --password-file --early-input",
        REMOTE,
    ),
    ("--write-batch --only-write-batch --read-batch", BATCH),
    ("--iconv", ICONV),
    ("--munge-links", "--safe-links leaves out symlinks that point outside the tree"),
    ("--copy-as", "run hakobu as that user: sudo -u USER hakobu sync ..."),
    ("--crtimes -N --N", "Linux cannot set birth times; rsync refuses it there as well"),
    ("--version -V", VERSION),
];

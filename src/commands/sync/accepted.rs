//! The options of rsync that have no effect on a copy between local paths or with `s3://`, in rsync as well: accepted
//! with a note, so that scripts run unchanged. Those that are refused stand below.

use crate::options::{Noted, OptArg, Row, flag, value};
use hakobu_transfer::policy::Digest;

const COMPRESS: &str = "no remote shell or daemon, so nothing is compressed on the way";
const NETWORK: &str = "no remote shell or daemon";
const WHOLE: &str = "files are copied whole between local paths";
const CONTENT: &str = "-c compares contents";
const LIST: &str = "there is no file list to build";
const STREAMS: &str = "names go to standard output, errors to standard error, both by the line";

/// All of them.
pub const ACCEPTED: Noted = Noted(ROWS);

/// Checks the values that rsync refuses although the options have no effect here.
///
/// # Errors
/// `--max-alloc=0`.
pub fn check(noted: &[OptArg]) -> Result<(), String> {
    let Some(arg) = last(noted, "max-alloc") else { return Ok(()) };
    let text = arg.text()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match digits.parse::<f64>() {
        Ok(0.0) => Err(arg.refuse("is refused: max-alloc must be greater than zero")),
        _ => Ok(()),
    }
}

/// Returns the kind of checksum that `%C` shows: the default of rsync, or that of `--checksum-choice`, of which the
/// second name is for `-c`.
///
/// # Errors
/// A kind that is not supported.
pub fn digest(noted: &[OptArg], checksum: bool) -> Result<Digest, String> {
    let Some(arg) = last(noted, "checksum-choice") else { return Ok(Digest::Xxh128) };
    let (first, second) = arg.text()?.split_once(',').unwrap_or((arg.text()?, arg.text()?));
    match if checksum { second } else { first } {
        "auto" | "xxh128" => Ok(Digest::Xxh128),
        "md5" => Ok(Digest::Md5),
        _ => Err(arg.refuse("is not supported for %C: xxh128 (the default) and md5 are")),
    }
}

fn last<'a>(noted: &'a [OptArg], name: &str) -> Option<&'a OptArg> {
    noted.iter().rfind(|arg| arg.name == name).filter(|arg| arg.on)
}

const ROWS: &[Row] = &[
    flag("compress", Some('z'), "compress on the way")
        .alias(&["old-compress", "new-compress"])
        .off(&["no-compress", "no-z"])
        .noted(COMPRESS),
    value("compress-choice", None, "NAME", "how").alias(&["zc"]).noted(COMPRESS),
    value("compress-level", None, "N", "how much").alias(&["zl"]).noted(COMPRESS),
    value("compress-threads", None, "N", "number of threads").alias(&["zt"]).noted(COMPRESS),
    value("skip-compress", None, "LIST", "not these suffixes").noted(COMPRESS),
    flag("secluded-args", Some('s'), "arguments go by the protocol")
        .alias(&["protect-args"])
        .off(&["no-secluded-args", "no-protect-args", "no-s"])
        .noted(NETWORK),
    flag("old-args", None, "the remote shell splits arguments")
        .off(&["no-old-args"])
        .noted(NETWORK),
    value("timeout", None, "SECONDS", "end a silent connection")
        .off(&["no-timeout"])
        .noted(NETWORK),
    value("contimeout", None, "SECONDS", "wait for a daemon")
        .off(&["no-contimeout"])
        .noted(NETWORK),
    flag("blocking-io", None, "for the remote shell").off(&["no-blocking-io"]).noted(NETWORK),
    flag("ipv4", Some('4'), "prefer IPv4").noted(NETWORK),
    flag("ipv6", Some('6'), "prefer IPv6").noted(NETWORK),
    value("address", None, "ADDRESS", "connect from").noted(NETWORK),
    value("port", None, "PORT", "of the daemon").noted(NETWORK),
    value("sockopts", None, "OPTIONS", "of the socket").noted(NETWORK),
    value("rsync-path", None, "PROGRAM", "on the other machine").noted(NETWORK),
    value("protocol", None, "N", "version of the protocol").noted(NETWORK),
    flag("no-motd", None, "no greeting of a daemon").alias(&["motd"]).noted(NETWORK),
    flag("trust-sender", None, "believe the other side's list").noted(NETWORK),
    flag("no-whole-file", None, "send differences").alias(&["no-W"]).noted(WHOLE),
    value("block-size", Some('B'), "SIZE", "of differences").off(&["no-block-size"]).noted(WHOLE),
    flag("fuzzy", Some('y'), "look for a similar file").off(&["no-fuzzy", "no-y"]).noted(WHOLE),
    value("checksum-choice", None, "NAME", "of checksums").alias(&["cc"]).noted(CONTENT),
    value("checksum-seed", None, "N", "of the checksums on the way").noted(WHOLE),
    value("max-alloc", None, "SIZE", "bound of one allocation").off(&["no-max-alloc"]).noted(LIST),
    value("outbuf", None, "HOW", "N, L or B").noted(STREAMS),
    value("stderr", None, "HOW", "e, a or c").noted(STREAMS),
    flag("msgs2stderr", None, "messages of both sides").off(&["no-msgs2stderr"]).noted(STREAMS),
];

const REMOTE: &str = "there is no remote shell and no daemon; SRC and DST are local paths (a mounted \
                      file system is one) or s3://";
const BATCH: &str = "runs cannot be replayed; -n with s3:// prints a file for hakobu run";
const ICONV: &str = "names are bytes and stay what they are; convmv(1) converts them";
const VERSION: &str = "the version is an option of hakobu itself: hakobu --version";

/// The options of rsync 3.5 that are refused, each with a reason or "".
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

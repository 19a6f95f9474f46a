//! The options of rsync that have no effect on a copy between local paths or with `s3://`, in rsync as well: accepted
//! with a note, so that scripts run unchanged.

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

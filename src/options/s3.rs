//! The options of everything with `s3://`: one block for the store itself, one for its two sides,
//! one for how objects are written. The names are those that aws and s5cmd gave them.

use super::{Opt, Takes, flag, value};

const STORE_GROUP: &str = "S3";
const WRITE_GROUP: &str = "S3: how objects are written";

/// Where the store is and who asks: every command that speaks to one.
pub const STORE: &[Opt] = &[
    value("endpoint-url", None, "URL", "http[s]://HOST[:PORT] of the store").in_group(STORE_GROUP),
    value("profile", None, "NAME", "profile of credentials and region").in_group(STORE_GROUP),
    value("region", None, "NAME", "region of the bucket").in_group(STORE_GROUP),
    flag("no-sign-request", None, "anonymous requests").in_group(STORE_GROUP),
    value("request-payer", None, "WHO", "'requester': we pay for requests and traffic")
        .in_group(STORE_GROUP),
    flag("no-verify-ssl", None, "certificates are not checked").in_group(STORE_GROUP),
    value("ca-bundle", None, "FILE", "certificates (PEM) to trust instead of the system's")
        .in_group(STORE_GROUP),
    value("addressing-style", None, "STYLE", "the bucket's place: auto, path, virtual")
        .in_group(STORE_GROUP),
    value("cli-read-timeout", None, "S", "seconds that an answer may stand still (20; 0: forever)")
        .alias(&["read-timeout"])
        .in_group(STORE_GROUP),
    value("cli-connect-timeout", None, "S", "seconds that a connection may take to open (5)")
        .alias(&["connect-timeout"])
        .in_group(STORE_GROUP),
];

/// The same for each side alone: commands that move between two places.
pub const SIDES: &[Opt] = &[
    value("source-endpoint-url", None, "URL", "the same for sources only").in_group(STORE_GROUP),
    value("source-profile", None, "NAME", "...").in_group(STORE_GROUP),
    value("source-region", None, "NAME", "...").in_group(STORE_GROUP),
    value("destination-endpoint-url", None, "URL", "the same for targets only")
        .in_group(STORE_GROUP),
    value("destination-profile", None, "NAME", "...").in_group(STORE_GROUP),
    value("destination-region", None, "NAME", "...").in_group(STORE_GROUP),
];

/// Keys as they are: commands that understand wildcards.
pub const RAW: &[Opt] =
    &[flag("raw", None, "'*' and '?' in s3:// paths are themselves").in_group(STORE_GROUP)];

/// One version of one object.
pub const VERSION: &[Opt] =
    &[value("version-id", None, "ID", "this version of the object").in_group(STORE_GROUP)];

/// Totals of requests.
pub const STAT: &[Opt] =
    &[flag("stat", None, "counts of requests and times at the end").in_group(STORE_GROUP)];

/// What objects are given: commands that write them.
pub const WRITE: &[Opt] = &[
    value("storage-class", None, "CLASS", "STANDARD, STANDARD_IA, GLACIER ...")
        .in_group(WRITE_GROUP),
    value("sse", None, "HOW", "encryption by the server: AES256, aws:kms, aws:kms:dsse")
        .in_group(WRITE_GROUP),
    value("sse-kms-key-id", None, "KEY", "... with this key (implies aws:kms)")
        .in_group(WRITE_GROUP),
    value("acl", None, "ACL", "canned ACL: private, public-read ...").in_group(WRITE_GROUP),
    value("metadata", None, "K=V", "user metadata: k1=v1,k2=v2, or once for each")
        .takes(Takes::Values("K=V"))
        .in_group(WRITE_GROUP),
    value("content-type", None, "TYPE", "instead of the one that the name suggests")
        .in_group(WRITE_GROUP),
    flag("no-guess-mime-type", None, "names suggest no content type").in_group(WRITE_GROUP),
    value("content-encoding", None, "TEXT", "Content-Encoding header").in_group(WRITE_GROUP),
    value("content-disposition", None, "TEXT", "Content-Disposition header").in_group(WRITE_GROUP),
    value("content-language", None, "TEXT", "Content-Language header").in_group(WRITE_GROUP),
    value("cache-control", None, "TEXT", "Cache-Control header").in_group(WRITE_GROUP),
    value("expires", None, "TIME", "Expires header: 2030-01-31T12:00:00Z, or as HTTP writes it")
        .in_group(WRITE_GROUP),
    value("tagging", None, "K=V", "tags: k1=v1&k2=v2, URL-encoded").in_group(WRITE_GROUP),
    value("if-none-match", None, "ETAG", "'*': never replace an object").in_group(WRITE_GROUP),
    value(
        "checksum-algorithm",
        None,
        "NAME",
        "CRC64NVME (default), CRC32C, CRC32, SHA256, SHA1, MD5",
    )
    .in_group(WRITE_GROUP),
    flag("unsigned-payload", None, "bodies are not signed over plain HTTP either")
        .in_group(WRITE_GROUP),
    value("part-size", None, "SIZE", "size of the parts of large objects; a plain number is MiB")
        .in_group(WRITE_GROUP),
    value("concurrency", None, "N", "parts of one object in flight").in_group(WRITE_GROUP),
];

/// What moving trees and objects takes besides.
pub const MOVE: &[Opt] = &[
    value(
        "metadata-directive",
        None,
        "WHAT",
        "copies inside S3 keep metadata (COPY) or REPLACE it",
    )
    .in_group(WRITE_GROUP),
    flag("resume", None, "go on with parts of an interrupted run, and keep them on interruption")
        .in_group(WRITE_GROUP),
    flag("dir-markers", None, "directories become objects NAME/ and the other way round")
        .in_group(WRITE_GROUP),
    flag("encode-names", None, "percent-encode names that the other side cannot have")
        .in_group(WRITE_GROUP),
    flag("exit-on-error", None, "stop at the first failure").in_group(STORE_GROUP),
];

const SSE_C: &str = "encryption with keys of the caller's is not built";
const LIST_V1: &str = "listings use version 2";

/// What aws and s5cmd have and we do not, whatever the command.
pub const UNBUILT: &[(&str, &str)] = &[
    ("--sse-c", SSE_C),
    ("--sse-c-key", SSE_C),
    ("--sse-c-copy-source", SSE_C),
    ("--sse-c-copy-source-key", SSE_C),
    ("--use-list-objects-v1", LIST_V1),
    ("--list-objects-v1", LIST_V1),
    ("--all-versions", "one version can be named: --version-id"),
];

//! The options of `hakobu serve`.

use super::{Opt, Table, Takes, value};

/// The command line of `serve`.
pub const TABLE: Table = Table {
    command: "serve",
    about: "Serve S3 on this machine: a folder, or nothing at all as fast as can be",
    usage: "hakobu serve s3 DIR [OPTIONS]\n       hakobu serve null [OPTIONS]",
    after: "s3 serves the folder DIR; the folders in it are the buckets.\n\
            null keeps nothing: uploads succeed, every object exists (a key that ends in .size-N \
            names one of N bytes), listings show --keys made-up keys, signatures are not looked at. \
            It is there to measure clients with; conditions and faults make it slower.\n\
            One line says where it listens; SIGINT or SIGTERM ends it. A duration is a number with \
            us, ms, s or m.\n\n\
            Faults are KIND:key=value,... (a comma in a value is %2C). Which requests: op (method \
            or S3 operation), key and query (a part of them), skip and times (counts). Kinds:\n  \
            reset:after=N,in=request|response     the connection is reset within the body\n  \
            truncate:after=N                      the answer's body ends early\n  \
            corrupt:at=N,in=request|response      one byte is wrong\n  \
            checksum                              x-amz-checksum-... headers are wrong\n  \
            error:code=CODE,status=N,region=NAME,late=yes   an S3 error; late: after the work\n  \
            slow:rate=N,in=request|response       N bytes a second\n  \
            silent                                never an answer\n  \
            list:drop=N,add=KEY,swap=yes          a page of a listing is changed\n\
            Exit codes: 0 ended by a signal, 1 it could not begin, 2 usage.",
    options: &[OPTIONS],
    unbuilt: &[],
    abbreviates: false,
};

const NULL: &str = "The null server";
const S3: &str = "The server on a folder";
const CONDITIONS: &str = "Conditions";

const OPTIONS: &[Opt] = &[
    value("listen", None, "ADDR", "host:port; port 0 is a free one (default 127.0.0.1:0)"),
    value("threads", None, "N", "threads that serve (default: one for each CPU)"),
    value("log", None, "FILE", "add a line of JSON for each request to FILE"),
    value("keys", None, "N", "keys that a listing shows (default 0)").in_group(NULL),
    value("object-size", None, "SIZE", "bytes of an object (default 4096)").in_group(NULL),
    value("access-key", None, "KEY", "default: AWS_ACCESS_KEY_ID, else one is made up and shown")
        .in_group(S3),
    value(
        "secret-key",
        None,
        "KEY",
        "default: AWS_SECRET_ACCESS_KEY, else one is made up and shown",
    )
    .in_group(S3),
    value("latency", None, "DUR", "each request waits so long").in_group(CONDITIONS),
    value("bandwidth", None, "RATE", "bytes a second over all connections and both directions")
        .in_group(CONDITIONS),
    value("max-in-flight", None, "N", "requests that are served at once; others wait")
        .in_group(CONDITIONS),
    value("error-rate", None, "P", "this share of requests (0 to 1) gets 500 InternalError")
        .in_group(CONDITIONS),
    value("seed", None, "N", "other requests fail by chance (default 0)").in_group(CONDITIONS),
    value("slow-down-above", None, "RPS", "503 SlowDown above so many requests a second")
        .in_group(CONDITIONS),
    value("fault", None, "SPEC", "a fault for chosen requests, see below")
        .takes(Takes::Values("SPEC"))
        .in_group(CONDITIONS),
];

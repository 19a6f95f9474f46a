//! Options of `hakobu io` that few jobs have: I/O priorities, and those of single engines.

use super::handed::{Handed, handed, job, mark};

pub const PRIORITY: Handed = handed("I/O priorities").with(&[
    job("prioclass", "CLASS", "I/O class of the job: 0 none, 1 realtime, 2 best-effort, 3 idle"),
    job("prio", "LEVEL", "I/O priority of the job: from 0, the highest, to 7"),
    job("cmdprio_percentage", "N[,N]", "percentage of blocks with the priority below"),
    job("cmdprio_class", "CLASS[,CLASS]", "its class (default 1, realtime); for reads, for writes"),
    job("cmdprio", "LEVEL[,LEVEL]", "its level (default 0)"),
    job(
        "cmdprio_bssplit",
        "LIST",
        "SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:...: shares of the blocks of these sizes",
    ),
    job("log_prio", "BOOL", "latency logs have the full value of the priority"),
]);

pub const NET: Handed = handed("ioengine=net").with(&[
    job(
        "hostname",
        "HOST",
        "receiver, or multicast group; for a receiver the address to listen on",
    ),
    job("port", "N", "port of the first clone; further clones use the next ones"),
    job("protocol", "NAME", "tcp (default), tcpv6, udp, udpv6, unix (by --filename), vsock")
        .alias(&["proto"]),
    mark("listen", "BOOL", "wait for the sender; with --rw=read"),
    mark("pingpong", "BOOL", "each block is sent back"),
    job("nodelay", "BOOL", "TCP_NODELAY"),
    job("window_size", "SIZE", "buffers of the socket"),
    job("mss", "BYTES", "maximum TCP segment size"),
    job("interface", "ADDRESS", "interface for multicast, by its IPv4 address"),
    job("ttl", "N", "time to live of multicast (default 1)"),
]);

pub const HTTP: Handed = handed("ioengine=http").with(&[
    job("http_host", "HOST[:PORT]", "the server (default localhost)"),
    job("http_mode", "KIND", "webdav (default), s3, swift"),
    job("https", "HOW", "TLS: off (default), on, insecure: with any certificate"),
    job("http_user", "NAME", "user of webdav and swift"),
    job("http_pass", "TEXT", "its password; better in a job file, as all secrets: ${VARIABLE}"),
    job("http_s3_keyid", "ID", "access key of S3"),
    job("http_s3_key", "TEXT", "its secret"),
    job("http_s3_security_token", "TEXT", "token of a session"),
    job("http_s3_region", "NAME", "region of S3 (default us-east-1)"),
    job("http_s3_storage_class", "NAME", "storage class of written objects"),
    job("http_s3_sse_customer_key", "TEXT", "key that S3 encrypts objects with"),
    job("http_s3_sse_customer_algorithm", "NAME", "its algorithm (default AES256)"),
    job("http_swift_auth_token", "TEXT", "token of Swift"),
    job(
        "http_object_mode",
        "HOW",
        "block (default): each block is an object; range: ranges of one are read",
    ),
]);

pub const NBD: Handed = handed("ioengine=nbd").with(&[job(
    "uri",
    "URI",
    "the export: nbd://HOST[:PORT][/NAME] or nbd+unix:///[NAME]?socket=PATH",
)]);

pub const EXEC: Handed = handed("ioengine=exec").with(&[
    job("program", "FILE", "the program to run for the duration of the job"),
    job("arguments", "TEXT", "its arguments; %r is the runtime in seconds, %n the job's name"),
    job("grace_time", "TIME", "time from SIGTERM to SIGKILL (default 1s)"),
    job("std_redirect", "BOOL", "write its output to JOB.N.stdout and JOB.N.stderr (default 1)"),
]);

pub const E4DEFRAG: Handed = handed("ioengine=e4defrag").with(&[
    job("donorname", "FILE", "the file with which blocks are exchanged"),
    job("inplace", "BOOL", "allocate its blocks only during each exchange (default 0)"),
]);

//! Options of `hakobu io` that few jobs have: I/O priorities, and those of single engines.

use super::handed::{Handed, handed, job, mark};

pub const PRIORITY: Handed = handed("I/O priorities").with(&[
    job("prioclass", "CLASS", "of the job: 0 none, 1 realtime, 2 best-effort, 3 idle"),
    job("prio", "LEVEL", "of the job: from 0, the highest, to 7"),
    job("cmdprio_percentage", "N[,N]", "percent of the blocks have a priority of their own"),
    job("cmdprio_class", "CLASS[,CLASS]", "its class (default 1, realtime); for reads, for writes"),
    job("cmdprio", "LEVEL[,LEVEL]", "its level (default 0)"),
    job(
        "cmdprio_bssplit",
        "LIST",
        "SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:...: shares of the blocks of these sizes",
    ),
    job("log_prio", "BOOL", "logs of latency have the whole number of the priority"),
]);

pub const NET: Handed = handed("ioengine=net").with(&[
    job("hostname", "HOST", "receiver, or multicast group; of a receiver the address to listen at"),
    job("port", "N", "port of the first clone; the others have the next"),
    job("protocol", "NAME", "tcp (default), tcpv6, udp, udpv6, unix (by --filename), vsock")
        .alias(&["proto"]),
    mark("listen", "BOOL", "wait for the sender; with --rw=read"),
    mark("pingpong", "BOOL", "each block is sent back"),
    job("nodelay", "BOOL", "TCP_NODELAY"),
    job("window_size", "SIZE", "buffers of the socket"),
    job("mss", "BYTES", "segments of TCP"),
    job("interface", "ADDRESS", "interface for multicast, by its IPv4 address"),
    job("ttl", "N", "time to live of multicast (default 1)"),
]);

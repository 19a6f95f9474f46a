//! Options of `ioengine=net`.

use super::known::{Known, mark, put, value};
use super::units;
use crate::job::{Engine, Job, Protocol};

/// All of them.
pub const OPTIONS: &[Known] = &[
    value("hostname", |d, v| put(&mut d.job.net.host, text(v).map(Some))).commas(),
    value("port", |d, v| put(&mut d.job.net.port, port(v).map(Some))),
    value("protocol", |d, v| put(&mut d.job.net.protocol, protocol(v))).alias(&["proto"]),
    mark("listen", |d, v| put(&mut d.job.net.listens, units::truth(v))),
    mark("pingpong", |d, v| put(&mut d.job.net.ping_pong, units::truth(v))),
    value("nodelay", |d, v| put(&mut d.job.net.no_delay, units::truth(v))),
    value("window_size", |d, v| {
        put(&mut d.job.net.window_bytes, units::count(v, d.base, 1).map(Some))
    }),
    value("mss", |d, v| put(&mut d.job.net.segment_bytes, units::count(v, d.base, 1).map(Some))),
    value("interface", |d, v| put(&mut d.job.net.interface, text(v).map(Some))).commas(),
    value("ttl", |d, v| {
        let ttl = v.parse::<u32>().ok().filter(|ttl| *ttl <= 255);
        put(&mut d.job.net.ttl, ttl.map(Some).ok_or_else(|| "is not a number up to 255".to_owned()))
    }),
];

/// Names of those that are for TCP, and for multicast.
pub const OF_TCP: &[&str] = &["nodelay", "mss"];
pub const OF_MULTICAST: &[&str] = &["interface", "ttl"];
pub const OF_NET: &[&str] = &[
    "hostname",
    "port",
    "protocol",
    "listen",
    "pingpong",
    "nodelay",
    "window_size",
    "mss",
    "interface",
    "ttl",
];

/// Bytes of the least block, so that a goodbye is not a block, and of the largest datagram.
const BLOCK_BYTES_MIN: u64 = 64;
const DATAGRAM_BYTES_MAX: u64 = 65_507;

fn text(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("needs a value".to_owned()) } else { Ok(text.to_owned()) }
}

fn port(text: &str) -> Result<u32, String> {
    let port = text.parse::<u32>().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "is not a port".to_owned())
}

fn protocol(text: &str) -> Result<Protocol, String> {
    use Protocol::{Tcp, Tcp6, Udp, Udp6, Unix, Vsock};
    let all = [Tcp, Tcp6, Udp, Udp6, Unix, Vsock];
    let found = all.into_iter().find(|protocol| protocol.name() == text);
    found.ok_or_else(|| "is none of tcp, tcpv6, udp, udpv6, unix, vsock".to_owned())
}

/// Completes the other end of a job with `ioengine=net`.
///
/// # Errors
/// An option is missing, or excludes another.
pub fn finish(job: &mut Job) -> Result<(), String> {
    if job.engine != Engine::Net {
        return Ok(());
    }
    let fail = |why: &str| Err(format!("ioengine=net {why}"));
    if job.rw.random || job.rw.reads == job.rw.writes || job.trims || job.skip_bytes != 0 {
        return fail("receives (rw=read) or sends (rw=write), in sequence");
    }
    if job.verify.is_some() {
        return fail("has blocks without a place: verify does not go with it");
    }
    if job.sizes.iter().any(Option::is_some) {
        return fail("needs blocks of one size (bs)");
    }
    let bytes = job.block_bytes[usize::from(job.rw.writes)];
    if bytes < BLOCK_BYTES_MIN {
        return fail("needs blocks of at least 64 bytes");
    }
    let net = &mut job.net;
    if net.protocol.has_datagrams() && bytes > DATAGRAM_BYTES_MAX {
        return fail("has no datagrams of more than 65507 bytes (bs)");
    }
    if net.protocol == Protocol::Unix {
        return match (job.filenames.as_slice(), net.host.is_some() || net.port.is_some()) {
            ([path], false) if job.clones == 1 || !net.listens => {
                net.path = Some(path.clone());
                listens(job)
            }
            ([_], false) => fail("with protocol=unix has one receiver for each name: not numjobs"),
            _ => {
                fail("with protocol=unix needs filename=, one name, and neither hostname nor port")
            }
        };
    }
    if !job.filenames.is_empty() {
        return fail("needs hostname= and port=, not filename=");
    }
    if net.port.is_none() {
        return fail("needs port=");
    }
    if job.rw.writes && net.host.is_none() {
        return fail("needs hostname= where it sends (rw=write)");
    }
    listens(job)
}

/// Checks that the receiver is the side that listens.
fn listens(job: &Job) -> Result<(), String> {
    let listens = job.net.listens || job.net.protocol.has_datagrams() && !job.rw.writes;
    match (job.rw.writes, listens) {
        (false, true) | (true, false) => Ok(()),
        (false, false) => Err("ioengine=net needs listen where it receives (rw=read)".to_owned()),
        (true, true) => Err("ioengine=net: listen is for jobs that receive (rw=read)".to_owned()),
    }
}

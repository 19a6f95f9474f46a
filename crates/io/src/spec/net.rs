//! Options of `ioengine=net`.

use super::known::{Known, mark, put, value};
use super::units::{self, one_of, refuse};
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
    one_of(text, &[Tcp, Tcp6, Udp, Udp6, Unix, Vsock].map(|protocol| (protocol.name(), protocol)))
}

/// Completes the other end of a job with `ioengine=net`.
///
/// # Errors
/// An option is missing, or excludes another.
pub fn finish(job: &mut Job) -> Result<(), String> {
    if job.engine != Engine::Net {
        return Ok(());
    }
    let fail = |fails: bool, why: &str| refuse(fails, &format!("ioengine=net {why}"));
    let is_sequence = !job.rw.random && job.skip_bytes == 0 && !job.trims;
    fail(
        !is_sequence || job.rw.reads == job.rw.writes,
        "receives (rw=read) or sends (rw=write), in sequence",
    )?;
    fail(job.verify.is_some(), "has blocks without a place: verify does not go with it")?;
    fail(job.sizes.iter().any(Option::is_some), "needs blocks of one size (bs)")?;
    let bytes = job.block_bytes[usize::from(job.rw.writes)];
    fail(bytes < BLOCK_BYTES_MIN, "needs blocks of at least 64 bytes")?;
    let net = &mut job.net;
    fail(
        net.protocol.has_datagrams() && bytes > DATAGRAM_BYTES_MAX,
        "has no datagrams of more than 65507 bytes (bs)",
    )?;
    if net.protocol == Protocol::Unix {
        let ([path], None, None) = (job.filenames.as_slice(), &net.host, &net.port) else {
            let needs = "needs filename=, one name, and neither hostname nor port";
            return fail(true, &format!("with protocol=unix {needs}"));
        };
        fail(
            job.clones > 1 && net.listens,
            "with protocol=unix has one receiver for each name: not numjobs",
        )?;
        net.path = Some(path.clone());
        return listens(job);
    }
    fail(!job.filenames.is_empty(), "needs hostname= and port=, not filename=")?;
    fail(net.port.is_none(), "needs port=")?;
    let reaches = !job.rw.writes || net.host.is_some();
    fail(!reaches, "needs hostname= where it sends (rw=write)")?;
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

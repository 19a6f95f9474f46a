//! Networks shaped by a token bucket (tc-tbf): a veth pair between two network namespaces, and the loopback
//! of one.

use crate::common::is_root;
use crate::common::machine::Undo;
use crate::rig::{Trial, bytes_per_s, tool};
use crate::server::{self, Server};

/// Content bytes per second through 200 Mbit/s, minus a twentieth for Ethernet, IP, TCP and HTTP.
const BYTES_PER_S: f64 = 25e6 * 0.95;
/// Burst for two segmentation offload bundles.
const SHAPE: &str = "tbf rate 200mbit burst 128kb latency 50ms";
/// Address range for network benchmarks (RFC 2544).
const NEAR: &str = "198.18.7.1";
const FAR: &str = "198.18.7.2";

/// A network namespace.
struct Space {
    name: String,
    _undo: Undo,
}

impl Space {
    fn new() -> Result<Space, String> {
        if !is_root() {
            return Err("needs the superuser".to_owned());
        }
        let name = format!("hk{}", std::process::id());
        let undo = Undo::new(&format!("PATH=$PATH:/usr/sbin:/sbin\nip netns del {name}"));
        tool(&format!("ip netns add {name}"))?;
        tool(&format!("ip -n {name} link set lo up"))?;
        Ok(Space { name, _undo: undo })
    }

    /// Prefix that starts a program in it. (`ip netns exec` would hide the cgroups.)
    fn enter(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/run/netns/{}", self.name)]
    }
}

/// Uploads through a shaped interface.
pub fn upload() -> Result<Trial, String> {
    let space = Space::new()?;
    let name = &space.name;
    tool(&format!("ip link add {name}a type veth peer name {name}b netns {name}"))?;
    tool(&format!("ip addr add {NEAR}/30 dev {name}a"))?;
    tool(&format!("ip link set {name}a up"))?;
    tool(&format!("ip -n {name} addr add {FAR}/30 dev {name}b"))?;
    tool(&format!("ip -n {name} link set {name}b up"))?;
    tool(&format!("tc qdisc add dev {name}a root {SHAPE}"))?;
    let enter = space.enter();
    let enter = enter.each_ref().map(String::as_str);
    let server = Server::start(&enter, &format!("--listen {FAR}:0"));
    let run = server::upload(&server, 150, 1_000_000, &[]);
    Trial::at(&run, bytes_per_s(&run), BYTES_PER_S, "bytes/s")
}

/// Downloads through a shaped loopback.
pub fn download() -> Result<Trial, String> {
    let space = Space::new()?;
    tool(&format!("tc -n {} qdisc add dev lo root {SHAPE}", space.name))?;
    let enter = space.enter();
    let enter = enter.each_ref().map(String::as_str);
    let server = Server::start(&enter, "--keys 150 --object-size 1MB");
    let run = server::download(&enter, &server);
    Trial::at(&run, bytes_per_s(&run), BYTES_PER_S, "bytes/s")
}

//! A real sshd on this machine, with keys and settings of its own.

use crate::common::area::Area;
use crate::common::case::{Case, terminal_scenario_with};
use crate::common::diff::Fields;
use crate::common::{have, is_root, must, program};
use crate::remote::kills::spawn;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running sshd; `config`: the client's settings for it.
struct Sshd {
    area: Area,
    child: Child,
    port: u16,
    has_ipv6: bool,
}

impl Sshd {
    /// Starts one with further settings, or says why not. `HOME` in them is a home directory of its own.
    fn start(settings: &[&str]) -> Option<Sshd> {
        if !["ssh", "sshd", "ssh-keygen"].iter().all(|tool| have(tool, "a real sshd")) {
            return None;
        }
        let area = Area::tmpfs();
        for key in ["host", "other", "client"] {
            must(
                Command::new("ssh-keygen")
                    .args(["-q", "-t", "ed25519", "-N", "", "-C", key, "-f"])
                    .arg(area.join(key)),
            );
        }
        fs::copy(area.join("client.pub"), area.join("authorized")).unwrap();
        fs::create_dir(area.join("home")).unwrap();
        if is_root() {
            // sshd(8): where its part without privileges lives.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let at = area.path().display();
        let second = if has_ipv6 { "ListenAddress ::1\n" } else { "" };
        let path = std::env::var("PATH").unwrap();
        let folder = program().parent().map(Path::to_owned).unwrap_or_default();
        let more: String = settings
            .iter()
            .map(|line| line.replace("HOME", &format!("{at}/home")) + "\n")
            .collect();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\n{second}HostKey {at}/host\nAuthorizedKeysFile {at}/authorized\n\
             PidFile none\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\n{more}\
             SetEnv PATH={}:{path} XDG_STATE_HOME={at}/state HOME={at}/home\n",
            folder.display()
        );
        fs::write(area.join("sshd_config"), text).unwrap();
        let known = fs::read_to_string(area.join("host.pub")).unwrap();
        fs::write(area.join("known"), format!("[127.0.0.1]:{port} {known}[::1]:{port} {known}"))
            .unwrap();
        let client = format!(
            "Host *\nPort {port}\nIdentityFile {at}/client\nIdentitiesOnly yes\nUserKnownHostsFile {at}/known\n\
             GlobalKnownHostsFile none\n"
        );
        let strict = format!("{client}StrictHostKeyChecking yes\nBatchMode yes\n");
        fs::write(area.join("config"), strict).unwrap();
        let asks = client.replace("known", "nobody") + "StrictHostKeyChecking ask\n";
        fs::write(area.join("asking"), asks).unwrap();
        let mut child = Command::new(sshd_path())
            .arg("-D")
            .arg("-f")
            .arg(area.join("sshd_config"))
            .arg("-E")
            .arg(area.join("log"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || fs::read_to_string(area.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(20), "sshd does not listen: {}", log());
            assert!(child.try_wait().unwrap().is_none(), "sshd has ended: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Sshd { area, child, port, has_ipv6 })
    }

    /// Option `-e` for it, as words of a case.
    fn shell(&self) -> String {
        format!("-e 'ssh -F {}'", self.area.join("config").display())
    }

    /// A case with a small tree; `SSH` and `PORT` stand for this server.
    fn case(&self, line: &str) -> Case {
        let line = line.replace("SSH", &self.shell()).replace("PORT", &self.port.to_string());
        let case = Case::new(&line, Area::tmpfs(), Area::tmpfs());
        for (at, name) in ["a/f", "a/b/g", "h", "a/large"].into_iter().enumerate() {
            let path = case.src().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![at as u8; 300_000 * at]).unwrap();
        }
        case
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.area.join("log")).unwrap_or_default());
        }
    }
}

/// sshd(8) wants to be started by an absolute path.
fn sshd_path() -> String {
    let found = must(Command::new("sh").args(["-c", "PATH=$PATH:/usr/sbin:/sbin command -v sshd"]));
    String::from_utf8(found).unwrap().trim().to_owned()
}

fn user() -> String {
    String::from_utf8(must(Command::new("id").arg("-un"))).unwrap().trim().to_owned()
}

/// Both directions and all forms of a location, where one login has one session, and says hello.
#[test]
fn push_and_pull() {
    let banner = Area::tmpfs();
    fs::write(banner.join("banner"), "Authorized use only\n").unwrap();
    let banner = format!("Banner {}", banner.join("banner").display());
    let Some(sshd) = Sshd::start(&["MaxSessions 1", &banner]) else { return };
    let user = user();
    for line in [
        "sync -a SSH SRC/ 127.0.0.1:DST",
        "sync -a SSH 127.0.0.1:SRC/ DST",
        &format!("sync -a SSH -4 {user}@127.0.0.1:SRC/ DST/"),
        &format!("sync -a SSH SRC/ ssh://{user}@127.0.0.1:PORT/DST").replace("/DST", "DST"),
        "sync -a SSH SRC/ [::1]:DST",
        "sync -a SSH [::1]:SRC/ DST",
    ] {
        if line.contains("::1") && !sshd.has_ipv6 {
            continue;
        }
        let case = sshd.case(line);
        let run = case.run();
        run.ok();
        assert!(run.err().lines().all(|line| line == "Authorized use only"), "{run}");
        case.target_is_source(&Fields::ALL);
        assert!(case.run_line(&case.line.replacen("-a", "-ai", 1)).ok().items().is_empty());
    }
}

/// What ssh and the shell there report has rsync's exit codes.
#[test]
fn failures() {
    let Some(sshd) = Sshd::start(&[]) else { return };
    let known = fs::read_to_string(sshd.area.join("known")).unwrap();
    let other = fs::read_to_string(sshd.area.join("other.pub")).unwrap();
    let fails = |line: &str, code: i32, words: &[&str]| {
        let case = sshd.case(line);
        case.run().expect(code).says(words);
        // An agent whose greeting is not understood may have made the directory before its end.
        assert!(fs::read_dir(case.dst()).map_or(true, |mut names| names.next().is_none()));
    };
    fails(
        "sync -a SSH --rsync-path=/no/hakobu SRC/ 127.0.0.1:DST",
        127,
        &["cannot start hakobu on 127.0.0.1"],
    );
    fails(
        "sync -a SSH --rsync-path='echo Welcome; hakobu' SRC/ 127.0.0.1:DST",
        2,
        &["printed 'Welcome"],
    );
    fails(
        "sync -a SSH --rsync-path='exit 1; hakobu' 127.0.0.1:SRC/ DST",
        12,
        &["did not start", "--rsync-path"],
    );
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = format!("sync -a SSH SRC/ ssh://127.0.0.1:{free}DST");
    fails(&refused, 255, &["could not reach 127.0.0.1", "refused"]);
    fs::write(sshd.area.join("known"), format!("[127.0.0.1]:{} {other}", sshd.port)).unwrap();
    fails(
        "sync -a SSH SRC/ 127.0.0.1:DST",
        255,
        &["could not reach", "IDENTIFICATION HAS CHANGED"],
    );
    fs::write(sshd.area.join("known"), known).unwrap();
    // A start-up file that prints, where the login shell reads one.
    let shell = must(Command::new("sh").args(["-c", "getent passwd \"$(id -un)\" | cut -d: -f7"]));
    if shell.trim_ascii().ends_with(b"bash") {
        fs::write(sshd.area.join("home/.bashrc"), "echo Good morning\n").unwrap();
        fails("sync -a SSH SRC/ 127.0.0.1:DST", 2, &["printed 'Good morning", ".bashrc"]);
    }
}

/// ssh asks before anything else is on the terminal, and its question stays.
#[test]
fn questions_come_first() {
    let Some(sshd) = Sshd::start(&[]) else { return };
    let at = sshd.area.join("asking");
    terminal_scenario_with("remote/prompts.py", "host_key", &[("SSH_CONFIG", &at)]);
}

/// The near end is killed with its login open for further channels: no process of that login stays.
#[test]
fn no_login_outlives_its_run() {
    let Some(sshd) = Sshd::start(&[]) else { return };
    let case = sshd.case("sync -a SSH --bwlimit=1m SRC/ 127.0.0.1:DST");
    fs::write(case.src().join("huge"), vec![7; 64 << 20]).unwrap();
    let config = sshd.area.join("config").display().to_string();
    let logins = || -> usize {
        let of = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
        let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(of);
        let is_login = |line: &Vec<u8>| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.first() == Some(&&b"ssh"[..]) && words.contains(&config.as_bytes())
        };
        lines.filter(is_login).count()
    };
    let mut near = spawn(&case, &case.line);
    let begun = Instant::now();
    while !case.dst().join("h").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing is copied");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(logins() >= 1);
    near.kill().unwrap();
    near.wait().unwrap();
    let begun = Instant::now();
    while logins() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "a login stays");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A server that starts the agent whatever is asked for.
#[test]
fn a_forced_command() {
    let forced = format!("ForceCommand {} agent", program().display());
    let Some(sshd) = Sshd::start(&[&forced]) else { return };
    for line in ["sync -a SSH SRC/ 127.0.0.1:DST", "sync -a SSH 127.0.0.1:SRC/ DST"] {
        let case = sshd.case(line);
        let run = case.run();
        assert_eq!(run.ok().err(), "", "{run}");
        case.target_is_source(&Fields::ALL);
    }
}

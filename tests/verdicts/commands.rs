//! Verdicts of `hakobu watch` on other programs with known limits: one CPU, all CPUs, a quota, one thread,
//! the peer of a connection, a slow server, none.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::machine::Undo;
use crate::common::{is_root, program};
use crate::rig::{Trial, names, tell, tool};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// Copies zeros to the null device for some seconds.
const BURN: &str = "timeout 5 dd if=/dev/zero of=/dev/null bs=64k status=none";

/// Runs a script under watch; returns its verdict in the form of a transfer's, and seconds.
///
/// # Panics
/// If there is no verdict.
pub fn watch(script: &str) -> (Trial, f64) {
    let area = Area::tmpfs();
    let file = area.join("json");
    let mut command = Command::new(program());
    command.args(["watch", "--json"]).arg(&file).args(["--", "sh", "-c", script]);
    let run = Run::new(script.to_owned(), command.stdin(Stdio::null()).output().unwrap());
    let text = std::fs::read(&file).unwrap_or_else(|error| panic!("{error}: {run}"));
    let json: Value = serde_json::from_slice(&text).unwrap();
    let real_s = json["command"]["real_s"].as_f64().unwrap();
    let summary = json!({ "verdict": json["verdict"], "jobs_path": [] });
    (Trial { summary, note: format!("{real_s:.1} s"), explained: run.err() }, real_s)
}

/// Runs a script that must take some seconds.
fn long(script: &str) -> Result<Trial, String> {
    let (trial, real_s) = watch(script);
    match real_s >= 2.5 {
        true => Ok(trial),
        false => Err(format!("it took only {real_s:.1} s: {}", trial.explained)),
    }
}

/// A command that copies `src` to `dst` in a folder of its own for some seconds, bound to CPU 0.
fn copies(command: &str) -> Result<Trial, String> {
    let area = Area::tmpfs();
    let source = names(&area.join("src"), 100_000, 4_000);
    let (from, to) = (source.display(), area.join("dst"));
    let to = to.display();
    let again = format!("{command} {from}/ {to}; rm -rf {to}");
    let script =
        format!("end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do {again}; done");
    long(&format!("taskset -c 0 sh -c '{script}'"))
}

pub fn rsync_on_one_cpu() -> Result<Trial, String> {
    tool("rsync --version")?;
    copies("rsync -rt")
}

pub fn cp_on_one_cpu() -> Result<Trial, String> {
    copies("cp -r")
}

pub fn fio_on_one_cpu() -> Result<Trial, String> {
    tool("fio --version")?;
    let options = "--name=a --ioengine=null --rw=randread --bs=4k --size=1G --numjobs=3 \
                   --time_based --runtime=5 --output=/dev/null";
    long(&format!("taskset -c 0 fio {options}"))
}

/// A script that runs s5cmd with these words against a server that keeps nothing.
fn s5cmd(server: &Server, before: &str, words: &str) -> Result<String, String> {
    tool("s5cmd version")?;
    let keys = "AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1";
    Ok(format!("exec env {keys} {before} s5cmd --log error --endpoint-url {} {words}", server.url))
}

/// Uploads of small files on CPU 0; the server has the others.
pub fn s5cmd_on_one_cpu() -> Result<Trial, String> {
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        return Err("client and server need a CPU each".to_owned());
    }
    let area = Area::tmpfs();
    let source = names(&area.join("src"), 12_000, 4_000);
    let server = Server::start(&["taskset", "-c", &format!("1-{}", cpus - 1)], "");
    let words = format!("cp {}/ s3://bkt/up/", source.display());
    long(&s5cmd(&server, "taskset -c 0", &words)?)
}

/// Downloads from a server that sends 20 MB/s in all.
pub fn s5cmd_from_a_slow_server() -> Result<Trial, String> {
    let area = Area::tmpfs();
    let server = Server::start(&[], "--bandwidth 20MB --keys 120 --object-size 1MB");
    let words = format!("cp 's3://bkt/*' {}/dst/", area.path().display());
    long(&s5cmd(&server, "", &words)?)
}

pub fn dd_on_all_cpus() -> Result<Trial, String> {
    let cpus = std::thread::available_parallelism().unwrap().get();
    long(&format!("{} & wait", vec![BURN; 2 * cpus].join(" & ")))
}

pub fn dd_alone() -> Result<Trial, String> {
    match std::thread::available_parallelism() {
        Ok(cpus) if cpus.get() > 1 => long(BURN),
        _ => Err("one CPU is not a thread's limit".to_owned()),
    }
}

/// Many processes of a millisecond, eight at a time.
pub fn short_processes() -> Result<Trial, String> {
    long("timeout 5 sh -c 'seq 1000000 | xargs -P 8 -n 1 true'; true")
}

/// Half of a CPU, by a cgroup (version 1) of the command.
pub fn dd_with_a_quota() -> Result<Trial, String> {
    if !is_root() {
        return Err("needs the superuser".to_owned());
    }
    let group = format!("/sys/fs/cgroup/cpu/hk{}", std::process::id());
    std::fs::create_dir(&group).map_err(|error| format!("{group}: {error}"))?;
    let _undo = Undo::new(&format!("rmdir {group}"));
    tell(format!("{group}/cpu.cfs_period_us"), "100000")?;
    tell(format!("{group}/cpu.cfs_quota_us"), "50000")?;
    long(&format!("echo $$ >{group}/cgroup.procs; exec {BURN}"))
}

/// A connection with 400 kB/s.
pub fn slow_peer() -> Result<Trial, String> {
    tool("bash --version")?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..100 {
            stream.write_all(&[7; 20_000]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let trial = long(&format!("exec bash -c 'exec cat </dev/tcp/127.0.0.1/{port} >/dev/null'"));
    server.join().unwrap();
    trial
}

/// rsync that keeps to a rate, which a faster machine would not change.
pub fn rsync_with_a_limit() -> Result<Trial, String> {
    tool("rsync --version")?;
    let area = Area::tmpfs();
    let source = names(&area.join("src"), 4, 40_000_000);
    let target = area.join("dst");
    long(&format!("rsync -a --bwlimit=40m {}/ {}", source.display(), target.display()))
}

/// Several of them: at nearly every moment one of them works.
pub fn rsyncs_with_limits() -> Result<Trial, String> {
    tool("rsync --version")?;
    let area = Area::tmpfs();
    let source = names(&area.join("src"), 1, 40_000_000);
    let each = |number: usize| {
        let target = area.join(&format!("dst{number}"));
        format!("rsync -a --bwlimit=10m {}/ {} &", source.display(), target.display())
    };
    long(&format!("{} wait", (0..6).map(each).collect::<Vec<_>>().join(" ")))
}

pub fn sleep() -> Result<Trial, String> {
    long("sleep 4")
}

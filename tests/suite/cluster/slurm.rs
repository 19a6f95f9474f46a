//! Slurm, for real: a controller and three nodes on this machine, in a folder of the test.

use super::{Stage, asked_for, tree};
use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::{have, have_root, in_turn, must, soon};
use crate::objects::server::{Server, embedded};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Daemons in a folder of their own; stopped when dropped.
struct Slurm {
    area: Area,
}

impl Slurm {
    fn start() -> Option<Slurm> {
        if !asked_for("Slurm") {
            return None;
        }
        for tool in ["slurmctld", "slurmd", "munged", "sbatch"] {
            if !have(tool, "Slurm") {
                return None;
            }
        }
        if !have_root("Slurm") {
            return None;
        }
        let slurm = Slurm { area: Area::tmpfs() };
        let dir = slurm.area.path().display().to_string();
        std::fs::create_dir(slurm.area.join("state")).unwrap();
        must(Command::new("chmod").args(["755", &dir]));
        std::fs::write(slurm.area.join("munge.key"), fastrand_bytes()).unwrap();
        must(Command::new("chmod").args(["400", &format!("{dir}/munge.key")]));
        let munge = ["key-file=munge.key", "socket=munge.sock", "pid-file=munged.pid"];
        let munge = munge.into_iter().chain(["log-file=munged.log", "seed-file=munge.seed"]);
        let mut command = slurm.daemon("munged");
        command.arg("--force");
        for option in munge {
            let (name, file) = option.split_once('=').unwrap();
            command.arg(format!("--{name}={dir}/{file}"));
        }
        must(command.stdin(Stdio::null()));
        let host = must(Command::new("hostname").arg("-s"));
        let host = String::from_utf8(host).unwrap().trim().to_owned();
        let free: Vec<TcpListener> =
            (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = free.iter().map(|port| port.local_addr().unwrap().port()).collect();
        drop(free);
        let mut conf = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={dir}/munge.sock,cred_expire=5\nCredType=cred/munge\n\
             StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool-%n\n\
             SlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/slurmd-%n.pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\nSlurmdLogFile={dir}/slurmd-%n.log\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core\nMpiDefault=none\nSwitchType=switch/none\n\
             JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             ReturnToService=2\nSlurmdParameters=config_overrides\nSlurmdTimeout=10\nKillWait=5\nMinJobAge=300\n\
             SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2\n",
            ports[0]
        );
        for (number, port) in ports[1..].iter().enumerate() {
            let number = number + 1;
            conf.push_str(&format!(
                "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4\n"
            ));
        }
        conf.push_str("PartitionName=copy Nodes=n1,n2,n3 Default=YES MaxTime=60 State=UP\n");
        std::fs::write(slurm.area.join("slurm.conf"), conf).unwrap();
        must(slurm.daemon("slurmctld").arg("-c"));
        for node in 1..=3 {
            slurm.node(node);
        }
        let idle = || {
            let said = slurm.command("sinfo").args(["-h", "-t", "idle", "-o", "%D"]).output();
            said.is_ok_and(|said| said.stdout.trim_ascii() == b"3")
        };
        assert!(soon(idle), "the nodes of Slurm do not come up:\n{}", slurm.logs());
        Some(slurm)
    }

    /// A command that goes into the background by itself; one that does not is a failure.
    fn daemon(&self, name: &str) -> Command {
        let mut command = self.command("timeout");
        command.args(["30", name]);
        command
    }

    /// The end of what each daemon wrote.
    fn logs(&self) -> String {
        let mut text = String::new();
        for name in ["munged", "slurmctld", "slurmd-n1", "slurmd-n2", "slurmd-n3"] {
            let log = std::fs::read_to_string(self.area.join(&format!("{name}.log")));
            let log = log.unwrap_or_else(|error| error.to_string());
            let lines: Vec<&str> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(12)..].join("\n");
            text.push_str(&format!("{name}:\n{end}\n"));
        }
        text
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        let paths = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{paths}:/usr/sbin:/sbin"));
        command.env("SLURM_CONF", self.area.join("slurm.conf")).stdin(Stdio::null());
        command
    }

    fn node(&self, number: u32) {
        must(self.daemon("slurmd").arg("-N").arg(format!("n{number}")));
    }

    fn pid_of(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.area.join(&format!("{name}.pid"))).ok()?;
        Some(text.trim().to_owned()).filter(|pid| pid.parse::<u32>().is_ok())
    }

    fn kill(&self, name: &str, signal: &str) {
        if let Some(pid) = self.pid_of(name) {
            let _ = Command::new("kill").args([signal, &pid]).stderr(Stdio::null()).status();
        }
    }

    /// Jobs that are not over.
    fn jobs(&self) -> String {
        let said = self.command("squeue").args(["-h", "-o", "%i %j %T"]).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    /// Waits until no job is left, for four minutes at most.
    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(240);
        while !self.jobs().trim().is_empty() {
            let late = Instant::now() > deadline;
            assert!(!late, "jobs do not end: {}\n{}", self.jobs(), self.logs());
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    fn hakobu(&self, stage: &Stage, line: &str) -> Run {
        let mut command = stage.command(line, None);
        let conf = self.area.join("slurm.conf");
        Run::new(line.to_owned(), command.env("SLURM_CONF", conf).output().unwrap())
    }

    fn output(&self, stage: &Stage) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(stage.area.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("slurm-") {
                text.push_str(&std::fs::read_to_string(path).unwrap_or_default());
            }
        }
        text
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.command("scancel").args(["-u", "root"]).stderr(Stdio::null()).status();
        for daemon in ["slurmctld", "slurmd-n1", "slurmd-n2", "slurmd-n3", "munged"] {
            self.kill(daemon, "-TERM");
        }
        let gone = || !self.area.join("munged.pid").exists();
        let _ = soon(gone);
    }
}

fn fastrand_bytes() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    fastrand::fill(&mut bytes);
    bytes
}

/// A run that the nodes have begun; it takes them some seconds.
fn begun() -> Option<(Slurm, Stage)> {
    let slurm = Slurm::start()?;
    let stage = Stage::new();
    for number in 0..10_u8 {
        let path = stage.src().join(format!("f{number}"));
        std::fs::write(&path, vec![number; 1_500_000]).unwrap();
        set_mtime(&path, 1_700_000_000, 0);
    }
    std::fs::create_dir_all(stage.dst()).unwrap();
    std::fs::write(stage.dst().join("extraneous"), b"x").unwrap();
    stage.ok(PLAN);
    slurm.hakobu(&stage, SUBMIT).ok();
    assert!(soon(|| stage.run().join("claims").exists()), "{}", slurm.output(&stage));
    Some((slurm, stage))
}

/// Slots of the array in a list of jobs, in one state, or in any.
fn slots(jobs: &str, state: &str) -> Vec<String> {
    let works = jobs.lines().filter(|job| job.contains("hakobu-work") && job.ends_with(state));
    works.map(|job| job.split(' ').next().unwrap().to_owned()).collect()
}

const PLAN: &str = "cluster plan -aH --delete --bwlimit=3M --shard-size=1M --run RUN SRC/ DST";
const SUBMIT: &str = "cluster submit --slurm --nodes=3 --stale-after=4s RUN";

#[test]
fn scripts_are_printed() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let run = stage.ok("cluster submit --slurm --nodes=5000 -n RUN -- --partition=copy");
    let text = run.out();
    for part in [
        "#SBATCH --array=0-999\n",
        "#SBATCH --exclusive\n",
        "#SBATCH --requeue\n",
        "--partition=copy",
        "afterany",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // All of the workers, in arrays that Slurm takes.
    assert_eq!(text.matches("#SBATCH --array=0-999\n").count(), 5, "{text}");
    let shared = "cluster submit --slurm --nodes=5000 -n RUN -- --cpus-per-task=8";
    let text_shared = stage.ok(shared).out();
    for part in ["#SBATCH --nodes=5000\n", "#SBATCH --ntasks-per-node=1\n", "srun --no-kill"] {
        assert!(text_shared.contains(part), "{part} is not in\n{text_shared}");
    }
    assert!(!text_shared.contains("--array") && !text_shared.contains("--exclusive"));
    let text = format!("{text}\n{text_shared}");
    let script = stage.area.join("script");
    std::fs::write(&script, &text).unwrap();
    must(Command::new("bash").arg("-n").arg(script));
}

#[test]
fn verification_is_a_chain_of_four_jobs() {
    let stage = Stage::new();
    tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --run RUN SRC/ DST");
    let text = stage.ok("cluster submit --slurm --nodes=3 --verify -n RUN").out();
    let jobs: Vec<&str> = text.lines().filter(|line| line.starts_with("# sbatch")).collect();
    assert_eq!(jobs.len(), 4, "{text}");
    assert!(jobs[1..].iter().all(|job| job.contains("--dependency=afterany:")), "{text}");
    let commands: Vec<&str> = text.lines().filter(|line| line.contains(" cluster ")).collect();
    let verifies: Vec<bool> = commands.iter().map(|line| line.contains(" --verify ")).collect();
    assert_eq!(verifies, [false, false, true, true], "{text}");
    // Of a run that was collected only the verification is left.
    stage.workers(1);
    stage.ok("cluster collect RUN");
    let text = stage.ok("cluster submit --slurm --nodes=3 --verify -n RUN").out();
    assert_eq!(text.lines().filter(|line| line.starts_with("# sbatch")).count(), 2, "{text}");
    assert_eq!(text.matches(" --verify ").count(), 2, "{text}");
}

/// One Slurm at a time: two cores are few for it.
#[test]
fn jobs_of_slurm() {
    in_turn!(
        an_array_works_and_a_job_collects,
        each_worker_has_a_node_of_its_own,
        tasks_that_are_warned_give_their_shards_back,
        slots_get_the_options_of_the_store_and_say_why_they_fail,
        a_node_that_dies_and_a_slot_that_is_put_back,
        a_slot_that_is_warned_gives_its_shard_back_and_requeues_itself,
    );
}

fn an_array_works_and_a_job_collects() {
    let Some(slurm) = Slurm::start() else { return };
    let stage = Stage::new();
    tree(&stage.src(), 1);
    std::fs::create_dir(stage.dst()).unwrap();
    std::fs::write(stage.dst().join("extraneous"), b"x").unwrap();
    stage.ok("cluster plan -aH --delete --shard-size=1M --run RUN SRC/ DST");
    let run = slurm.hakobu(&stage, "cluster submit --slurm --nodes=3 RUN -- --partition=copy");
    run.ok().says(&["submitted workers as job", "submitted collect as job"]);
    slurm.wait();
    assert!(stage.run().join("collected.json").exists(), "{}", slurm.output(&stage));
    stage.same(&Fields::ALL);
    // The same in one command, with a verification.
    std::fs::remove_dir_all(stage.dst()).unwrap();
    let run = slurm.hakobu(&stage, "sync -aH --shard-size=1M --cluster=slurm:3 --verify SRC/ DST");
    run.ok().says(&["the same"]);
    stage.same(&Fields::ALL);
}

/// Nodes that running jobs of workers have, each job as often as it has nodes.
fn nodes(slurm: &Slurm) -> Vec<String> {
    let said =
        slurm.command("squeue").args(["-h", "-t", "R", "-n", "hakobu-work", "-o", "%N"]).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let lists = said.lines().filter(|list| !list.is_empty());
    lists
        .flat_map(|list| {
            let names = must(slurm.command("scontrol").args(["show", "hostnames", list]));
            let names = String::from_utf8(names).unwrap();
            names.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Nodes have four CPUs: two slots of one CPU would fit on one of them.
fn each_worker_has_a_node_of_its_own() {
    let Some(slurm) = Slurm::start() else { return };
    for options in ["", " -- --cpus-per-task=2"] {
        let stage = Stage::new();
        for number in 0..18_u8 {
            let path = stage.src().join(format!("f{number}"));
            std::fs::write(&path, vec![number; 1_500_000]).unwrap();
            set_mtime(&path, 1_700_000_000, 0);
        }
        stage.ok(PLAN);
        slurm.hakobu(&stage, &format!("{SUBMIT}{options}")).ok();
        let mut seen = Vec::new();
        let all_run = || {
            seen = nodes(&slurm);
            seen.len() == 3
        };
        assert!(soon(all_run), "{}\n{}", slurm.jobs(), slurm.output(&stage));
        seen.sort();
        assert_eq!(seen, ["n1", "n2", "n3"], "{options}");
        if !options.is_empty() {
            // What is left of the nodes is for others.
            let idle = slurm.command("sinfo").args(["-h", "-o", "%C"]).output().unwrap();
            let cpus = String::from_utf8_lossy(&idle.stdout).into_owned();
            assert!(cpus.starts_with("6/6/"), "{cpus}");
        }
        slurm.wait();
        assert!(stage.run().join("collected.json").exists(), "{}", slurm.output(&stage));
        stage.same(&Fields::ALL);
        let jobs: Vec<String> =
            stage.beats().iter().map(|beat| beat["job"].as_str().unwrap().to_owned()).collect();
        let part = if options.is_empty() { "_" } else { " task " };
        assert!(jobs.len() >= 3 && jobs.iter().all(|job| job.contains(part)), "{jobs:?}");
    }
}

/// The same for tasks of one job as for slots: the warning reaches all of them, and the job goes back into the queue.
fn tasks_that_are_warned_give_their_shards_back() {
    let Some(slurm) = Slurm::start() else { return };
    let stage = Stage::new();
    for number in 0..18_u8 {
        let path = stage.src().join(format!("f{number}"));
        std::fs::write(&path, vec![number; 1_500_000]).unwrap();
        set_mtime(&path, 1_700_000_000, 0);
    }
    stage.ok(PLAN);
    slurm.hakobu(&stage, &format!("{SUBMIT} -- --cpus-per-task=1")).ok();
    let at_work = || stage.beats().iter().filter(|beat| beat["state"] != "ended").count() >= 3;
    assert!(soon(at_work), "{}\n{}", slurm.jobs(), slurm.output(&stage));
    let job = slots(&slurm.jobs(), " RUNNING").first().cloned().unwrap();
    must(slurm.command("scancel").args(["--batch", "--signal=TERM", &job]));
    let restarted = || {
        let said = slurm.command("scontrol").args(["show", "job", &job]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("Restarts=1")
    };
    assert!(soon(restarted), "{}\n{}", slurm.jobs(), slurm.output(&stage));
    slurm.wait();
    assert!(stage.run().join("collected.json").exists(), "{}", slurm.output(&stage));
    assert!(stage.results().iter().all(|result| result["generation"] == 0), "a shard was redone");
    stage.same(&Fields::ALL);
}

/// No variable names the server, and the second time slots cannot use their end.
fn slots_get_the_options_of_the_store_and_say_why_they_fail() {
    let Some(slurm) = Slurm::start() else { return };
    let stage = Stage::with_bucket("slurm");
    std::fs::write(stage.src().join("f"), vec![7; 50_000]).unwrap();
    let store = format!("--endpoint-url={}", Server::url(embedded()));
    let hakobu = |line: &str| {
        let mut command = stage.command(line, None);
        command.env_remove("AWS_ENDPOINT_URL").env("SLURM_CONF", slurm.area.join("slurm.conf"));
        Run::new(line.to_owned(), command.output().unwrap())
    };
    let has = |prefix: &str| !super::store::below(&stage, prefix).is_empty();
    hakobu(&format!("cluster plan -r {store} --run BKT/run SRC/ BKT/a/")).ok();
    hakobu(&format!("cluster submit --slurm --nodes=2 {store} BKT/run")).ok();
    slurm.wait();
    let said = slurm.output(&stage);
    assert!(has("run/workers/"), "{said}");
    assert!(has("run/report.json"), "{said}");
    assert!(has("a/f"), "{said}");

    hakobu(&format!("cluster plan -r {store} --run BKT/run2 SRC/ BKT/b/")).ok();
    // Slots cannot even open the folder: nobody leaves word.
    let broken = "--export=ALL,AWS_MAX_ATTEMPTS=abc";
    let line = format!("cluster submit --slurm --nodes=2 {store} BKT/run2 -- {broken}");
    hakobu(&line).ok();
    slurm.wait();
    assert!(!has("run2/workers/"), "{}", slurm.output(&stage));
    let collect = hakobu(&format!("cluster collect {store} BKT/run2"));
    collect.expect(75).says(&["2 workers by Slurm (job ", "squeue --jobs="]);
    assert!(!has("b/"));
}

fn a_node_that_dies_and_a_slot_that_is_put_back() {
    let Some((slurm, stage)) = begun() else { return };
    std::thread::sleep(Duration::from_secs(1));
    // A node's daemon is gone; one slot is put back in the queue, another one is cancelled.
    slurm.kill("slurmd-n1", "-KILL");
    let jobs = slurm.jobs();
    let slots = slots(&jobs, "");
    if let [_, put_back, cancelled, ..] = slots.as_slice() {
        let _ = slurm.command("scontrol").args(["requeue", put_back]).status();
        let _ = slurm.command("scancel").arg(cancelled).status();
    }
    std::thread::sleep(Duration::from_secs(1));
    slurm.node(1);
    slurm.wait();
    assert!(stage.run().join("collected.json").exists(), "{}", slurm.output(&stage));
    stage.same(&Fields::ALL);
    let plan = stage.plan();
    assert!(stage.results().len() <= plan["shards"].as_array().unwrap().len());
    // The same commands again find nothing to do.
    stage.ok("cluster work RUN");
    stage.ok("cluster collect RUN");
    stage.same(&Fields::ALL);
}

/// The signal that Slurm sends a minute before the time limit, and when it preempts a job.
fn a_slot_that_is_warned_gives_its_shard_back_and_requeues_itself() {
    let Some((slurm, stage)) = begun() else { return };
    // A job is running before its script is: only where each has its worker, the signal meets one.
    let mut warned = String::new();
    let meets_one = || {
        let running = slots(&slurm.jobs(), " RUNNING");
        let works = stage.beats().iter().filter(|beat| beat["state"] != "ended").count();
        warned = running.first().cloned().unwrap_or_default();
        !running.is_empty() && works >= running.len()
    };
    assert!(soon(meets_one), "{}", slurm.jobs());
    must(slurm.command("scancel").args(["--batch", "--signal=TERM", &warned]));
    let restarted = || {
        let said = slurm.command("scontrol").args(["show", "job", &warned]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("Restarts=1")
    };
    assert!(soon(restarted), "{}\n{}", slurm.jobs(), slurm.output(&stage));
    slurm.wait();
    assert!(slurm.output(&stage).contains("interrupted: the rest was returned"));
    assert!(stage.run().join("collected.json").exists(), "{}", slurm.output(&stage));
    assert!(stage.results().iter().all(|result| result["generation"] == 0), "a shard was redone");
    stage.same(&Fields::ALL);
}

//! Embedded servers, each in its own process, so that their resource use is separate from the measured
//! command and the lab.

use super::running::{KILL, TERMINATE};
use crate::campaign::ServerPlan;
use hakobu_core::error::{Cause, cannot};
use hakobu_sys::child;
use hakobu_sys::paths::Links;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time within which a server must report its address.
const START_MAX: Duration = Duration::from_secs(20);
/// Time between the request to end and SIGKILL.
const END_MAX: Duration = Duration::from_secs(5);

/// Running servers; dropping this ends them.
#[derive(Debug)]
pub(super) struct ServerProcesses {
    program: PathBuf,
    children: Vec<Child>,
}

impl ServerProcesses {
    /// Creates an empty list; `program` is the executable to start.
    pub fn new(program: PathBuf) -> ServerProcesses {
        ServerProcesses { program, children: Vec::new() }
    }

    /// Starts a server and returns its process id once it listens.
    ///
    /// # Errors
    /// A message.
    pub fn start(&mut self, plan: &ServerPlan) -> Result<u32, String> {
        if let Some(folder) = &plan.folder {
            let buckets = plan.buckets.iter().map(|bucket| folder.join(bucket));
            for folder in std::iter::once(folder.clone()).chain(buckets) {
                let made = Links::Trusted.make_dir(&folder, 0o777, true);
                made.map_err(|error| cannot("make", &folder, error))?;
            }
        }
        let mut command = Command::new(&self.program);
        command.args(arguments(plan)).process_group(0);
        // Not on the command line, which every user can read.
        command.env("AWS_ACCESS_KEY_ID", &plan.access_key);
        command.env("AWS_SECRET_ACCESS_KEY", &plan.secret_key);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| cannot("run", &self.program, error))?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let pid = child.id();
        self.children.push(child);
        let (stdout, mut stderr) = pipes.ok_or("its output cannot be read")?;
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            let mut lines = BufReader::new(stdout);
            let mut line = String::new();
            let _ = lines.read_line(&mut line);
            let _ = sender.send(line);
            // Drain its output, so that it never blocks.
            let _ = std::io::copy(&mut lines, &mut std::io::sink());
        };
        let reading = std::thread::Builder::new().name("server".into()).spawn(read);
        reading.map_err(|error| format!("cannot start a thread: {}", Cause::System(error)))?;
        match receiver.recv_timeout(START_MAX) {
            Ok(line) if line.starts_with("listening on ") => {
                let drain = move || {
                    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                };
                let _ = std::thread::Builder::new().name("server".into()).spawn(drain);
                Ok(pid)
            }
            _ => {
                let _ = child::send(pid, KILL);
                let mut said = String::new();
                let _ = stderr.read_to_string(&mut said);
                let said = said.trim().replace('\n', " ");
                let why = if said.is_empty() { "it did not say that it listens" } else { &said };
                Err(why.to_owned())
            }
        }
    }

    /// Ends all servers.
    pub fn end(&mut self) {
        for child in &self.children {
            let _ = child::send(child.id(), TERMINATE);
        }
        let until = Instant::now() + END_MAX;
        for mut child in self.children.drain(..) {
            while let Ok(None) = child.try_wait()
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        self.end();
    }
}

/// Arguments after the name of the program.
fn arguments(plan: &ServerPlan) -> Vec<String> {
    let mut words: Vec<String> = vec!["serve".into()];
    match &plan.folder {
        Some(folder) => words.extend(["s3".into(), folder.display().to_string()]),
        None => {
            words.push("null".into());
            words.push(format!("--keys={}", plan.null.0));
            words.push(format!("--object-size={}", plan.null.1));
        }
    }
    if !plan.listen.is_empty() {
        words.push(format!("--listen={}", plan.listen));
    }
    if !plan.latency.is_zero() {
        words.push(format!("--latency={}us", plan.latency.as_micros()));
    }
    if let Some(rate) = plan.bandwidth_bytes_per_s {
        words.push(format!("--bandwidth={rate}"));
    }
    if let Some(most) = plan.in_flight_max {
        words.push(format!("--max-in-flight={most}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let plan = ServerPlan { listen: "127.0.0.1:0".into(), ..ServerPlan::default() };
        assert_eq!(
            arguments(&plan).join(" "),
            "serve null --keys=0 --object-size=0 --listen=127.0.0.1:0"
        );
        let plan = ServerPlan {
            folder: Some("/d".into()),
            latency: Duration::from_millis(20),
            bandwidth_bytes_per_s: Some(1000),
            in_flight_max: Some(4),
            secret_key: "secret".into(),
            ..ServerPlan::default()
        };
        assert_eq!(
            arguments(&plan).join(" "),
            "serve s3 /d --latency=20000us --bandwidth=1000 --max-in-flight=4"
        );
    }

    #[test]
    fn what_does_not_serve_says_why() {
        let mut servers = ServerProcesses::new("/no/such".into());
        let why = servers.start(&ServerPlan::default()).unwrap_err();
        assert!(why.starts_with("cannot run '/no/such'"), "{why}");
        let mut servers = ServerProcesses::new("false".into());
        let why = servers.start(&ServerPlan::default()).unwrap_err();
        assert_eq!(why, "it did not say that it listens");
        let mut servers = ServerProcesses::new("ls".into());
        let why = servers.start(&ServerPlan::default()).unwrap_err();
        assert!(why.contains("serve") || why.contains("keys"), "{why}");
    }
}

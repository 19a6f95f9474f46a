//! `hakobu serve`: S3 servers for tests and measurements, until a signal ends them.

mod live;
mod options;

use super::tool::carry_out;
use super::tool::random_key;
use crate::exit;
use crate::options::Typed;
use crate::show::output;
use hakobu_sys::paths::Links;
use hakobu_sys::{process, stdio};
use hakobu_testserver::{Conditions, ServerConfig, ServerKind, TestServer};
pub(super) use options::TABLE;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Default address: this machine only, any free port.
const LISTEN: &str = "127.0.0.1:0";
/// Default size of the null server's objects, in bytes.
const OBJECT_BYTES: u64 = 4096;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), serve)
}

/// The parsed command line.
#[derive(Debug, Default)]
pub struct Plan {
    /// The folder; `None` for the null server.
    dir: Option<PathBuf>,
    keys: u64,
    object_bytes: u64,
    access_key: Option<String>,
    secret_key: Option<String>,
    listen: String,
    threads: usize,
    log: Option<PathBuf>,
    conditions: Conditions,
    progress: bool,
}

fn plan(typed: &Typed) -> Result<Plan, String> {
    let mut paths = typed.paths.iter();
    let kind = paths.next().map(|kind| kind.to_string_lossy());
    let dir = match kind.as_deref() {
        Some("null") => None,
        Some("s3") => Some(paths.next().map(PathBuf::from).ok_or("s3 needs a folder to serve")?),
        Some(other) => return Err(format!("'{other}' cannot be served; s3 and null can")),
        None => return Err("say what to serve: s3 DIR, or null".into()),
    };
    if let Some(more) = paths.next() {
        return Err(format!("'{}' is one argument too many", more.display()));
    }
    let (object_bytes, listen) = (OBJECT_BYTES, LISTEN.into());
    TABLE.read(typed, Plan { dir, object_bytes, listen, ..Plan::default() })
}

/// Serves until a signal comes; returns the exit code.
fn serve(plan: Plan) -> Result<u8, String> {
    // Before signals are caught: one that comes while the reader of a FIFO is waited for ends the program.
    let open = |path| stdio::until_read(&|| false, || Links::Trusted.open_write(path, true));
    let _log = plan.log.as_deref().map(open);
    // Before announcing the server: a script that waits for that may send a signal at once.
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGUSR1].into_iter();
    let mut signals = Signals::new(wanted.filter(|signal| !process::ignores_signal(*signal)))
        .map_err(|error| format!("cannot wait for signals: {error}"))?;
    process::raise_open_files_limit();
    let mut made_up = String::new();
    let kind = match plan.dir {
        None => ServerKind::Null { keys: plan.keys, object_bytes: plan.object_bytes },
        Some(dir) => {
            let mut key = |option: Option<String>, name: &str| {
                let known =
                    option.or_else(|| std::env::var(name).ok().filter(|key| !key.is_empty()));
                let made = || -> Result<String, String> {
                    let key = random_key().map_err(|e| format!("cannot make up a key: {e}"))?;
                    made_up.push_str(&format!("{name}={key}\n"));
                    Ok(key)
                };
                known.map_or_else(made, Ok)
            };
            let access_key = key(plan.access_key, "AWS_ACCESS_KEY_ID")?;
            let secret_key = key(plan.secret_key, "AWS_SECRET_ACCESS_KEY")?;
            ServerKind::Folder { dir, access_key, secret_key }
        }
    };
    let (listen, progress) = (plan.listen.clone(), plan.progress);
    let (threads, log, conditions) = (plan.threads, plan.log, plan.conditions);
    let config = ServerConfig { kind, listen: plan.listen, threads, conditions, log };
    let server =
        TestServer::start(config).map_err(|error| format!("cannot serve on {listen}: {error}"))?;
    output::text(&format!("listening on {}\n{made_up}", server.url()));
    let server = Arc::new(server);
    let live = live::Live::start(&server, progress);
    for signal in signals.forever() {
        if signal != SIGUSR1 {
            break;
        }
        live.print();
    }
    live.end();
    if let Some(server) = Arc::into_inner(server) {
        server.stop();
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(line: &str) -> Result<Plan, String> {
        let typed = TABLE.parse_line(line)?;
        plan(&typed)
    }

    #[test]
    fn durations() {
        for (typed, milliseconds) in [
            ("50ms", Some(50)),
            ("1.5s", Some(1500)),
            ("2m", Some(120_000)),
            ("3000us", Some(3)),
            ("0s", Some(0)),
            ("50", None),
            ("ms", None),
            ("1..2s", None),
            ("-1s", None),
            ("1h", None),
            ("99999999999999999999999m", None),
        ] {
            let read = read(&format!("null --latency={typed}")).ok();
            let read = read.map(|plan| plan.conditions.latency);
            assert_eq!(read, milliseconds.map(Duration::from_millis), "{typed}");
        }
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("", "say what to serve"),
            ("nul", "'nul' cannot be served"),
            ("null x", "'x' is one argument too many"),
            ("s3", "s3 needs a folder"),
            ("s3 d e", "'e' is one argument too many"),
            ("s3 d --keys=1", "--keys belongs to null"),
            ("null --access-key=a", "--access-key belongs to s3"),
            ("s3 d --access-key=", "--access-key is empty"),
            ("s3 d --secret-key=", "--secret-key is empty"),
            ("null --threads=0", "--threads=0: must be at least 1"),
            ("null --bandwidth=0", "--bandwidth=0: is not a rate"),
            ("null --error-rate=1.5", "is not a share between 0 and 1"),
            ("null --error-rate=NaN", "is not a share between 0 and 1"),
            ("null --fault=silent:op=FOO", "op=FOO is neither"),
            ("null --keys=x", "--keys=x: is not a number"),
            ("null --object-size=x", "--object-size=x: is not a size"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
        let plan = read("null --keys=7 --object-size 1KB --fault silent --fault=checksum").unwrap();
        assert_eq!((plan.keys, plan.object_bytes), (7, 1000));
        assert_eq!(plan.conditions.faults.len(), 2);
    }
}

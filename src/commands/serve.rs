//! `hakobu serve`: S3 servers for tests and measurements, until a signal ends them.

use super::refuse;
use super::tool::random_key;
use crate::exit;
use crate::options::serve::TABLE;
use crate::options::{Given, Refused, Typed};
use crate::show::output;
use hakobu_lab::serve::{Conditions, Config, Fault, Kind, Server};
use hakobu_sys::process;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where it listens unless told otherwise: this machine only, any free port.
const LISTEN: &str = "127.0.0.1:0";
/// The size of the null server's objects.
const OBJECT_BYTES: u64 = 4096;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    match typed.and_then(|typed| plan(&typed).map_err(Refused::Usage)) {
        Ok(plan) => serve(plan).into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// What the command line asks for.
#[derive(Debug)]
struct Plan {
    /// The folder; `None` is the null server.
    dir: Option<PathBuf>,
    keys: u64,
    object_bytes: u64,
    access_key: Option<String>,
    secret_key: Option<String>,
    listen: String,
    threads: usize,
    log: Option<PathBuf>,
    conditions: Conditions,
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
    let is_null = dir.is_none();
    let mut plan = Plan {
        dir,
        keys: 0,
        object_bytes: OBJECT_BYTES,
        access_key: None,
        secret_key: None,
        listen: LISTEN.into(),
        threads: 0,
        log: None,
        conditions: Conditions::default(),
    };
    for given in &typed.options {
        let conditions = &mut plan.conditions;
        match given.name {
            "keys" | "object-size" if !is_null => {
                return Err(format!("--{} belongs to null", given.name));
            }
            "access-key" | "secret-key" if is_null => {
                return Err(format!("--{} belongs to s3: null checks no signature", given.name));
            }
            "listen" => plan.listen = given.text()?.to_owned(),
            "threads" => plan.threads = given.positive::<u64>()? as usize,
            "log" => plan.log = Some(PathBuf::from(&given.value)),
            "keys" => plan.keys = given.number()?,
            "object-size" => plan.object_bytes = size(given)?,
            "access-key" => plan.access_key = Some(given.text()?.to_owned()),
            "secret-key" => plan.secret_key = Some(given.text()?.to_owned()),
            "latency" => conditions.latency = given.duration("m", "50ms or 1.5s")?,
            "bandwidth" => {
                let rate = Some(size(given)?).filter(|rate| *rate > 0);
                conditions.bandwidth = Some(rate.ok_or_else(|| given.wrong("is no rate"))?);
            }
            "max-in-flight" => conditions.in_flight_max = Some(given.positive::<u64>()? as usize),
            "error-rate" => conditions.error_rate = share(given)?,
            "seed" => conditions.seed = given.number()?,
            "slow-down-above" => conditions.requests_per_s_max = Some(given.positive()?),
            "fault" => {
                let fault = Fault::parse(given.text()?).map_err(|why| given.wrong(&why))?;
                conditions.faults.push(fault);
            }
            other => return Err(format!("--{other} is not known to serve")),
        }
    }
    Ok(plan)
}

/// Serves until a signal comes; the exit code.
fn serve(plan: Plan) -> u8 {
    // Before the server says that it is there: whoever waits for that may send one at once.
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let mut signals = match Signals::new(wanted.filter(|signal| !process::ignores_signal(*signal)))
    {
        Ok(signals) => signals,
        Err(error) => return failed(&format!("cannot wait for signals: {error}")),
    };
    process::raise_open_files_limit();
    let mut made_up = String::new();
    let kind = match plan.dir {
        None => Kind::Null { keys: plan.keys, object_bytes: plan.object_bytes },
        Some(dir) => {
            let mut key = |given: Option<String>, name: &str| {
                let known =
                    given.or_else(|| std::env::var(name).ok().filter(|key| !key.is_empty()));
                known.map_or_else(
                    || {
                        let key = random_key()?;
                        made_up.push_str(&format!("{name}={key}\n"));
                        Ok(key)
                    },
                    Ok,
                )
            };
            let keys: std::io::Result<_> = key(plan.access_key, "AWS_ACCESS_KEY_ID")
                .and_then(|access| Ok((access, key(plan.secret_key, "AWS_SECRET_ACCESS_KEY")?)));
            match keys {
                Ok((access_key, secret_key)) => Kind::Folder { dir, access_key, secret_key },
                Err(error) => return failed(&format!("cannot make up a key: {error}")),
            }
        }
    };
    let listen = plan.listen.clone();
    let (threads, log, conditions) = (plan.threads, plan.log, plan.conditions);
    let config = Config { kind, listen: plan.listen, threads, conditions, log };
    let server = match Server::start(config) {
        Ok(server) => server,
        Err(error) => return failed(&format!("cannot serve on {listen}: {error}")),
    };
    output::text(&format!("listening on {}\n{made_up}", server.url()));
    let _ = signals.forever().next();
    server.stop();
    exit::OK
}

fn failed(message: &str) -> u8 {
    output::message(message);
    exit::FAILURE
}

fn share(given: &Given) -> Result<f64, String> {
    let share: Option<f64> = given.text()?.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| given.wrong("is no share between 0 and 1"))
}

fn size(given: &Given) -> Result<u64, String> {
    crate::size::parse(&given.value, 1).map_err(|why| given.wrong(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(line: &str) -> Result<Plan, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
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
            ("null --threads=0", "--threads=0: must be at least 1"),
            ("null --bandwidth=0", "--bandwidth=0: is no rate"),
            ("null --error-rate=1.5", "is no share between 0 and 1"),
            ("null --error-rate=NaN", "is no share between 0 and 1"),
            ("null --fault=silent:op=FOO", "op=FOO is neither"),
            ("null --keys=x", "--keys=x: is no number"),
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

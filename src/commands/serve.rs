//! `hakobu serve`: S3 servers for tests and measurements, until a signal ends them.

use super::tool::{carry_out, random_key};
use crate::cli::{
    Group, Opt, OptArg, Part, Table, Takes, Typed, flag, parts, push, put, titled, value,
};
use crate::exit;
use crate::number::{bytes, grouped, things};
use crate::show::output;
use hakobu_core::error::{Cause, quoted};
use hakobu_sys::paths::Links;
use hakobu_sys::{process, stdio};
use hakobu_testserver::{Conditions, Fault, ServerConfig, ServerKind, ServerTotals, TestServer};
use parking_lot::{Condvar, Mutex};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Default address: this machine only, any free port.
const LISTEN: &str = "127.0.0.1:0";
/// Default size of the null server's objects, in bytes.
const OBJECT_BYTES: u64 = 4096;

/// The command line of `serve`.
pub static TABLE: Table<ServeOptions> = Table {
    command: "serve",
    about: "Serve S3 on this machine for tests: a directory, or a null server for \
            measurements",
    description: "s3 serves the directory DIR; the directories in it are the buckets. null keeps \
            nothing: uploads succeed and every object exists, so that the speed of clients \
            can be measured. Latency, limits and faults make either behave like a distant or \
            a broken server.",
    usage: "hakobu serve s3 DIR [OPTIONS]\n       hakobu serve null [OPTIONS]",
    examples: &[
        ("hakobu serve s3 store --listen 127.0.0.1:9000 # until Ctrl-C", "Serve a directory."),
        ("hakobu serve null --latency 20ms # until Ctrl-C", "Measure clients with 20 ms latency."),
    ],
    common: &[],
    after: "Symlinks that lead out of DIR are neither objects nor buckets.\n\
            With null, a key that ends in .size-N names an object of N bytes, listings show --keys generated \
            keys, and signatures are not checked.\n\
            A line shows the address; SIGINT or SIGTERM ends the server, SIGUSR1 prints the totals so \
            far. A duration is a number with \
            us, ms, s or m.\n\n\
            Faults are KIND:key=value,... (a comma in a value is %2C). Which requests: op (method \
            or S3 operation), key and query (a part of them), skip and times (counts). Kinds:\n  \
            reset:after=N,in=request|response     the connection is reset within the body\n  \
            truncate:after=N                      the body of the response ends early\n  \
            corrupt:at=N,in=request|response      one byte is wrong\n  \
            checksum                              x-amz-checksum-... headers are wrong\n  \
            error:code=CODE,status=N,region=NAME,late=yes   an S3 error; late: after the work\n  \
            slow:rate=N,in=request|response       N bytes a second\n  \
            silent                                no response\n  \
            list:drop=N,add=KEY,swap=yes          a page of a listing is changed\n\
            Exit codes: 0 ended by a signal, 1 it could not begin, 2 usage.",
    options: &[&OPTIONS, &NULL, &S3, &CONDITIONS],
    unbuilt: &[],
    abbreviates: false,
};

parts!(ServeOptions {});

/// The servers.
pub static PARTS: &[Part] = &[
    Part::new("s3", "serve a directory")
        .with(|name| NULL.1.iter().all(|option| option.row.name != name)),
    Part::new("null", "a server that keeps nothing")
        .with(|name| S3.1.iter().all(|option| option.row.name != name)),
];

const OPTIONS: &[Opt<ServeOptions>] = &[
    value("listen", None, "ADDR", "host:port; port 0 is a free one (default 127.0.0.1:0)")
        .reads(|plan, arg| put(&mut plan.listen, arg.text()?.to_owned())),
    value("threads", None, "N", "number of threads (default: one per CPU)")
        .reads(|plan, arg| put(&mut plan.threads, arg.positive::<u64>()? as usize)),
    value("log", None, "FILE", "add a line of JSON for each request to FILE")
        .reads(|plan, arg| put(&mut plan.log, Some(arg.path()))),
    flag("progress", None, "print totals on standard error, a line per second while requests come")
        .off(&["no-progress"])
        .sets(|plan, on| plan.progress = on),
];

static NULL: Group<ServeOptions> = titled("The null server").with(&[
    value("keys", None, "N", "keys that a listing shows (default 0)").reads(|plan, arg| {
        plan.is_null(arg)?;
        put(&mut plan.keys, arg.number()?)
    }),
    value("object-size", None, "SIZE", "bytes of an object (default 4096)").reads(|plan, arg| {
        plan.is_null(arg)?;
        put(&mut plan.object_bytes, size(arg)?)
    }),
]);

const S3: Group<ServeOptions> = titled("The server on a directory").with(&[
    value("access-key", None, "KEY", "default: AWS_ACCESS_KEY_ID, else generated and printed")
        .reads(|plan, arg| {
            plan.is_folder(arg)?;
            put(&mut plan.access_key, Some(key(arg)?))
        }),
    value("secret-key", None, "KEY", "default: AWS_SECRET_ACCESS_KEY, else generated and printed")
        .reads(|plan, arg| {
            plan.is_folder(arg)?;
            put(&mut plan.secret_key, Some(key(arg)?))
        }),
]);

static CONDITIONS: Group<ServeOptions> = titled("Conditions").with(&[
    value("latency", None, "DUR", "delay each request")
        .reads(|plan, arg| put(&mut plan.conditions.latency, arg.duration("m", "50ms or 1.5s")?)),
    value(
        "bandwidth",
        None,
        "RATE",
        "total bytes per second, over all connections and both directions",
    )
    .reads(|plan, arg| {
        let rate = Some(size(arg)?).filter(|rate| *rate > 0);
        let rate = rate.ok_or_else(|| arg.refuse("not a rate"))?;
        put(&mut plan.conditions.bandwidth, Some(rate))
    }),
    value("max-in-flight", None, "N", "serve N requests at once; others wait").reads(
        |plan, arg| put(&mut plan.conditions.in_flight_max, Some(arg.positive::<u64>()? as usize)),
    ),
    value("error-rate", None, "P", "fail this share of requests (0 to 1) with 500 InternalError")
        .reads(|plan, arg| put(&mut plan.conditions.error_rate, share(arg)?)),
    value("seed", None, "N", "seed of random failures (default 0)")
        .reads(|plan, arg| put(&mut plan.conditions.seed, arg.number()?)),
    value(
        "slow-down-above",
        None,
        "RPS",
        "throttle (503 SlowDown) above this number of requests per second",
    )
    .reads(|plan, arg| put(&mut plan.conditions.requests_per_s_max, Some(arg.positive()?))),
    value("fault", None, "SPEC", "inject a fault into chosen requests (see below)")
        .takes(Takes::Values("SPEC"))
        .reads(|plan, arg| {
            let fault = Fault::parse(arg.text()?).map_err(|why| arg.refuse(&why))?;
            push(&mut plan.conditions.faults, fault)
        }),
]);

impl ServeOptions {
    fn is_null(&self, arg: &OptArg) -> Result<(), String> {
        match self.dir {
            None => Ok(()),
            Some(_) => Err(format!("--{} belongs to null", arg.name)),
        }
    }

    fn is_folder(&self, arg: &OptArg) -> Result<(), String> {
        match self.dir {
            Some(_) => Ok(()),
            None => Err(format!("--{} belongs to s3: null checks no signature", arg.name)),
        }
    }
}

/// Returns a key. An empty one would let everybody sign.
fn key(arg: &OptArg) -> Result<String, String> {
    match arg.text()? {
        "" => Err(format!(
            "--{} is empty: give a key, or leave the option out to generate one",
            arg.name
        )),
        key => Ok(key.to_owned()),
    }
}

fn share(arg: &OptArg) -> Result<f64, String> {
    let share: Option<f64> = arg.text()?.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| arg.refuse("not a share between 0 and 1"))
}

fn size(arg: &OptArg) -> Result<u64, String> {
    hakobu_core::number::parse_size(&arg.value, 1).map_err(|why| arg.refuse(why))
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(TABLE.parse(&arguments), |typed| plan(&typed), serve)
}

/// The parsed command line.
#[derive(Debug, Default)]
pub struct ServeOptions {
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

fn plan(typed: &Typed) -> Result<ServeOptions, String> {
    let mut paths = typed.paths.iter();
    let kind = paths.next().map(|kind| kind.to_string_lossy());
    let dir = match kind.as_deref() {
        Some("null") => None,
        Some("s3") => Some(paths.next().map(PathBuf::from).ok_or("missing directory: s3 DIR")?),
        Some(other) => return Err(format!("'{other}' cannot be served; s3 and null can")),
        None => {
            return Err(
                "missing server: s3 DIR, or null\nhint: hakobu serve --help describes both".into(),
            );
        }
    };
    if let Some(more) = paths.next() {
        return Err(format!("'{}' is one argument too many", more.display()));
    }
    let (object_bytes, listen) = (OBJECT_BYTES, LISTEN.into());
    TABLE.read(typed, ServeOptions { dir, object_bytes, listen, ..ServeOptions::default() })
}

/// Serves until a signal comes; returns the exit code.
fn serve(plan: ServeOptions) -> Result<u8, String> {
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
                    let key = random_key().map_err(|e| format!("cannot generate a key: {e}"))?;
                    made_up.push_str(&format!("{name}={key}\n"));
                    Ok(key)
                };
                known.map_or_else(made, Ok)
            };
            if let Err(error) = std::fs::read_dir(&dir) {
                return Err(format!("cannot serve {}: {}", quoted(&dir), Cause::System(error)));
            }
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
    let live = ServeProgress::start(&server, progress);
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

/// Interval of lines.
const LINE: Duration = Duration::from_secs(1);

/// The display of a server's totals.
pub struct ServeProgress {
    server: Arc<TestServer>,
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ServeProgress {
    /// Starts the display; with `lines` a line per second while requests come. If no thread can be started there are
    /// no lines.
    pub fn start(server: &Arc<TestServer>, lines: bool) -> ServeProgress {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = lines.then(|| {
            let (server, over) = (Arc::clone(server), Arc::clone(&over));
            let thread = std::thread::Builder::new().name("progress".into());
            thread.spawn(move || watch(&server, &over)).ok()
        });
        ServeProgress { server: Arc::clone(server), over, thread: thread.flatten() }
    }

    /// Prints the totals so far.
    pub fn print(&self) {
        output::message(&totals_line(&self.server.totals(), None));
    }

    /// Ends the display, with a last line if there were lines.
    pub fn end(self) {
        *self.over.0.lock() = true;
        self.over.1.notify_all();
        if let Some(thread) = self.thread {
            // A thread that panicked prints nothing more.
            let _ = thread.join();
            output::message(&totals_line(&self.server.totals(), None));
        }
    }
}

fn watch(server: &TestServer, over: &(Mutex<bool>, Condvar)) {
    let (mut last, mut since) = (ServerTotals::default(), Instant::now());
    let mut ended = over.0.lock();
    while !*ended {
        over.1.wait_for(&mut ended, LINE);
        let now = server.totals();
        let elapsed = since.elapsed();
        if *ended || elapsed < LINE {
            continue;
        }
        if now != last {
            output::message(&totals_line(&now, Some((&last, elapsed))));
        }
        (last, since) = (now, Instant::now());
    }
}

/// Returns the totals as text, with rates since an earlier sample.
fn totals_line(now: &ServerTotals, since: Option<(&ServerTotals, Duration)>) -> String {
    let rate = |of: fn(&ServerTotals) -> u64| {
        let (before, elapsed) = since?;
        Some((of(now).saturating_sub(of(before)) as f64 / elapsed.as_secs_f64()) as u64)
    };
    let with_rate = |text: String, rate: Option<String>| match rate {
        Some(rate) => format!("{text} ({rate}/s)"),
        None => text,
    };
    let of_bytes = |what: &str, of: fn(&ServerTotals) -> u64| {
        with_rate(format!("{} {what}", bytes(of(now))), rate(of).map(bytes))
    };
    let mut parts =
        vec![with_rate(things(now.requests, "request"), rate(|of| of.requests).map(grouped))];
    if now.failed > 0 {
        parts.push(format!("{} failed", grouped(now.failed)));
    }
    parts.push(of_bytes("received", |of| of.received_bytes));
    parts.push(of_bytes("sent", |of| of.sent_bytes));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read(line: &str) -> Result<ServeOptions, String> {
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
            ("", "missing server"),
            ("nul", "'nul' cannot be served"),
            ("null x", "'x' is one argument too many"),
            ("s3", "missing directory: s3 DIR"),
            ("s3 d e", "'e' is one argument too many"),
            ("s3 d --keys=1", "--keys belongs to null"),
            ("null --access-key=a", "--access-key belongs to s3"),
            ("s3 d --access-key=", "--access-key is empty"),
            ("s3 d --secret-key=", "--secret-key is empty"),
            ("null --threads=0", "invalid --threads '0': must be at least 1"),
            ("null --bandwidth=0", "invalid --bandwidth '0': not a rate"),
            ("null --error-rate=1.5", "not a share between 0 and 1"),
            ("null --error-rate=NaN", "not a share between 0 and 1"),
            ("null --fault=silent:op=FOO", "op=FOO is neither"),
            ("null --keys=x", "invalid --keys 'x': not a number"),
            ("null --object-size=x", "invalid --object-size 'x': not a size"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
        let plan = read("null --keys=7 --object-size 1KB --fault silent --fault=checksum").unwrap();
        assert_eq!((plan.keys, plan.object_bytes), (7, 1000));
        assert_eq!(plan.conditions.faults.len(), 2);
    }

    #[test]
    fn totals_and_rates() {
        let before = ServerTotals { requests: 1000, ..ServerTotals::default() };
        let now =
            ServerTotals { requests: 3000, failed: 2, received_bytes: 4_000_000, sent_bytes: 0 };
        assert_eq!(
            totals_line(&now, None),
            "3,000 requests, 2 failed, 4.00 MB received, 0 bytes sent"
        );
        let text = totals_line(&now, Some((&before, Duration::from_secs(2))));
        assert!(
            text.starts_with("3,000 requests (1,000/s), 2 failed, 4.00 MB received (2.00"),
            "{text}"
        );
    }
}

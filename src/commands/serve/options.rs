//! The options of `hakobu serve`.

use super::Plan;
use crate::options::{Group, Opt, OptArg, Table, Takes, flag, parts, push, put, titled, value};
use hakobu_testserver::Fault;

/// The command line of `serve`.
pub static TABLE: Table<Plan> = Table {
    command: "serve",
    about: "Serve S3 on this machine: a folder, or the null server for measurements",
    usage: "hakobu serve s3 DIR [OPTIONS]\n       hakobu serve null [OPTIONS]",
    after: "s3 serves the folder DIR; the folders in it are the buckets. Symbolic links that lead out \
            of DIR are neither objects nor buckets.\n\
            null keeps nothing: uploads succeed, every object exists (a key that ends in .size-N \
            names one of N bytes), listings show --keys made-up keys, signatures are not looked at. \
            It is there to measure clients with; conditions and faults make it slower.\n\
            One line says where it listens; SIGINT or SIGTERM ends it, SIGUSR1 prints the totals so \
            far. A duration is a number with \
            us, ms, s or m.\n\n\
            Faults are KIND:key=value,... (a comma in a value is %2C). Which requests: op (method \
            or S3 operation), key and query (a part of them), skip and times (counts). Kinds:\n  \
            reset:after=N,in=request|response     the connection is reset within the body\n  \
            truncate:after=N                      the answer's body ends early\n  \
            corrupt:at=N,in=request|response      one byte is wrong\n  \
            checksum                              x-amz-checksum-... headers are wrong\n  \
            error:code=CODE,status=N,region=NAME,late=yes   an S3 error; late: after the work\n  \
            slow:rate=N,in=request|response       N bytes a second\n  \
            silent                                never an answer\n  \
            list:drop=N,add=KEY,swap=yes          a page of a listing is changed\n\
            Exit codes: 0 ended by a signal, 1 it could not begin, 2 usage.",
    options: &[&OPTIONS, &NULL, &S3, &CONDITIONS],
    unbuilt: &[],
    abbreviates: false,
};

parts!(Plan {});

const OPTIONS: &[Opt<Plan>] = &[
    value("listen", None, "ADDR", "host:port; port 0 is a free one (default 127.0.0.1:0)")
        .reads(|plan, arg| put(&mut plan.listen, arg.text()?.to_owned())),
    value("threads", None, "N", "number of threads (default: one per CPU)")
        .reads(|plan, arg| put(&mut plan.threads, arg.positive::<u64>()? as usize)),
    value("log", None, "FILE", "add a line of JSON for each request to FILE")
        .reads(|plan, arg| put(&mut plan.log, Some(arg.path()))),
    flag("progress", None, "totals on standard error, a line a second while requests come")
        .off(&["no-progress"])
        .sets(|plan, on| plan.progress = on),
];

static NULL: Group<Plan> = titled("The null server").with(&[
    value("keys", None, "N", "keys that a listing shows (default 0)").reads(|plan, arg| {
        plan.is_null(arg)?;
        put(&mut plan.keys, arg.number()?)
    }),
    value("object-size", None, "SIZE", "bytes of an object (default 4096)").reads(|plan, arg| {
        plan.is_null(arg)?;
        put(&mut plan.object_bytes, size(arg)?)
    }),
]);

const S3: Group<Plan> = titled("The server on a folder").with(&[
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

static CONDITIONS: Group<Plan> = titled("Conditions").with(&[
    value("latency", None, "DUR", "delay of each request")
        .reads(|plan, arg| put(&mut plan.conditions.latency, arg.duration("m", "50ms or 1.5s")?)),
    value("bandwidth", None, "RATE", "bytes a second over all connections and both directions")
        .reads(|plan, arg| {
            let rate = Some(size(arg)?).filter(|rate| *rate > 0);
            let rate = rate.ok_or_else(|| arg.wrong("is not a rate"))?;
            put(&mut plan.conditions.bandwidth, Some(rate))
        }),
    value("max-in-flight", None, "N", "requests that are served at once; others wait").reads(
        |plan, arg| put(&mut plan.conditions.in_flight_max, Some(arg.positive::<u64>()? as usize)),
    ),
    value("error-rate", None, "P", "this share of requests (0 to 1) gets 500 InternalError")
        .reads(|plan, arg| put(&mut plan.conditions.error_rate, share(arg)?)),
    value("seed", None, "N", "seed of random failures (default 0)")
        .reads(|plan, arg| put(&mut plan.conditions.seed, arg.number()?)),
    value("slow-down-above", None, "RPS", "503 SlowDown above this number of requests a second")
        .reads(|plan, arg| put(&mut plan.conditions.requests_per_s_max, Some(arg.positive()?))),
    value("fault", None, "SPEC", "a fault for chosen requests, see below")
        .takes(Takes::Values("SPEC"))
        .reads(|plan, arg| {
            let fault = Fault::parse(arg.text()?).map_err(|why| arg.wrong(&why))?;
            push(&mut plan.conditions.faults, fault)
        }),
]);

impl Plan {
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
        "" => {
            Err(format!("--{} is empty: give a key, or leave it out to have one made up", arg.name))
        }
        key => Ok(key.to_owned()),
    }
}

fn share(arg: &OptArg) -> Result<f64, String> {
    let share: Option<f64> = arg.text()?.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| arg.wrong("is not a share between 0 and 1"))
}

fn size(arg: &OptArg) -> Result<u64, String> {
    hakobu_core::number::parse_size(&arg.value, 1).map_err(|why| arg.wrong(why))
}

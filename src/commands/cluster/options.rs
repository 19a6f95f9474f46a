//! The options of `hakobu cluster`, and those that `sync` has for many machines.

use crate::objects;
use crate::options::{Group, Opt, Table, Typed, flag, parts, push, put, titled, value};
use hakobu_s3::Settings;
use std::ffi::OsString;
use std::time::Duration;

/// Default of `--stale-after`.
const STALE: Duration = Duration::from_secs(30);

/// The command line of `cluster` but for `plan`, which takes sync's options as well.
pub static TABLE: Table<Args> = Table {
    command: "cluster",
    about: "Run one transfer on many machines that an existing engine schedules",
    usage: "hakobu cluster plan --run RUN [SYNC OPTIONS] SRC... DST\n       \
            hakobu cluster work [OPTIONS] RUN\n       \
            hakobu cluster status [OPTIONS] RUN\n       \
            hakobu cluster collect [OPTIONS] RUN\n       \
            hakobu cluster submit ENGINE [OPTIONS] RUN [-- ENGINE'S OPTIONS]",
    after: "RUN is a folder that all machines share: a path (mode 0700), or \
            s3://BUCKET/PREFIX.\n\
            plan lists both sides and writes the necessary work into RUN. work does parts of it, \
            on any number of machines. collect finishes: an ordinary sync with the plan's \
            options, including deletions. `sync --cluster ENGINE:N` does all of this.\n\
            Exit codes: plan and collect as sync; work 0 nothing left, 75 try again, 65 no \
            attempt can succeed; collect 75 if workers are still running; status and submit 0, 1 \
            and 2.",
    options: &[&PLANNED, &WORKED, &WATCHED, &ENGINES, &objects::STORE],
    unbuilt: &[objects::UNBUILT],
    abbreviates: false,
};

/// An engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Processes of this machine.
    Local,
    /// Slurm.
    Slurm,
    /// Ray, at an address.
    Ray(String),
    /// Kubernetes: manifests are printed.
    Kubernetes,
    /// GNU parallel, with a file of hosts.
    Parallel(OsString),
}

impl Engine {
    /// `ENGINE:N`: an engine that can be waited for, and a number of workers.
    pub fn with_count(text: &str) -> Option<(Engine, u64)> {
        let (engine, count) = text.split_once(':')?;
        let engine = match engine {
            "local" => Engine::Local,
            "slurm" => Engine::Slurm,
            "ray" => Engine::Ray("auto".to_owned()),
            _ => return None,
        };
        let count = count.parse().ok().filter(|count| *count > 0)?;
        Some((engine, count))
    }
}

/// Values of the options.
#[derive(Clone, Debug, Default)]
pub struct Args {
    /// `--run`.
    pub run: Option<OsString>,
    /// `--workers`.
    pub workers: Option<u64>,
    /// `--shard-size`.
    pub shard_bytes: Option<u64>,
    /// `--cluster`.
    pub cluster: Option<(Engine, u64)>,
    /// `--inventory`.
    pub inventory: Option<OsString>,
    /// `--verify`.
    pub verify: bool,
    /// `--stale-after`.
    stale: Option<Duration>,
    /// `--json`.
    pub json: bool,
    /// `--textfile`.
    pub textfile: Option<OsString>,
    /// `--once`.
    pub once: bool,
    /// `--wait`.
    pub wait: bool,
    /// The engine that was named.
    pub engine: Option<Engine>,
    /// `--nodes`.
    pub nodes: Option<u64>,
    /// `--dry-run`.
    pub dry_run: bool,
    /// `--image`.
    pub image: Option<String>,
    /// `--volume`.
    pub volumes: Vec<String>,
    objects: objects::ObjectArgs,
}

parts!(Args { objects: objects::ObjectArgs });

impl Args {
    /// Whether nothing was said of many machines.
    pub fn is_alone(&self) -> bool {
        self.run.is_none()
            && self.workers.is_none()
            && self.shard_bytes.is_none()
            && self.cluster.is_none()
            && self.inventory.is_none()
            && !self.verify
    }

    /// Time after which a worker that gives no sign of life counts as gone.
    pub fn stale(&self) -> Duration {
        self.stale.unwrap_or(STALE)
    }

    /// The store of a run folder in S3.
    pub fn settings(&self) -> Settings {
        self.objects.settings()
    }
}

/// Options of `plan`, which `sync` has as well.
pub static PLANNED: Group<Args> = titled("Many machines").with(&[
    value("run", None, "RUN", "the run folder, which all machines share")
        .reads(|asked, given| put(&mut asked.run, Some(given.value.clone()))),
    value(
        "workers",
        None,
        "N",
        "expected number of workers (16); for work: limits are divided by it",
    )
    .reads(|asked, given| put(&mut asked.workers, Some(given.positive()?))),
    value(
        "shard-size",
        None,
        "SIZE",
        "minimum work of a shard: bytes, plus 64 KiB per entry (S3: 1 MiB)",
    )
    .reads(|asked, given| put(&mut asked.shard_bytes, Some(given.size()?.max(1)))),
    value("cluster", None, "ENGINE:N", "plan, run N workers (local:, slurm:, ray:), collect")
        .reads(|asked, given| {
            let parsed = given.value.to_str().and_then(Engine::with_count);
            let refused = || given.refuse("is not ENGINE:N such as local:4, slurm:16 or ray:8");
            put(&mut asked.cluster, Some(parsed.ok_or_else(refused)?))
        }),
    value(
        "inventory",
        None,
        "MANIFEST",
        "plan: names of SRC from an S3 Inventory (manifest.json, local or s3://)",
    )
    .reads(|asked, given| put(&mut asked.inventory, Some(given.value.clone()))),
    flag(
        "verify",
        None,
        "compare all transferred entries byte for byte, on the workers (--cluster, work, collect, submit)",
    )
    .sets(|asked, on| asked.verify = on),
]);

const WORKED: &[Opt<Args>] = &[
    value(
        "stale-after",
        None,
        "TIME",
        "time without a heartbeat after which a worker counts as gone (30s)",
    )
    .reads(|asked, given| {
        let stale = given.duration("h", "30s or 2m")?;
        if stale < Duration::from_secs(2) {
            return Err(given.refuse("is too short: give at least 2s"));
        }
        put(&mut asked.stale, Some(stale))
    }),
    flag("wait", None, "collect: wait until all workers have ended")
        .sets(|asked, on| asked.wait = on),
];

static WATCHED: Group<Args> = titled("Output").with(&[
    flag("json", None, "status: JSON, one object").sets(|asked, on| asked.json = on),
    flag("once", None, "status: show it once, also on a terminal")
        .sets(|asked, on| asked.once = on),
    value("textfile", None, "FILE", "status: write it for Prometheus' node exporter, too")
        .reads(|asked, given| put(&mut asked.textfile, Some(given.value.clone()))),
]);

static ENGINES: Group<Args> = titled("Engines of submit").with(&[
    value("local", None, "N", "N workers on this machine")
        .reads(|asked, given| count(asked, Engine::Local, given.positive()?)),
    flag("slurm", None, "an array of jobs, and one that collects")
        .sets(|asked, _| asked.engine = Some(Engine::Slurm)),
    value("ray", None, "ADDRESS", "tasks of a Ray cluster, one a node ('auto': the running one)")
        .reads(|asked, given| put(&mut asked.engine, Some(Engine::Ray(given.text()?.to_owned())))),
    flag("k8s", None, "print the Jobs for Kubernetes")
        .sets(|asked, _| asked.engine = Some(Engine::Kubernetes)),
    value("parallel", None, "HOSTS", "GNU parallel over ssh, with its file of hosts")
        .reads(|asked, given| put(&mut asked.engine, Some(Engine::Parallel(given.value.clone())))),
    value("nodes", None, "N", "workers to start")
        .reads(|asked, given| put(&mut asked.nodes, Some(given.positive()?))),
    flag("dry-run", Some('n'), "print what would be submitted")
        .sets(|asked, on| asked.dry_run = on),
    value("image", None, "IMAGE", "--k8s: the image with hakobu in it")
        .reads(|asked, given| put(&mut asked.image, Some(given.text()?.to_owned()))),
    value(
        "volume",
        None,
        "CLAIM:PATH",
        "--k8s: a PersistentVolumeClaim and its path; several times",
    )
    .takes(crate::options::Takes::Values("CLAIM:PATH"))
    .reads(|asked, given| push(&mut asked.volumes, given.text()?.to_owned())),
]);

fn count(asked: &mut Args, engine: Engine, nodes: u64) -> Result<(), String> {
    (asked.engine, asked.nodes) = (Some(engine), Some(nodes));
    Ok(())
}

/// Options of each subcommand; those of the store of the run folder go with all.
static OWN: [(&str, &[&str]); 4] = [
    ("work", &["workers", "stale-after", "verify"]),
    ("status", &["json", "once", "textfile"]),
    ("collect", &["stale-after", "wait", "json", "verify"]),
    (
        "submit",
        &[
            "local",
            "slurm",
            "ray",
            "k8s",
            "parallel",
            "nodes",
            "dry-run",
            "image",
            "volume",
            "stale-after",
            "verify",
        ],
    ),
];

/// An option that is none of a subcommand.
pub(super) fn misplaced(verb: &str, typed: &Typed) -> Option<&'static str> {
    let own = OWN.iter().find(|(name, _)| *name == verb).map_or(&[][..], |(_, own)| *own);
    let others = typed.options.iter().filter(|given| !objects::STORE.has(given));
    others.map(|given| given.name).find(|name| !own.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_a_count() {
        assert_eq!(Engine::with_count("local:4"), Some((Engine::Local, 4)));
        assert_eq!(Engine::with_count("slurm:16"), Some((Engine::Slurm, 16)));
        for other in ["local", "local:0", "local:x", "k8s:3", ":3", ""] {
            assert_eq!(Engine::with_count(other), None, "{other}");
        }
    }
}

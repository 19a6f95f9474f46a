//! `sync --cluster ENGINE:N`: plan, workers, collect in one command.

use super::collect::{self, CollectOptions};
use super::options::{Args, Engine};
use super::submit::{self, WorkerOrder};
use super::{absolute, open_run, plan, report_error};
use crate::exit;
use crate::show::{Wanted, output};
use hakobu_cluster::verify;
use hakobu_core::error::quoted;
use hakobu_transfer::run::Spec;
use std::ffi::OsString;

/// Runs a transfer on many machines. Without `--run` the folder is made in the working directory,
/// which they share then, and removed when all went well.
pub fn run(arguments: &[OsString], spec: Spec, wanted: Wanted, args: &Args) -> u8 {
    let Some((engine, nodes)) = args.cluster.clone() else {
        output::message("--run, --workers, --inventory and --verify go with --cluster ENGINE:N");
        output::message("hint: hakobu verify compares two trees");
        return exit::SYNC_USAGE;
    };
    if args.verify
        && let Err(fatal) = verify::refuse_unfit(&spec)
    {
        output::message(&fatal.message);
        return exit::SYNC_USAGE;
    }
    let mut args = args.clone();
    let own = args.run.is_none();
    if own {
        let name = format!("hakobu-run-{:08x}-{:08x}", std::process::id(), nanos());
        args.run = Some(name.into());
    }
    args.workers = args.workers.or(Some(nodes));
    let Some(run) = args.run.as_deref().map(absolute) else { return exit::SYNC_USAGE };
    let settings = spec.objects.target.clone();
    let (planned, plan) = match plan::make(arguments, &spec, wanted, &args) {
        Ok(made) => made,
        Err(code) => {
            if own {
                drop(std::fs::remove_dir_all(&run));
            }
            return code;
        }
    };
    if planned == exit::SYNC_INTERRUPTED {
        return planned;
    }
    let count = plan.shards.len() as u64;
    let start = |verifies: bool| {
        let nodes = nodes.min(count);
        let rest = Vec::new();
        let order = WorkerOrder { run: run.clone(), nodes, stale: args.stale(), verifies, rest };
        let ran = match &engine {
            _ if count == 0 => Ok(()),
            Engine::Local => submit::run_local(&order),
            Engine::Slurm => submit::run_slurm(&order),
            Engine::Ray(address) => submit::run_ray(&order, address, false),
            Engine::Kubernetes | Engine::Parallel(_) => Ok(()),
        };
        // Continue after failures of workers: collect transfers the rest.
        if let Err(message) = ran {
            output::message(&message);
        }
    };
    let collect = |verifies: bool| {
        let options = CollectOptions { stale: args.stale(), waits: true, json: false, verifies };
        let opened = open_run(&run, &settings).map_err(report_error);
        opened.and_then(|opened| collect::finish(opened, options)).unwrap_or_else(|code| code)
    };
    start(false);
    let mut code = collect(false);
    if args.verify && collect::is_collected(code) {
        start(true);
        code = collect(true);
    }
    if own && code == exit::OK {
        if let Err(error) = std::fs::remove_dir_all(&run) {
            output::message(&format!("cannot remove {}: {error}", quoted(&run)));
        }
    } else if own {
        output::message(&format!("the run folder stays: {}", quoted(&run)));
    }
    code
}

fn nanos() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.subsec_nanos())
}

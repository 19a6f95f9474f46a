//! `hakobu cluster submit`: hands workers to an engine.

use super::opened::{Invocation, VERSION, parse, unusable};
use super::options::Engine;
use super::order::{Order, ending, shell};
use super::{kubernetes, slurm};
use crate::commands::line::told;
use crate::show::output;
use crate::{exit, names};
use hakobu_cluster::plan::REPORT;
use hakobu_cluster::{Plan, folder};
use hakobu_core::error::quoted;
use std::ffi::{OsStr, OsString};
use std::process::{Child, Command, Stdio};

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let Invocation { args, run, rest } = parse("submit", arguments, exit::USAGE)?;
    let usage = |message: &str| told(exit::USAGE, message);
    let engine = args.engine.clone().ok_or_else(|| {
        usage("give an engine: --local N, --slurm, --ray ADDRESS, --k8s, --parallel HOSTS")
    })?;
    let nodes = match (&engine, args.nodes) {
        (_, Some(nodes)) => nodes,
        // One worker a host.
        (Engine::Parallel(hosts), None) => count_hosts(hosts).map_err(|why| usage(&why))?,
        (_, None) => return Err(usage("say how many workers to start: --nodes N")),
    };
    let opened = folder::open(&run, &args.settings(), false);
    let read = opened.and_then(|folder| {
        Plan::read(&*folder, VERSION)?;
        Ok(folder.read(REPORT)?.is_some())
    });
    let is_collected = read.map_err(|why| {
        unusable(why);
        exit::FAILURE
    })?;
    let slurm = engine == Engine::Slurm;
    if args.verify && !is_collected && !slurm {
        return Err(usage("the run was not collected yet: --verify comes after that"));
    }
    // Slurm waits for one job after the other, so that all of them can be submitted at once.
    let chain = slurm && !(args.verify && is_collected);
    let verifies = args.verify && !chain;
    let order = Order { run, nodes, stale: args.stale(), verifies, rest };
    let done = match engine {
        Engine::Local if args.dry_run => execute(&order.work(), true, ""),
        Engine::Local => local(&order),
        Engine::Slurm => {
            let mut orders = vec![order];
            if chain && args.verify {
                orders.extend(orders.first().map(Order::verifying));
            }
            slurm::submit(&orders, args.dry_run)
        }
        Engine::Ray(address) => ray(&order, &address, args.dry_run),
        Engine::Kubernetes => kubernetes::manifests(&order, args.image.as_deref(), &args.volumes)
            .map(|text| output::text(&text)),
        Engine::Parallel(hosts) => parallel(&order, &hosts, args.dry_run),
    };
    done.map(|()| exit::OK).map_err(|message| told(exit::FAILURE, &message))
}

/// Runs workers of this machine to their end.
///
/// # Errors
/// One of them could not be started, or failed.
pub fn local(order: &Order) -> Result<(), String> {
    let words = order.work();
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let mut workers: Vec<Child> = Vec::new();
    let mut failed = None;
    for _ in 0..order.nodes {
        match Command::new(program).args(arguments).stdin(Stdio::null()).spawn() {
            Ok(worker) => workers.push(worker),
            Err(error) => failed = Some(format!("cannot start a worker: {error}")),
        }
    }
    for worker in &mut workers {
        match worker.wait() {
            Ok(status) if status.success() => {}
            Ok(status) => failed = Some(format!("a worker failed: {}", ending(status))),
            Err(error) => failed = Some(format!("cannot wait for a worker: {error}")),
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Runs a command of an engine, or in a dry run prints it.
///
/// # Errors
/// It cannot be started, or fails.
fn execute(words: &[OsString], dry_run: bool, hint: &str) -> Result<(), String> {
    if dry_run {
        output::text(&format!("{}\n", shell(words)));
        return Ok(());
    }
    let (program, arguments) = words.split_first().ok_or("there is no program")?;
    let shown = quoted(program);
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} failed: {}", ending(status))),
        Err(error) => Err(format!("cannot run {shown}: {error}\nhint: {hint}")),
    }
}

/// Runs workers as tasks of Ray, one a node, to their end.
///
/// # Errors
/// The module `hakobu.ray` is not there, or its driver fails.
pub fn ray(order: &Order, address: &str, dry_run: bool) -> Result<(), String> {
    let python = std::env::var_os("HAKOBU_PYTHON").unwrap_or_else(|| "python3".into());
    let mut words: Vec<OsString> = vec![python, "-m".into(), "hakobu.ray".into()];
    words.extend(["--address", address, "--nodes"].map(OsString::from));
    words.extend([order.nodes.to_string().as_str(), "--"].map(OsString::from));
    words.extend(order.work());
    execute(&words, dry_run, "install the Python package hakobu with Ray beside it")
}

fn count_hosts(hosts: &OsStr) -> Result<u64, String> {
    let text = names::read_text(hosts)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let count = lines.filter(|line| !line.starts_with('#')).count() as u64;
    match count {
        0 => Err(format!("{} names no host", quoted(hosts))),
        count => Ok(count),
    }
}

fn parallel(order: &Order, hosts: &OsStr, dry_run: bool) -> Result<(), String> {
    let mut words: Vec<OsString> = vec!["parallel".into(), "--sshloginfile".into()];
    // One worker a host at a time; one that ended with 75 is tried again.
    let options = ["--jobs", "1", "--retries", "5", "--line-buffer", "--tag"];
    words.push(hosts.to_owned());
    words.extend(options.map(OsString::from));
    words.extend(order.rest.iter().cloned());
    words.push(format!("{} # {{}}", shell(&order.work())).into());
    words.push(":::".into());
    words.extend((1..=order.nodes).map(|number| OsString::from(number.to_string())));
    execute(&words, dry_run, "install GNU parallel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        let words = ["a", "b c", "d'e", "", "--x=1"].map(OsString::from);
        assert_eq!(shell(&words), "a 'b c' 'd'\\''e' '' --x=1");
    }
}

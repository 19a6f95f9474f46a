//! Fingerprint of the environment of a measurement: programs, machine, background load, cost of starting a
//! job. It identifies neither the machine nor its users.

use crate::campaign::files::nearest_existing;
use crate::campaign::run::local::LocalBench;
use crate::campaign::{CampaignPlan, tools};
use crate::results::{ResultsHeader, SCHEMA, ToolFingerprint};
use hakobu_core::number::bytes;
use hakobu_core::unit::Machine;
use hakobu_explain::sample::{Limits, Sampler, Watched};
use hakobu_sys::{AsFd, disk as room, host};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Programs besides the tools that are known to support `--version`; others are not started.
const SAY_VERSION: [&str; 25] = [
    "bash",
    "cat",
    "cmp",
    "cpio",
    "dd",
    "diff",
    "find",
    "grep",
    "gzip",
    "hakobu",
    "ls",
    "md5sum",
    "mv",
    "python3",
    "s4cmd",
    "sed",
    "sha256sum",
    "sleep",
    "sort",
    "tar",
    "touch",
    "true",
    "xargs",
    "xz",
    "zstd",
];
/// Runs of a no-op command to measure the cost of starting a process.
const STARTS: usize = 21;
/// Jobs of GNU parallel for the same measurement.
const PARALLEL_JOBS: usize = 20;
/// Time for which the load of the idle machine is sampled.
const IDLE: Duration = Duration::from_secs(1);

/// Facts about a campaign besides its plan.
#[derive(Clone, Debug, Default)]
pub struct HeaderFacts {
    /// Program and version.
    pub program: String,
    /// Start time, RFC 3339 in UTC.
    pub start: String,
    /// Requested scale.
    pub scale: f64,
    /// Name of the machine; `None` to derive one from its hardware.
    pub machine_name: Option<String>,
}

/// Header of the results of a campaign. `instance_type` is the cloud's name for the machine.
pub fn header(
    plan: &CampaignPlan,
    facts: &HeaderFacts,
    instance_type: fn() -> Option<String>,
    local: &LocalBench,
) -> ResultsHeader {
    let mut machine = machine(&plan.places, instance_type());
    if let Some(name) = &facts.machine_name {
        machine.name.clone_from(name);
    }
    let words = plan.cells.iter().filter_map(|planned| planned.launch.argv.first());
    let has_shell = words.into_iter().any(|word| word == "sh");
    let parallel = plan.programs.iter().find(|(_, path)| is_named(path, "parallel"));
    ResultsHeader {
        schema: SCHEMA,
        program: facts.program.clone(),
        start: facts.start.clone(),
        seed: plan.repeat.seed,
        scale: facts.scale,
        machine,
        tools: plan.programs.iter().map(|(name, path)| tool(name, path, local)).collect(),
        cells: plan.cells.iter().map(|planned| planned.cell.clone()).collect(),
        start_costs_s: start_costs(local, has_shell, parallel.map(|(_, path)| path.as_path())),
        idle_load: local.idle_load(IDLE),
        ..plan.header.clone()
    }
}

/// Describes the machine and the volumes of places, by label.
pub fn machine(places: &BTreeMap<String, PathBuf>, instance_type: Option<String>) -> Machine {
    let (kernel, arch) = host::kernel();
    let sample = Sampler::new(Watched::Machine).read();
    let limits = Limits::read();
    let cpu_model = host::cpu_model();
    let name = instance_type.clone().or_else(|| cpu_model.clone());
    let mut said = BTreeSet::new();
    if let Some(quota) = limits.quota_cpus {
        said.insert(format!("a quota of {quota} CPUs"));
    }
    if let Some(bytes) = limits.memory_bytes {
        said.insert(format!("{bytes} bytes of memory, page cache included"));
    }
    for (label, path) in places {
        let Some(disk) = hakobu_sys::disk::below_path(nearest_existing(path)) else { continue };
        for ceiling in limits.io_ceilings(disk.dev) {
            let what = match (ceiling.operations, ceiling.writes) {
                (true, true) => "writes",
                (true, false) => "reads",
                (false, true) => "bytes written",
                (false, false) => "bytes read",
            };
            let (name, from) = (&disk.name, ceiling.from);
            let per_s = ceiling.per_s;
            said.insert(format!("{per_s} {what} per second on {name} (volume {label}, {from})"));
        }
    }
    Machine {
        name: name.unwrap_or_else(|| arch.clone()),
        kernel,
        arch,
        cpu_model,
        cpus: limits.cpus(),
        cpus_online: sample.cpus.len(),
        memory_bytes: sample.memory.total_bytes,
        instance_type,
        volumes: places.iter().map(|(label, path)| (label.clone(), volume(path))).collect(),
        limits: said.into_iter().collect(),
    }
}

/// File system and disk of a place, in words.
fn volume(path: &Path) -> String {
    let path = nearest_existing(path);
    let mut words = Vec::new();
    if let Some(mount) = host::mount(path) {
        words.push(format!("{} ({})", mount.kind, mount.options.join(",")));
    }
    if let Some(disk) = host::disk(path) {
        let mut about = vec![disk.name];
        about.extend(disk.model);
        about.extend(disk.scheduler.map(|scheduler| format!("scheduler {scheduler}")));
        about
            .extend(disk.rotational.map(|turns| {
                if turns { "rotating".to_owned() } else { "not rotating".to_owned() }
            }));
        words.push(about.join(", "));
    }
    let mut words = if words.is_empty() { "unknown".to_owned() } else { words.join(" on ") };
    let space = File::open(path).ok().and_then(|dir| room::space(dir.as_fd()).ok());
    if let Some(space) = space {
        let (free, used) = (bytes(space.free_bytes), bytes(space.used_bytes));
        words.push_str(&format!("; {free} free, {used} used"));
    }
    words
}

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|file| file == name)
}

/// Describes a program.
fn tool(name: &str, words: &Path, local: &LocalBench) -> ToolFingerprint {
    let Some(path) = tools::find_program(words, &tools::folders()) else {
        return ToolFingerprint { name: name.to_owned(), ..ToolFingerprint::default() };
    };
    ToolFingerprint {
        name: name.to_owned(),
        version: version(&path, local).unwrap_or_default(),
        path: without_home(&path),
        sha256: sha256(&path).unwrap_or_default(),
    }
}

fn version(path: &Path, local: &LocalBench) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let ask: &[&str] = match (tools::known_program(name), name) {
        (Some(program), _) => program.version,
        _ if SAY_VERSION.contains(&name) => &["--version"],
        (_, "mc") => &["version"],
        (_, "fpart") => &["-h"],
        _ => return None,
    };
    local.first_line(&[&[path.to_str()?], ask].concat())
}

/// A path with the home directory replaced by `~`.
fn without_home(path: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}

/// SHA-256 of a file (FIPS 180-4), hexadecimal.
fn sha256(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => hash.update(&buffer[..got]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(hakobu_core::percent::hex(&hash.finalize()))
}

/// Cost of starting one job, in each way that takes part.
fn start_costs(local: &LocalBench, shell: bool, parallel: Option<&Path>) -> BTreeMap<String, f64> {
    let mut costs = BTreeMap::new();
    costs.extend(local.start_cost_s(&["true"], STARTS).map(|cost| ("exec".to_owned(), cost)));
    if shell {
        let cost = local.start_cost_s(&["sh", "-c", "true"], STARTS);
        costs.extend(cost.map(|cost| ("sh".to_owned(), cost)));
    }
    if let Some(parallel) = parallel.and_then(Path::to_str) {
        // Measure with many jobs and with one: the difference excludes parallel's own start.
        let jobs: Vec<String> = (1..=PARALLEL_JOBS).map(|number| number.to_string()).collect();
        let mut words = vec![parallel, "-j1", "true", ":::"];
        words.extend(jobs.iter().map(String::as_str));
        let many = local.start_cost_s(&words, 3);
        let one = local.start_cost_s(&words[..5], 3);
        costs.extend(many.zip(one).map(|(many, one)| {
            ("parallel".to_owned(), ((many - one) / (PARALLEL_JOBS - 1) as f64).max(0.0))
        }));
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn local() -> LocalBench {
        LocalBench::new("false".into(), None, Arc::new(AtomicBool::new(false)))
    }

    #[test]
    fn programs_are_found_and_asked() {
        let local = local();
        let known = tool("copy", Path::new("cp"), &local);
        assert_eq!(known.name, "copy");
        assert!(known.path.ends_with("/cp") && known.version.contains("cp"), "{known:?}");
        assert!(known.sha256.len() == 64 && known.sha256.bytes().all(|b| b.is_ascii_hexdigit()));
        // An unknown program is not started.
        let other = tool("sh", Path::new("sh"), &local);
        assert!(other.version.is_empty() && !other.sha256.is_empty(), "{other:?}");
        let none = tool("none", Path::new("/no/such/program"), &local);
        assert_eq!(none, ToolFingerprint { name: "none".into(), ..ToolFingerprint::default() });
    }

    #[test]
    fn hashes_are_sha256() {
        let path = std::env::temp_dir().join(format!("hakobu-hash-{}", std::process::id()));
        std::fs::write(&path, "abc").unwrap();
        // Example B.1 of FIPS 180-2.
        assert_eq!(
            sha256(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(sha256(&path), None);
    }

    #[test]
    fn machines_are_described_and_not_named() {
        let places = BTreeMap::from([
            ("here".to_owned(), std::env::temp_dir().join("not/yet/there")),
            ("root".to_owned(), PathBuf::from("/")),
        ]);
        let machine = machine(&places, Some("m5.large".into()));
        assert_eq!((machine.name.as_str(), machine.volumes.len()), ("m5.large", 2));
        assert!(machine.cpus > 0.0 && machine.cpus_online > 0 && machine.memory_bytes > 0);
        let text = serde_json::to_string(&machine).unwrap();
        let name = host::name();
        assert!(name.len() < 4 || !text.contains(&name), "{text}");
        let unnamed = super::machine(&BTreeMap::new(), None);
        assert!(!unnamed.name.is_empty() && unnamed.instance_type.is_none());
    }

    #[test]
    fn starting_costs_something() {
        let costs = start_costs(&local(), true, None);
        assert_eq!(costs.keys().collect::<Vec<_>>(), ["exec", "sh"]);
        assert!(costs.values().all(|cost| *cost > 0.0 && *cost < 1.0), "{costs:?}");
        assert_eq!(local().start_cost_s(&["false"], 3), None);
    }
}

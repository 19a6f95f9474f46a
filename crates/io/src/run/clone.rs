//! One clone of a job: everything is made ready (its place on the machine, its files, its engine), then it waits for the
//! others, works, and says what it measured.

use super::drive::{CloneContext, CloneLoop};
use super::meter::{CloneCounters, Meter};
use super::peers::{Peers, StartGate};
use crate::engine;
use crate::engine::{
    Atomic, CallEngine, Cutting, Failure, Mmap, NameEngine, Null, NullQueue, PageFault, Positioned,
    Seeking, Taking, Trimming, Vectored, with_threads,
};
use crate::job::{CpuBurn, EngineKind, Job};
use crate::layout::CloneFiles;
use crate::outcome::Outcome;
use crate::pattern::Extent;
use crate::random::{Random, seed_of};
use hakobu_sys::aio::Context;
use hakobu_sys::blocks::size_bytes;
use hakobu_sys::memory::{self, MemoryPolicy};
use hakobu_sys::process::{IoClass, set_io_priority};
use hakobu_sys::ring::{Ring, Settings};
use hakobu_sys::{AsFd, OwnedFd, blocks, cache, errno, proc};
use std::borrow::Cow;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A clone to be run.
pub(super) struct CloneTask<'a> {
    pub(super) job: &'a Job,
    pub(super) files: &'a CloneFiles,
    /// Names of its files, none where nothing is opened.
    pub(super) paths: Vec<&'a Path>,
    pub(super) counters: CloneCounters,
    pub(super) stop: &'a AtomicBool,
    /// The jobs that run with it.
    pub(super) peers: &'a Peers,
}

/// A clone that waits to be told to stop looks so often whether it was.
const NAP: Duration = Duration::from_millis(50);
/// And one that waits for another job whether that has ended.
const LOOK: Duration = Duration::from_millis(1);

impl CloneTask<'_> {
    /// Runs it on the calling thread, from the opening of its files to their closing.
    pub(super) fn run(&self, gate: &StartGate) -> Outcome {
        let (job, clone) = (self.files.job, self.files.clone);
        let trims = self.job.trims;
        let mut outcome = Outcome { job, clone, trims, ..Outcome::default() };
        let mut waited = false;
        let done = self.work(gate, &mut waited, &mut outcome);
        if !waited {
            // The others are not to wait for it for ever.
            gate.pass();
        }
        if let Err(Failure { errno, sentence }) = done {
            outcome.error = Some((errno, sentence));
        }
        self.peers.end(job);
        outcome
    }

    fn work(
        &self,
        gate: &StartGate,
        waited: &mut bool,
        outcome: &mut Outcome,
    ) -> Result<(), Failure> {
        let job = self.job;
        if job.among.after.is_some() {
            // It is not there before the other one has ended: no file is open, nothing is forgotten.
            *waited = true;
            if !gate.pass() || !self.wait_for_other() {
                return Ok(());
            }
        }
        bind(job, self.files.clone)?;
        hakobu_sys::clock::sleep_precisely();
        let files = self.open()?;
        let extents = self.extents(&files)?;
        let bytes = job.block_bytes.into_iter().max().unwrap_or_default();
        let bytes = usize::try_from(bytes).map_err(|_| no_engine(&Error::other("too large")))?;
        let place = CloneContext {
            job,
            clone: self.files.clone,
            files: &files,
            paths: &self.paths,
            extents: &extents,
            peers: self.peers,
        };
        let mut begin = Begin { task: self, gate, waited, outcome, place };
        match job.engine {
            _ if job.offload && !job.trims => begin.with_threads(&files, bytes),
            EngineKind::CpuIo => begin.burn(),
            EngineKind::FileCreate
            | EngineKind::FileStat
            | EngineKind::FileDelete
            | EngineKind::DirCreate
            | EngineKind::DirStat
            | EngineKind::DirDelete => {
                begin.with_new(NameEngine::new(job.engine.named(), job.stat, &self.paths))
            }
            EngineKind::Null if job.depth <= 1 => begin.with_new(Null::new(bytes)),
            EngineKind::Null => begin.with_new(NullQueue::new(job.depth, bytes)),
            _ if job.trims => begin.with_new(CallEngine::<Trimming>::new(&files, bytes)),
            EngineKind::Falloc => begin.with_new(CallEngine::<Taking>::new(&files, bytes)),
            EngineKind::Ftruncate => begin.with_new(CallEngine::<Cutting>::new(&files, bytes)),
            EngineKind::PageFault => begin.with_new(PageFault::new(&extents, bytes)),
            EngineKind::Psync => begin.with_new(CallEngine::<Positioned>::new(&files, bytes)),
            EngineKind::Pvsync2 if job.atomic => {
                begin.with_new(CallEngine::<Atomic>::new(&files, bytes))
            }
            EngineKind::Pvsync2 => begin.with_new(CallEngine::<Vectored>::new(&files, bytes)),
            EngineKind::Sync => begin.with_new(CallEngine::<Seeking>::new(&files, bytes)),
            EngineKind::Mmap => {
                if job.direct {
                    let why =
                        "ioengine=mmap goes through the page cache, always: not with direct=1";
                    return Err(Failure { errno: errno::EINVAL, sentence: why.into() });
                }
                begin.with_new(Mmap::new(&files, &extents, job.rw.writes, bytes))
            }
            EngineKind::IoUring => {
                let settings = Settings {
                    depth: job.depth.max(1),
                    buffer_bytes: bytes,
                    fixed_buffers: job.fixed_buffers,
                    register_files: job.register_files,
                    atomic: job.atomic,
                };
                begin.with(Ring::new(&files, settings).map_err(|error| no_ring(&error, job))?)
            }
            EngineKind::Libaio => begin.with(context(&files, job, job.depth.max(1), bytes)?),
        }
    }

    /// It is to end.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.counters.is_over()
    }

    /// Waits until the job before it has ended (`wait_for`). False if all is over meanwhile.
    fn wait_for_other(&self) -> bool {
        while self.peers.waits(self.files.job) {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }
}

/// A clone that is about to begin.
struct Begin<'a, 'b> {
    task: &'a CloneTask<'a>,
    gate: &'b StartGate,
    waited: &'b mut bool,
    outcome: &'b mut Outcome,
    place: CloneContext<'a>,
}

impl Begin<'_, '_> {
    /// Waits for the others, and does the job with this engine.
    fn with<E: engine::Engine>(&mut self, engine: E) -> Result<(), Failure> {
        let task = self.task;
        let meter = Meter::new(task.job, &task.counters, task.stop, E::WAITS);
        let mut drive = CloneLoop::new(engine, &self.place, meter);
        if !self.starts() {
            return Ok(());
        }
        let done = drive.work();
        let outcome = &mut *self.outcome;
        (outcome.verified, outcome.verify_errors) = (drive.verified, drive.wrong);
        outcome.tolerated = drive.tolerated;
        let wrong = drive.first_wrong.take();
        drive.meter.finish(outcome);
        outcome.depth_found = done?;
        let many = outcome.verify_errors;
        wrong.map_or(Ok(()), |first| {
            let sentence = format!("verify: {many} wrong blocks, the first is {first}");
            Err(Failure { errno: errno::EILSEQ, sentence })
        })
    }

    /// The same with an engine that is to be made ready first.
    fn with_new<E: engine::Engine>(&mut self, engine: std::io::Result<E>) -> Result<(), Failure> {
        self.with(engine.map_err(|error| no_engine(&error))?)
    }

    /// Does the job with threads that submit its blocks, each with an engine of its own.
    fn with_threads(&mut self, files: &[OwnedFd], bytes: usize) -> Result<(), Failure> {
        let job = self.task.job;
        match job.engine {
            EngineKind::Libaio => self.offload(|| context(files, job, 1, bytes)),
            EngineKind::Null => self.offload_new(|| Null::new(bytes)),
            EngineKind::Pvsync2 if job.atomic => {
                self.offload_new(|| CallEngine::<Atomic>::new(files, bytes))
            }
            EngineKind::Pvsync2 => self.offload_new(|| CallEngine::<Vectored>::new(files, bytes)),
            _ => self.offload_new(|| CallEngine::<Positioned>::new(files, bytes)),
        }
    }

    fn offload_new<E: engine::Engine + Send>(
        &mut self,
        engine: impl Fn() -> std::io::Result<E>,
    ) -> Result<(), Failure> {
        self.offload(|| engine().map_err(|error| no_engine(&error)))
    }

    fn offload<E: engine::Engine + Send>(
        &mut self,
        engine: impl Fn() -> Result<E, Failure>,
    ) -> Result<(), Failure> {
        let count = self.task.job.depth.max(1);
        let engines = (0..count).map(|_| engine()).collect::<Result<Vec<_>, _>>()?;
        let done = with_threads(engines, |engine| self.with(engine));
        done.map_err(|error| no_engine(&error))?
    }

    /// Keeps the CPU busy.
    fn burn(&mut self) -> Result<(), Failure> {
        let task = self.task;
        let mut meter = Meter::new(task.job, &task.counters, task.stop, true);
        if self.starts() {
            burn(&mut meter, &task.job.cpu, task.peers);
            meter.finish(self.outcome);
        }
        Ok(())
    }

    /// Everything is ready: waits for the others, and for its time. False if all is over meanwhile.
    fn starts(&mut self) -> bool {
        // A job that waited for another one has passed the gate already.
        if !*self.waited {
            *self.waited = true;
            if !self.gate.pass() {
                return false;
            }
        }
        self.delay()
    }

    /// Waits before it begins (`startdelay`). False if all is over meanwhile.
    fn delay(&self) -> bool {
        let until = Instant::now() + own_delay(self.task.job, self.task.files.clone);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.task.is_over() {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

/// Pause of a clone before it begins: of a range, by chance.
fn own_delay(job: &Job, clone: u32) -> Duration {
    let Some(most) = job.start_delay_max else { return job.start_delay };
    let base = if job.random_repeat { job.seed } else { fastrand::u64(..) };
    let mut random = Random::new(base ^ seed_of(&job.name), u64::from(clone));
    job.start_delay + most.saturating_sub(job.start_delay).mul_f64(random.fraction())
}

/// A context of asynchronous operations.
fn context<'f>(
    files: &'f [OwnedFd],
    job: &Job,
    depth: u32,
    bytes: usize,
) -> Result<Context<'f>, Failure> {
    let mut context = Context::new(files, depth, bytes).map_err(|error| no_context(&error))?;
    if job.atomic {
        context.set_atomic();
    }
    Ok(context)
}

fn no_engine(error: &Error) -> Failure {
    Failure::of(error, format!("making the engine ready: {error}"))
}

fn no_ring(error: &Error, job: &Job) -> Failure {
    let why = match error.raw_os_error() {
        Some(errno::ENOSYS) => ": this kernel has no io_uring, or one before Linux 5.6",
        Some(errno::EPERM) => ": it is forbidden here (seccomp, or kernel.io_uring_disabled)",
        Some(errno::ENOMEM) if job.fixed_buffers => ": RLIMIT_MEMLOCK allows no such buffers",
        _ => "",
    };
    Failure::of(error, format!("ioengine=io_uring: {error}{why}"))
}

fn no_context(error: &Error) -> Failure {
    let why = match error.raw_os_error() {
        Some(errno::ENOSYS) => ": this kernel has no asynchronous I/O",
        Some(errno::EAGAIN) => ": more in flight than fs.aio-max-nr allows",
        _ => "",
    };
    Failure::of(error, format!("ioengine=libaio: {error}{why}"))
}

impl CloneTask<'_> {
    /// Returns the parts of its files that it works on; for files that an earlier job filled, their present extents.
    fn extents(&self, files: &[OwnedFd]) -> Result<Cow<'_, [Extent]>, Failure> {
        let planned = &self.files.extents;
        if !self.files.follows {
            return Ok(Cow::Borrowed(planned));
        }
        let largest = self.job.block_bytes.into_iter().max().unwrap_or(1).max(1);
        let there = |((file, extent), path): ((&OwnedFd, &Extent), &&Path)| {
            let here = |errno, why: &dyn std::fmt::Display| Failure {
                errno,
                sentence: format!("{}: {why}", path.display()),
            };
            let bytes =
                size_bytes(file.as_fd()).map_err(|error| here(errno::of(&error), &error))?;
            let left = bytes.unwrap_or(0).saturating_sub(extent.begin_bytes).min(extent.bytes);
            match left < largest {
                true => Err(here(0, &"the job that fills it has left no whole block there")),
                false => Ok(Extent { bytes: left, ..*extent }),
            }
        };
        let found = files.iter().zip(planned).zip(&self.paths).map(there);
        found.collect::<Result<Vec<_>, _>>().map(Cow::Owned)
    }

    /// Opens its files, and lets the page cache forget them (`invalidate`).
    fn open(&self) -> Result<Vec<OwnedFd>, Failure> {
        let job = self.job;
        if job.engine.is_of_names() {
            return Ok(Vec::new());
        }
        // Ranges have no sectors.
        let of_ranges =
            matches!(job.engine, EngineKind::Falloc | EngineKind::Ftruncate) || job.trims;
        let direct = job.direct && !of_ranges;
        let writes = job.rw.writes || job.engine == EngineKind::Falloc;
        let open = |path: &&Path| {
            let file = blocks::open_synced(path, writes, direct, job.sync).map_err(|error| {
                let errno = errno::of(&error);
                let mut sentence = format!("opening {}: {error}", path.display());
                if direct && errno == errno::EINVAL {
                    sentence += " (its file system has no O_DIRECT)";
                }
                Failure { errno, sentence }
            })?;
            if job.invalidate {
                // As far as it can: what others have mapped or not written back stays.
                let _ = cache::forget(file.as_fd());
            }
            Ok(file)
        };
        self.paths.iter().map(open).collect()
    }
}

/// Binds the calling thread.
///
/// # Errors
/// A CPU or a node that is not there, or is not the job's to have.
fn bind(job: &Job, clone: u32) -> Result<(), Failure> {
    let mut of_nodes = Vec::new();
    for node in &job.nodes.cpus {
        let cpus = memory::cpus_of_node(*node).map_err(|error| no_node(*node, &error))?;
        of_nodes.extend(cpus);
    }
    // Both together: the CPUs of these nodes that are allowed.
    let is_allowed = |cpu: &u32| job.cpus.is_empty() || job.cpus.contains(cpu);
    let cpus: Vec<u32> = match of_nodes.is_empty() {
        true => job.cpus.clone(),
        false => of_nodes.into_iter().filter(is_allowed).collect(),
    };
    let own = cpus.get(clone as usize % cpus.len().max(1));
    let cpus = match own {
        Some(own) if job.cpus_split => std::slice::from_ref(own),
        _ => cpus.as_slice(),
    };
    if !cpus.is_empty() {
        proc::set_affinity(0, cpus).map_err(|error| {
            Failure::of(&error, format!("cannot be bound to CPUs {cpus:?}: {error}"))
        })?;
    }
    priority(job)?;
    memory(job)
}

/// Sets the I/O priority (`prioclass`, `prio`).
fn priority(job: &Job) -> Result<(), Failure> {
    let Some(own) = job.priorities.own else { return Ok(()) };
    let class = match own.class {
        1 => IoClass::Realtime,
        2 => IoClass::BestEffort,
        3 => IoClass::Idle,
        _ => IoClass::None,
    };
    set_io_priority(class, own.level).map_err(|error| {
        let needs = "(realtime needs CAP_SYS_NICE or CAP_SYS_ADMIN)";
        let asked = format!("prioclass={}, prio={}", own.class, own.level);
        Failure::of(&error, format!("{asked}: {error} {needs}"))
    })
}

/// Sets where memory comes from.
fn memory(job: &Job) -> Result<(), Failure> {
    let policy = job.nodes.policy;
    if policy == MemoryPolicy::Default {
        return Ok(());
    }
    let list = &job.nodes.memory;
    for node in list {
        memory::cpus_of_node(*node).map_err(|error| no_node(*node, &error))?;
    }
    memory::set_policy(policy, list).map_err(|error| {
        let what = "numa_mem_policy: memory of nodes";
        Failure::of(&error, format!("{what} {list:?} cannot be had: {error}"))
    })
}

fn no_node(node: u32, error: &Error) -> Failure {
    let why = match error.kind() {
        ErrorKind::NotFound => "this machine has none".to_owned(),
        _ => error.to_string(),
    };
    Failure { errno: errno::EINVAL, sentence: format!("node {node} of CPUs and memory: {why}") }
}

/// Numbers that are sorted at once: a fraction of a millisecond of work.
const NUMBERS: usize = 4096;

/// Computes and pauses until the job is over.
fn burn(meter: &mut Meter<'_>, cpu: &CpuBurn, peers: &Peers) {
    meter.begin();
    let load = u32::from(cpu.load_percent.clamp(1, 100));
    let pause = cpu.chunk * (100 - load) / load;
    let mut numbers = vec![0u64; if cpu.sorts { NUMBERS } else { 0 }];
    let mut random = Random::new(0, 0);
    while !(meter.over || cpu.ends_with_others && peers.work_has_ended()) {
        let end = meter.after(cpu.chunk);
        while goes_on(meter, end) {
            if cpu.sorts {
                numbers.iter_mut().for_each(|number| *number = random.bits());
                numbers.sort_unstable();
                std::hint::black_box(&mut numbers);
            } else {
                std::hint::spin_loop();
            }
        }
        let end = meter.after(pause);
        while goes_on(meter, end) {
            let now = meter.clock.now();
            let left_ns = meter.clock.between_ns(now, end.min(meter.due));
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
    }
}

/// Returns whether `end` is still to come and the job is not over; runs due actions meanwhile.
fn goes_on(meter: &mut Meter<'_>, end: u64) -> bool {
    let now = meter.pass();
    !meter.over && now < end
}

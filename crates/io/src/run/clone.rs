//! One clone of a job: everything is made ready, then it waits for the others, works, and says what
//! it measured.

mod files;

use super::burn::burn;
use super::drive::{Drive, Place};
use super::flight::Lane;
use super::gate::Gate;
use super::meter::Meter;
use super::peers::Peers;
use super::place;
use crate::engine::{
    Atomic, Calls, Cutting, Failure, Mmap, Names, Null, NullQueue, PageFault, Positioned, Seeking,
    Taking, Trimming, Vectored, with_threads,
};
use crate::layout::CloneFiles;
use crate::outcome::Outcome;
use crate::pattern::random::{Random, seed_of};
use crate::{Engine, Job, engine};
use hakobu_sys::aio::Context;
use hakobu_sys::ring::{Ring, Settings};
use hakobu_sys::{OwnedFd, errno};
use std::io::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A clone to be run.
pub(super) struct Task<'a> {
    pub(super) job: &'a Job,
    pub(super) files: &'a CloneFiles,
    /// Names of its files, none where nothing is opened.
    pub(super) paths: Vec<&'a Path>,
    pub(super) lane: Lane,
    pub(super) stop: &'a AtomicBool,
    /// The jobs that run with it.
    pub(super) peers: &'a Peers,
}

/// A clone that waits to be told to stop looks so often whether it was.
const NAP: Duration = Duration::from_millis(50);
/// And one that waits for another job whether that has ended.
const LOOK: Duration = Duration::from_millis(1);

impl Task<'_> {
    /// Runs it on the calling thread, from the opening of its files to their closing.
    pub(super) fn run(&self, gate: &Gate) -> Outcome {
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

    fn work(&self, gate: &Gate, waited: &mut bool, outcome: &mut Outcome) -> Result<(), Failure> {
        let job = self.job;
        if job.among.after.is_some() {
            // It is not there before the other one has ended: no file is open, nothing is forgotten.
            *waited = true;
            if !gate.pass() || !self.wait_for_other() {
                return Ok(());
            }
        }
        place::bind(job, self.files.clone)?;
        hakobu_sys::clock::sleep_precisely();
        let files = self.open()?;
        let extents = self.extents(&files)?;
        let bytes = job.block_bytes.into_iter().max().unwrap_or_default();
        let bytes = usize::try_from(bytes).map_err(|_| no_engine(&Error::other("too large")))?;
        let place = Place {
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
            Engine::CpuIo => begin.burn(),
            Engine::FileCreate
            | Engine::FileStat
            | Engine::FileDelete
            | Engine::DirCreate
            | Engine::DirStat
            | Engine::DirDelete => {
                begin.with_new(Names::new(job.engine.named(), job.stat, &self.paths))
            }
            Engine::Null if job.depth <= 1 => begin.with_new(Null::new(bytes)),
            Engine::Null => begin.with_new(NullQueue::new(job.depth, bytes)),
            _ if job.trims => begin.with_new(Calls::<Trimming>::new(&files, bytes)),
            Engine::Falloc => begin.with_new(Calls::<Taking>::new(&files, bytes)),
            Engine::Ftruncate => begin.with_new(Calls::<Cutting>::new(&files, bytes)),
            Engine::PageFault => begin.with_new(PageFault::new(&extents, bytes)),
            Engine::Psync => begin.with_new(Calls::<Positioned>::new(&files, bytes)),
            Engine::Pvsync2 if job.atomic => begin.with_new(Calls::<Atomic>::new(&files, bytes)),
            Engine::Pvsync2 => begin.with_new(Calls::<Vectored>::new(&files, bytes)),
            Engine::Sync => begin.with_new(Calls::<Seeking>::new(&files, bytes)),
            Engine::Mmap => {
                if job.direct {
                    let why =
                        "ioengine=mmap goes through the page cache, always: not with direct=1";
                    return Err(Failure { errno: errno::EINVAL, sentence: why.into() });
                }
                begin.with_new(Mmap::new(&files, &extents, job.rw.writes, bytes))
            }
            Engine::IoUring => {
                let settings = Settings {
                    depth: job.depth.max(1),
                    buffer_bytes: bytes,
                    fixed_buffers: job.fixed_buffers,
                    register_files: job.register_files,
                    atomic: job.atomic,
                };
                begin.with(Ring::new(&files, settings).map_err(|error| no_ring(&error, job))?)
            }
            Engine::Libaio => begin.with(context(&files, job, job.depth.max(1), bytes)?),
        }
    }

    /// It is to end.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.lane.is_over()
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
    task: &'a Task<'a>,
    gate: &'b Gate,
    waited: &'b mut bool,
    outcome: &'b mut Outcome,
    place: Place<'a>,
}

impl Begin<'_, '_> {
    /// Waits for the others, and does the job with this engine.
    fn with<E: engine::Engine>(&mut self, engine: E) -> Result<(), Failure> {
        let task = self.task;
        let meter = Meter::new(task.job, &task.lane, task.stop, E::WAITS);
        let mut drive = Drive::new(engine, &self.place, meter);
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
            Engine::Libaio => self.offload(|| context(files, job, 1, bytes)),
            Engine::Null => self.offload_new(|| Null::new(bytes)),
            Engine::Pvsync2 if job.atomic => {
                self.offload_new(|| Calls::<Atomic>::new(files, bytes))
            }
            Engine::Pvsync2 => self.offload_new(|| Calls::<Vectored>::new(files, bytes)),
            _ => self.offload_new(|| Calls::<Positioned>::new(files, bytes)),
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
        let mut meter = Meter::new(task.job, &task.lane, task.stop, true);
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

//! One clone of a job: everything is made ready, then it waits for the others, works, and says what
//! it measured.

use super::drive::{Drive, Failure, Place};
use super::flight::Lane;
use super::gate::Gate;
use super::meter::Meter;
use crate::io::engine::{
    Calls, Libaio, Mmap, Null, NullQueue, Positioned, Seeking, Uring, Vectored,
};
use crate::io::lay::CloneFiles;
use crate::io::outcome::Outcome;
use crate::io::{Engine, Job, engine};
use hakobu_sys::aio::Context;
use hakobu_sys::ring::{Ring, Settings};
use hakobu_sys::{AsFd, OwnedFd, blocks, cache, errno, task};
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
}

/// A clone that waits to be told to stop looks so often whether it was.
const NAP: Duration = Duration::from_millis(50);

impl Task<'_> {
    /// Runs it on the calling thread, from the opening of its files to their closing.
    pub(super) fn run(&self, gate: &Gate) -> Outcome {
        let (job, clone) = (self.files.job, self.files.clone);
        let mut outcome = Outcome { job, clone, ..Outcome::default() };
        let mut waited = false;
        let done = self.work(gate, &mut waited, &mut outcome);
        if !waited {
            // The others are not to wait for it for ever.
            gate.pass();
        }
        if let Err(Failure { errno, sentence }) = done {
            outcome.error = Some((errno, sentence));
        }
        outcome
    }

    fn work(&self, gate: &Gate, waited: &mut bool, outcome: &mut Outcome) -> Result<(), Failure> {
        self.bind()?;
        hakobu_sys::clock::sleep_precisely();
        let files = self.open()?;
        let job = self.job;
        let bytes = job.block_bytes.into_iter().max().unwrap_or_default();
        let bytes = usize::try_from(bytes).map_err(|_| no_engine(&Error::other("too large")))?;
        let place = Place {
            job,
            clone: self.files.clone,
            files: &files,
            paths: &self.paths,
            extents: &self.files.extents,
        };
        let mut begin = Begin { task: self, gate, waited, outcome, place };
        let refused = |error: Error| no_engine(&error);
        match job.engine {
            Engine::Psync => begin.with(Calls::<Positioned>::new(&files, bytes).map_err(refused)?),
            Engine::Pvsync2 => begin.with(Calls::<Vectored>::new(&files, bytes).map_err(refused)?),
            Engine::Sync => begin.with(Calls::<Seeking>::new(&files, bytes).map_err(refused)?),
            Engine::Mmap => {
                if job.direct {
                    let why =
                        "ioengine=mmap goes through the page cache, always: not with direct=1";
                    return Err(Failure { errno: errno::EINVAL, sentence: why.into() });
                }
                let extents = &self.files.extents;
                let maps = Mmap::new(&files, extents, job.rw.writes, bytes).map_err(refused)?;
                begin.with(maps)
            }
            Engine::Null if job.depth <= 1 => begin.with(Null::new(bytes).map_err(refused)?),
            Engine::Null => begin.with(NullQueue::new(job.depth, bytes).map_err(refused)?),
            Engine::IoUring => {
                let settings = Settings {
                    depth: job.depth.max(1),
                    buffer_bytes: bytes,
                    fixed_buffers: job.fixed_buffers,
                    register_files: job.register_files,
                };
                let ring = Ring::new(&files, settings).map_err(|error| no_ring(&error, job))?;
                begin.with(Uring::new(ring))
            }
            Engine::Libaio => {
                let context = Context::new(&files, job.depth.max(1), bytes);
                begin.with(Libaio::new(context.map_err(|error| no_context(&error))?))
            }
        }
    }

    /// Binds the thread to its CPUs (`cpus_allowed`).
    fn bind(&self) -> Result<(), Failure> {
        let cpus = &self.job.cpus;
        let own = cpus.get(self.files.clone as usize % cpus.len().max(1));
        let cpus = match own {
            Some(own) if self.job.cpus_split => std::slice::from_ref(own),
            _ => cpus.as_slice(),
        };
        if cpus.is_empty() {
            return Ok(());
        }
        task::set_affinity(0, cpus).map_err(|error| Failure {
            errno: error.raw_os_error().unwrap_or_default(),
            sentence: format!("cannot be bound to CPUs {cpus:?}: {error}"),
        })
    }

    /// Opens its files, and lets the page cache forget them (`invalidate`).
    fn open(&self) -> Result<Vec<OwnedFd>, Failure> {
        let job = self.job;
        let open = |path: &&Path| {
            let file = blocks::open(path, job.rw.writes, job.direct).map_err(|error| {
                let errno = error.raw_os_error().unwrap_or_default();
                let mut sentence = format!("opening {}: {error}", path.display());
                if job.direct && errno == errno::EINVAL {
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
        *self.waited = true;
        if !self.gate.pass() || !self.delay() {
            return Ok(());
        }
        let done = drive.work();
        let outcome = &mut *self.outcome;
        (outcome.verified, outcome.verify_errors) = (drive.verified, drive.wrong);
        let wrong = drive.first_wrong.take();
        drive.meter.finish(outcome);
        done?;
        let many = outcome.verify_errors;
        wrong.map_or(Ok(()), |first| {
            let sentence = format!("verify: {many} wrong blocks, the first is {first}");
            Err(Failure { errno: errno::EILSEQ, sentence })
        })
    }

    /// Waits before it begins (`startdelay`). False if all is over meanwhile.
    fn delay(&self) -> bool {
        let until = Instant::now() + self.task.job.start_delay;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.task.stop.load(Ordering::Relaxed) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

fn no_engine(error: &Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or_default();
    Failure { errno, sentence: format!("making the engine ready: {error}") }
}

fn no_ring(error: &Error, job: &Job) -> Failure {
    let why = match error.raw_os_error() {
        Some(errno::ENOSYS) => ": this kernel has no io_uring, or one before Linux 5.6",
        Some(errno::EPERM) => ": it is forbidden here (seccomp, or kernel.io_uring_disabled)",
        Some(errno::ENOMEM) if job.fixed_buffers => ": RLIMIT_MEMLOCK allows no such buffers",
        _ => "",
    };
    Failure { sentence: format!("ioengine=io_uring: {error}{why}"), ..no_engine(error) }
}

fn no_context(error: &Error) -> Failure {
    let why = match error.raw_os_error() {
        Some(errno::ENOSYS) => ": this kernel has no asynchronous I/O",
        Some(errno::EAGAIN) => ": more in flight than fs.aio-max-nr allows",
        _ => "",
    };
    Failure { sentence: format!("ioengine=libaio: {error}{why}"), ..no_engine(error) }
}

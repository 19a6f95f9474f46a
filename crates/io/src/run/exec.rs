//! The engine `exec`: a program runs for the time of the job, in a session of its own, so that a signal reaches what it
//! started as well, and the terminal stops none of it.

use super::meter::Meter;
use crate::Job;
use crate::engine::Failure;
use hakobu_sys::child::{self, State};
use hakobu_sys::errno;
use hakobu_sys::session::{self, UnderWay};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Between two looks whether the program has ended.
const NAP: Duration = Duration::from_millis(10);
/// Time in which a program that is stopped may be continued, by itself or by another one.
const STOPPED_MAX: Duration = Duration::from_secs(1);
const SIGTERM: i32 = 15;

/// Runs the program of a job until it ends or the job is over.
pub(super) fn exec(
    meter: &mut Meter<'_>,
    job: &Job,
    clone: u32,
) -> std::result::Result<(), Failure> {
    let name = job.exec.program.display();
    let failed = |error: Error| Failure::of(&error, format!("ioengine=exec: {name}: {error}"));
    let mut child = begin(job, clone).map_err(failed)?;
    meter.begin();
    let ended = watch(meter, &mut child, job.exec.grace);
    match ended.map_err(failed)? {
        None => Ok(()),
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let sentence = format!("ioengine=exec: {name} has failed: {status}");
            Err(Failure { errno: status.signal().map_or(0, |_| errno::EIO), sentence })
        }
    }
}

/// Starts the program.
fn begin(job: &Job, clone: u32) -> Result<Child> {
    let seconds = job.runtime.map_or(0, |runtime| runtime.as_secs());
    let whole = |word: &str| word.replace("%r", &seconds.to_string()).replace("%n", &job.name);
    let mut command = Command::new(&job.exec.program);
    command.args(job.exec.arguments.split_whitespace().map(whole));
    command.stdin(Stdio::null());
    session::lead(&mut command, true);
    if job.exec.redirects {
        command.stdout(output(job, clone, "stdout")?).stderr(output(job, clone, "stderr")?);
    } else {
        // Standard output is for the report alone.
        command.stdout(std::io::stderr());
    }
    command.spawn()
}

/// A file for what a program prints, where none is.
fn output(job: &Job, clone: u32, what: &str) -> Result<File> {
    if job.name.contains('/') {
        return Err(Error::other("a job with a / in its name needs std_redirect=0"));
    }
    let name = format!("{}.{clone}.{what}", job.name);
    let path = job.directories.first().map_or_else(|| PathBuf::from(&name), |dir| dir.join(&name));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::new(
            error.kind(),
            format!("{} already exists (std_redirect=0 needs no files)", path.display()),
        ),
        _ => Error::new(error.kind(), format!("{}: {error}", path.display())),
    })
}

/// Waits until the program ends; `None` if the job was over before: it gets a signal to end, and is killed `grace` later.
fn watch(meter: &mut Meter<'_>, child: &mut Child, grace: Duration) -> Result<Option<ExitStatus>> {
    let _under_way = UnderWay::new(child.id());
    let mut stopped: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        match child::look(child.id())? {
            // Unless Ctrl-Z stopped it with us, nobody may ever continue it.
            State::Stopped(signal) if !session::is_paused() => {
                if stopped.get_or_insert_with(Instant::now).elapsed() >= STOPPED_MAX {
                    session::kill(child.id())?;
                    child.wait()?;
                    let why = format!("was stopped by signal {signal} and not continued");
                    return Err(Error::other(why));
                }
            }
            _ => stopped = None,
        }
        meter.pass();
        if meter.over {
            break;
        }
        std::thread::sleep(NAP);
    }
    // It is our child, and not waited for yet: its number is its own.
    session::signal(child.id(), SIGTERM)?;
    let until = Instant::now() + grace;
    while Instant::now() < until {
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        std::thread::sleep(NAP.min(grace));
    }
    session::kill(child.id())?;
    child.wait().map(|_| None)
}

//! Transfers with an end on another machine: this machine's end, and the agent's.

use super::lanes::{LaneOpener, LaneTaker, MoreLanes};
use super::{Outcome, PathTransfer, Run, RunEnd};
use crate::failure::c_string;
use crate::far::{
    Bye, FarPeer, FilePart, Hello, LaneEnd, LinkSample, ListRequest, PROTOCOL, Refusal, Relay,
    Said, Sender, SourceEnd, SourceFacts, SourceSends, TargetEnd, Task, is_silence, is_stop, lost,
    told,
};
use crate::journal::{bytes, text};
use crate::location::Side;
use crate::plan::{self, Layout, RemoteEnd, Spec};
use crate::verify::{Difference, FarComparison, FarSide, VerifyOutcome, VerifySpec};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, Fatal, foreign, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::Controls;
use hakobu_core::unit::{Kind, Totals};
use hakobu_explain::sample::IdleTime;
use hakobu_remote::install::{InstallError, ProgramCopy};
use hakobu_remote::join::{self, LaneListener};
use hakobu_remote::link::{Incoming, LinkError, Outgoing, Patience, Patient, Traffic};
use hakobu_remote::message::{Message, ProtocolError};
use hakobu_remote::session::{SshSession, pass_on};
use hakobu_remote::ssh::{GREETING, RemoteShell};
use hakobu_s3::RequestCounts;
use hakobu_sys::proc::ProcessStat;
use hakobu_sys::{AsFd, dir, host, meta, process, stdio};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};

/// rsync's exit codes: protocol incompatibility, error starting the protocol, error in its stream, a timeout, one while
/// connecting.
const INCOMPATIBLE: u8 = 2;
const START: u8 = 5;
const STREAM: u8 = 12;
const TIMEOUT: u8 = 30;
const CONNECT_TIMEOUT: u8 = 35;
/// Time between two looks at a stop while the other end is not there.
const LOOK: Duration = Duration::from_millis(100);
/// Time in which a remote shell ends that is asked to.
const SHELL_ENDS: Duration = Duration::from_secs(10);
/// Messages that tell that an end is alive, in the time that it may be silent.
const BEATS: u32 = 4;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Threads that send content; the last one sends what did not arrive as differences.
pub(super) const SENDERS: usize = 4;

/// The far end of a transfer: reads its task from the near end, and does it.
pub struct Agent<R> {
    incoming: Incoming<BufReader<Patient<R>>>,
    out: Outgoing,
}

/// What the near end wants.
pub struct AgentTask {
    /// Paths are here, and it reads them; otherwise it writes.
    pub reads: bool,
    /// The command that it is a part of.
    pub command: String,
    /// Names, settings and values of options of the command.
    pub options: Vec<(String, bool, u8, OsString)>,
    /// Lines of entries are wanted, and those of unchanged ones.
    pub items: bool,
    pub items_unchanged: bool,
    pub paths: Vec<PathBuf>,
    facts: SourceFacts,
    /// The near end is on this machine.
    is_here: bool,
    /// Device and inode of the target there, if it is a directory.
    place: Option<(u64, u64)>,
    /// The near end can open further lanes.
    opens_lanes: bool,
    /// Names and texts of rule files.
    pub rule_files: HashMap<Vec<u8>, Vec<u8>>,
    /// The names of `--files-from`, if the list is at the near end.
    pub names: Option<Vec<Vec<u8>>>,
}

/// Files that options name: rule files, and the list of names.
#[derive(Default)]
struct OptionFiles {
    rules: HashMap<Vec<u8>, Vec<u8>>,
    list: Option<Vec<u8>>,
    bytes: usize,
}

impl OptionFiles {
    /// Adds parts.
    ///
    /// # Errors
    /// They are too many.
    fn add(&mut self, parts: Vec<FilePart>) -> Result<(), String> {
        for FilePart { name, content } in parts {
            let content = bytes(&content);
            self.bytes += content.len();
            if self.bytes > FILES_BYTES_MAX {
                return Err("the files that options name are too large".to_owned());
            }
            let to = match name {
                None => self.list.get_or_insert_default(),
                Some(name) => self.rules.entry(bytes(&name)).or_default(),
            };
            to.extend_from_slice(&content);
        }
        Ok(())
    }

    fn names(&self) -> Option<Vec<Vec<u8>>> {
        let list = self.list.as_deref()?;
        let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Some(names.map(<[u8]>::to_vec).collect())
    }
}

/// Most bytes of all files that options name.
const FILES_BYTES_MAX: usize = 256 << 20;
/// Bytes of them in one greeting.
const PART_BYTES: usize = 64 << 10;

/// Names and texts of rule files, and the names of a list.
type OptionTexts<'a> = (&'a [(Vec<u8>, Vec<u8>)], Option<&'a [Vec<u8>]>);

/// Greets; long files are sent in greetings before that.
fn say_hello(out: &Outgoing, hello: Hello, (rules, names): OptionTexts<'_>) {
    let list = names.map(|names| names.iter().flat_map(|name| name.iter().chain(&[0])).copied());
    let list = list.map(|list| (None, list.collect::<Vec<u8>>()));
    let rules = rules.iter().map(|(name, content)| (Some(text(name)), content.clone()));
    let send = |hello: &Hello| {
        if let Ok(json) = serde_json::to_vec(hello) {
            let _ = out.send(Message::Hello(json));
        }
    };
    for (name, content) in rules.chain(list) {
        // An empty file is one, too.
        let parts = content.chunks(PART_BYTES).chain(content.is_empty().then_some(&[][..]));
        for part in parts {
            let files = vec![FilePart { name: name.clone(), content: text(part) }];
            send(&Hello { protocol: PROTOCOL, files, more: true, ..Hello::default() });
        }
    }
    send(&Hello { protocol: PROTOCOL, ..hello });
}

impl<R: Read + AsFd + Send> Agent<R> {
    /// Greets the near end and reads its task; `None`: this was a further lane of another agent, and is closed. `to` is
    /// written to by a thread that ends with the agent. `read_list` reads a list of names, whose ends are zero bytes or lines.
    ///
    /// # Errors
    /// The near end is none, or has another protocol; it is told.
    pub fn meet(
        from: R,
        mut to: impl Write + AsFd + Send + 'static,
        version: &str,
        read_list: impl Fn(&Path, bool) -> Result<Vec<Vec<u8>>, Fatal>,
    ) -> Result<Option<(Agent<R>, AgentTask)>, Fatal> {
        let failed = |why: &dyn std::fmt::Display| {
            Fatal::new(START, format!("the agent was not started by hakobu: {why}"))
        };
        to.write_all(GREETING).and_then(|()| to.flush()).map_err(|error| failed(&error))?;
        let patience = Patience::default();
        let mut incoming = incoming(from, &patience);
        let mut first = Some(incoming.receive());
        if let Some(Ok(Message::Lane { number, token })) = &first {
            let lane = [incoming.get_ref().get_ref().as_fd(), to.as_fd()];
            let joined = join::hand_over(*number, token, lane);
            return joined.map(|()| None).map_err(|error| failed(&error));
        }
        let out = Outgoing::default();
        let writer = out.clone();
        let thread = std::thread::Builder::new().name("writer".into());
        thread.spawn(move || writer.write_to(to)).map_err(|error| failed(&error))?;
        let mut agent = Agent { incoming, out };
        let mut files = OptionFiles::default();
        let mut receive = |agent: &mut Agent<R>| loop {
            let next = first.take().unwrap_or_else(|| agent.incoming.receive());
            let mut hello = hello_of(next)?;
            files.add(std::mem::take(&mut hello.files))?;
            if !hello.more {
                return Ok::<Hello, String>(hello);
            }
        };
        let mut hello = receive(&mut agent).map_err(|error| failed(&error))?;
        if let Some(ListRequest { path, nul, silence_s }) = hello.list.take() {
            limit_silence(Duration::from_secs(silence_s), &patience, &agent.out);
            match read_list(Path::new(OsStr::from_bytes(&bytes(&path))), nul) {
                Ok(names) => {
                    let version = version.to_owned();
                    let answer = Hello { version, ..Hello::default() };
                    say_hello(&agent.out, answer, (&[], Some(&names)));
                }
                Err(fatal) => {
                    agent.refuse(version, &fatal);
                    return Err(fatal);
                }
            }
            hello = receive(&mut agent).map_err(|error| failed(&error))?;
        }
        let Some(task) = hello.task.filter(|_| hello.protocol == PROTOCOL) else {
            let fatal = incompatible((PROTOCOL, version), (hello.protocol, &hello.version));
            agent.refuse(version, &fatal);
            return Err(fatal);
        };
        let Task { reads, command, options, paths, mut facts, machine, silence_s, .. } = task;
        let Task { items, items_unchanged, opens_lanes, place, .. } = task;
        limit_silence(Duration::from_secs(silence_s), &patience, &agent.out);
        let is_here = !machine.is_empty() && machine == host::boot_name();
        if !is_here {
            facts.roots.clear();
        }
        let decoded = |encoded: &String| OsString::from_vec(bytes(encoded));
        let options = options.into_iter().map(|of| (of.name, of.on, of.count, decoded(&of.value)));
        let paths = paths.iter().map(|path| PathBuf::from(decoded(path))).collect();
        let options = options.collect();
        let (names, rule_files) = (files.names(), files.rules);
        let task = AgentTask {
            reads,
            command,
            options,
            items,
            items_unchanged,
            paths,
            facts,
            is_here,
            place,
            opens_lanes,
            rule_files,
            names,
        };
        Ok(Some((agent, task)))
    }

    /// Tells the near end that the task is not done, and why.
    pub fn refuse(&self, version: &str, fatal: &Fatal) {
        let refused = Some(Refusal { code: fatal.code, message: fatal.message.clone() });
        self.say(Hello { version: version.to_owned(), refused, ..Hello::default() });
        finish(&self.out);
    }

    fn say(&self, hello: Hello) {
        say_hello(&self.out, hello, (&[], None));
    }

    /// Returns what tells the near end of events.
    pub fn listener(&self) -> Relay {
        Relay(self.out.clone())
    }

    /// Does the task: `spec` is its description with paths of this machine. `failed`: sources that were refused before;
    /// `sends`: of a task that reads.
    pub fn run(
        self,
        (spec, failed, sends): (&Spec, u64, SourceSends),
        task: &AgentTask,
        version: &str,
        control: &Control,
    ) {
        let relay = self.listener();
        // Without a socket there is one lane.
        let listener = task.opens_lanes.then(LaneListener::open).and_then(Result::ok);
        let lanes = listener.map_or(MoreLanes::None, |of| MoreLanes::Takes(LaneTaker::new(of)));
        let hello = |facts, place| Hello {
            version: version.to_owned(),
            lanes: match &lanes {
                MoreLanes::Takes(taker) => taker.token().to_owned(),
                _ => String::new(),
            },
            facts,
            is_here: task.is_here,
            place,
            writes: !task.reads,
            ..Hello::default()
        };
        if let Some(packing) = &spec.packing {
            self.out.pack(packing.level);
        }
        let run = match Run::of(spec, control, &relay) {
            Ok(run) => run,
            Err(fatal) => return self.refuse(version, &fatal),
        };
        if task.reads {
            let facts = super::source_arguments(spec);
            match facts.map(|arguments| plan::far_facts(spec, &arguments)) {
                Ok(facts) => self.say(hello(facts, None)),
                Err(fatal) => return self.refuse(version, &fatal),
            }
            let (policy, packing) = (&spec.policy, spec.packing.as_ref());
            let end = SourceEnd::new(self.out.clone(), control, &relay, policy, packing);
            let end = end.with(failed, sends);
            // A comparison has no target to keep clear of.
            let is_here = task.is_here && sends == SourceSends::Contents;
            let beside = Beside { lanes, told: Some(self.out.clone()), ..Beside::default() };
            let here = (is_here, task.place.filter(|_| is_here));
            let _ = send((&end, &beside), self.incoming, spec, run, here);
        } else {
            let end = TargetEnd::new(self.out.clone(), control, &relay);
            let job = match PathTransfer::open(spec, &run, RunEnd::Target(&end, &task.facts)) {
                Ok(job) => job,
                Err(fatal) => return self.refuse(version, &fatal),
            };
            let place = job.place_identity().filter(|_| task.is_here);
            self.say(hello(SourceFacts::default(), place));
            let beside = Beside { lanes, told: Some(self.out.clone()), ..Beside::default() };
            let _ = receive((&end, &beside), self.incoming, &job, run);
        }
        finish(&self.out);
    }
}

/// Returns the messages that come from the other end.
fn incoming<R: Read + AsFd>(from: R, patience: &Patience) -> Incoming<BufReader<Patient<R>>> {
    let from = Patient::new(from, patience.clone());
    Incoming::new(BufReader::with_capacity(READ_BYTES, from))
}

/// Limits the silence of both ends; 0: it is not limited.
fn limit_silence(silence: Duration, patience: &Patience, out: &Outgoing) {
    out.ends(patience);
    if !silence.is_zero() {
        patience.limit(Some(silence));
        out.beat(silence / BEATS);
    }
}

/// Lets all that was said be written.
fn finish(out: &Outgoing) {
    out.close();
    out.wait_written();
}

fn hello_of(first: Result<Message, LinkError>) -> Result<Hello, String> {
    match first {
        Ok(Message::Hello(json)) => {
            serde_json::from_slice(&json).map_err(|_| "its greeting is damaged".to_owned())
        }
        Ok(_) => Err("it does not greet".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What is done beside the work of an end, until it is over.
#[derive(Default)]
struct Beside<'a> {
    lanes: MoreLanes<'a>,
    /// Of an agent: the near end is told of the link.
    told: Option<Outgoing>,
    is_over: Mutex<bool>,
    ended: Condvar,
}

/// Time between two samples.
const SAMPLES: Duration = Duration::from_millis(250);

impl Beside<'_> {
    /// Starts the threads. They end when what is returned is dropped.
    fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        end: &'scope (dyn LaneEnd + 'scope),
    ) -> BesideGuard<'scope> {
        self.lanes.begin(scope, end);
        if let Some(out) = &self.told {
            scope.spawn(move || self.tell(end, out));
        }
        BesideGuard(self)
    }

    fn tell(&self, end: &dyn LaneEnd, out: &Outgoing) {
        let mut machine = IdleTime::open();
        let first_idle = machine.read().unwrap_or_default();
        let server = ProcessStat::above(b"sshd");
        let mut is_over = self.is_over.lock();
        while !*is_over {
            self.ended.wait_for(&mut is_over, SAMPLES);
            if *is_over {
                return;
            }
            let server = server.and_then(ProcessStat::of);
            let sample = LinkSample {
                cpus: process::cpus() as u32,
                idle: machine.read().unwrap_or_default().saturating_sub(first_idle),
                ssh: server.map(|server| server.cpu).unwrap_or_default(),
                ..end.own_sample()
            };
            if let Ok(json) = serde_json::to_vec(&Said::Sample(sample)) {
                // A lost end is noticed by the reader.
                let _ = out.send(Message::Said(json));
            }
        }
    }

    /// Says nothing more: nobody reads what comes behind an end's last message.
    fn be_silent(&self) {
        *self.is_over.lock() = true;
        self.ended.notify_all();
    }
}

/// Ends what is done beside.
struct BesideGuard<'a>(&'a Beside<'a>);

impl Drop for BesideGuard<'_> {
    fn drop(&mut self) {
        self.0.be_silent();
        self.0.lanes.end();
    }
}

/// Runs the source end.
fn send<'a>(
    (end, beside): (&'a SourceEnd<'a>, &'a Beside<'a>),
    incoming: Incoming<impl Read + Send>,
    spec: &'a Spec,
    run: Run<'a>,
    (is_here, place): (bool, Option<(u64, u64)>),
) -> Result<(Outcome, Bye), LinkError> {
    let control = run.control;
    std::thread::scope(|scope| {
        scope.spawn(|| end.read(incoming));
        let _beside = beside.begin(scope, end);
        // On one machine, the target is not copied into itself.
        let place = match place {
            None if is_here => end.wait_for_place(),
            place => place,
        };
        let job = PathTransfer::open(spec, &run, RunEnd::Source(end));
        let outcome = job.and_then(|job| {
            if let Some(place) = place {
                job.guard.add_target(place);
            }
            run.carry_out_with(&job, |controls: &Arc<Controls>, work| {
                std::thread::scope(|scope| {
                    scope.spawn(|| end.run_errands(&job.policy));
                    let done = std::thread::scope(|scope| {
                        for sender in 0..SENDERS {
                            let controls = Arc::clone(controls);
                            let lane = controls.gate.jobs_max() + sender;
                            let sends = match sender + 1 {
                                SENDERS => Sender::Again,
                                _ => Sender::Wanted,
                            };
                            scope.spawn(move || end.send_content(&controls, lane, sends));
                        }
                        let done = work();
                        end.announced();
                        done
                    });
                    if job.policy.tells_arrivals() {
                        // The other end does its part, and tells what has arrived to the last.
                        end.turn();
                    }
                    done
                })
            })
        });
        let mut outcome = outcome.unwrap_or_else(|fatal| {
            end.announced();
            Outcome { fatal: Some(fatal), ..Outcome::default() }
        });
        outcome.totals += end.totals();
        beside.be_silent();
        end.end(&bye_of(&outcome, control));
        let far = end.wait()?;
        Ok((outcome, far))
    })
}

/// Runs the target end.
fn receive<'a>(
    (end, beside): (&'a TargetEnd<'a>, &'a Beside<'a>),
    incoming: Incoming<impl Read + Send>,
    job: &PathTransfer<'a>,
    run: Run<'a>,
) -> Result<(Outcome, Option<Bye>), LinkError> {
    let control = run.control;
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| end.read(incoming));
        let guard = beside.begin(scope, end);
        let outcome = run.carry_out(job);
        let outcome =
            outcome.unwrap_or_else(|fatal| Outcome { fatal: Some(fatal), ..Outcome::default() });
        if outcome.fatal.is_some() || control.is_stopped() {
            end.give_up();
        }
        beside.be_silent();
        end.end(&bye_of(&outcome, control));
        // The other end may have something to do for what has arrived.
        end.wait();
        drop(guard);
        outcome
    });
    Ok((outcome, end.ended()?))
}

fn bye_of(outcome: &Outcome, control: &Control) -> Bye {
    let refusal = |fatal: &Fatal| Refusal { code: fatal.code, message: fatal.message.clone() };
    Bye {
        totals: outcome.totals,
        stopped: control.is_stopped(),
        fatal: outcome.fatal.as_ref().map(refusal),
    }
}

/// Runs a transfer whose other end is an agent on another machine.
///
/// # Errors
/// As [`super::transfer`]; the agent cannot be started, or is lost.
pub(super) fn with_agent(spec: &Spec, remote: &RemoteEnd, run: Run<'_>) -> Result<Outcome, Fatal> {
    let (control, begun) = (run.control, Instant::now());
    let done = connected(remote, (control, run.listener), |link| talk(spec, run, link))?;
    Ok(match done {
        Some((outcome, traffic)) => Outcome { traffic: Some(traffic), ..outcome },
        None => Outcome { took: begun.elapsed(), stopped: true, ..Outcome::default() },
    })
}

/// Compares a tree here with one of another machine.
///
/// # Errors
/// One of the two cannot be examined; the agent cannot be started, or is lost.
pub fn verify_with_agent(
    spec: &VerifySpec,
    remote: &RemoteEnd,
    (controls, workers): (&Controls, usize),
    report: &(dyn Fn(&Difference<'_>) + Sync),
    listener: &dyn Listener,
) -> Result<VerifyOutcome, Fatal> {
    let started = Instant::now();
    let path = match remote.side {
        Side::Source => &spec.source,
        Side::Target => &spec.target,
    };
    // What is wrong here is said before anything is asked of the other end.
    let host = remote.host.host.to_string_lossy().into_owned();
    let far = FarSide { side: remote.side, host };
    let near = FarComparison::new(spec, far, controls, report, listener)?;
    // A signal ends the program: there is nothing to clean up.
    let control = Control::default();
    let done = connected(remote, (&control, listener), |link| {
        let (out, paths) = (link.out, vec![text(path.as_os_str().as_bytes())]);
        let task = task_of(remote, (true, paths), SourceFacts::default());
        let hello = Hello { task: Some(task), ..Hello::default() };
        let (near_end, answer, _) = introduce(link, listener, hello, (&[], None))?;
        check_role(true, &answer)?;
        near.run((near_end.incoming, out.clone()), workers).map_err(Lost::Fatal)
    })?;
    let (counts, _) = done.unwrap_or_default();
    let (took, jobs, requests) = (started.elapsed(), workers, RequestCounts::default());
    Ok(VerifyOutcome { counts, took, jobs, requests })
}

/// What leads to an agent.
struct AgentLink<'a> {
    remote: &'a RemoteEnd,
    session: &'a SshSession,
    control: &'a Control,
    out: &'a Outgoing,
    from: ChildStdout,
    /// The process of the remote shell.
    shell: u32,
    /// What crossed it, but for what was sent to `out`.
    crossed: &'a Mutex<Traffic>,
}

/// Starts a remote shell and does `work` with the agent that it starts. Returns its result, and what has crossed the link;
/// `None` if the run was stopped.
///
/// # Errors
/// Those of `work`; the agent cannot be started, or is lost.
fn connected<T>(
    remote: &RemoteEnd,
    (control, listener): (&Control, &dyn Listener),
    work: impl FnOnce(AgentLink<'_>) -> Result<T, Lost>,
) -> Result<Option<(T, Traffic)>, Fatal> {
    let host = remote.host.host.to_string_lossy().into_owned();
    let program = remote.shell.words.first().cloned().unwrap_or_else(|| "ssh".into());
    let installed = match remote.installs {
        true => Some(RemoteEnd { shell: install(remote, &host, listener)?, ..remote.clone() }),
        false => None,
    };
    let remote = installed.as_ref().unwrap_or(remote);
    let session = SshSession::of(&remote.shell, &remote.host);
    let started = remote.shell.start(&remote.host, &session.options, session.is_own());
    let started = started.map_err(|error| {
        let cause = Cause::System(error);
        Fatal::new(START, format!("cannot start the remote shell {}: {cause}", quoted(&program)))
    })?;
    let (mut child, from, to) = (started.child, started.from, started.to);
    let said = started.said.map(|said| std::thread::spawn(|| pass_on(said, std::io::stderr())));
    let out = Outgoing::default();
    let writer = out.clone();
    // Not waited for: where the link is stuck, it never ends.
    let thread = std::thread::Builder::new().name("writer".into());
    let writing = thread.spawn(move || writer.write_to(to));
    let (crossed, shell) = (Mutex::default(), child.id());
    let result = match writing {
        Ok(_) => {
            let (session, out, crossed) = (&session, &out, &crossed);
            work(AgentLink { remote, session, control, out, from, shell, crossed })
        }
        Err(error) => {
            let message = format!("cannot start a thread: {}", Cause::System(error));
            Err(Lost::Fatal(Fatal::new(START, message)))
        }
    };
    match &result {
        Err(Lost::Early(_)) => out.break_off(),
        _ => out.close(),
    }
    let is_stuck = match &result {
        Err(Lost::Link(error)) => is_silence(error),
        // It may wait for an answer, or for ever.
        Err(Lost::Early(met)) => !matches!(met, Ok(Met::End(_))),
        _ => false,
    };
    if is_stuck {
        let _ = child.kill();
    }
    if matches!(&result, Err(Lost::Link(LinkError::Protocol(_)))) {
        // It may never end by itself. ssh closes its login when it is asked to end.
        let _ = hakobu_sys::child::end(&mut child, SHELL_ENDS);
    }
    let status = child.wait();
    // All that ssh said comes before what is said about it.
    drop(said.map(std::thread::JoinHandle::join));
    let Traffic { sent, received } = crossed.into_inner();
    let traffic = Traffic { sent: sent + out.sent(), received };
    result.map(|done| Some((done, traffic))).or_else(|failed| match failed {
        Lost::Early(Err(fatal)) => Err(fatal),
        Lost::Early(Ok(_)) if control.is_stopped() => Ok(None),
        Lost::Early(Ok(Met::End(said))) => {
            Err(status_error(&status, &host).unwrap_or_else(|| no_greeting(&said, &host)))
        }
        Lost::Early(Ok(Met::Other(said))) => Err(no_greeting(&said, &host)),
        Lost::Early(Ok(Met::Agent | Met::Stop)) => Ok(None),
        Lost::Fatal(fatal) => Err(fatal),
        Lost::Link(error) if is_stop(&error) => Ok(None),
        Lost::Link(error) if is_silence(&error) => Err(lost(&error, &host)),
        Lost::Link(error) => {
            Err(status_error(&status, &host).unwrap_or_else(|| lost(&error, &host)))
        }
    })
}

/// Returns what the source end alone counts: what it could not read, and what it removed.
fn of_source(totals: &Totals) -> Totals {
    let Totals { failed, vanished, removed_sources, .. } = *totals;
    Totals { failed, vanished, removed_sources, ..Totals::default() }
}

/// Why a transfer with an agent has no outcome.
enum Lost {
    /// No agent has greeted.
    Early(Result<Met, Fatal>),
    Fatal(Fatal),
    Link(LinkError),
}

impl From<LinkError> for Lost {
    fn from(error: LinkError) -> Lost {
        Lost::Link(error)
    }
}

fn talk(spec: &Spec, run: Run<'_>, link: AgentLink<'_>) -> Result<Outcome, Lost> {
    let (control, listener): (&Control, &dyn Listener) = (run.control, run.listener);
    let AgentLink { remote, session, out, shell, crossed, .. } = &link;
    let (remote, session, out, shell, crossed) = (*remote, *session, *out, *shell, *crossed);
    let reads = remote.side == Side::Source;
    let listed;
    let (spec, met) = match remote.list.as_ref().filter(|_| !reads) {
        None => (spec, Err(link)),
        Some((path, nul)) => {
            let path = text(path.as_os_str().as_bytes());
            let silence_s = remote.silence.unwrap_or_default().as_secs();
            let list = Some(ListRequest { path, nul: *nul, silence_s });
            let hello = Hello { list, ..Hello::default() };
            let (met, _, files) = introduce(link, listener, hello, (&[], None))?;
            listed =
                Spec { files_from: files.names().or_else(|| Some(Vec::new())), ..spec.clone() };
            (&listed, Ok(met))
        }
    };
    let encoded = |path: &PathBuf| text(path.as_os_str().as_bytes());
    let target = spec.target.local().map(PathBuf::from);
    let facts = match reads {
        true => SourceFacts::default(),
        false => {
            let arguments = super::source_arguments(spec).map_err(Lost::Fatal)?;
            plan::far_facts(spec, &arguments)
        }
    };
    let paths = match reads {
        true => spec.sources.paths().iter().map(encoded).collect(),
        false => target.iter().map(encoded).collect(),
    };
    let opens_lanes = session.lane_options.is_some();
    let (items, items_unchanged) = (spec.items, spec.items_unchanged);
    // The source end need not wait until this one has opened it.
    let is_name = matches!(spec.layout, Layout::Cp { no_target_dir: true, .. });
    let place = target.as_deref().filter(|_| reads && !is_name).and_then(dir_identity);
    let own = task_of(remote, (reads, paths), facts);
    let task = Task { items, items_unchanged, opens_lanes, place, ..own };
    let is_list_here = reads && remote.list.is_none();
    let names = spec.files_from.as_deref().filter(|_| is_list_here);
    let (hello, files) =
        (Hello { task: Some(task), ..Hello::default() }, (&*remote.rule_files, names));
    let (near, answer) = match met {
        Ok(mut near) => {
            let (answer, _) = near.ask(hello, files)?;
            (near, answer)
        }
        Err(link) => {
            let (near, answer, _) = introduce(link, listener, hello, files)?;
            (near, answer)
        }
    };
    let incoming = near.incoming;
    let counted = incoming.counter();
    if let Some(packing) = &spec.packing {
        out.pack(packing.level);
    }
    let lanes = match opens_lanes && !answer.lanes.is_empty() {
        true => {
            let remembers = spec.remember;
            MoreLanes::Opens(LaneOpener::new(remote, session, &answer.lanes, remembers))
        }
        false => MoreLanes::None,
    };
    let beside = Beside { lanes, ..Beside::default() };
    let host = remote.host.host.to_string_lossy().into_owned();
    check_role(reads, &answer)?;
    let peer = FarPeer { host, same_machine: answer.is_here, shell };
    let (mut outcome, far) = match reads {
        false => {
            let (policy, packing) = (&spec.policy, spec.packing.as_ref());
            let end = SourceEnd::new(out.clone(), control, listener, policy, packing);
            let here = (answer.is_here && answer.place.is_some(), answer.place);
            end.link().set_peer(peer);
            end.link().ping(out);
            let done = send((&end, &beside), incoming, spec, run, here);
            add(crossed, end.link().traffic_of_lanes());
            let (outcome, far) = done?;
            // What was done is what the target end has done; what could not be read is this end's.
            let mut totals = far.totals;
            totals += of_source(&outcome.totals);
            (Outcome { totals, ..outcome }, Some(far))
        }
        true => {
            let end = TargetEnd::new(out.clone(), control, listener);
            let mut facts = answer.facts;
            if !answer.is_here {
                facts.roots.clear();
            }
            let job = PathTransfer::open(spec, &run, RunEnd::Target(&end, &facts));
            let job = job.map_err(Lost::Fatal)?;
            if answer.is_here {
                let opened = job.place_identity();
                if place.is_some() && place != opened {
                    return Err(Lost::Fatal(replaced(target.as_deref())));
                }
                end.tell_place(opened.unwrap_or_default());
            }
            end.link().set_peer(peer);
            end.link().ping(out);
            let done = receive((&end, &beside), incoming, &job, run);
            add(crossed, end.link().traffic_of_lanes());
            let (mut outcome, far) = done?;
            if let Some(far) = &far {
                outcome.totals += of_source(&far.totals);
            }
            (outcome, far)
        }
    };
    if spec.remember {
        beside.lanes.remember();
    }
    if let Some(Bye { stopped, fatal, .. }) = far {
        let fatal = fatal.map(Refusal::fatal);
        outcome.fatal = outcome.fatal.or(fatal);
        outcome.stopped |= stopped && outcome.fatal.is_none();
    }
    add(crossed, Traffic { sent: 0, received: counted.load(Ordering::Relaxed) });
    Ok(outcome)
}

fn add(crossed: &Mutex<Traffic>, more: Traffic) {
    let mut crossed = crossed.lock();
    crossed.sent += more.sent;
    crossed.received += more.received;
}

/// Checks that an agent is the end that it was asked to be.
fn check_role(reads: bool, answer: &Hello) -> Result<(), Lost> {
    match reads && answer.writes {
        true => Err(Lost::Link(LinkError::Protocol(ProtocolError("it does another task")))),
        false => Ok(()),
    }
}

/// Returns device and inode of a directory; `None`: there is none.
fn dir_identity(path: &Path) -> Option<(u64, u64)> {
    let path = c_string(path.as_os_str().as_bytes()).ok()?;
    let there = meta::of(dir::cwd(), &path, true).ok()?;
    (there.kind == Kind::Dir).then(|| there.identity())
}

/// The target is not the directory that the source end was told of.
fn replaced(target: Option<&Path>) -> Fatal {
    let target = quoted(target.unwrap_or(Path::new(".")));
    Fatal::new(START, format!("{target} was replaced while the run began: run it again"))
}

/// Returns what the agent is to do.
fn task_of(remote: &RemoteEnd, (reads, paths): (bool, Vec<String>), facts: SourceFacts) -> Task {
    let (command, options) = (remote.command.to_owned(), remote.options.clone());
    let silence_s = remote.silence.unwrap_or_default().as_secs();
    let machine = host::boot_name();
    Task { reads, command, options, paths, facts, machine, silence_s, ..Task::default() }
}

/// Messages of an agent.
type FromAgent<R> = Incoming<BufReader<Patient<R>>>;

/// An agent that is told what to do.
struct Introduction<'a> {
    /// What it sends.
    incoming: FromAgent<ChildStdout>,
    out: &'a Outgoing,
    listener: &'a dyn Listener,
}

/// Greets an agent. Returns its answer, and the files that come with it.
fn introduce<'a>(
    mut link: AgentLink<'a>,
    listener: &'a dyn Listener,
    hello: Hello,
    files: OptionTexts<'_>,
) -> Result<(Introduction<'a>, Hello, OptionFiles), Lost> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    // Before the agent has greeted, which would take another round trip.
    say_hello(link.out, Hello { version, ..hello }, files);
    match greet(&mut link.from, link.remote, link.control) {
        Ok(Met::Agent) => {}
        met => return Err(Lost::Early(met)),
    }
    add(link.crossed, Traffic { sent: 0, received: GREETING.len() as u64 });
    let patience = Patience::default();
    limit_silence(link.remote.silence.unwrap_or_default(), &patience, link.out);
    let incoming = incoming(link.from, &patience);
    let mut met = Introduction { incoming, out: link.out, listener };
    let (answer, files) = met.answer()?;
    Ok((met, answer, files))
}

impl Introduction<'_> {
    /// Greets again, with files that options name. Returns the answer, and the files that come with it.
    fn ask(&mut self, hello: Hello, files: OptionTexts<'_>) -> Result<(Hello, OptionFiles), Lost> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        say_hello(self.out, Hello { version, ..hello }, files);
        self.answer()
    }

    fn answer(&mut self) -> Result<(Hello, OptionFiles), Lost> {
        let unexpected = |message: &str| Lost::Fatal(Fatal::new(INCOMPATIBLE, message.to_owned()));
        let mut files = OptionFiles::default();
        let answer = loop {
            let hello = match self.incoming.receive()? {
                // What happened while the agent made its target ready.
                Message::Said(json) => {
                    told(&json, self.listener);
                    continue;
                }
                Message::Hello(json) => serde_json::from_slice::<Hello>(&json).ok(),
                _ => None,
            };
            let hello = hello.ok_or_else(|| unexpected("the agent does not greet as expected"));
            let mut hello = hello?;
            files.add(std::mem::take(&mut hello.files)).map_err(|why| unexpected(&why))?;
            if !hello.more {
                break hello;
            }
        };
        if let Some(refused) = answer.refused {
            return Err(Lost::Fatal(refused.fatal()));
        }
        if answer.protocol != PROTOCOL {
            let (agent, near) =
                ((answer.protocol, &*answer.version), (PROTOCOL, env!("CARGO_PKG_VERSION")));
            return Err(Lost::Fatal(incompatible(agent, near)));
        }
        Ok((answer, files))
    }
}

/// Returns the error of two ends of which each has its protocol and version.
fn incompatible(agent: (u32, &str), near: (u32, &str)) -> Fatal {
    let message = format!(
        "the agent speaks protocol {} (hakobu {}), the near end protocol {} (hakobu {})\n\
         hint: install the same hakobu at both ends, or copy this one there with --install-agent",
        agent.0,
        foreign(agent.1),
        near.0,
        foreign(near.1)
    );
    Fatal::new(INCOMPATIBLE, message)
}

/// What to do where the agent is missing.
const HINT: &str = "hint: install it there (cargo install --path . in its sources), copy this program there with --install-agent, \
    or give its path with --rsync-path";

/// Brings this program to the other machine. Returns the remote shell that starts it.
fn install(remote: &RemoteEnd, host: &str, listener: &dyn Listener) -> Result<RemoteShell, Fatal> {
    let program = ProgramCopy::of_this(env!("CARGO_PKG_VERSION")).map_err(|error| {
        Fatal::new(START, format!("cannot read this program: {}", Cause::System(error)))
    })?;
    let place = format!("{host}:~/.cache/hakobu/agent/{}", program.name);
    let begins = || {
        let size = program.bytes.div_ceil(1_000_000);
        listener.event(Event::Warning(format!("copying this program ({size} MB) to {place}")));
    };
    let installed = program.install(&remote.shell, &remote.host, begins);
    let failed =
        |why: String| Fatal::new(START, format!("cannot copy this program to {place}: {why}"));
    match installed {
        Ok(()) => {}
        Err(InstallError::Start(error)) => {
            return Err(failed(Cause::System(error).to_string()));
        }
        Err(InstallError::Ended(status)) => {
            let ended = || failed("the remote shell ended (its message is above)".to_owned());
            return Err(status_error(&Ok(status), host).unwrap_or_else(ended));
        }
        Err(InstallError::Said(said)) => return Err(no_greeting(&said, host)),
        Err(InstallError::System(theirs)) => {
            return Err(failed(format!(
                "it is for {}, and {host} is {}\nhint: install hakobu there from its sources",
                program.system,
                quoted(&theirs)
            )));
        }
        Err(InstallError::Damaged) => {
            return Err(failed("what arrived is not what was sent".to_owned()));
        }
        Err(InstallError::Unfit) => {
            return Err(failed(
                "it does not start there (libraries of this machine may be missing)\n\
                 hint: install hakobu there from its sources"
                    .to_owned(),
            ));
        }
    }
    Ok(RemoteShell { program: Some(program.command()), ..remote.shell.clone() })
}

/// What a remote shell said first.
enum Met {
    /// The agent's greeting.
    Agent,
    /// Something else.
    Other(Vec<u8>),
    /// Nothing, or a part of the greeting, before it ended.
    End(Vec<u8>),
    /// The run was asked to stop.
    Stop,
}

/// Reads the agent's greeting. The user may be asked for a password meanwhile.
///
/// # Errors
/// It takes too long.
fn greet(
    from: &mut (impl Read + AsFd),
    remote: &RemoteEnd,
    control: &Control,
) -> Result<Met, Fatal> {
    let begun = Instant::now();
    let most = remote.connecting.or(remote.silence);
    let mut said = Vec::new();
    while said.len() < GREETING.len() {
        if control.is_stopped() {
            return Ok(Met::Stop);
        }
        if most.is_some_and(|most| begun.elapsed() >= most) {
            let (code, option) = match remote.connecting {
                Some(_) => (CONNECT_TIMEOUT, "--contimeout"),
                None => (TIMEOUT, "--timeout"),
            };
            let host = remote.host.host.to_string_lossy();
            let message = format!("{host} could not be reached within the time of {option}");
            return Err(Fatal::new(code, message));
        }
        match stdio::is_readable(from.as_fd(), LOOK) {
            Ok(false) => continue,
            Ok(true) => {}
            Err(_) => return Ok(Met::End(said)),
        }
        let mut space = [0; GREETING.len()];
        let Some(space) = space.get_mut(said.len()..) else { break };
        match from.read(space) {
            Ok(0) => return Ok(Met::End(said)),
            Ok(got) => said.extend(space.iter().take(got)),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(Met::End(said)),
        }
    }
    Ok(if said == GREETING { Met::Agent } else { Met::Other(said) })
}

/// Returns the error of a remote shell that started no agent.
fn no_greeting(said: &[u8], host: &str) -> Fatal {
    if said.is_empty() {
        // Some shells end with 1 where a program is missing.
        return Fatal::new(STREAM, format!("the agent on {host} did not start\n{HINT}"));
    }
    let said = quoted(OsString::from_vec(said.to_vec()));
    let message = format!(
        "the remote shell on {host} printed {said} before the agent started\n\
         hint: a start-up file there (such as .bashrc) must print nothing when nobody is logged in"
    );
    Fatal::new(INCOMPATIBLE, message)
}

fn status_error(status: &std::io::Result<ExitStatus>, host: &str) -> Option<Fatal> {
    let code = status.as_ref().ok()?.code()?;
    match code {
        255 => Some(Fatal::new(
            255,
            format!("the remote shell could not reach {host} (its message is above)"),
        )),
        126 | 127 => Some(Fatal::new(
            code as u8,
            format!("cannot start hakobu on {host}: it is not found there\n{HINT}"),
        )),
        _ => None,
    }
}

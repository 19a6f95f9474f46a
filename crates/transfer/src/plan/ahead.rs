//! Count of what a transfer between paths is going to find, for its percentage and the time left: workers list a directory
//! only when they come to it. Names are counted first, then, in a new target, sizes. No decision of the transfer depends
//! on it, and it uses what the transfer leaves: the lowest priority, and little time in which it waits for a disk.

use super::paths::c_path;
use super::space::{counterpart, has_content};
use super::{Argument, TargetPlace};
use crate::policy::filter::{DirRules, Filter, Origin};
use crate::policy::{Append, Content, Policy};
use crate::publish::TempNames;
use hakobu_core::meter::{CountedAhead, Meter};
use hakobu_core::unit::Kind;
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::proc::ResourceUsage;
use hakobu_sys::{AsFd, OwnedFd, meta, process};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

/// Delay of the count: totals are shown after a second, and shorter runs are not slowed down.
const DELAY: Duration = Duration::from_millis(600);
/// Niceness of its thread: the lowest priority.
const NICE: i32 = 19;
/// Part (1/n) of the time of the run that the count may spend waiting for disks and CPUs. A disk that it shares with a
/// single worker gives it half of that time, so no transfer becomes more than 2% slower.
const WAIT_PART: u32 = 25;
/// Number of entries between two checks of that time.
const ENTRIES_BETWEEN: u32 = 256;
/// Maximum number of directories that wait to be counted, which bounds its memory.
const WAITING_MAX: usize = 50_000;
/// Maximum number of arguments: more are names of a list, which are known from the beginning.
const ARGUMENTS_MAX: usize = 64;

/// A count that may be made.
pub struct AheadCount<'a> {
    policy: &'a Policy,
    arguments: &'a [Argument],
    target: &'a Path,
    /// Nothing of the sources is in the target, and all their content is going to be copied.
    sizes: bool,
}

/// Reason that a count ends early: the transfer ended, or it cannot be counted so simply.
struct GivenUp;

impl<'a> AheadCount<'a> {
    /// Returns the count for a transfer; `None` if a walk of the sources alone does not tell what the transfer finds, or
    /// if everything is known from the beginning.
    pub fn of(
        policy: &'a Policy,
        place: &'a TargetPlace,
        arguments: &'a [Argument],
    ) -> Option<AheadCount<'a>> {
        let is_usual = policy.recurse
            && !policy.list_only
            && !policy.follows_dirs()
            && policy.filter.as_ref().is_none_or(|filter| !filter.has_merge_files())
            && arguments.len() <= ARGUMENTS_MAX
            && arguments.iter().all(|argument| argument.top.is_none())
            // A name that several sources have counts once.
            && arguments.iter().filter(|argument| argument.is_content()).count() <= 1;
        if !is_usual {
            return None;
        }
        let is_whole = policy.content == Content::Copy
            && policy.append == Append::No
            && policy.basis_dirs.is_empty()
            && policy.max_size.is_none()
            && policy.min_size.is_none()
            && !policy.existing
            && !policy.hard_links
            && !policy.copy_devices
            && !policy.dry_run;
        let is_there = |argument: &Argument| {
            let target = place.dir.as_ref().map(AsFd::as_fd);
            let there = target.and_then(|target| counterpart(target, place, argument));
            there.is_some_and(|fd| has_content(&fd))
        };
        let sizes = is_whole && !arguments.iter().any(is_there);
        Some(AheadCount { policy, arguments, target: &place.path, sizes })
    }

    /// Counts for `meter` until `ended` is hung up. For a thread of its own, of which this lowers the priority.
    pub fn run(&self, meter: &Meter, ended: &Receiver<()>) {
        let started = Instant::now();
        if ended.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        // With a higher priority it would compete with the transfer.
        if process::set_nice(NICE).is_err() {
            return;
        }
        let mut courtesy = Courtesy::new(started, ended);
        for sizes in [false, true].into_iter().filter(|sizes| !sizes || self.sizes) {
            let mut walk = SourceWalk { count: self, courtesy, sizes, found: 0, bytes: 0 };
            if walk.all().is_err() {
                return;
            }
            let bytes = sizes.then_some(walk.bytes);
            meter.counted_ahead(CountedAhead { found: walk.found, bytes });
            courtesy = walk.courtesy;
        }
    }
}

/// Keeps the time short in which a count waits for disks and CPUs that the transfer needs.
struct Courtesy<'a> {
    /// Start of the transfer.
    started: Instant,
    ended: &'a Receiver<()>,
    /// Time of the last pause, and what the thread had used by then.
    since: Instant,
    used: Duration,
    /// Time that it has waited.
    waited: Duration,
    entries: u32,
}

impl<'a> Courtesy<'a> {
    fn new(started: Instant, ended: &'a Receiver<()>) -> Courtesy<'a> {
        let (since, used) = (Instant::now(), ResourceUsage::of_thread().cpu());
        Courtesy { started, ended, since, used, waited: Duration::ZERO, entries: 0 }
    }

    /// Counts an entry, and pauses after some of them.
    fn entry(&mut self) -> Result<(), GivenUp> {
        self.entries += 1;
        if self.entries.is_multiple_of(ENTRIES_BETWEEN) { self.pause() } else { Ok(()) }
    }

    /// Pauses until the time waited is a small part of the time of the run.
    fn pause(&mut self) -> Result<(), GivenUp> {
        let used = ResourceUsage::of_thread().cpu();
        self.waited += self.since.elapsed().saturating_sub(used.saturating_sub(self.used));
        let until = (self.waited * WAIT_PART).saturating_sub(self.started.elapsed());
        let is_over = match until {
            Duration::ZERO => self.ended.try_recv() != Err(TryRecvError::Empty),
            until => self.ended.recv_timeout(until) != Err(RecvTimeoutError::Timeout),
        };
        (self.since, self.used) = (Instant::now(), used);
        if is_over { Err(GivenUp) } else { Ok(()) }
    }
}

/// A walk of the sources.
struct SourceWalk<'a> {
    count: &'a AheadCount<'a>,
    courtesy: Courtesy<'a>,
    /// Sizes are counted as well.
    sizes: bool,
    found: u64,
    bytes: u64,
}

/// The top of a walk: an open directory, its device, and the transfer path of its content (empty, or with a slash).
struct WalkTop {
    fd: OwnedFd,
    device: u64,
    path: Vec<u8>,
}

impl<'a> SourceWalk<'a> {
    fn all(&mut self) -> Result<(), GivenUp> {
        let count = self.count;
        for argument in count.arguments {
            let rules = self.rules(argument).map_err(|_| GivenUp)?;
            let path = c_path(&argument.path()).map_err(|_| GivenUp)?;
            let follow = argument.is_content() || argument.follow;
            // A missing argument is not found by the transfer, either.
            let Ok(source) = meta::of(dir::cwd(), &path, follow) else { continue };
            let mut name = match argument.relative {
                true => argument.names.join(&b'/'),
                false => argument.names.last().cloned().unwrap_or_default(),
            };
            let is_dir = source.kind == Kind::Dir;
            if !name.is_empty() && rules.is_hidden(&name, is_dir) {
                continue;
            }
            if !is_dir {
                self.found += 1;
                self.bytes += if source.kind == Kind::File { source.size } else { 0 };
                continue;
            }
            if !name.is_empty() {
                name.push(b'/');
            }
            let Ok(fd) = dir::open_root(&path) else { continue };
            self.tree(&WalkTop { fd, device: source.dev, path: name }, &rules)?;
        }
        Ok(())
    }

    /// Returns the rules for an argument, which apply to all directories below it.
    fn rules(&self, argument: &Argument) -> io::Result<WalkRules<'a>> {
        let Some(filter) = self.count.policy.filter.as_deref() else { return Ok(WalkRules(None)) };
        let (source, target) = (absolute(&argument.folder)?, absolute(self.count.target)?);
        let first = argument.names.first().map(Vec::as_slice).unwrap_or_default();
        let origin = Origin { source: &source, target: &target, first };
        // There are no files of rules.
        let rules = filter.root(&origin, &mut |_| Ok(None)).map_err(io::Error::other)?;
        Ok(WalkRules(Some((filter, rules))))
    }

    /// Walks a tree depth first. Only its top stays open.
    fn tree(&mut self, top: &WalkTop, rules: &WalkRules<'_>) -> Result<(), GivenUp> {
        let policy = self.count.policy;
        let mut reader = Reader::default();
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        let mut path = Vec::new();
        while let Some(below) = waiting.pop() {
            self.courtesy.pause()?;
            let Ok(fd) = open_below(top, &below) else { continue };
            let is_elsewhere = || meta::of_fd(&fd).is_ok_and(|meta| meta.dev != top.device);
            if policy.one_file_system && is_elsewhere() {
                continue;
            }
            let mut result = Ok(());
            let mut each = |name: &CStr, kind: Kind| {
                if result.is_err() || TempNames::is_temp(name) && kind != Kind::Dir {
                    return;
                }
                // Without types of entries each one has to be examined.
                result = if kind == Kind::Unknown { Err(GivenUp) } else { self.courtesy.entry() };
                path.clear();
                path.extend_from_slice(&below);
                path.extend_from_slice(name.to_bytes());
                if rules.is_hidden_below(&top.path, &path, kind == Kind::Dir) {
                    return;
                }
                if kind == Kind::Dir {
                    path.push(b'/');
                    waiting.push(path.clone());
                    return;
                }
                self.found += 1;
                if self.sizes && kind == Kind::File {
                    let looked = meta::of(fd.as_fd(), name, false);
                    self.bytes += looked.map_or(0, |meta| meta.size);
                }
            };
            // A directory that cannot be listed is not transferred, either.
            drop(reader.for_each(fd.as_fd(), |name, kind, _| each(name, kind)));
            result?;
            if waiting.len() > WAITING_MAX {
                return Err(GivenUp);
            }
        }
        Ok(())
    }
}

/// The rules of the options, where there are any.
struct WalkRules<'a>(Option<(&'a Filter, Arc<DirRules>)>);

impl WalkRules<'_> {
    fn is_hidden(&self, path: &[u8], is_dir: bool) -> bool {
        let Some((filter, rules)) = &self.0 else { return false };
        filter.check(rules, path, is_dir, false).hide
    }

    fn is_hidden_below(&self, top: &[u8], below: &[u8], is_dir: bool) -> bool {
        self.0.is_some() && self.is_hidden(&[top, below].concat(), is_dir)
    }
}

/// Opens a directory at a path that is empty or ends in a slash.
fn open_below(top: &WalkTop, path: &[u8]) -> io::Result<OwnedFd> {
    match path.strip_suffix(b"/") {
        None => dir::open(top.fd.as_fd(), c".", false),
        Some(path) => dir::open_below(top.fd.as_fd(), &c_path(Path::new(OsStr::from_bytes(path)))?),
    }
}

fn absolute(path: &Path) -> io::Result<Vec<u8>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(std::path::absolute(path)?.into_os_string().into_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Layout, arguments};
    use crate::policy::filter::FilterBuilder;
    use std::fs;
    use std::sync::mpsc;

    struct Tree(std::path::PathBuf);

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A tree of 6 files of 10 bytes each and a symlink.
    fn tree(name: &str) -> Tree {
        let top = std::env::temp_dir().join(format!("hakobu-ahead-{name}-{}", std::process::id()));
        for dir in ["a", "b/c"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        for file in ["1", "a/2", "a/3.o", "b/4", "b/c/5", "b/c/6.o"] {
            fs::write(top.join(file), [b'x'; 10]).unwrap();
        }
        std::os::unix::fs::symlink("1", top.join("b/l")).unwrap();
        Tree(top)
    }

    fn count(policy: &Policy, typed: &[&Path]) -> Option<(u64, u64)> {
        let layout = Layout::Rsync { relative: false };
        let typed: Vec<_> = typed.iter().map(|path| path.to_path_buf()).collect();
        let arguments = arguments(&typed, layout).unwrap_or_default();
        let place = TargetPlace::nowhere(Path::new("t"));
        let count = AheadCount::of(policy, &place, &arguments)?;
        let (_hold, ended) = mpsc::channel();
        let courtesy = Courtesy::new(Instant::now(), &ended);
        let mut walk = SourceWalk { count: &count, courtesy, sizes: true, found: 0, bytes: 0 };
        walk.all().ok()?;
        Some((walk.found, walk.bytes))
    }

    #[test]
    fn names_and_sizes_that_the_transfer_finds() {
        let tree = tree("names");
        let content = tree.0.join("");
        let policy = Policy { recurse: true, ..Policy::default() };
        assert_eq!(count(&policy, &[&content]), Some((7, 60)));
        assert_eq!(count(&policy, &[&tree.0]), Some((7, 60)));
        assert_eq!(count(&policy, &[&tree.0.join("a"), &tree.0.join("1")]), Some((3, 30)));
        // Without recursion everything is known; content of several sources has common names.
        assert_eq!(count(&Policy::default(), &[&content]), None);
        assert_eq!(count(&policy, &[&content, &content]), None);
        let mut rules = FilterBuilder::default();
        rules.exclude(b"*.o").unwrap();
        rules.exclude(b"/b/c/").unwrap();
        let filter = rules.build(&mut |_| Ok(Vec::new())).unwrap();
        let filtered = Policy { filter: Some(Arc::new(filter)), ..policy };
        assert_eq!(count(&filtered, &[&content]), Some((4, 30)));
    }

    #[test]
    fn a_transfer_that_ended_ends_the_count() {
        let tree = tree("ended");
        let policy = Policy { recurse: true, ..Policy::default() };
        let layout = Layout::Rsync { relative: false };
        let arguments = arguments(std::slice::from_ref(&tree.0), layout).unwrap_or_default();
        let place = TargetPlace::nowhere(Path::new("t"));
        let count = AheadCount::of(&policy, &place, &arguments).unwrap();
        let meter = Meter::new(1);
        let (hold, ended) = mpsc::channel();
        drop(hold);
        let before = Instant::now();
        count.run(&meter, &ended);
        assert!(before.elapsed() < DELAY);
        assert!(!meter.progress().listed);
    }

    #[test]
    fn waiting_is_a_small_part_of_the_run() {
        let (_hold, ended) = mpsc::channel();
        let started = Instant::now();
        let mut courtesy = Courtesy::new(started, &ended);
        std::thread::sleep(Duration::from_millis(4));
        assert!(courtesy.pause().is_ok());
        // CPU time, a tenth of the sleep at most, is no waiting.
        let least = Duration::from_millis(4) * WAIT_PART * 9 / 10;
        assert!(started.elapsed() >= least, "{:?}", started.elapsed());
    }
}

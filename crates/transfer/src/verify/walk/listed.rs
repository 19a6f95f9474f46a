//! Names from a list instead of listings: each is looked up below both trees, through no symlink.

use super::{Comparison, Failure, Finding, Report, Roots, Side, Spec, Task, fatal};
use crate::verify::report::Counts;
use hakobu_core::control::Control;
use hakobu_core::error::{Fatal, Operation};
use hakobu_core::event::Listener;
use hakobu_core::limit::Controls;
use hakobu_core::meter::Phase;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use hakobu_tree::walk::At;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names that a worker takes at a time.
const NAMES: usize = 64;

/// The folder of a name on both sides; stays open for the next one, as names of a list lie together.
struct Folder {
    above: Vec<u8>,
    source: OwnedFd,
    target: Option<OwnedFd>,
}

/// Compares the names of a list. A name that the source lacks is not a difference. When `control` stops
/// the run, the rest is not compared.
pub(in crate::verify) fn run(
    spec: &Spec,
    names: &[Vec<u8>],
    control: &Control,
    controls: &Controls,
    report: Report<'_>,
    listener: &dyn Listener,
) -> Result<Counts, Fatal> {
    let open = |path: &Path| {
        let text = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        text.and_then(|text| dir::open_root(&text)).map_err(|error| fatal("list", path, error))
    };
    let (source, target) = (open(&spec.source)?, open(&spec.target)?);
    let mut comparison = Comparison::new(spec, controls, report, listener);
    comparison.roots = Some(Roots { source, target, control });
    let text = |name: &Vec<u8>| CString::new(name.as_slice());
    let names: Result<Vec<CString>, _> = names.iter().map(text).collect();
    let names = names.map_err(|_| Fatal::new(2, "a name holds a zero byte"))?;
    let tasks = names.chunks(NAMES).map(|some| Task::Listed(some.to_vec()));
    Ok(comparison.carry_out(controls, None, tasks))
}

/// Returns whether an error means that the name does not exist.
fn is_gone(error: &io::Error) -> bool {
    errno::is(error, errno::ENOENT) || errno::is(error, errno::ENOTDIR)
}

/// The result of a look; `None` where there is nothing.
fn there<T>(looked: io::Result<T>, side: Side) -> Result<Option<T>, Failure> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(Failure { side, operation: Operation::Stat, error }),
    }
}

fn enter(root: BorrowedFd<'_>, above: &[u8]) -> io::Result<OwnedFd> {
    match above {
        b"" => dir::open(root, c".", false),
        above => dir::open_below(root, &CString::new(above)?),
    }
}

impl Comparison<'_> {
    /// Returns whether the run is to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.roots.as_ref().is_some_and(|roots| roots.control.is_stopped())
    }

    pub(super) fn listed(&self, names: &[CString], at: &mut At<'_, '_, Self>) {
        let mut folder = None;
        for name in names {
            if self.is_stopped() {
                return;
            }
            at.doing.turn(Phase::Look);
            if let Err(failure) = self.one(name, &mut folder, at) {
                self.fail(None, name, failure, at.state);
            }
            at.count_name();
        }
    }

    fn one(
        &self,
        path: &CString,
        folder: &mut Option<Folder>,
        at: &mut At<'_, '_, Self>,
    ) -> Result<(), Failure> {
        let Some(roots) = &self.roots else { return Ok(()) };
        // A directory of a list may end with a slash.
        let bytes = path.to_bytes();
        let bytes = bytes.strip_suffix(b"/").unwrap_or(bytes);
        let cut = bytes.iter().rposition(|byte| *byte == b'/');
        let above = bytes.get(..cut.unwrap_or(0)).unwrap_or_default();
        let last = bytes.get(cut.map_or(0, |at| at + 1)..).unwrap_or_default();
        let Ok(name) = CString::new(last) else { return Ok(()) };
        if folder.as_ref().is_none_or(|known| known.above != above) {
            let source = there(enter(roots.source.as_fd(), above), Side::Source)?;
            let Some(source) = source else { return Ok(()) };
            let target = there(enter(roots.target.as_fd(), above), Side::Target)?;
            *folder = Some(Folder { above: above.to_vec(), source, target });
        }
        let Some(Folder { source, target, .. }) = folder else { return Ok(()) };
        let a = there(meta::of(source.as_fd(), &name, false), Side::Source)?;
        let Some(a) = a else { return Ok(()) };
        let b = match target {
            Some(target) => there(meta::of(target.as_fd(), &name, false), Side::Target)?,
            None => None,
        };
        let (Some(b), Some(target)) = (b, target) else {
            self.only(bytes, Finding::Missing, (Some(&a), None), at.state);
            return Ok(());
        };
        let (one, two) = ((source.as_fd(), &*name), (target.as_fd(), &*name));
        self.both(None, path, (one, &a), (two, &b), at);
        Ok(())
    }
}

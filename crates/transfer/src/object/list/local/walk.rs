//! Emits a local tree in the order of keys, folder by folder.

use super::LocalQuery;
use super::ahead::{Ahead, Lead};
use super::names::Class;
use super::read::{Entered, Failure, Folder, Reading, Slot};
use crate::object::Entry;
use crate::object::list::{Item, Listing, PAGE_ENTRIES, Page, Trouble};
use hakobu_core::error::{Class as Gravity, Operation, Problem};
use hakobu_core::unit::{Jobs, Meta};
use hakobu_sys::OwnedFd;
use hakobu_sys::dir::Reader;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// The listing ended early: its reader is gone.
struct Gone;

/// Lists the tree below `top`; `shown` is its path, starting as the user typed it. Our own temporary names are never
/// listed.
///
/// Problems: a folder that cannot be read is a problem of the name `folder/`, an entry that cannot be examined one of
/// its name; an entry skipped on purpose is a problem of class `Notice`.
pub fn local(top: Arc<OwnedFd>, shown: &Path, query: LocalQuery) -> Listing {
    on_workers(Jobs::Auto, top, shown, query)
}

pub(super) fn on_workers(
    jobs: Jobs,
    top: Arc<OwnedFd>,
    shown: &Path,
    query: LocalQuery,
) -> Listing {
    let (sender, listing) = Listing::channel(query.encode, false);
    let shown = shown.to_owned();
    Listing::start(sender, "list-local", move |sender| run(&top, &shown, query, jobs, sender));
    listing
}

/// Walks the tree with `jobs` workers and sends its entries.
fn run(top: &OwnedFd, shown: &Path, query: LocalQuery, jobs: Jobs, sender: Sender<Page>) {
    let (reading, entered) = Reading::begin(top, shown, query, &mut Reader::default());
    let ahead = Ahead::new(reading, jobs);
    std::thread::scope(|scope| {
        let lead = Lead::new(scope, &ahead);
        let (page, prefix, frames) = (Vec::new(), Vec::new(), Vec::new());
        let mut walk = Walk { ahead: &ahead, lead, sender, page, prefix, frames };
        if walk.tree(entered).is_ok() && walk.flush().is_ok() {
            let _ = walk.sender.blocking_send(Page::End);
        }
        ahead.end();
    });
}

struct Walk<'scope, 'env, 'a> {
    ahead: &'env Ahead<'a>,
    lead: Lead<'scope, 'env, 'a>,
    sender: Sender<Page>,
    page: Vec<Item>,
    /// The path of the current folder, with a slash at its end.
    prefix: Vec<u8>,
    frames: Vec<Frame>,
}

/// A folder on the current path.
struct Frame {
    folder: Arc<Folder>,
    /// Index of the next piece.
    next: usize,
    prefix_len: usize,
}

impl Walk<'_, '_, '_> {
    fn tree(&mut self, top: Entered) -> Result<(), Gone> {
        if let Entered::Folder(folder, _) = &top {
            self.ahead.open(folder);
        }
        self.entered(top)?;
        while let Some(frame) = self.frames.last_mut() {
            self.prefix.truncate(frame.prefix_len);
            let (folder, index) = (Arc::clone(&frame.folder), frame.next);
            frame.next += 1;
            let Some(piece) = folder.pieces.get(index) else {
                self.ahead.close(&folder);
                self.frames.pop();
                continue;
            };
            match self.lead.need(&folder, index) {
                Some(Slot::Entered(entered)) => {
                    if let Some((name, _)) = folder.names.get(piece.names.start) {
                        self.prefix.extend_from_slice(name.to_bytes());
                        self.prefix.push(b'/');
                    }
                    self.entered(entered)?;
                }
                Some(Slot::Looked(found)) => {
                    self.files(&folder, piece.names.clone(), found)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Handles the folder at `prefix`, which was read or examined.
    fn entered(&mut self, entered: Entered) -> Result<(), Gone> {
        let prefix = self.prefix.clone();
        match entered {
            Entered::Folder(folder, own) => {
                match own {
                    Some(Ok(meta)) => self.entry(&prefix, meta)?,
                    Some(Err(failure)) => self.failed(&prefix, failure)?,
                    None => {}
                }
                self.frames.push(Frame { folder, next: 0, prefix_len: prefix.len() });
                Ok(())
            }
            Entered::Entry(meta) => self.entry(&prefix, meta),
            Entered::Failed(failure) => self.failed(&prefix, failure),
            Entered::TooLarge => Ok(()),
        }
    }

    /// Emits names that are not folders.
    fn files(
        &mut self,
        folder: &Folder,
        names: Range<usize>,
        found: Vec<Result<Meta, Failure>>,
    ) -> Result<(), Gone> {
        let (mut found, prefix_len) = (found.into_iter(), self.prefix.len());
        for at in names {
            let Some((name, class)) = folder.names.get(at) else { continue };
            self.prefix.truncate(prefix_len);
            self.prefix.extend_from_slice(name.to_bytes());
            let path = self.prefix.clone();
            match class {
                Class::Left(left) => {
                    let (reason, class) = (left.words(), Gravity::Notice);
                    self.failed(&path, Failure::reason(Operation::Read, reason, class))?;
                }
                _ => match found.next() {
                    Some(Ok(meta)) => self.entry(&path, meta)?,
                    Some(Err(failure)) => self.failed(&path, failure)?,
                    None => {}
                },
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &[u8], meta: Meta) -> Result<(), Gone> {
        self.push(Ok(Entry { name: name.into(), meta, etag: "".into() }))
    }

    fn failed(&mut self, name: &[u8], failure: Failure) -> Result<(), Gone> {
        let Failure { operation, cause, class } = failure;
        let source = Some(self.ahead.reading.path(name));
        let problem = Problem { operation, source, target: None, cause, class };
        self.push(Err(Trouble::Problem { name: name.into(), problem }))
    }

    fn push(&mut self, item: Item) -> Result<(), Gone> {
        self.page.push(item);
        if self.page.len() >= PAGE_ENTRIES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        let page = Page::Items(std::mem::take(&mut self.page));
        let sender = &self.sender;
        self.lead.hand_over(|| sender.blocking_send(page)).map_err(|_| Gone)
    }
}

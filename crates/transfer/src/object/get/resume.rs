//! Downloads that outlive their run (`--resume`): the file stays beside the target under a name
//! of its own (see `engine/temp.rs`), the journal remembers which ranges are finished. They count
//! only where the object is what it was, the file is the same one, and what is read from it has
//! the checksums that were computed when it arrived.

use super::carried::Shape;
use super::folders::failed;
use super::large::{Begun, Version, blocking, hash};
use super::parts::Cut;
use super::target::{Draft, Place};
use crate::engine::temp::TempNames;
use crate::error::Operation;
use crate::journal::{self, Checked, Claim, Identity, Place as Spot, Record, Source, text};
use crate::object::Side;
use crate::object::core::Core;
use crate::object::moving::{Failed, Moving};
use crate::s3::{Algorithm, Checksum, Client, Kind as Why};
use crate::unit::Kind;
use hakobu_sys::{AsFd, dir, errno, file, meta};
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// Writing records takes at most this part of the time.
const SAVING_SHARE: u32 = 50;

/// What is to be downloaded.
pub(super) struct What<'a> {
    pub moving: &'a Moving,
    pub object: &'a Version,
    pub place: &'a Place,
    pub shape: &'a Shape,
    pub algorithm: Algorithm,
}

/// A record that is kept up to date while its download is under way.
pub(super) struct Kept {
    claim: Claim,
    record: Record,
    /// When it was written last, and how long that took.
    saved: (Instant, Duration),
}

/// Takes up the download that an earlier run left, where it fits; else begins a file.
///
/// # Errors
/// The journal's or the file's; a reason where another run is at the same download.
pub(super) async fn begin(
    core: &Core<'_>,
    client: &Client,
    what: &What<'_>,
    cut: Cut,
) -> Result<Begun, Failed> {
    let source = what.moving.source_path();
    let target = std::path::absolute(what.moving.target_path()).map_err(unusable)?;
    let (source, target) = (source.as_os_str().as_bytes(), target.as_os_str().as_bytes());
    let identity = Identity::new(source, target, &client.store().endpoint());
    let Some(claim) = core.engine.setup.journal.claim(&identity).map_err(unusable)? else {
        let why = "another run is downloading it";
        return Err(Failed::Reason(Operation::Write, Side::Target, why));
    };
    let name = TempNames::kept(number(&identity));
    let now = Source::Object {
        size: cut.size,
        etag: what.object.etag.clone(),
        version: what.object.version.clone(),
    };
    if let Some(record) = claim.load()
        && let Some((cut, draft, finished)) = trusted(core, what, &record, &now, &name).await?
    {
        let kept = Kept { claim, record, saved: (Instant::now(), Duration::ZERO) };
        return Ok(Begun { cut, draft, finished, kept: Some(kept) });
    }
    let folder = what.place.folder.fd.as_fd();
    // Nobody else has the claim: what lies there is of no use to anybody any more.
    match dir::unlink(folder, &name) {
        Err(error) if !errno::is(&error, errno::ENOENT) => {
            return Err(failed(Operation::Remove)(error));
        }
        _ => {}
    }
    let draft = Draft::named(what.place, what.shape, name.clone())?;
    let there = meta::of_fd(draft.fd()).map_err(failed(Operation::Stat))?;
    let record = Record {
        source: now,
        place: Spot::File { name: text(name.to_bytes()), dev: there.dev, ino: there.ino },
        part_bytes: cut.part_bytes,
        algorithm: what.algorithm.name().to_owned(),
        parts: Vec::new(),
    };
    claim.save(&record).map_err(unusable)?;
    let kept = Kept { claim, record, saved: (Instant::now(), Duration::ZERO) };
    Ok(Begun { cut, draft, finished: Vec::new(), kept: Some(kept) })
}

/// The number in the name of the file.
fn number(identity: &Identity) -> u64 {
    let both = [identity.source(), "\0", identity.target()].concat();
    let sum = Checksum::of(Algorithm::Crc64Nvme, both.as_bytes());
    sum.value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

type Found = (Cut, Draft, Vec<(u32, Checksum)>);

/// The file of an earlier run and those of its ranges that are proven; `None` where it is of no
/// use.
async fn trusted(
    core: &Core<'_>,
    what: &What<'_>,
    record: &Record,
    now: &Source,
    name: &CStr,
) -> Result<Option<Found>, Failed> {
    let Spot::File { name: kept, dev, ino } = &record.place else { return Ok(None) };
    let asked = core.engine.setup.options.part_bytes;
    let fits = record.check(now) == Checked::Good
        && !what.object.etag.is_empty()
        && record.algorithm == what.algorithm.name()
        && asked.is_none_or(|bytes| bytes == record.part_bytes)
        && kept.as_bytes() == name.to_bytes();
    if !fits {
        return Ok(None);
    }
    let folder = what.place.folder.fd.as_fd();
    let (Ok(writer), Ok(reader)) =
        (file::open_write(folder, name, false), file::open_read(folder, name, false))
    else {
        return Ok(None);
    };
    let same = |fd| {
        meta::of_fd(fd).is_ok_and(|there| {
            there.kind == Kind::File && there.identity() == (*dev, *ino) && there.nlink == 1
        })
    };
    if !same(&writer) || !same(&reader) {
        return Ok(None);
    }
    let cut = Cut::with(now.size(), record.part_bytes);
    let (parts, algorithm) = (record.parts.clone(), what.algorithm);
    let flag = core.engine.setup.control.flag();
    let prove = move || {
        let mut proven = Vec::new();
        for part in parts {
            if flag.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let range = cut.range(part.number);
            let Some(sum) = Checksum::decode(algorithm, &part.checksum) else { continue };
            // A stretch that cannot be read is one that is fetched again.
            if hash(&reader, algorithm, range.start, range.end).is_ok_and(|found| found == sum) {
                proven.push((part.number, sum));
            }
        }
        Ok(proven)
    };
    let proven = blocking(prove).await.map_err(failed(Operation::Read))?;
    Ok(Some((cut, Draft::adopt(writer, what.place, CString::from(name)), proven)))
}

/// Whether what has come is of use after this failure.
pub(super) fn is_worth_keeping(failed: &Failed) -> bool {
    match failed {
        Failed::Request(_, _, error) => {
            !matches!(error.kind, Why::NotFound | Why::Precondition | Why::Invalid | Why::Corrupt)
        }
        Failed::File(..) | Failed::Stopped => true,
        Failed::Reason(..) | Failed::Vanished(_) => false,
    }
}

impl Kept {
    /// Another range is finished: writes the record, unless that was done just now.
    pub fn progress(&mut self, cut: &Cut, finished: &[Option<Option<Checksum>>]) {
        let (at, took) = self.saved;
        if at.elapsed() >= took * SAVING_SHARE {
            self.save(cut, finished);
        }
    }

    /// Writes the record. A failure costs nothing but ranges that are fetched again.
    pub fn save(&mut self, cut: &Cut, finished: &[Option<Option<Checksum>>]) {
        let begun = Instant::now();
        let parts = (1..).zip(finished).filter_map(|(number, sum)| {
            let range = cut.range(number);
            Some(journal::Part {
                number,
                bytes: range.end - range.start,
                etag: String::new(),
                checksum: sum.as_ref()?.as_ref()?.encode(),
            })
        });
        self.record.parts = parts.collect();
        drop(self.claim.save(&self.record));
        self.saved = (Instant::now(), begun.elapsed());
    }

    /// The file has its name, or is gone. A record that stays is found useless later.
    pub fn forget(self) {
        drop(self.claim.remove());
    }
}

fn unusable(error: io::Error) -> Failed {
    let said = io::Error::new(error.kind(), format!("the journal for --resume: {error}"));
    Failed::File(Operation::Write, Side::Target, said)
}

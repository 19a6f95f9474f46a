//! Downloads that continue in a later run (`--resume`): the file stays beside the target under a name of its own (see
//! `engine/publish/temp.rs`), the journal records the finished ranges. They are used only if the object is unchanged,
//! the file is the same one, and its content matches the checksums computed on arrival.

use super::carried::Shape;
use super::folders::failed;
use super::place::{self, Place};
use super::target::DownloadFile;
use crate::journal::{self, Checked, Identity, Place as Spot, Record, Source, text};
use crate::object::checkpoint::{self, Checkpoint, unusable};
use crate::object::core::Core;
use crate::object::cut::Cut;
use crate::object::failed::Failed;
use crate::object::helper::blocking;
use crate::object::moving::Moving;
use crate::object::sums;
use crate::publish::TempNames;
use hakobu_core::buffer::AlignedBytes;
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use hakobu_s3::{Algorithm, Checksum, Client};
use hakobu_sys::{AsFd, dir, errno, file, meta};
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// Bytes read at once when a file is read again.
pub(super) const READ_BYTES: usize = 1 << 20;

/// The object to download.
pub(super) struct What<'a> {
    pub moving: &'a Moving,
    /// ETag of the object.
    pub etag: &'a str,
    pub place: &'a Arc<Place>,
    pub shape: &'a Shape,
    pub algorithm: Algorithm,
}

/// A file begun by this or an earlier run.
pub(super) struct Begun {
    pub cut: Cut,
    pub draft: DownloadFile,
    /// Ranges finished by an earlier run.
    pub finished: Vec<(u32, Checksum)>,
    pub checkpoint: Option<Checkpoint>,
}

/// Continues the download of an earlier run if it fits; otherwise begins a file.
///
/// # Errors
/// Those of the journal or the file; a reason if another run works on the same download.
pub(super) async fn begin(
    core: &Core<'_>,
    client: &Client,
    what: &What<'_>,
    cut: Cut,
) -> Result<Begun, Failed> {
    let busy = "another run is downloading it";
    let (identity, claim) = checkpoint::claim(core, client, what.moving, busy)?;
    let name = TempNames::kept(number(&identity));
    let now = Source::Object {
        size: cut.size,
        etag: what.etag.to_owned(),
        version: core.engine.setup.options.version.clone(),
    };
    if let Some(record) = claim.load()
        && let Some((cut, draft, finished)) = trusted(core, what, &record, &now, &name).await?
    {
        let checkpoint = Some(Checkpoint::new(claim, record));
        return Ok(Begun { cut, draft, finished, checkpoint });
    }
    let (at, shape, its) = (Arc::clone(what.place), *what.shape, name.clone());
    let files = Arc::clone(&core.engine.files);
    let calls = move || {
        // We hold the claim, so no other run can use this file.
        match dir::unlink(at.folder.fd.as_fd(), &its) {
            Err(error) if !errno::is(&error, errno::ENOENT) => {
                return Err(failed(Operation::Remove)(error));
            }
            _ => {}
        }
        let draft = DownloadFile::named(&files, &at, &shape, its)?;
        let there = draft.share().and_then(meta::of_fd).map_err(failed(Operation::Stat))?;
        Ok((draft, there))
    };
    let (draft, there) = place::make(what.place.waits(), calls).await?;
    let record = Record {
        source: now,
        place: Spot::File { name: text(name.to_bytes()), dev: there.dev, ino: there.ino },
        part_bytes: cut.part_bytes,
        algorithm: what.algorithm.name().to_owned(),
        parts: Vec::new(),
    };
    claim.save(&record).map_err(unusable)?;
    let checkpoint = Some(Checkpoint::new(claim, record));
    Ok(Begun { cut, draft, finished: Vec::new(), checkpoint })
}

/// Returns the number in the name of the file.
fn number(identity: &Identity) -> u64 {
    let both = [identity.source(), "\0", identity.target()].concat();
    sums::number(&Checksum::of(Algorithm::Crc64Nvme, both.as_bytes()))
}

type Found = (Cut, DownloadFile, Vec<(u32, Checksum)>);

/// Returns the file of an earlier run and its verified ranges; `None` if it is unusable.
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
        && !what.etag.is_empty()
        && record.algorithm == what.algorithm.name()
        && asked.is_none_or(|bytes| bytes == record.part_bytes)
        && kept.as_bytes() == name.to_bytes();
    if !fits {
        return Ok(None);
    }
    let (at, its, was) = (Arc::clone(what.place), name.to_owned(), (*dev, *ino));
    let calls = move || {
        let folder = at.folder.fd.as_fd();
        let both = (file::open_write(folder, &its), file::open_read(folder, &its, false));
        let (Ok(writer), Ok(reader)) = both else { return Ok(None) };
        let same = |fd| {
            meta::of_fd(fd).is_ok_and(|there| {
                there.kind == Kind::File && there.identity() == was && there.nlink == 1
            })
        };
        Ok((same(&writer) && same(&reader)).then_some((writer, reader)))
    };
    let Some((writer, reader)) = place::make(what.place.waits(), calls).await? else {
        return Ok(None);
    };
    let cut = Cut::with(now.size(), record.part_bytes);
    let (parts, algorithm) = (record.parts.clone(), what.algorithm);
    let flag = core.engine.setup.control.flag();
    let prove = move || {
        let (mut proven, mut buffer) = (Vec::new(), AlignedBytes::zeroed(READ_BYTES));
        for part in parts {
            if flag.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let Some(sum) = Checksum::decode(algorithm, &part.checksum) else { continue };
            // A range that cannot be read is fetched again.
            let found = sums::of_range(&reader, algorithm, cut.range(part.number), &mut buffer);
            if found.is_ok_and(|found| found.as_ref() == Some(&sum)) {
                proven.push((part.number, sum));
            }
        }
        Ok(proven)
    };
    let proven = blocking(prove).await.map_err(failed(Operation::Read))?;
    let draft = DownloadFile::adopt(&core.engine.files, what.place, writer, CString::from(name));
    Ok(Some((cut, draft, proven)))
}

/// Returns the finished ranges as parts of a record.
pub(super) fn parts(cut: &Cut, finished: &[Option<Option<Checksum>>]) -> Vec<journal::Part> {
    let parts = (1..).zip(finished).filter_map(|(number, sum)| {
        Some(journal::Part {
            number,
            bytes: cut.bytes(number),
            etag: String::new(),
            checksum: sum.as_ref()?.as_ref()?.encode(),
        })
    });
    parts.collect()
}

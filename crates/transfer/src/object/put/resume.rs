//! Uploads that continue in a later run (`--resume`): their records, and the check of an old one's parts. A part
//! counts as present only if the file is unchanged and the server lists it with the size, ETag and checksum of the
//! record.

use crate::journal::{self, Checked, Place, Record, Source};
use crate::object::checkpoint::{self, Checkpoint, unusable};
use crate::object::core::Core;
use crate::object::cut::Cut;
use crate::object::ends::Target;
use crate::object::failed::Failed;
use crate::object::moving::Moving;
use hakobu_core::error::Operation;
use hakobu_core::unit::Meta;
use hakobu_s3::ops::{self, Part};
use hakobu_s3::{Algorithm, Checksum, ErrorKind};

/// The file to upload.
pub(super) struct What<'a> {
    pub moving: &'a Moving,
    pub target: &'a Target<'a>,
    pub now: &'a Meta,
    pub algorithm: Option<Algorithm>,
}

/// An upload begun by this or an earlier run.
pub(super) struct Begun {
    pub upload: String,
    /// The checksum algorithm of its parts: the requested one, or none if the server does not support it.
    pub algorithm: Option<Algorithm>,
    pub cut: Cut,
    pub parts: Vec<Part>,
    pub checkpoint: Option<Checkpoint>,
}

/// Continues the upload of an earlier run if it fits; otherwise begins one with `create`.
pub(super) async fn begin(
    core: &Core<'_>,
    what: &What<'_>,
    cut: Cut,
    create: impl AsyncFnOnce() -> Result<Begun, Failed>,
) -> Result<Begun, Failed> {
    let Target { client, bucket, key } = what.target;
    let busy = "another run is uploading it";
    let (_, claim) = checkpoint::claim(core, client, what.moving, busy)?;
    if let Some(record) = claim.load() {
        match &record.place {
            Place::Upload(upload) => {
                if let Some((cut, parts)) = trusted(core, what, &record, upload).await? {
                    let (upload, algorithm) = (upload.clone(), Algorithm::parse(&record.algorithm));
                    let checkpoint = Some(Checkpoint::new(claim, record));
                    return Ok(Begun { upload, algorithm, cut, parts, checkpoint });
                }
                // It is obsolete. If it cannot be removed, `mpu ls` still shows it.
                let _ = ops::abort_upload(client, bucket, key, upload).await;
            }
            Place::Asked => abort_unknown(what.target).await,
            Place::File { .. } => {}
        }
    }
    // Before the request: a run that is killed before it has stored the ID leaves an upload that the next one has to
    // search for.
    let mut record = Record {
        source: Source::of_file(what.now),
        place: Place::Asked,
        part_bytes: cut.part_bytes,
        algorithm: String::new(),
        parts: Vec::new(),
    };
    claim.save(&record).map_err(unusable)?;
    let begun = match create().await {
        Ok(begun) => begun,
        Err(failed) => {
            let refused = matches!(&failed, Failed::Request(_, _, error) if error.status != 0);
            if refused {
                let _ = claim.remove();
            }
            return Err(failed);
        }
    };
    record.place = Place::Upload(begun.upload.clone());
    record.part_bytes = begun.cut.part_bytes;
    record.algorithm = begun.algorithm.map_or("", Algorithm::name).to_owned();
    if let Err(error) = claim.save(&record) {
        let _ = ops::abort_upload(client, bucket, key, &begun.upload).await;
        return Err(unusable(error));
    }
    Ok(Begun { checkpoint: Some(Checkpoint::new(claim, record)), ..begun })
}

/// Aborts an upload that was requested and whose ID never arrived: of exactly this key, and without parts, because
/// sending one requires the ID.
async fn abort_unknown(target: &Target<'_>) {
    let Target { client, bucket, key } = target;
    // `mpu ls` still shows uploads that cannot be listed or aborted here.
    let Ok(uploads) = ops::list_uploads(client, bucket, key).await else { return };
    for upload in uploads.iter().filter(|upload| upload.key == *key) {
        let parts = ops::list_parts(client, bucket, key, &upload.id).await;
        if parts.is_ok_and(|parts| parts.is_empty()) {
            let _ = ops::abort_upload(client, bucket, key, &upload.id).await;
        }
    }
}

/// Returns the cut and the verified parts of an old upload; `None` if it is unusable.
async fn trusted(
    core: &Core<'_>,
    what: &What<'_>,
    record: &Record,
    upload: &str,
) -> Result<Option<(Cut, Vec<Part>)>, Failed> {
    let asked = core.engine.setup.options.part_bytes;
    let cut = Cut::new(what.now.size, record.part_bytes);
    let fits = record.check(&Source::of_file(what.now)) == Checked::Good
        // A server that does not support the algorithm stores none.
        && ["", what.algorithm.map_or("", Algorithm::name)].contains(&&*record.algorithm)
        && asked.is_none_or(|bytes| bytes == record.part_bytes)
        && cut.part_bytes == record.part_bytes
        // A part larger than the budget cannot be sent.
        && cut.part_bytes <= core.engine.budget.bytes_max();
    if !fits {
        return Ok(None);
    }
    let Target { client, bucket, key } = what.target;
    match ops::list_parts(client, bucket, key, upload).await {
        Ok(listed) => {
            Ok(Some((cut, agreeing(record, &listed, Algorithm::parse(&record.algorithm)))))
        }
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failed::at_target(Operation::List)(error)),
    }
}

/// Returns the parts of the record that the server lists with the same values.
fn agreeing(record: &Record, listed: &[Part], algorithm: Option<Algorithm>) -> Vec<Part> {
    let mut parts = Vec::new();
    for kept in &record.parts {
        let Some(there) = listed.iter().find(|part| part.number == kept.number) else { continue };
        let checksum = match algorithm {
            // A part without a stored checksum cannot be verified.
            Some(which) => match Checksum::decode(which, &kept.checksum) {
                Some(checksum) => Some(checksum),
                None => continue,
            },
            None => None,
        };
        // Not every server lists checksums; otherwise the ETag decides, which it returned after checking ours.
        let same = there.checksum.is_none() || there.checksum == checksum;
        if same && there.size == kept.bytes && !kept.etag.is_empty() && there.etag == kept.etag {
            parts.push(Part { checksum, ..there.clone() });
        }
    }
    parts
}

/// Returns the finished parts as parts of a record.
pub(super) fn parts(finished: &[Part]) -> Vec<journal::Part> {
    finished.iter().map(remembered).collect()
}

fn remembered(part: &Part) -> journal::Part {
    journal::Part {
        number: part.number,
        bytes: part.size,
        etag: part.etag.clone(),
        checksum: part.checksum.as_ref().map(Checksum::encode).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_that_agree_are_trusted() {
        let sum = |n: u8| Checksum { algorithm: Algorithm::Crc64Nvme, value: vec![n; 8], parts: 0 };
        let part = |number: u32, etag: &str, checksum: Option<Checksum>| Part {
            number,
            size: 10,
            etag: etag.into(),
            checksum,
        };
        let good = part(1, "a", Some(sum(1)));
        let record = |part: &Part| Record {
            source: Source::Object { size: 100, etag: String::new(), version: None },
            place: Place::Upload("u".into()),
            part_bytes: 10,
            algorithm: "CRC64NVME".into(),
            parts: vec![remembered(part)],
        };
        let trust = |there: Part| {
            agreeing(&record(&good), &[part(2, "x", None), there], Some(Algorithm::Crc64Nvme))
        };
        assert_eq!(trust(good.clone()), std::slice::from_ref(&good));
        assert_eq!(trust(part(1, "a", None)), std::slice::from_ref(&good));
        assert_eq!(trust(part(1, "b", Some(sum(1)))), []);
        assert_eq!(trust(part(1, "a", Some(sum(2)))), []);
        assert_eq!(trust(part(3, "a", Some(sum(1)))), []);
        assert_eq!(trust(Part { size: 9, ..good.clone() }), []);
        let bare = record(&part(1, "a", None));
        assert_eq!(agreeing(&bare, std::slice::from_ref(&good), Some(Algorithm::Crc64Nvme)), []);
        assert_eq!(agreeing(&bare, &[part(1, "a", None)], None).len(), 1);
    }
}

//! Permits and parts of an upload, and headers of copies.

use super::*;
use crate::object::{Entry, Pair};
use hakobu_core::unit::{Kind as EntryKind, Meta, Time};
use hakobu_s3::Kind;
use proptest::prelude::*;

fn moving() -> Arc<Moving> {
    let meta = Meta { mode: 0o644, ..Meta::bare(EntryKind::File, 0, Time::default()) };
    let store = || Root::Store { bucket: "bucket".into(), prefix: b"p/".to_vec() };
    Arc::new(Moving {
        pair: Arc::new(Pair { source: store(), target: store(), lead: Vec::new() }),
        entry: Entry { name: (*b"a").into(), meta, etag: "".into() },
        name: (*b"a").into(),
        existing: None,
        begun: None,
    })
}

fn sent(number: u32) -> Sent {
    let part = Part { number, size: 1, etag: String::new(), checksum: None };
    Sent { part, bytes: 1, crc64: None }
}

proptest! {
    /// For any order of permits, every byte is handed out once and one holder ends the upload, after all others.
    #[test]
    fn parts_cover_the_object_and_one_ends_it(
        size in 1u64..1000,
        part in 1u64..200,
        streams in 1usize..20,
        order in proptest::collection::vec(any::<prop::sample::Index>(), 2000),
    ) {
        let (upload, permits) = Upload::new(&moving(), "id".into(), (size, part), streams, u64::MAX);
        let mut holders = permits;
        let mut working = Vec::new();
        let mut covered = vec![false; size as usize];
        let mut ended = false;
        for index in order {
            if ended {
                break;
            }
            // Either a part is finished, or an idle holder asks for the next one.
            if working.len() == holders || (index.index(2) == 0 && !working.is_empty()) {
                upload.note(Ok(sent(working.swap_remove(index.index(working.len())))));
                continue;
            }
            match upload.turn(false, usize::MAX) {
                Turn::Part(number, range) => {
                    for byte in range.start..range.end {
                        prop_assert!(!std::mem::replace(&mut covered[byte as usize], true));
                    }
                    working.push(number);
                }
                Turn::Leave => holders -= 1,
                Turn::End => {
                    prop_assert_eq!((holders, working.len()), (1, 0));
                    ended = true;
                }
            }
        }
        prop_assert!(ended);
        prop_assert!(covered.iter().all(|byte| *byte));
        let parts = upload.parts().map_err(|_| TestCaseError::fail("failed"))?;
        let numbers: Vec<_> = parts.iter().map(|sent| u64::from(sent.part.number)).collect();
        prop_assert_eq!(numbers, (1..=size.div_ceil(part)).collect::<Vec<_>>());
    }

    #[test]
    fn no_object_has_too_many_parts(size in 0u64..50 << 40, wanted in 5u64 << 20..1 << 30) {
        let bytes = part_bytes(size, wanted);
        prop_assert!(bytes >= wanted && size.div_ceil(bytes) <= PARTS_MAX);
    }
}

#[test]
fn after_a_failure_no_part_is_handed_out() {
    let (upload, permits) = Upload::new(&moving(), "id".into(), (100, 10), 3, u64::MAX);
    assert_eq!(permits, 3);
    assert!(matches!(upload.turn(false, usize::MAX), Turn::Part(1, _)));
    let error = hakobu_s3::Error::new(Kind::Server, "UploadPart", "no");
    upload.note(Err(Failed::Request(Operation::Write, Side::Target, error)));
    upload.note(Ok(sent(2)));
    assert!(matches!(upload.turn(false, usize::MAX), Turn::Leave));
    assert!(matches!(upload.turn(false, usize::MAX), Turn::Leave));
    assert!(matches!(upload.turn(false, usize::MAX), Turn::End));
    assert!(matches!(upload.parts(), Err(Failed::Request(..))));
}

#[test]
fn a_stop_ends_it_as_stopped() {
    let (upload, _) = Upload::new(&moving(), "id".into(), (100, 10), 1, u64::MAX);
    assert!(matches!(upload.turn(true, usize::MAX), Turn::End));
    assert!(matches!(upload.parts(), Err(Failed::Stopped)));
}

fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

#[test]
fn requested_headers_override_carried_ones() {
    let headers = [
        header("content-type", "text/plain"),
        header("content-encoding", "aws-chunked"),
        header("cache-control", "no-store"),
        header("x-amz-meta-mtime", "12.5"),
        header("x-amz-meta-who", "me"),
        header("x-amz-storage-class", "GLACIER"),
        header("etag", "\"x\""),
    ];
    let head = Head { headers: headers.into_iter().collect(), ..Head::default() };
    let asked = vec![header("x-amz-meta-who", "you"), header("x-amz-acl", "private")];
    let mut options = ObjectOptions { headers: asked, ..ObjectOptions::default() };
    let names = |options: &ObjectOptions| {
        let mut all: Vec<_> = carried(&head, options, b"a.html")
            .into_iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(
        names(&options),
        [
            "cache-control=no-store",
            "content-type=text/plain",
            "x-amz-acl=private",
            "x-amz-meta-mtime=12.5",
            "x-amz-meta-who=you"
        ]
    );
    options.replace_metadata = true;
    options.guess_content_type = true;
    assert_eq!(
        names(&options),
        ["content-type=text/html", "x-amz-acl=private", "x-amz-meta-who=you"]
    );
}

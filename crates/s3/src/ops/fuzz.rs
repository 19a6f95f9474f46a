//! Invariants of list parsers for arbitrary bytes, for the fuzzer and a test over its seeds only.

use crate::Response;
use crate::ops::listing::{ListVersion, page_of};
use crate::ops::versions::first_page_of;
use crate::ops::{ListQuery, ObjectVersion};
use crate::xml::{escaped, walk, walk_plain};
use hakobu_core::percent;

/// The fast parser agrees with the full one, or gives up; an accepted page contains complete objects only.
///
/// # Panics
/// If an invariant is violated.
pub fn listing(document: &[u8]) {
    const ROOT: &[u8] = b"ListBucketResult";
    let (mut fast, mut thorough) = (Vec::new(), Vec::new());
    let plain = walk_plain(document, ROOT, |node| fast.push(format!("{node:?}")));
    let read = walk(document, ROOT, |node| thorough.push(format!("{node:?}")));
    if plain.is_some() {
        assert!(read.is_ok(), "only the fast reader takes it");
        assert_eq!(fast, thorough);
    }
    let response = Response::of(document.to_vec());
    match page_of(&response, &ListQuery::default(), ListVersion::Two) {
        Ok(page) => {
            assert!(read.is_ok());
            assert!(page.objects.iter().all(|object| !object.key.is_empty()));
            assert!(page.next.is_none_or(|token| !token.is_empty()));
        }
        Err(error) => drop(error.to_string()),
    }
    match first_page_of(&response) {
        Ok(page) => {
            let is_whole =
                |version: &ObjectVersion| !version.key.is_empty() && !version.id.is_empty();
            assert!(page.versions.iter().all(is_whole));
            assert!(page.versions.is_sorted_by(|a, b| a.key <= b.key));
        }
        Err(error) => drop(error.to_string()),
    }
    assert!(percent::decode(document, true).len() <= document.len());
    if let Some(text) = escaped(document) {
        let mut found = Vec::new();
        let around = format!("<r><k>{text}</k></r>");
        let whole = walk(around.as_bytes(), b"r", |node| found.push(format!("{node:?}")));
        assert!(whole.is_ok() && found.len() == 2, "what is escaped stays inside its element");
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn seeds() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/listing");
        let mut count = 0;
        for seed in std::fs::read_dir(folder).unwrap() {
            let seed = std::fs::read(seed.unwrap().path()).unwrap();
            super::listing(&seed);
            let mut random = fastrand::Rng::with_seed(7);
            for _ in 0..500 {
                let mut bytes = seed.clone();
                for _ in 0..random.usize(1..4) {
                    if let Some(byte) = random.choice(bytes.iter_mut()) {
                        *byte = random.choice(b"<>/&;a%+\0\xff".iter().copied()).unwrap();
                    }
                }
                bytes.truncate(random.usize(0..=bytes.len() * 2));
                super::listing(&bytes);
            }
            count += 1;
        }
        assert!(count > 3, "{count} seeds");
    }
}

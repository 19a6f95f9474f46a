//! Keys that the null server lists: `d0000/f000000`, `d0000/f000001`, … with 1,000 per `d…/`, numbered consecutively in byte
//! order. ListObjectsV2 and ListObjects over them, at a cost that depends only on the page.

use crate::protocol::{encoded, push_element, push_escaped, query_parameter};
use hakobu_core::percent;

/// ETag of every object, in the form of a multipart upload, so that no client takes it for an MD5.
pub const ETAG: &str = "0123456789abcdef0123456789abcdef-1";
/// Modification time of every object, for listings.
pub const LAST_MODIFIED_ISO: &str = "2024-01-01T00:00:00.000Z";

/// Most entries per page, as in S3.
const PAGE_MAX: u64 = 1000;

/// Parameters of a listing.
#[derive(Debug, Default)]
pub struct NullListQuery {
    /// True for ListObjectsV2.
    v2: bool,
    prefix: Vec<u8>,
    delimiter: Vec<u8>,
    /// `start-after`, or `marker` of version 1.
    after: Vec<u8>,
    /// Number of the key to continue with.
    token: Option<u64>,
    entries_max: u64,
    encodes: bool,
}

impl NullListQuery {
    /// Parses the query of a request.
    ///
    /// # Errors
    /// Name of the invalid parameter.
    pub fn parse(query: &str, v2: bool) -> Result<NullListQuery, &'static str> {
        let text =
            |name| query_parameter(query, name).map(|text| percent::decode(text.as_bytes(), true));
        let number =
            |text: Vec<u8>| String::from_utf8(text).ok().and_then(|text| text.parse().ok());
        let entries_max: u64 = match text("max-keys").filter(|text| !text.is_empty()) {
            Some(text) => number(text).ok_or("max-keys")?,
            None => PAGE_MAX,
        };
        let token = match text("continuation-token").filter(|_| v2) {
            Some(token) => {
                let digits = token.strip_prefix(b"n").map(<[u8]>::to_vec);
                Some(digits.and_then(number).ok_or("continuation-token")?)
            }
            None => None,
        };
        Ok(NullListQuery {
            v2,
            prefix: text("prefix").unwrap_or_default(),
            delimiter: text("delimiter").unwrap_or_default(),
            after: text(if v2 { "start-after" } else { "marker" }).unwrap_or_default(),
            token,
            entries_max: entries_max.min(PAGE_MAX),
            encodes: query_parameter(query, "encoding-type") == Some("url"),
        })
    }

    /// First key of the page. A start that is a common prefix skips everything below it.
    fn start(&self, space: &KeySpace) -> u64 {
        let first = space.before(&self.prefix);
        let after = match self.token {
            Some(number) => number,
            None if self.after.is_empty() => 0,
            None if self.common_prefix_len(&self.after) == Some(self.after.len()) => {
                space.through(&self.after)
            }
            None => space.up_to(&self.after),
        };
        first.max(after)
    }

    /// Length of the common prefix that a key is grouped under.
    fn common_prefix_len(&self, key: &[u8]) -> Option<usize> {
        let rest = key.strip_prefix(self.prefix.as_slice())?;
        if self.delimiter.is_empty() {
            return None;
        }
        let at = rest.windows(self.delimiter.len()).position(|window| window == self.delimiter)?;
        Some(self.prefix.len() + at + self.delimiter.len())
    }
}

/// Entry of a page: number of its first key, and length of the common prefix if it is one.
type Entry = (u64, Option<usize>);

/// Entries of a page, and the number of the key to continue with if it is truncated.
fn page(query: &NullListQuery, space: &KeySpace) -> (Vec<Entry>, Option<u64>) {
    let end = space.through(&query.prefix);
    let mut at = query.start(space);
    if query.delimiter.is_empty() {
        let next = end.min(at.saturating_add(query.entries_max));
        let entries = (at..next).map(|number| (number, None)).collect();
        return (entries, (next < end && query.entries_max > 0).then_some(next));
    }
    let mut entries = Vec::new();
    let mut key = Vec::with_capacity(32);
    while at < end && (entries.len() as u64) < query.entries_max {
        key.clear();
        space.push_key(at, &mut key);
        let folded = query.common_prefix_len(&key);
        entries.push((at, folded));
        at = folded.map_or(at + 1, |length| space.through(&key[..length]));
    }
    (entries, (at < end && query.entries_max > 0).then_some(at))
}

/// Appends the XML of a page; `bytes` is the size of every object.
pub fn push_listing(
    query: &NullListQuery,
    space: &KeySpace,
    bucket: &str,
    bytes: u64,
    out: &mut Vec<u8>,
) {
    let (entries, next) = page(query, space);
    let text = |name, text: &[u8], out: &mut Vec<u8>| match query.encodes {
        true => push_element(name, encoded(text).as_bytes(), out),
        false => push_element(name, text, out),
    };
    out.extend_from_slice(
        b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
          <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
    );
    push_element("Name", bucket.as_bytes(), out);
    text("Prefix", &query.prefix, out);
    if !query.delimiter.is_empty() {
        text("Delimiter", &query.delimiter, out);
    }
    if query.encodes {
        push_element("EncodingType", b"url", out);
    }
    push_element("MaxKeys", query.entries_max.to_string().as_bytes(), out);
    push_element("IsTruncated", next.is_some().to_string().as_bytes(), out);
    if query.v2 {
        push_element("KeyCount", entries.len().to_string().as_bytes(), out);
        if let Some(number) = query.token {
            push_element("ContinuationToken", format!("n{number}").as_bytes(), out);
        }
        if !query.after.is_empty() {
            text("StartAfter", &query.after, out);
        }
        if let Some(number) = next {
            push_element("NextContinuationToken", format!("n{number}").as_bytes(), out);
        }
    } else {
        text("Marker", &query.after, out);
        if let (Some(_), Some((number, folded))) = (next, entries.last()) {
            let mut last = Vec::new();
            space.push_key(*number, &mut last);
            last.truncate(folded.unwrap_or(last.len()));
            text("NextMarker", &last, out);
        }
    }
    let tail = format!(
        "</Key><LastModified>{LAST_MODIFIED_ISO}</LastModified><ETag>&quot;{ETAG}&quot;</ETag>\
         <Size>{bytes}</Size><StorageClass>STANDARD</StorageClass></Contents>"
    );
    out.reserve(entries.len() * (tail.len() + 40));
    for (number, _) in entries.iter().filter(|(_, folded)| folded.is_none()) {
        out.extend_from_slice(b"<Contents><Key>");
        space.push_key(*number, out); // letters, digits and a slash: nothing to escape or encode
        out.extend_from_slice(tail.as_bytes());
    }
    let mut key = Vec::new();
    for (number, length) in entries.iter().filter_map(|(n, folded)| folded.map(|f| (*n, f))) {
        key.clear();
        space.push_key(number, &mut key);
        out.extend_from_slice(b"<CommonPrefixes><Prefix>");
        push_escaped(&key[..length], out);
        out.extend_from_slice(b"</Prefix></CommonPrefixes>");
    }
    out.extend_from_slice(b"</ListBucketResult>");
}

/// Keys that share a `d…/`.
const KEYS_PER_DIR: u64 = 1000;

/// A number of keys with uniform names. The number of a key is its position in the order.
#[derive(Clone, Debug)]
pub struct KeySpace {
    /// Number of keys.
    pub count: u64,
    dir_digits: usize,
    file_digits: usize,
}

impl KeySpace {
    /// `count` keys. Numbers have as many digits as the largest one, at least four and six.
    pub fn new(count: u64) -> KeySpace {
        let last = count.saturating_sub(1);
        let digits = |number: u64| number.checked_ilog10().map_or(1, |log| log as usize + 1);
        KeySpace {
            count,
            dir_digits: digits(last / KEYS_PER_DIR).max(4),
            file_digits: digits(last).max(6),
        }
    }

    /// Appends the name of a key.
    pub fn push_key(&self, number: u64, out: &mut Vec<u8>) {
        out.push(b'd');
        push_number(number / KEYS_PER_DIR, self.dir_digits, out);
        out.extend_from_slice(b"/f");
        push_number(number, self.file_digits, out);
    }

    /// Number of keys before `text` in byte order.
    pub fn before(&self, text: &[u8]) -> u64 {
        self.count_while(|key| key < text)
    }

    /// Number of keys before `prefix` or beginning with it.
    pub fn through(&self, prefix: &[u8]) -> u64 {
        self.count_while(|key| key < prefix || key.starts_with(prefix))
    }

    /// Number of keys before `text` or equal to it.
    pub fn up_to(&self, text: &[u8]) -> u64 {
        self.count_while(|key| key <= text)
    }

    /// Number of leading keys for which `holds`; it must be true for a prefix of the keys only.
    fn count_while(&self, holds: impl Fn(&[u8]) -> bool) -> u64 {
        let (mut low, mut high) = (0, self.count);
        let mut key = Vec::with_capacity(32);
        while low < high {
            let middle = low + (high - low) / 2;
            key.clear();
            self.push_key(middle, &mut key);
            if holds(&key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

fn push_number(mut number: u64, digits: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + digits, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::element_texts;
    use std::collections::BTreeSet;

    fn render(query: &str, v2: bool, count: u64) -> String {
        let mut out = Vec::new();
        push_listing(
            &NullListQuery::parse(query, v2).unwrap(),
            &KeySpace::new(count),
            "b",
            7,
            &mut out,
        );
        String::from_utf8(out).unwrap()
    }

    /// All entries of a listing, over all pages.
    fn all(query: &str, after: &str, v2: bool, count: u64) -> Vec<String> {
        let mut found = Vec::new();
        let mut from = format!("{}={after}", if v2 { "start-after" } else { "marker" });
        loop {
            let page = render(&format!("{query}&{from}"), v2, count);
            let (keys, rest) = page.split_once("<CommonPrefixes>").unwrap_or((&page, ""));
            found.extend(element_texts(keys, "Key").map(str::to_owned));
            found.extend(element_texts(&format!("{rest}<Prefix>"), "Prefix").map(str::to_owned));
            let next = if v2 { "NextContinuationToken" } else { "NextMarker" };
            let Some(token) = element_texts(&page, next).next() else {
                assert!(page.contains("<IsTruncated>false<"), "{page}");
                return found;
            };
            assert!(page.contains("<IsTruncated>true<"), "{page}");
            from = format!("{}={token}", if v2 { "continuation-token" } else { "marker" });
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, wrong) in [
            ("max-keys=x", "max-keys"),
            ("max-keys=-1", "max-keys"),
            ("continuation-token=1", "continuation-token"),
            ("continuation-token=nx", "continuation-token"),
        ] {
            assert_eq!(NullListQuery::parse(query, true).err(), Some(wrong), "{query}");
        }
        assert!(render("max-keys=0", true, 5).contains("<IsTruncated>false<"));
        assert!(render("max-keys=5000", true, 5).contains("<MaxKeys>1000<"));
        assert!(render("prefix=a%20%26&encoding-type=url", true, 5).contains(">a%20%26<"));
        assert!(render("prefix=a%20%26", true, 5).contains(">a &amp;<"));
    }

    #[test]
    fn a_start_that_is_a_common_prefix_is_passed() {
        assert_eq!(all("delimiter=/", "d0000/", true, 2500), ["d0001/", "d0002/"]);
        let inside = all("delimiter=/", "d0000/f000005", true, 2500);
        assert_eq!(inside, ["d0000/", "d0001/", "d0002/"]);
        assert_eq!(all("", "d0000/", true, 3).len(), 3);
    }

    proptest::proptest! {
        /// Compares with the naive way: filter and group all keys.
        #[test]
        fn pages_together_are_the_listing(
            count in 0u64..4000,
            prefix in "(d(0(00?)?)?[0-3]?(/f00[0-3]?)?)?",
            delimiter in "/|0|/f|",
            after in "(d000[0-3]/?(f00[0-3][0-9]{0,3})?)?",
            size in 1u64..900,
            v2: bool,
        ) {
            let space = KeySpace::new(count);
            let mut expected = BTreeSet::new();
            let query = format!("prefix={prefix}&delimiter={delimiter}&max-keys={size}");
            let folding = NullListQuery::parse(&query, v2).unwrap();
            let passed = (folding.common_prefix_len(after.as_bytes()) == Some(after.len())).then_some(&after);
            for number in 0..count {
                let mut key = Vec::new();
                space.push_key(number, &mut key);
                let below = passed.is_some_and(|passed| key.starts_with(passed.as_bytes()));
                if key.starts_with(prefix.as_bytes()) && key.as_slice() > after.as_bytes() && !below {
                    key.truncate(folding.common_prefix_len(&key).unwrap_or(key.len()));
                    expected.insert(String::from_utf8(key).unwrap());
                }
            }
            let mut found = all(&query, &after, v2, count);
            found.sort();
            proptest::prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    fn all_keys(space: &KeySpace) -> Vec<Vec<u8>> {
        let key = |number| {
            let mut key = Vec::new();
            space.push_key(number, &mut key);
            key
        };
        (0..space.count).map(key).collect()
    }

    #[test]
    fn names() {
        let mut key = Vec::new();
        KeySpace::new(1_000_000).push_key(123_456, &mut key);
        assert_eq!(key, b"d0123/f123456");
        key.clear();
        KeySpace::new(20_000_000).push_key(123_456, &mut key);
        assert_eq!(key, b"d00123/f00123456");
        let keys = all_keys(&KeySpace::new(12_345));
        assert!(keys.is_sorted() && keys.len() == 12_345);
        assert!(all_keys(&KeySpace::new(0)).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn places(count in 0u64..5000, text in "(d[0-9]{0,5}/?)?(f[0-9]{0,7})?.?") {
            let space = KeySpace::new(count);
            let text = text.as_bytes();
            let keys = all_keys(&space);
            let count = |holds: &dyn Fn(&[u8]) -> bool| {
                keys.iter().filter(|key| holds(key)).count() as u64
            };
            proptest::prop_assert_eq!(space.before(text), count(&|key| key < text));
            proptest::prop_assert_eq!(space.up_to(text), count(&|key| key <= text));
            let through = count(&|key| key < text || key.starts_with(text));
            proptest::prop_assert_eq!(space.through(text), through);
        }
    }
}

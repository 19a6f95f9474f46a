//! Valid and invalid pages.

use super::*;
use crate::sign::encode_path;
use crate::xml::escaped;
use crate::{Error, ErrorKind, Response};
use hakobu_core::unit::Time;
use proptest::prelude::*;

fn page(body: &str, asked: &ListQuery) -> Result<ListPage, Error> {
    page_by(ListVersion::Two, body, asked)
}

fn page_by(version: ListVersion, body: &str, asked: &ListQuery) -> Result<ListPage, Error> {
    page_of(&Response::of(body.to_owned()), asked, version)
}

fn all() -> ListQuery {
    ListQuery::default()
}

fn below(prefix: &str, delimiter: Option<u8>) -> ListQuery {
    ListQuery { prefix: prefix.as_bytes().to_vec(), delimiter, ..all() }
}

fn document(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult \
         xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>{inner}</ListBucketResult>"
    )
}

fn keys(names: &[&str]) -> String {
    const REST: &str = "<Size>0</Size><LastModified>2013-05-24T00:00:00Z</LastModified>";
    names.iter().map(|name| format!("<Contents><Key>{name}</Key>{REST}</Contents>")).collect()
}

fn prefixes(names: &[&str]) -> String {
    let one = |name| format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>");
    names.iter().map(one).collect()
}

const LAST: &str = "<IsTruncated>false</IsTruncated>";

fn keys_of(inner: &str) -> Vec<Vec<u8>> {
    let page = page(&document(&format!("{LAST}{inner}")), &all()).unwrap();
    page.objects.into_iter().map(|object| object.key).collect()
}

const OBJECT: &str = "<Contents><Key>a/b%2Bc+d</Key><LastModified>2013-05-24T00:00:01.500Z\
    </LastModified><ETag>&quot;0123456789abcdef0123456789abcdef-2&quot;</ETag><Size>434234</Size>\
    <Owner><ID>x</ID><DisplayName>Key</DisplayName></Owner><StorageClass>GLACIER</StorageClass>\
    </Contents>";

#[test]
fn a_page_is_read() {
    let inner = format!(
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>\
         <EncodingType>url</EncodingType>{OBJECT}<CommonPrefixes><Prefix>a/%C3%A9/</Prefix>\
         </CommonPrefixes>"
    );
    let page = page(&document(&inner), &below("a/", Some(b'/'))).unwrap();
    let [object] = &page.objects[..] else { panic!("{page:?}") };
    assert_eq!((object.key.as_slice(), object.size), (&b"a/b+c d"[..], 434_234));
    assert_eq!((object.mtime.s, object.mtime.ns), (1_369_353_601, 500_000_000));
    assert_eq!(object.etag.to_string(), "0123456789abcdef0123456789abcdef-2");
    assert_eq!(object.storage_class, "GLACIER");
    assert_eq!(page.prefixes, ["a/é/".as_bytes()]);
    assert_eq!(page.next.as_deref(), Some("t&1"));
}

#[test]
fn names_are_decoded_only_where_they_are_encoded() {
    assert_eq!(keys_of(&keys(&["a+b%20"])), [b"a+b%20"]);
    let said = "<EncodingType>url</EncodingType>";
    assert_eq!(keys_of(&format!("{}{said}", keys(&["a+b%20"]))), [b"a b "]);
    for given_away in ["a b", "é", "100%", "%zz", "&#1;"] {
        let found = keys_of(&format!("{said}{}", keys(&["a+b%20", given_away])));
        assert_eq!(found[0], b"a+b%20", "{given_away}");
    }
}

/// Both parsers agree: an empty comment makes the fast one give up.
#[track_caller]
fn refused(body: &str, asked: &ListQuery) -> Error {
    let slow = body.replacen("<ListBucketResult ", "<!----><ListBucketResult ", 1);
    let (slow, fast) = (page(&slow, asked).unwrap_err(), page(body, asked).unwrap_err());
    assert_eq!((slow.kind, slow.to_string()), (fast.kind, fast.to_string()), "{body}");
    fast
}

#[test]
fn what_cannot_be_trusted_is_refused() {
    let whole = document(&format!("{LAST}{OBJECT}"));
    page(&whole, &all()).unwrap();
    for broken in [String::new(), "<html></html>".into(), whole[..whole.len() - 1].to_owned()] {
        assert_eq!(page(&broken, &all()).unwrap_err().kind, ErrorKind::Corrupt, "{broken}");
    }
    for (from, to, why) in [
        ("<Key>a/b%2Bc+d</Key>", "", "no Key"),
        ("<Key>a/b%2Bc+d</Key>", "<Key/>", "Key ''"),
        ("<Size>434234</Size>", "", "no Size"),
        ("<Size>434234</Size>", "<Size></Size>", "Size ''"),
        (">434234<", ">-1<", "Size '-1'"),
        (">434234<", ">18446744073709551616<", "Size '18446744073709551616'"),
        (">434234<", ">4e5<", "Size '4e5'"),
        ("<Size>", "<Size>1</Size><Size>", "Size twice"),
        ("<Key>", "<Key>x</Key><Key>", "Key twice"),
        ("<LastModified>2013-05-24T00:00:01.500Z</LastModified>", "", "no LastModified"),
        (">2013-05-24T", ">today", "LastModified 'today"),
        ("<IsTruncated>false</IsTruncated>", "", "no IsTruncated"),
        (">false<", "><", "IsTruncated ''"),
        (">false<", ">maybe<", "IsTruncated 'maybe'"),
        (">false<", ">true<", "does not say where"),
        ("<IsTruncated>", "<IsTruncated>true</IsTruncated><IsTruncated>", "IsTruncated twice"),
        ("<Contents>", "<Contents/><Contents>", "no Key"),
        ("<Contents>", "<CommonPrefixes/><Contents>", "no Prefix"),
        ("<Contents>", "<CommonPrefixes><Prefix>q/</Prefix></CommonPrefixes><Contents>", "'q/'"),
    ] {
        let broken = whole.replacen(from, to, 1);
        assert!(broken != whole, "{from}");
        let error = refused(&broken, &all());
        let said = error.to_string();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{said}");
        assert!(said.contains(why) && said.contains("ListObjectsV2"), "{why}: {said}");
    }
    let error = page("<Error><Code>SlowDown</Code></Error>", &all()).unwrap_err();
    assert_eq!((error.kind, error.status), (ErrorKind::Throttled, 200));
    let leftover = document(&format!("{LAST}<NextContinuationToken>t</NextContinuationToken>"));
    assert_eq!(page(&leftover, &all()).unwrap().next, None);
}

#[test]
fn a_page_that_goes_on_where_it_was_is_refused() {
    let inner = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>";
    let body = document(inner);
    let asked = |token: &str| ListQuery { continuation: Some(token.to_owned()), ..all() };
    assert_eq!(page(&body, &asked("s")).unwrap().next.as_deref(), Some("t"));
    assert!(refused(&body, &asked("t")).to_string().contains("where it was"));
}

#[test]
fn the_first_version_goes_on_after_a_name() {
    const MORE: &str = "<IsTruncated>true</IsTruncated>";
    let next = |inner: &str, asked: &ListQuery| {
        let body = document(&format!("{MORE}{inner}"));
        page_by(ListVersion::One, &body, asked).map(|page| page.next)
    };
    let divided = below("", Some(b'/'));
    // Without a delimiter there is no marker, so the last name is used.
    assert_eq!(next(&keys(&["a", "b"]), &all()).unwrap().as_deref(), Some("b"));
    let both = keys(&["a"]) + &prefixes(&["b/"]);
    assert_eq!(next(&both, &divided).unwrap().as_deref(), Some("b/"));
    let marked = both + "<NextMarker>c%2Bd</NextMarker><EncodingType>url</EncodingType>";
    assert_eq!(next(&marked, &divided).unwrap().as_deref(), Some("c+d"));
    for (inner, continuation) in [
        ("", None),
        ("<NextMarker>m</NextMarker><NextMarker>n</NextMarker>", None),
        ("<NextMarker>m</NextMarker>", Some("m")),
        // A token of the other version is ignored.
        ("<NextContinuationToken>t</NextContinuationToken>", None),
    ] {
        let asked = ListQuery { continuation: continuation.map(str::to_owned), ..all() };
        let error = next(inner, &asked).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt, "{inner}");
        assert!(error.to_string().contains("ListObjects cannot"), "{error}");
    }
    // Likewise a marker of version 1 in version 2.
    let marked = document(&format!("{MORE}{}<NextMarker>a</NextMarker>", keys(&["a"])));
    let said = page(&marked, &all()).unwrap_err().to_string();
    assert!(said.contains("--use-list-objects-v1"), "{said}");
}

#[test]
fn names_that_were_not_asked_for_are_refused() {
    let slash = Some(b'/');
    for (inner, asked, fine) in [
        (keys(&["p/a", "p/b"]), below("p/", None), true),
        (keys(&["p/a", "p2"]), below("p/", None), false),
        (keys(&["other1/key"]), below("p/", None), false),
        (keys(&["p"]), below("p/", None), false),
        (keys(&["p%2Fa"]) + "<EncodingType>url</EncodingType>", below("p/", None), true),
        (keys(&["p%2Fa"]), below("p/", None), false),
        (keys(&["p/"]) + &prefixes(&["p/x/"]), below("p/", slash), true),
        (prefixes(&["q/"]), below("p/", slash), false),
        (prefixes(&["p/x"]), below("p/", slash), false),
        (prefixes(&["p/"]), below("p/", slash), false),
        (prefixes(&["p/x/y/"]), below("p/", slash), false),
        (prefixes(&["p/x/"]), below("p/", None), false),
        (keys(&["p/x/y"]), below("p/", slash), false),
        (keys(&["p/x/"]), below("p/", slash), false),
    ] {
        let body = document(&format!("{LAST}{inner}"));
        match fine {
            true => drop(page(&body, &asked).unwrap()),
            false => assert_eq!(refused(&body, &asked).kind, ErrorKind::Corrupt, "{inner}"),
        }
    }
}

proptest! {
    /// Names outside the request are never returned.
    #[test]
    fn no_name_outside_the_prefix_comes_through(
        names in prop::collection::vec("[ab/]{1,4}", 0..5), prefix in "[ab/]{0,3}",
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all_below = names.iter().all(|name| name.starts_with(&prefix));
        let body = document(&format!("{LAST}{}", keys(&names)));
        prop_assert_eq!(page(&body, &below(&prefix, None)).is_ok(), all_below);
    }

    #[test]
    fn every_key_survives(
        names in prop::collection::vec(prop::collection::vec(1_u8.., 1..12), 1..5),
    ) {
        let encoded = names.iter().map(|name| {
            let mut text = String::new();
            encode_path(name, &mut text);
            text
        });
        let encoded: Vec<String> = encoded.collect();
        let encoded: Vec<&str> = encoded.iter().map(String::as_str).collect();
        let found = keys_of(&format!("<EncodingType>url</EncodingType>{}", keys(&encoded)));
        prop_assert_eq!(&found, &names);
    }

    #[test]
    fn a_key_that_is_not_encoded_survives(name in "[^\\p{C}]{1,10}") {
        let found = keys_of(&keys(&[&escaped(name.as_bytes()).unwrap()]));
        prop_assert_eq!(&found[0], name.as_bytes());
    }

    #[test]
    fn no_mutation_upsets_the_reader(at in 0..600_usize, byte in any::<u8>(), cut in 0..600_usize) {
        let mut bytes = document(&format!("{LAST}{OBJECT}")).into_bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(cut.max(1));
        let response = Response::of(bytes);
        let _ = page_of(&response, &all(), ListVersion::Two);
    }
}

#[test]
fn a_query_asks_for_encoded_keys() {
    let query = ListQuery {
        prefix: b"a/".to_vec(),
        delimiter: Some(b'/'),
        start_after: b"a/b".to_vec(),
        continuation: Some("t".to_owned()),
        max_keys: Some(7),
    };
    let pairs = |version| {
        let list = request("b", &query, version).unwrap();
        list.query.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>()
    };
    let expected = [
        "list-type=2",
        "encoding-type=url",
        "prefix=a/",
        "delimiter=/",
        "start-after=a/b",
        "continuation-token=t",
        "max-keys=7",
    ];
    assert_eq!(pairs(ListVersion::Two), expected);
    let first = ["encoding-type=url", "prefix=a/", "delimiter=/", "marker=t", "max-keys=7"];
    assert_eq!(pairs(ListVersion::One), first);
    let bad = ListQuery { prefix: b"\xff".to_vec(), ..ListQuery::default() };
    assert_eq!(request("b", &bad, ListVersion::Two).unwrap_err().kind, ErrorKind::Invalid);
}

fn page_with(keys: &[&str], prefixes: &[&str]) -> ListPage {
    let object = |key: &&str| ListedObject {
        key: key.as_bytes().to_vec(),
        size: 0,
        mtime: Time::default(),
        etag: Default::default(),
        storage_class: "".into(),
    };
    let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()).collect();
    ListPage { objects: keys.iter().map(object).collect(), prefixes, next: None }
}

#[test]
fn each_page_comes_after_the_one_before() {
    let mut pages = ObjectPages::new(ListQuery::default());
    for fine in [
        page_with(&[], &[]),
        page_with(&["b", "d"], &["c/"]),
        page_with(&[], &[]),
        page_with(&[], &["e/"]),
    ] {
        pages.follow(&fine).unwrap();
    }
    for bad in [
        page_with(&["d"], &[]),
        page_with(&["g", "f"], &[]),
        page_with(&[], &["a/"]),
        page_with(&[], &["e/"]),
    ] {
        assert!(pages.follow(&bad).unwrap_err().contains("out of order"), "{bad:?}");
    }
}

#[test]
fn only_plain_numbers_and_flags_are_read() {
    for (text, expected) in [
        ("0", Some(0)),
        (" 7\n", Some(7)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("-1", None),
        ("+1", None),
        ("1.0", None),
        ("0x10", None),
        ("", None),
        ("٣", None),
    ] {
        assert_eq!(number(text.as_bytes()), expected, "{text}");
    }
    for text in ["", "True", "1", "truefalse", "yes"] {
        assert_eq!(flag(text.as_bytes()), None, "{text}");
    }
    assert_eq!((flag(b"true"), flag(b" false ")), (Some(true), Some(false)));
}

#[test]
fn the_first_reason_is_told() {
    let mut check = PageCheck::default();
    let mut field = None;
    check.set(&mut field, "Size", b"1", number(b"1"));
    check.set(&mut field, "Size", b"-1", number(b"-1"));
    check.set(&mut field, "Size", b"2", number(b"2"));
    check.need(None::<u64>, "Key", "an object");
    let error = check.finish("ListObjectsV2").unwrap_err();
    assert_eq!((field, error.kind), (Some(1), ErrorKind::Corrupt));
    let told = "the response to ListObjectsV2 cannot be trusted: its Size '-1' cannot be \
                read";
    assert_eq!(error.to_string(), told);
}

proptest! {
    #[test]
    fn a_number_is_read_as_it_is_written(value: u64, other in "\\PC{0,8}") {
        prop_assert_eq!(number(value.to_string().as_bytes()), Some(value));
        if let Some(found) = number(other.as_bytes()) {
            let trimmed = other.trim_ascii().trim_start_matches('0');
            prop_assert_eq!(found.to_string(), if trimmed.is_empty() { "0" } else { trimmed });
        }
    }
}

#[test]
fn forms() {
    let digits = "0123456789abcdef0123456789abcdef";
    assert_eq!(Etag::new(&format!("\"{digits}\"")).md5().unwrap()[..2], [0x01, 0x23]);
    for text in [
        "",
        "x",
        &digits.to_uppercase(),
        &format!("{digits}-3"),
        &format!("{digits}-03"),
        &format!("{digits}-"),
        &format!("{digits}-+3"),
        &format!("{digits}-99999999999"),
        &format!("{digits}-4294967295"),
        &format!("{digits}-4294967296"),
        "é123456789abcdef0123456789abcdef-1",
    ] {
        assert_eq!(Etag::new(text).to_string(), *text);
        assert_eq!(Etag::new(text).md5(), None);
    }
    assert_eq!(Etag::new(digits), Etag::new(&format!("\"{digits}\"")));
    assert_eq!(*Etag::from("W/x"), *"W/x");
    assert!(Etag::default().is_empty() && Etag::new("\"\"").is_empty());
    assert!(!Etag::new(digits).is_empty());
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(text in "[0-9a-f]{31,33}(-[0-9]{1,11})?") {
        prop_assert_eq!(Etag::new(&text).to_string(), text);
    }
}

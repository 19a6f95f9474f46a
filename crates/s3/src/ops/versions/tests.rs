//! Pages of versions, and every reason to distrust one.

use super::*;
use crate::ErrorKind;

fn response(body: &str) -> Response {
    Response::of(body.to_owned())
}

fn version(element: &str, key: &str, id: &str) -> String {
    let size = if element == "Version" { "<Size>5</Size><ETag>\"e\"</ETag>" } else { "" };
    format!(
        "<{element}><Key>{key}</Key><VersionId>{id}</VersionId><IsLatest>false</IsLatest>\
         <LastModified>2013-05-24T00:00:00.000Z</LastModified>{size}<Owner><ID>o</ID></Owner></{element}>"
    )
}

fn document(inner: &str, next: Option<(&str, &str)>) -> String {
    let next = next.map(|(key, id)| {
        format!(
            "<NextKeyMarker>{key}</NextKeyMarker><NextVersionIdMarker>{id}</NextVersionIdMarker>"
        )
    });
    format!(
        "<ListVersionsResult><IsTruncated>{}</IsTruncated>{}{inner}</ListVersionsResult>",
        next.is_some(),
        next.unwrap_or_default()
    )
}

fn below(prefix: &str, delimiter: Option<u8>) -> VersionQuery {
    VersionQuery { prefix: prefix.as_bytes().to_vec(), delimiter }
}

#[test]
fn a_page_is_read() {
    let inner = version("DeleteMarker", "p/b+", "m")
        + &version("Version", "p/%C3%A9", "null")
        + &version("Version", "p/%C3%A9", "2")
        + "<CommonPrefixes><Prefix>p/d/</Prefix></CommonPrefixes><EncodingType>url</EncodingType>";
    let body = document(&inner, Some(("p/%C3%A9", "2")));
    let query = below("p/", Some(b'/'));
    let page = page_of(&response(&body), &query, &PageMarker::default()).unwrap();
    let found: Vec<_> = page
        .versions
        .iter()
        .map(|version| (version.key.as_slice(), version.id.as_str(), version.size))
        .collect();
    let accent = "p/é".as_bytes();
    assert_eq!(found, [(&b"p/b "[..], "m", 0), (accent, "null", 5), (accent, "2", 5)]);
    let kinds: Vec<_> = page.versions.iter().map(|version| version.is_delete_marker).collect();
    assert_eq!(kinds, [true, false, false]);
    assert_eq!(page.prefixes, [b"p/d/"]);
    assert_eq!(page.next, Some(PageMarker { key: accent.to_vec(), id: "2".to_owned() }));
}

#[test]
fn a_query_names_where_it_goes_on() {
    let from = PageMarker { key: b"p/a".to_vec(), id: "v".to_owned() };
    let asked = request("b", &below("p/", Some(b'/')), &from).unwrap();
    let pairs: Vec<_> = asked.query.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let expected = [
        "versions=",
        "encoding-type=url",
        "prefix=p/",
        "delimiter=/",
        "key-marker=p/a",
        "version-id-marker=v",
    ];
    assert_eq!(pairs, expected);
    let bad = VersionQuery { prefix: b"\xff".to_vec(), delimiter: None };
    assert_eq!(request("b", &bad, &from).unwrap_err().kind, ErrorKind::Invalid);
}

#[test]
fn a_page_that_cannot_be_trusted_is_refused() {
    let inner = version("Version", "p/a", "1")
        + &version("Version", "p/b", "2")
        + &version("DeleteMarker", "p/a", "3")
        + &version("DeleteMarker", "p/b", "4");
    let whole = document(&inner, Some(("p/b", "2")));
    let from = PageMarker { key: b"p/a".to_vec(), id: "0".to_owned() };
    let of = |body: &str| page_of(&response(body), &below("p/", None), &from);
    assert_eq!(of(&whole).unwrap().versions.len(), 4);
    for (from, to) in [
        ("<Key>p/a</Key>", "<Key>q/a</Key>"),
        ("<Key>p/a</Key>", ""),
        ("<Key>p/a</Key>", "<Key/>"),
        ("<Key>p/a</Key>", "<Key>p/a</Key><Key>p/a</Key>"),
        ("<Key>p/a</Key>", "<Key>p/c</Key>"),
        ("<VersionId>1</VersionId>", ""),
        ("<VersionId>1</VersionId>", "<VersionId></VersionId>"),
        ("<VersionId>3</VersionId>", ""),
        ("<IsLatest>false</IsLatest>", ""),
        ("<IsLatest>false</IsLatest>", "<IsLatest>no</IsLatest>"),
        ("2013-05-24T", "yesterday"),
        ("<Size>5</Size>", ""),
        ("<Size>5</Size>", "<Size>-5</Size>"),
        ("<Size>5</Size>", "<Size>18446744073709551616</Size>"),
        ("<IsTruncated>true</IsTruncated>", ""),
        ("<IsTruncated>true</IsTruncated>", "<IsTruncated>maybe</IsTruncated>"),
        ("<NextKeyMarker>p/b</NextKeyMarker>", ""),
        ("<NextKeyMarker>p/b</NextKeyMarker>", "<NextKeyMarker>p/0</NextKeyMarker>"),
        ("p/b</NextKeyMarker><NextVersionIdMarker>2", "p/a</NextKeyMarker><NextVersionIdMarker>0"),
        ("<IsTruncated>", "<CommonPrefixes></CommonPrefixes><IsTruncated>"),
        ("<IsTruncated>", "<CommonPrefixes><Prefix>p/c/</Prefix></CommonPrefixes><IsTruncated>"),
        ("ListVersionsResult>", "ListBucketResult>"),
    ] {
        let broken = whole.replacen(from, to, if to.ends_with("Result>") { 2 } else { 1 });
        assert!(broken != whole, "{from}");
        assert_eq!(of(&broken).unwrap_err().kind, ErrorKind::Corrupt, "{from} {to}");
    }
    // gofakes3 names the root differently.
    let other = whole.replace("ListVersionsResult>", "ListBucketVersionsResult>");
    assert_eq!(of(&other).unwrap().versions, of(&whole).unwrap().versions);
    let second = whole.replacen("<Key>p/b</Key>", "<Key>p/0</Key>", 2);
    assert_eq!(of(&second).unwrap_err().kind, ErrorKind::Corrupt);
}

/// Pages of a listing, one after the other; the last one's error.
fn followed(pages: &[String]) -> Result<Vec<String>, String> {
    let mut listing = VersionPages::new(below("", None));
    let mut ids = Vec::new();
    for page in pages {
        assert!(!listing.over, "{page}");
        let page = page_of(&response(page), &listing.query, &listing.from);
        let mut page = page.map_err(|error| error.message)?;
        listing.follow(&mut page)?;
        ids.extend(page.versions.into_iter().map(|version| version.id));
    }
    Ok(ids)
}

#[test]
fn versions_of_a_key_may_cross_pages() {
    let first = version("Version", "a", "1") + &version("Version", "b", "2");
    // Some servers repeat the version that the marker names.
    let again = version("Version", "b", "2") + &version("Version", "b", "3");
    let pages = [
        document(&first, Some(("b", "2"))),
        document(&again, Some(("b", "3"))),
        document("", Some(("b", "4"))),
        document(&version("Version", "c", "2"), None),
    ];
    assert_eq!(followed(&pages).unwrap(), ["1", "2", "3", "2"]);
}

#[test]
fn pages_that_repeat_are_refused() {
    let of = |key: &str, id: &str| version("Version", key, id);
    for (pages, why) in [
        (vec![document(&(of("a", "1") + &of("a", "1")), None)], "version '1' of 'a' twice"),
        (
            vec![
                document(&(of("a", "1") + &of("a", "2")), Some(("a", "2"))),
                document(&of("a", "1"), None),
            ],
            "version '1' of 'a' twice",
        ),
        (
            vec![document(&of("b", "1"), Some(("b", "1"))), document(&of("a", "1"), None)],
            "out of order",
        ),
        (
            vec![document("", Some(("a", "1"))), document("", Some(("a", "1")))],
            "where it was before",
        ),
        (
            vec![
                document("", Some(("a", "1"))),
                document("", Some(("a", "2"))),
                document("", Some(("a", "1"))),
            ],
            "where it was before",
        ),
    ] {
        let found = followed(&pages).unwrap_err();
        assert!(found.contains(why), "{why}: {found}");
    }
}

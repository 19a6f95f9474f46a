//! Pages as servers write them, whole and broken.

use crate::s3::ops::list::{ListPage, page_of};
use crate::s3::sign::encode_path;
use crate::s3::xml::escaped;
use crate::s3::{Error, Kind, Reply};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use proptest::prelude::*;

fn page(body: &str) -> Result<ListPage, Error> {
    let body = Bytes::from(body.to_owned());
    page_of(&Reply { status: StatusCode::OK, headers: HeaderMap::new(), body })
}

fn document(inner: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult \
         xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>{inner}</ListBucketResult>"
    )
}

fn keys(names: &[&str]) -> String {
    names.iter().map(|name| format!("<Contents><Key>{name}</Key></Contents>")).collect()
}

fn keys_of(inner: &str) -> Vec<Vec<u8>> {
    page(&document(inner)).unwrap().objects.into_iter().map(|object| object.key).collect()
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
    let page = page(&document(&inner)).unwrap();
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

#[test]
fn what_cannot_be_trusted_is_refused() {
    let truncated = "<IsTruncated>true</IsTruncated>";
    let whole = document(OBJECT);
    let cases = [
        String::new(),
        "<html></html>".to_owned(),
        document(truncated),
        document("<Contents><Size>1</Size></Contents>"),
        whole[..whole.len() - 1].to_owned(),
    ];
    for case in cases {
        assert_eq!(page(&case).unwrap_err().kind, Kind::Corrupt, "{case}");
    }
    let error = page("<Error><Code>SlowDown</Code></Error>").unwrap_err();
    assert_eq!((error.kind, error.status), (Kind::Throttled, 200));
    let leftover = document(
        "<IsTruncated>false</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
    );
    assert_eq!(page(&leftover).unwrap().next, None);
}

proptest! {
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
        let mut bytes = document(OBJECT).into_bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(cut.max(1));
        let body = Bytes::from(bytes);
        let _ = page_of(&Reply { status: StatusCode::OK, headers: HeaderMap::new(), body });
    }
}

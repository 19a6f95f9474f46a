//! Signatures from the S3 documentation and AWS's published test suite.

use super::*;
use crate::Settings;
use crate::script::{Server, ServerSession, answer, block_on};
use http::Method;
use proptest::prelude::*;

const DAY_S: i64 = 1_369_353_600; // 20130524T000000Z
const HOST: &str = "examplebucket.s3.amazonaws.com";

fn credentials(token: Option<&str>) -> Credentials {
    Credentials {
        access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
        secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: token.map(str::to_owned),
    }
}

fn signed(method: &str, path: &str, query: &str, given: &[(&str, &str)], body: &[u8]) -> String {
    let signer = Signer::new(&credentials(None), "us-east-1", DAY_S);
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.insert(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    signer.sign(method, HOST, path, query, &mut headers, &sha256_hex(body), DAY_S);
    headers["authorization"].to_str().unwrap().to_owned()
}

fn encoded(key: &str) -> String {
    let mut path = "/".to_owned();
    encode_path(key.as_bytes(), &mut path);
    path
}

/// "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
#[test]
fn the_examples_of_the_documentation() {
    let start =
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";
    let get = signed("GET", "/test.txt", "", &[("Range", "bytes=0-9")], b"");
    let names = "host;range;x-amz-content-sha256;x-amz-date";
    let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    assert_eq!(get, format!("{start},SignedHeaders={names},Signature={signature}"));

    let given =
        [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
    let put = signed("PUT", &encoded("test$file.text"), "", &given, b"Welcome to Amazon S3.");
    assert!(put.ends_with("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
    assert!(put.contains("=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,"));

    let query = encode_query(&[("lifecycle", String::new())]);
    let lifecycle = signed("GET", "/", &query, &[], b"");
    assert!(
        lifecycle.ends_with("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    );

    let query = encode_query(&[("prefix", "J".to_owned()), ("max-keys", "2".to_owned())]);
    let list = signed("GET", "/", &query, &[], b"");
    assert!(list.ends_with("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

/// "Authenticating Requests: Using Query Parameters".
#[test]
fn the_presigned_example_of_the_documentation() {
    let signer = Signer::new(&credentials(None), "us-east-1", DAY_S);
    let url = presigned_url(&signer, "GET", "https", HOST, "/test.txt", &[], 86_400, DAY_S);
    let expected = "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
        &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
        &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
        &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    assert_eq!(url, expected);
    let signer = Signer::new(&credentials(Some("a/b+c==")), "us-east-1", DAY_S);
    let query = [("versionId", "v".to_owned())];
    let url = presigned_url(&signer, "GET", "http", "h:1", "/b/k", &query, 1, DAY_S + 61);
    assert!(url.contains("&X-Amz-Date=20130524T000101Z&"), "{url}");
    assert!(url.contains("&X-Amz-Security-Token=a%2Fb%2Bc%3D%3D&"), "{url}");
    assert!(url.contains("&versionId=v&X-Amz-Signature="), "{url}");
}

/// The suite signs for a service called "service" and without a payload hash header, so its requests are
/// tested below `sign`.
fn suite(method: &str, path: &str, query: &[(&str, &str)], given: &[(&str, &str)]) -> String {
    let credentials = Credentials {
        access_key: "AKIDEXAMPLE".to_owned(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
        session_token: None,
    };
    let (stamp, at) = ("20150830T123600Z", 1_440_938_160);
    let mut signer = Signer::new(&credentials, "us-east-1", at);
    assert_eq!(signer.stamp(at), stamp);
    signer.scope = "20150830/us-east-1/service/aws4_request".to_owned();
    signer.key = signing_key(&credentials, "20150830", "us-east-1", "service");
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers.insert(X_AMZ_DATE, header_value(stamp));
    let query: Vec<_> = query.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let mut canonical = Canonical::begin(method, &encoded(path), &encode_query(&query));
    let names = canonical.headers("example.amazonaws.com", &headers);
    canonical.end(&names, &sha256_hex(b""));
    signer.signature(&canonical.0, stamp)
}

#[test]
fn the_published_test_suite() {
    // get-vanilla
    let signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    assert_eq!(suite("GET", "", &[], &[]), signature);
    // post-vanilla
    let signature = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
    assert_eq!(suite("POST", "", &[], &[]), signature);
    // get-utf8
    let signature = "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85";
    assert_eq!(suite("GET", "\u{1234}", &[], &[]), signature);
    // get-vanilla-query-order-key-case
    let query = [("Param2", "value2"), ("Param1", "value1")];
    let signature = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
    assert_eq!(suite("GET", "", &query, &[]), signature);
    // get-vanilla-utf8-query
    let signature = "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04";
    assert_eq!(suite("GET", "", &[("\u{1234}", "bar")], &[]), signature);
    // get-header-key-duplicate
    let given = [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")];
    let signature = "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea";
    assert_eq!(suite("GET", "", &[], &given), signature);
    // get-header-value-trim
    let given = [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")];
    let signature = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736";
    assert_eq!(suite("GET", "", &[], &given), signature);
}

#[test]
fn what_a_connection_may_change_is_not_signed_and_a_token_is() {
    let signer = Signer::new(&credentials(Some("TOKEN")), "us-east-1", DAY_S);
    let mut headers = HeaderMap::new();
    for name in ["user-agent", "content-length", "host", "authorization", "x-amz-meta-a"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
    }
    signer.sign("GET", HOST, "/", "", &mut headers, UNSIGNED, DAY_S);
    let text = headers["authorization"].to_str().unwrap();
    let names = "host;x-amz-content-sha256;x-amz-date;x-amz-meta-a;x-amz-security-token";
    assert!(text.contains(&format!("SignedHeaders={names},")), "{text}");
    assert_eq!(headers["x-amz-security-token"], "TOKEN");
    assert_eq!(headers["x-amz-content-sha256"], "UNSIGNED-PAYLOAD");
}

#[test]
fn a_key_is_good_for_one_day_and_region() {
    let signer = Signer::new(&credentials(None), "eu-west-1", DAY_S);
    assert!(signer.is_for("eu-west-1", DAY_S + 86_399));
    assert!(!signer.is_for("eu-west-1", DAY_S + 86_400));
    assert!(!signer.is_for("eu-west-1", DAY_S - 1));
    assert!(!signer.is_for("us-east-1", DAY_S));
    assert_eq!(signer.stamp(DAY_S + 86_399), "20130524T235959Z");
}

#[test]
fn credentials_that_no_header_can_carry_do_not_end_the_program() {
    let mut bad = credentials(Some("to\nken"));
    bad.access_key = "AK\r\nX: y".to_owned();
    let mut headers = HeaderMap::new();
    Signer::new(&bad, "r", 0).sign("GET", "h", "/", "", &mut headers, UNSIGNED, 0);
    assert_eq!(headers["x-amz-security-token"], "token");
    assert!(headers["authorization"].to_str().unwrap().contains("AKX: y/19700101/r"));
}

#[test]
fn keys_stay_as_they_are() {
    let key = "/a//b/./../c d$&+,:;=?@\n%41~é";
    let expected = "//a//b/./../c%20d%24%26%2B%2C%3A%3B%3D%3F%40%0A%2541~%C3%A9";
    assert_eq!(encoded(key), expected);
    let query = [("b", "x".to_owned()), ("a-", "1".to_owned()), ("a", "/ ".to_owned())];
    assert_eq!(encode_query(&query), "a=%2F%20&a-=1&b=x");
}

proptest! {
    #[test]
    fn encoding_loses_nothing(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut text = String::new();
        encode_path(&bytes, &mut text);
        prop_assert!(text.bytes().all(|b| b.is_ascii_graphic()));
        prop_assert_eq!(hakobu_core::percent::decode(text.as_bytes(), true), bytes);
    }
}

#[test]
fn a_url_says_where_and_for_how_long() {
    let server = Server::start(|_| answer("200 OK", "", ""));
    let session = server.session(Settings { region: Some("eu-x-1".into()), ..Settings::default() });
    let get = Request::new("GetObject", Method::GET, Some("b")).key(b"a/ b");
    let url = block_on(presign(&session, &get, Duration::from_secs(60))).unwrap();
    assert!(url.starts_with(&format!("{}/b/a/%20b?X-Amz-", server.url)), "{url}");
    assert!(url.contains("X-Amz-Expires=60&") && url.contains("%2Feu-x-1%2Fs3%2F"), "{url}");
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let server = Server::start(|_| answer("200 OK", "", ""));
    let get = Request::new("GetObject", Method::GET, Some("b")).key(b"k");
    let kind = |session: &S3Session, s| {
        block_on(presign(session, &get, Duration::from_secs(s))).map_err(|e| e.kind).unwrap_err()
    };
    let session = server.session(Settings::default());
    assert_eq!(kind(&session, 0), ErrorKind::Invalid);
    assert_eq!(kind(&session, EXPIRES_MAX_S + 1), ErrorKind::Invalid);
    let anonymous = Settings { no_sign_request: true, ..Settings::default() };
    assert_eq!(kind(&server.session(anonymous), 60), ErrorKind::Credentials);
}

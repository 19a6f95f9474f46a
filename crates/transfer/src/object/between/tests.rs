//! Headers of copies.

use super::*;

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
    let head = ObjectHead { headers: headers.into_iter().collect(), ..ObjectHead::default() };
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

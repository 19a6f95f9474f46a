//! Evaluation of S3 options.

use super::*;
use crate::options::{Table, Typed};
use hakobu_s3::Algorithm;
use std::ffi::OsString;

/// A command with all options for S3.
const TABLE: Table<ObjectArgs> = Table {
    command: "test",
    about: "",
    usage: "",
    after: "",
    options: &[&STORE, &SIDES, &RAW, &VERSION, &STAT, &TRANSFER, &STOP],
    unbuilt: &[UNBUILT],
    abbreviates: false,
};

fn typed(line: &str) -> Typed {
    TABLE.parse_line(line).unwrap()
}

fn args(line: &str) -> Result<ObjectArgs, String> {
    TABLE.read(&typed(line), ObjectArgs::default())
}

fn headers(line: &str) -> Result<String, String> {
    let objects = args(line)?.objects()?;
    let shown = objects
        .options
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("not text")));
    Ok(shown.collect::<Vec<_>>().join("; "))
}

#[test]
fn options_become_headers() {
    for (line, expected) in [
        ("", ""),
        ("--storage-class=GLACIER", "x-amz-storage-class: GLACIER"),
        ("--content-type=a/b --content-type=c/d", "content-type: c/d"),
        ("--sse=AES256", "x-amz-server-side-encryption: AES256"),
        ("--sse", "x-amz-server-side-encryption: AES256"),
        (
            "--grants=read=id=x --grants read=uri=u,full=emailaddress=m@x.test",
            "x-amz-grant-read: id=\"x\", uri=\"u\"; \
             x-amz-grant-full-control: emailAddress=\"m@x.test\"",
        ),
        (
            "--sse-kms-key-id=k",
            "x-amz-server-side-encryption: aws:kms; \
             x-amz-server-side-encryption-aws-kms-key-id: k",
        ),
        ("--metadata=a=1,b=2 --metadata A=3", "x-amz-meta-b: 2; x-amz-meta-a: 3"),
        ("--expires=2030-01-31T12:00:00Z", "expires: Thu, 31 Jan 2030 12:00:00 GMT"),
        ("--tagging=a=1&b=2 --acl=private", "x-amz-tagging: a=1&b=2; x-amz-acl: private"),
    ] {
        assert_eq!(headers(line).as_deref(), Ok(expected), "{line}");
    }
}

#[test]
fn specific_settings_win() {
    let objects = args(
        "--endpoint-url=http://both --source-region=here --region=there \
         --destination-endpoint-url=http://target --profile=p",
    )
    .and_then(ObjectArgs::objects)
    .unwrap();
    let shown = |settings: &Settings| {
        [&settings.endpoint_url, &settings.region, &settings.profile]
            .map(|text| text.clone().unwrap_or_default())
            .join(" ")
    };
    assert_eq!(shown(&objects.source), "http://both here p");
    assert_eq!(shown(&objects.target), "http://target there p");
}

#[test]
fn sizes_and_numbers() {
    let options = |line: &str| args(line).and_then(ObjectArgs::objects).map(|it| it.options);
    assert_eq!(options("--part-size=8").unwrap().part_bytes, Some(8 << 20));
    assert!(options("--part-size=1").unwrap_err().contains("5 MiB at least"));
    assert_eq!(options("--part-size=16MB").unwrap().part_bytes, Some(16_000_000));
    assert_eq!(options("--concurrency=7").unwrap().concurrency, Some(7));
    assert!(options("").unwrap().guess_content_type);
    assert!(!options("--no-guess-mime-type").unwrap().guess_content_type);
    assert!(options("--metadata-directive=replace").unwrap().replace_metadata);
    assert_eq!(options("--checksum-algorithm=crc32c").unwrap().algorithm, Some(Algorithm::Crc32c));
}

#[test]
fn wrong_values_are_refused() {
    for line in [
        "--part-size=1k",
        "--part-size=6G",
        "--part-size=x",
        "--concurrency=0",
        "--concurrency=1001",
        "--sse=yes",
        "--if-none-match=etag",
        "--request-payer=me",
        "--addressing-style=dns",
        "--checksum-algorithm=crc",
        "--metadata-directive=KEEP",
        "--metadata=x",
        "--expires=soon",
        "--endpoint-url=",
    ] {
        assert!(args(line).is_err(), "{line}");
    }
    assert!(headers("--sse=AES256 --sse-kms-key-id=k").is_err());
    assert!(headers("--metadata=a=ä").is_err());
}

#[test]
fn keys_go_to_their_sides() {
    let (one, two) = ("1".repeat(32), "2".repeat(32));
    let both = Concerned { source: true, target: true };
    let down = Concerned { source: true, target: false };
    let keys = |line: String, concerned| {
        let args = args(&line)?;
        let objects = args.fit(concerned, &mut Policy::default())?;
        let key = |key: &str| CustomerKey::parse(key.as_bytes());
        let side = |settings: &Settings| match &settings.customer_key {
            None => "-",
            found if *found == key(&one) => "1",
            found if *found == key(&two) => "2",
            Some(_) => "?",
        };
        Ok::<_, String>([side(&objects.source), side(&objects.target)].concat())
    };
    let own = format!("--sse-c AES256 --sse-c-key {one}");
    let source = format!("--sse-c-copy-source --sse-c-copy-source-key={two}");
    assert_eq!(keys(own.clone(), down).as_deref(), Ok("11"));
    assert_eq!(keys(own.clone(), both).as_deref(), Ok("-1"));
    assert_eq!(keys(source.clone(), both).as_deref(), Ok("2-"));
    assert_eq!(keys(format!("{own} {source}"), both).as_deref(), Ok("21"));
    for wrong in [
        "--sse-c".to_owned(),
        "--sse-c=DES --sse-c-key=x".to_owned(),
        format!("--sse-c-key={one}x"),
        format!("--sse-c-key=fileb:///no/such/{one}"),
        format!("{own} --sse=aws:kms"),
        source.clone(),
    ] {
        let message = keys(wrong.clone(), down).unwrap_err();
        assert!(!message.contains(&format!("={one}")) && !message.contains(&two), "{message}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, &one).unwrap();
    let line = format!("--sse-c-key=fileb://{}", file.display());
    assert_eq!(keys(line, down).as_deref(), Ok("11"));
    assert!(!format!("{:?}", args(&own).unwrap()).contains(&one));
}

#[test]
fn without_a_store_they_are_refused() {
    let checked = |line: &str, any| TABLE.check_places(&typed(line), any, any);
    let message = checked("--region=x", false);
    assert_eq!(message, Err("--region is for s3:// locations, and none is given".to_owned()));
    assert_eq!(checked("--region=x", true), Ok(()));
    assert_eq!(checked("s d", false), Ok(()));
}

#[test]
fn urls() {
    let os = |text: &str| OsString::from(text);
    assert!(object_url(&os("s3://abc/k")).is_ok() && object_url(&os("s3://abc")).is_err());
    assert!(object_url(&os("k")).is_err() && url(&os("s3://a b")).is_err());
    assert_eq!(bucket_url(&os("s3://abc/")).as_deref(), Ok("abc"));
    assert!(bucket_url(&os("s3://abc/k")).is_err() && bucket_url(&os("s3://")).is_err());
}

//! Syntax and matching of faults.

use super::*;

fn request<'a>(method: &'a str, path: &'a str, query: &'a str) -> Request<'a> {
    Request { method, operation: Operation::of(method, path, query, false), path, query }
}

#[test]
fn specifications() {
    let effect = |text: &str| Fault::parse(text).map(|fault| fault.effect);
    let error = |code: &str, status, region: Option<&str>, late| Effect::Error {
        status,
        code: code.into(),
        region: region.map(Into::into),
        late,
    };
    for (text, expected) in [
        ("reset:op=GET,after=1000,times=2", Effect::Reset { after: 1000, side: None }),
        ("reset:in=response", Effect::Reset { after: 0, side: Some(Side::Response) }),
        ("truncate:after=5", Effect::Truncate { after: 5 }),
        ("corrupt:at=7", Effect::Corrupt { at: 7, side: None }),
        ("checksum", Effect::Checksum),
        ("silent:", Effect::Silent),
        ("slow:rate=10", Effect::Slow { rate: 10, side: None }),
        ("error", error("InternalError", 500, None, false)),
        ("error:code=SlowDown,late=yes", error("SlowDown", 503, None, true)),
        ("error:code=X,status=418", error("X", 418, None, false)),
        (
            "error:code=PermanentRedirect,region=eu-west-1",
            error("PermanentRedirect", 301, Some("eu-west-1"), false),
        ),
        ("list:add=a%2Cb", Effect::List { drop: 0, add: Some("a,b".into()), swap: false }),
    ] {
        assert_eq!(effect(text), Ok(expected), "{text}");
    }
    for (text, said) in [
        ("", "'' is not a kind"),
        ("resets", "'resets' is not a kind"),
        ("reset:after", "'after' is not key=value"),
        ("reset:after=x", "after=x is not a number"),
        ("reset:times=-1", "times=-1 is not a number"),
        ("reset:at=1", "reset has no 'at'"),
        ("reset:op=GTE", "op=GTE is neither"),
        ("reset:in=both", "in=both is neither"),
        ("reset:skip=1,skip=2", "skip is given twice"),
        ("error:code=Strange", "give the status"),
        ("error:status=99", "give the status"),
        ("slow", "slow needs rate"),
        ("slow:rate=0", "slow needs rate"),
        ("list:swap=perhaps", "swap=perhaps is neither"),
    ] {
        let message = effect(text).err().unwrap_or_default();
        assert!(message.contains(said), "{text}: {message}");
    }
}

#[test]
fn who_is_met() {
    let get = request("GET", "/b/some%20key", "");
    let put = request("PUT", "/b/key", "partNumber=2&uploadId=x");
    let list = request("GET", "/b", "list-type=2&prefix=some+k");
    for (text, applies_to) in [
        ("silent", [true, true, true]),
        ("silent:op=get", [true, false, true]),
        ("silent:op=UploadPart", [false, true, false]),
        ("silent:key=some%20k", [true, false, true]),
        ("silent:query=partNumber=2", [false, true, false]),
        ("list:drop=1", [false, false, true]),
    ] {
        let fault = Fault::parse(text).unwrap();
        assert_eq!(
            [get, put, list].map(|request| fault.applies_to(&request)),
            applies_to,
            "{text}"
        );
    }
}

#[test]
fn how_often() {
    let faults = ["silent:op=GET,skip=1,times=2", "checksum:skip=1"];
    let faults = faults.map(|text| Fault::parse(text).unwrap());
    let get = request("GET", "/b/k", "");
    let kinds: Vec<_> =
        (0..6).map(|_| pick(&faults, &get).map(Effect::kind).unwrap_or("none")).collect();
    assert_eq!(kinds, ["none", "silent", "silent", "checksum", "checksum", "checksum"]);
}

proptest::proptest! {
    #[test]
    fn any_text_is_taken_or_refused(
        text in "(reset|error|slow|list|corrupt)?(:((op|key|in|rate|after|code|x)=?[ -~]{0,6},?){0,4})?",
    ) {
        let _ = Fault::parse(&text);
    }

    #[test]
    fn what_is_written_is_read(after: u64, skip: u64, times: u64, key in "[a-z/]{1,9}") {
        let text = format!("reset:key={key},times={times},after={after},skip={skip}");
        let fault = Fault::parse(&text).map_err(proptest::test_runner::TestCaseError::fail)?;
        proptest::prop_assert_eq!(fault.effect, Effect::Reset { after, side: None });
        proptest::prop_assert_eq!((fault.skip, fault.times), (skip, Some(times)));
        proptest::prop_assert_eq!(fault.key, Some(key));
    }
}

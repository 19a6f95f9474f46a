//! User metadata and times on the command line, converted to headers.

use http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::strtime;

/// Parses `k1=v1,k2=v2`, or a JSON object of strings as in aws. A comma without a following `NAME=` belongs to the
/// value before it.
///
/// # Errors
/// A sentence for the user.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.starts_with('{') {
        let map: std::collections::BTreeMap<String, String> =
            serde_json::from_str(text).map_err(|error| {
                format!("--metadata={text} is not a JSON object of strings: {error}")
            })?;
        return Ok(map
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect());
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for piece in text.split(',') {
        match (piece.split_once('=').filter(|(name, _)| is_name(name)), pairs.last_mut()) {
            (Some((name, value)), _) => pairs.push((name.to_ascii_lowercase(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(',');
                value.push_str(piece);
            }
            (None, None) => return Err(format!("--metadata={text} is not NAME=VALUE")),
        }
    }
    Ok(pairs)
}

/// Returns whether the text is a valid header name (RFC 9110, token).
fn is_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fine)
}

/// Returns the header of a pair.
///
/// # Errors
/// A sentence: a name or a value that a header cannot carry unchanged.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let header = HeaderName::from_bytes(format!("x-amz-meta-{name}").as_bytes())
        .map_err(|_| format!("--metadata: '{name}' cannot be a name"))?;
    let plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && value.trim() == value;
    match HeaderValue::from_str(value) {
        Ok(value) if plain => Ok((header, value)),
        _ => Err(format!(
            "--metadata: the value of '{name}' must be printable ASCII without leading or trailing blanks"
        )),
    }
}

/// Formats a time for HTTP (RFC 9110, IMF-fixdate), from that format or RFC 3339.
pub fn http_date(text: &str) -> Option<String> {
    const FORM: &str = "%a, %d %b %Y %H:%M:%S GMT";
    let time = match strtime::parse(FORM, text).and_then(|parsed| parsed.to_datetime()) {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(),
        Err(_) => text.parse::<Timestamp>().ok()?,
    };
    strtime::format(FORM, time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_both_spellings() {
        let parsed = |text: &str| {
            parse(text).map(|pairs| {
                pairs.iter().map(|(k, v)| format!("{k}:{v}")).collect::<Vec<_>>().join(" ")
            })
        };
        for (text, expected) in [
            ("a=1", "a:1"),
            ("A=1,b=2", "a:1 b:2"),
            ("a=1,2,b=x=y", "a:1,2 b:x=y"),
            ("a=,b=", "a: b:"),
            ("a=1,b c=2", "a:1,b c=2"),
            ("{\"K\":\"v,w=1\"}", "k:v,w=1"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in ["", "a", "=1", "{\"a\":1}", "{"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_header_values_are_refused() {
        assert!(header("a", "x y").is_ok_and(|(name, _)| name == "x-amz-meta-a"));
        for (name, value) in [("a", "ä"), ("a", " x"), ("a", "x\ny"), ("a b", "x")] {
            assert!(header(name, value).is_err(), "{name}={value}");
        }
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("2030-01-31T12:00:00Z", Some("Thu, 31 Jan 2030 12:00:00 GMT")),
            ("2030-01-31T12:00:00+02:00", Some("Thu, 31 Jan 2030 10:00:00 GMT")),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some("Wed, 21 Oct 2015 07:28:00 GMT")),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(http_date(text).as_deref(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text: String) {
            if let Ok(pairs) = parse(&text) {
                let empty = ["{", "}"].concat();
                proptest::prop_assert!(!pairs.is_empty() || text.split_whitespace().collect::<String>() == empty);
            }
        }
    }
}

//! Removes secrets from URLs.

/// URL for display: without user, password and query, even if malformed.
pub fn without_secrets(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('@') => (format!("{scheme}://"), rest),
        _ => (String::new(), url),
    };
    // A password may contain any character, including those that end an authority.
    let (hidden, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("***@", rest),
        None => ("", rest),
    };
    let (rest, query) = match rest.split_once(['?', '#']) {
        Some((rest, _)) => (rest, "?***"),
        None => (rest, ""),
    };
    format!("{scheme}{hidden}{rest}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for url in [
            "http://user:s3cret@host:1/x",
            "user:s3cret@host",
            "http://user:s3/cr?et@host",
            "http://s3cret@host@other",
            "s3cret@http://host",
            "http://host/?key=s3cret",
            "http://host:x/#s3cret",
            "http://user:s3cret@ho st",
        ] {
            let shown = without_secrets(url);
            assert!(!shown.contains("cret"), "{shown}");
        }
        assert_eq!(without_secrets("http://u:p@h:1/x"), "http://***@h:1/x");
        assert_eq!(without_secrets("http://h:1/x"), "http://h:1/x");
    }
}

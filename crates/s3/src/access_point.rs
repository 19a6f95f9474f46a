//! Access points as bucket names (Amazon S3 User Guide, "Referencing access points"): `arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME`.
//! Each part is checked strictly, because it becomes part of a host name.

/// An access point of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPoint<'a> {
    /// Region.
    pub region: &'a str,
    /// Account: twelve digits.
    pub account: &'a str,
    /// Name.
    pub name: &'a str,
}

/// Start of every ARN.
const ARN: &str = "arn:";
/// Message for a malformed ARN.
const FORM: &str = "an access point is arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME";
/// Ends of the names that S3 generates for access points: those of buckets, of Outposts, and of Object Lambda.
const ALIASES: [&str; 3] = ["-s3alias", "--op-s3", "--ol-s3"];

impl<'a> AccessPoint<'a> {
    /// Splits the text after `s3://` into the ARN of an access point and what follows it: nothing, or a slash and a
    /// key. `None` if it is not an ARN.
    ///
    /// # Errors
    /// The reason that the ARN cannot be used.
    pub fn split(text: &[u8]) -> Option<Result<(&str, &[u8]), &'static str>> {
        text.starts_with(ARN.as_bytes()).then(|| {
            let parts: Vec<&[u8]> = text.splitn(6, |byte| *byte == b':').collect();
            let &[_, _, service, _, _, resource] = parts.as_slice() else {
                return Err("an ARN has six parts: arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME");
            };
            if service != b"s3" {
                return Err(other_service(service));
            }
            let kinds = [b"accesspoint/", b"accesspoint:"];
            let Some(rest) = kinds.iter().find_map(|kind| resource.strip_prefix(*kind)) else {
                return Err("only access points have ARNs that stand for buckets: \
                            arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME");
            };
            let name = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let (arn, after) = text.split_at(text.len() - rest.len() + name);
            let arn = std::str::from_utf8(arn).map_err(|_| FORM)?;
            AccessPoint::checked(arn).map(|_| (arn, after))
        })
    }

    /// Reads a bucket name; `None` if it is not the ARN of an access point.
    pub fn of(bucket: &'a str) -> Option<AccessPoint<'a>> {
        bucket.starts_with(ARN).then(|| AccessPoint::checked(bucket).ok())?
    }

    fn checked(arn: &'a str) -> Result<AccessPoint<'a>, &'static str> {
        let mut parts = arn.splitn(6, ':').skip(1);
        let mut next = || parts.next().ok_or(FORM);
        let (partition, service, region, account) = (next()?, next()?, next()?, next()?);
        let resource = next()?;
        let name =
            resource.strip_prefix("accesspoint").and_then(|rest| rest.strip_prefix(['/', ':']));
        let name = name.ok_or(FORM)?;
        if region.is_empty() {
            return Err(
                "multi-region access points need another signature (SigV4A), which is not \
                        built: name an access point of one region",
            );
        }
        let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_label = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| small(byte) || byte == b'-')
                && !text.starts_with('-')
                && !text.ends_with('-')
        };
        if service != "s3" || !is_label(partition) || !is_label(region) {
            return Err(FORM);
        }
        if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("the account of an access point has twelve digits");
        }
        if !(3..=50).contains(&name.len()) || !is_label(name) {
            return Err(
                "the name of an access point has 3 to 50 small letters, digits and hyphens",
            );
        }
        Ok(AccessPoint { region, account, name })
    }

    /// True if a bucket name may stand for another bucket: it is the ARN or the alias of an access point.
    pub fn may_name(bucket: &str) -> bool {
        bucket.starts_with(ARN) || ALIASES.iter().any(|end| bucket.ends_with(end))
    }

    /// The first part of its host name.
    pub fn label(&self) -> String {
        format!("{}-{}", self.name, self.account)
    }
}

fn other_service(service: &[u8]) -> &'static str {
    match service {
        b"s3-outposts" => {
            "access points of Outposts have separate endpoints and signatures, which are not supported"
        }
        b"s3-object-lambda" => {
            "access points of Object Lambda change what is read, so contents cannot be checked; \
                               name the access point below it"
        }
        _ => "only ARNs of s3 stand for buckets",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "arn:aws:s3:eu-west-1:123456789012:accesspoint/my-point";

    #[test]
    fn an_arn_is_split_from_its_key() {
        for (text, arn, rest) in [
            (WHOLE.to_owned(), WHOLE.to_owned(), ""),
            (format!("{WHOLE}/"), WHOLE.to_owned(), "/"),
            (format!("{WHOLE}/a/b:c"), WHOLE.to_owned(), "/a/b:c"),
            (WHOLE.replace("t/", "t:") + "/k", WHOLE.replace("t/", "t:"), "/k"),
        ] {
            let split = AccessPoint::split(text.as_bytes());
            assert_eq!(split, Some(Ok((&*arn, rest.as_bytes()))), "{text}");
            let point = AccessPoint::of(&arn).unwrap();
            assert_eq!((point.region, &*point.label()), ("eu-west-1", "my-point-123456789012"));
        }
        let bytes = [WHOLE.as_bytes(), b"/\xff"].concat();
        assert_eq!(AccessPoint::split(&bytes), Some(Ok((WHOLE, &b"/\xff"[..]))));
        let bytes = [WHOLE.as_bytes(), b"\xff/k"].concat();
        assert_eq!(AccessPoint::split(&bytes), Some(Err(FORM)));
        assert_eq!(AccessPoint::split(b"bucket/arn:aws"), None);
        assert_eq!(AccessPoint::of("bucket"), None);
    }

    #[test]
    fn other_arns_are_refused_with_their_reason() {
        let with = |from: &str, to: &str| WHOLE.replacen(from, to, 1);
        for (text, why) in [
            (with(":s3:", ":s3-outposts:"), "Outposts"),
            (with(":s3:", ":s3-object-lambda:"), "Object Lambda"),
            (with(":s3:", ":ec2:"), "only ARNs of s3"),
            (with("eu-west-1", ""), "multi-region"),
            (with("eu-west-1", "eu.evil.example"), "an access point is"),
            (with("eu-west-1", "EU"), "an access point is"),
            (with("123456789012", "1234"), "twelve digits"),
            (with("123456789012", "12345678901x"), "twelve digits"),
            (with("my-point", "my.point"), "3 to 50"),
            (with("my-point", "x"), "3 to 50"),
            (with("my-point", "-my"), "3 to 50"),
            (with("my-point", ""), "3 to 50"),
            (with("accesspoint/", "bucket/"), "only access points"),
            ("arn:aws:s3".to_owned(), "six parts"),
        ] {
            let found = AccessPoint::split(text.as_bytes()).unwrap().unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
            assert!(AccessPoint::of(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn aliases_may_be_other_buckets() {
        for name in [WHOLE, "my-point-abcdef-s3alias", "x--ol-s3"] {
            assert!(AccessPoint::may_name(name), "{name}");
        }
        assert!(!AccessPoint::may_name("bucket"));
    }
}

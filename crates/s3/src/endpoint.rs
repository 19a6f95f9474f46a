//! Where requests go: endpoint URL, AWS hosts by region, access points, and the bucket in host name or path. Pure, but for
//! the comparison of two hosts.

use crate::proxy::{Proxies, Proxy};
use crate::sign::encode_path;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

/// Default region: AWS's oldest, which other servers expect as well.
pub(crate) const REGION: &str = "us-east-1";

/// Position of the bucket in URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Addressing {
    /// In the host name on AWS if the bucket's name allows it, else in the path.
    #[default]
    Auto,
    /// Always in the path.
    Path,
    /// Always in the host name.
    Virtual,
}

/// Endpoint of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// AWS: the host depends on the region.
    Aws {
        /// Dual-stack endpoints (IPv4 and IPv6).
        dualstack: bool,
        fips: bool,
    },
    /// URL from the settings.
    Url {
        /// True for `https`.
        tls: bool,
        /// Host name or address, IPv6 without brackets.
        host: String,
        /// TCP port.
        port: u16,
        /// Path before the bucket, without a trailing slash; usually empty.
        path: String,
    },
}

/// Target of requests for one bucket in one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// True for TLS.
    pub tls: bool,
    /// Host to resolve and to verify by the certificate; IPv6 without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of the Host header: host, and the port if not the scheme's default.
    pub authority: String,
    /// Encoded path before the key, without the slash between; may be empty.
    pub prefix: String,
    /// Region for signing.
    pub region: String,
    /// Proxy to use.
    pub proxy: Option<Arc<Proxy>>,
}

impl Endpoint {
    /// Parses `http[s]://HOST[:PORT][/PATH]`.
    ///
    /// # Errors
    /// A message about the problem.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let wrong = |why: &str| format!("endpoint URL `{}`: {why}", without_secrets(url));
        let uri: http::Uri = url.parse().map_err(|e| wrong(&format!("{e}")))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it must begin with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("credentials do not belong into it"));
        }
        if uri.query().is_some() {
            return Err(wrong("it must not have a query"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        // Reject a colon without a port number.
        let port_text = authority.as_str().rsplit_once(':').filter(|(_, t)| !t.contains(']'));
        let port = match (authority.port_u16(), port_text) {
            (Some(port), _) if port != 0 => port,
            (None, None) => scheme_port(tls),
            _ => return Err(wrong("its port is not a number from 1 to 65535")),
        };
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Endpoint::Url { tls, host: host.to_ascii_lowercase(), port, path })
    }

    /// True if both may be one server; see [`S3Session::may_be_one`](crate::Store::may_be_one).
    pub fn may_be(&self, other: &Endpoint) -> bool {
        let is_aws = |endpoint: &Endpoint| match endpoint {
            Endpoint::Aws { .. } => true,
            Endpoint::Url { host, .. } => is_aws_host(host),
        };
        match (self, other) {
            _ if is_aws(self) && is_aws(other) => true,
            (
                Endpoint::Url { tls: a_tls, host: a, port: a_port, path: a_path },
                Endpoint::Url { tls: b_tls, host: b, port: b_port, path: b_path },
            ) => {
                let usual = |tls: bool, port: u16| port == scheme_port(tls);
                let ports = a_port == b_port || usual(*a_tls, *a_port) && usual(*b_tls, *b_port);
                ports && a_path == b_path && (a == b || share_an_address(a, b))
            }
            _ => false,
        }
    }

    /// True if requests use TLS.
    pub fn tls(&self) -> bool {
        match self {
            Endpoint::Aws { .. } => true,
            Endpoint::Url { tls, .. } => *tls,
        }
    }

    /// True if requests cannot be read on the way: they use TLS, or do not leave this machine.
    pub fn keeps_secrets(&self) -> bool {
        match self {
            Endpoint::Aws { .. } => true,
            Endpoint::Url { tls, host, .. } => {
                let is_loopback = host.parse::<IpAddr>().map(|address| address.is_loopback());
                *tls || is_loopback.unwrap_or(host == "localhost")
            }
        }
    }

    /// Target of requests for `bucket` (`None` for the account) in `region`.
    pub fn route(&self, bucket: Option<&str>, region: &str, addressing: Addressing) -> Route {
        let point = bucket.and_then(AccessPoint::of);
        // An access point belongs to one region, regardless of the settings.
        let region = point.as_ref().map_or(region, |point| point.region);
        let (tls, mut host, port, mut prefix) = match self {
            Endpoint::Aws { dualstack, fips } => {
                let host = aws_host(region, *dualstack, *fips);
                let host = match &point {
                    Some(_) => host.replacen("s3", "s3-accesspoint", 1),
                    None => host,
                };
                (true, host, 443, String::new())
            }
            Endpoint::Url { tls, host, port, path } => (*tls, host.clone(), *port, path.clone()),
        };
        if let Some(point) = &point {
            host = format!("{}.{host}", point.label());
        } else if let Some(bucket) = bucket {
            let in_host = match addressing {
                Addressing::Path => false,
                Addressing::Virtual => host.parse::<IpAddr>().is_err(),
                Addressing::Auto => {
                    is_aws_host(&host) && is_dns_label(bucket) && !bucket.contains('.')
                }
            };
            if in_host {
                host = format!("{bucket}.{host}");
            } else {
                prefix.push('/');
                encode_path(bucket.as_bytes(), &mut prefix);
            }
        }
        let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let authority = if port == scheme_port(tls) { shown } else { format!("{shown}:{port}") };
        Route { tls, host, port, authority, prefix, region: region.to_owned(), proxy: None }
    }
}

/// True if two hosts have an address in common, or one cannot be resolved. Every address of loopback is this machine.
fn share_an_address(a: &str, b: &str) -> bool {
    let addresses = |host: &str| -> Option<Vec<IpAddr>> {
        let found = (host, 0).to_socket_addrs().ok()?;
        Some(found.map(|address| address.ip().to_canonical()).collect())
    };
    let (Some(a), Some(b)) = (addresses(a), addresses(b)) else { return true };
    let here = |all: &[IpAddr]| all.iter().any(IpAddr::is_loopback);
    a.iter().any(|address| b.contains(address)) || here(&a) && here(&b)
}

impl Route {
    /// Adds the applicable proxy.
    pub fn via_proxy(mut self, proxies: &Proxies) -> Route {
        self.proxy = proxies.on_the_way(self.tls, &self.host, self.port);
        self
    }

    /// Encoded path of a key, or of the bucket or account, with room for a query.
    pub fn path(&self, key: Option<&[u8]>) -> String {
        let mut path = String::with_capacity(self.prefix.len() + key.map_or(0, <[u8]>::len) + 64);
        path.push_str(&self.prefix);
        if let Some(key) = key {
            path.push('/');
            encode_path(key, &mut path);
        } else if path.is_empty() {
            path.push('/');
        }
        path
    }

    /// Proxy that receives requests with the whole URL.
    pub fn forwards(&self) -> Option<&Proxy> {
        self.proxy.as_deref().filter(|_| !self.tls)
    }

    /// Scheme and authority, for messages.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority)
    }
}

fn scheme_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn is_aws_host(host: &str) -> bool {
    host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn")
}

/// Amazon S3 endpoints and quotas (AWS General Reference); partitions without public internet by the rules of
/// the SDKs' `partitions.json`.
fn aws_host(region: &str, dualstack: bool, fips: bool) -> String {
    let region = if region == "aws-global" { REGION } else { region };
    let suffix = match region.split('-').collect::<Vec<_>>().as_slice() {
        ["cn", ..] => "amazonaws.com.cn",
        ["us", "iso", ..] => "c2s.ic.gov",
        ["us", "isob", ..] => "sc2s.sgov.gov",
        ["eu", "isoe", ..] => "cloud.adc-e.uk",
        ["us", "isof", ..] => "csp.hci.ic.gov",
        _ => "amazonaws.com",
    };
    let fips = if fips { "-fips" } else { "" };
    let dualstack = if dualstack { ".dualstack" } else { "" };
    format!("s3{fips}{dualstack}.{region}.{suffix}")
}

/// True if a bucket's name can be part of a host name (S3 User Guide, "General purpose bucket naming rules").
fn is_dns_label(bucket: &str) -> bool {
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = bucket.as_bytes();
    (3..=63).contains(&bytes.len())
        && bytes.iter().all(|b| alnum(b) || *b == b'-' || *b == b'.')
        && bytes.first().is_some_and(alnum)
        && bytes.last().is_some_and(alnum)
}

/// An access point of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPoint<'a> {
    pub region: &'a str,
    /// Account: twelve digits.
    pub account: &'a str,
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

    fn aws() -> Endpoint {
        Endpoint::Aws { dualstack: false, fips: false }
    }

    #[test]
    fn one_server_is_known_by_its_addresses() {
        let url = |text: &str| Endpoint::parse(text).unwrap();
        for (a, b, expected) in [
            ("http://127.0.0.1:9000", "http://localhost:9000/", true),
            ("http://127.0.0.1:9000", "https://127.0.0.1:9000", true),
            ("http://127.0.0.1:9000", "http://[::1]:9000", true),
            ("http://127.0.0.1", "https://127.0.0.1", true),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9001", false),
            ("http://127.0.0.1:9000", "http://10.0.0.1:9000", false),
            ("http://127.0.0.1:9000/a", "http://127.0.0.1:9000/b", false),
            ("https://s3.us-east-1.amazonaws.com", "https://s3.eu-west-1.amazonaws.com", true),
            ("https://s3.us-east-1.amazonaws.com", "http://127.0.0.1:9000", false),
        ] {
            assert_eq!(url(a).may_be(&url(b)), expected, "{a} {b}");
            assert_eq!(url(b).may_be(&url(a)), expected, "{b} {a}");
        }
        assert!(aws().may_be(&url("https://s3.eu-west-1.amazonaws.com")) && aws().may_be(&aws()));
    }

    #[test]
    fn urls_are_parsed_and_wrong_ones_named() {
        let parsed = Endpoint::parse("http://[::1]:9000/a/b/").unwrap();
        let want =
            Endpoint::Url { tls: false, host: "::1".into(), port: 9000, path: "/a/b".into() };
        assert_eq!(parsed, want);
        assert_eq!(parsed.route(None, "r", Addressing::Auto).authority, "[::1]:9000");
        for wrong in [
            "",
            "host:1",
            "ftp://h",
            "http://",
            "http://u:p@h",
            "http://h/?q",
            "http://h:0",
            "http://h:99999",
            "http://h:x",
        ] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
        let error = Endpoint::parse("http://user:s3/cr?et@host:1").unwrap_err();
        assert!(error.contains("http://***@host:1") && !error.contains("cr?et"), "{error}");
    }

    #[test]
    fn secrets_go_by_tls_or_stay_here() {
        for (url, keeps) in [
            ("https://h", true),
            ("http://127.0.0.1:9000", true),
            ("http://[::1]", true),
            ("http://localhost:1", true),
            ("http://h", false),
            ("http://10.0.0.1", false),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example", false),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().keeps_secrets(), keeps, "{url}");
        }
        assert!(aws().keeps_secrets());
    }

    #[test]
    fn a_port_shows_only_where_it_is_not_the_schemes() {
        let route = |url| Endpoint::parse(url).unwrap().route(Some("b"), "r", Addressing::Auto);
        assert_eq!(route("https://h:443").authority, "h");
        assert_eq!(route("https://h:80").authority, "h:80");
        assert_eq!(route("http://h:80/x").url(), "http://h");
        assert_eq!(route("http://h:80/x").prefix, "/x/b");
    }

    #[test]
    fn buckets_stand_in_the_host_where_they_can() {
        let host = |bucket, how| {
            let route = aws().route(Some(bucket), "eu-west-1", how);
            (route.authority, route.prefix)
        };
        let s3 = "s3.eu-west-1.amazonaws.com";
        assert_eq!(host("abc", Addressing::Auto), (format!("abc.{s3}"), String::new()));
        for odd in ["a.bc", "Abc", "ab", "a_bc", "-abc"] {
            assert_eq!(host(odd, Addressing::Auto), (s3.to_owned(), format!("/{odd}")));
        }
        assert_eq!(host("abc", Addressing::Path), (s3.to_owned(), "/abc".into()));
        assert_eq!(host("a.bc", Addressing::Virtual).0, format!("a.bc.{s3}"));
        let own = Endpoint::parse("http://minio:9000").unwrap();
        assert_eq!(own.route(Some("abc"), "r", Addressing::Auto).prefix, "/abc");
        let virt = own.route(Some("abc"), "r", Addressing::Virtual);
        assert_eq!((virt.authority.as_str(), virt.prefix.as_str()), ("abc.minio:9000", ""));
    }

    #[test]
    fn access_points_have_hosts_in_their_regions() {
        let arn = |region: &str| format!("arn:aws:s3:{region}:123456789012:accesspoint/my-point");
        let route = |endpoint: &Endpoint, region: &str| {
            let route = endpoint.route(Some(&arn(region)), "us-east-1", Addressing::Path);
            (route.authority, route.prefix, route.region)
        };
        let name = "my-point-123456789012";
        for (endpoint, region, host) in [
            (aws(), "eu-west-1", "s3-accesspoint.eu-west-1.amazonaws.com"),
            (aws(), "cn-north-1", "s3-accesspoint.cn-north-1.amazonaws.com.cn"),
            (
                Endpoint::Aws { dualstack: true, fips: true },
                "us-gov-west-1",
                "s3-accesspoint-fips.dualstack.us-gov-west-1.amazonaws.com",
            ),
            (Endpoint::parse("http://minio:9000").unwrap(), "r", "minio:9000"),
        ] {
            let expected = (format!("{name}.{host}"), String::new(), region.to_owned());
            assert_eq!(route(&endpoint, region), expected);
        }
        let alias = aws().route(Some("my-point-abc-s3alias"), "eu-west-1", Addressing::Auto);
        assert_eq!(alias.authority, "my-point-abc-s3alias.s3.eu-west-1.amazonaws.com");
    }

    #[test]
    fn regions_have_their_hosts() {
        let host = |region: &str, dualstack, fips| {
            Endpoint::Aws { dualstack, fips }.route(None, region, Addressing::Auto).host
        };
        assert_eq!(host("cn-north-1", false, false), "s3.cn-north-1.amazonaws.com.cn");
        assert_eq!(host("us-gov-west-1", false, true), "s3-fips.us-gov-west-1.amazonaws.com");
        assert_eq!(host("eu-west-1", true, false), "s3.dualstack.eu-west-1.amazonaws.com");
        assert_eq!(host("us-east-2", true, true), "s3-fips.dualstack.us-east-2.amazonaws.com");
        assert_eq!(host("aws-global", false, false), "s3.us-east-1.amazonaws.com");
    }

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

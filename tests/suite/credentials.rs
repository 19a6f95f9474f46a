//! Each source of credentials that docs/s3.md names: the real binary against one server that plays S3 and the service
//! that hands the credentials out. The S3 request must be signed with them, and the service must have been asked as its
//! API reference says.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::{program, tool_path};
use hakobu_s3::{Algorithm, Checksum};
use hakobu_testserver::script::{Act, Seen, Server, answer, refusal};
use std::path::PathBuf;
use std::process::Command;

const LATER: &str = "2099-01-01T00:00:00Z";
const ROLE: &str = "arn:aws:iam::123456789012:role/reader";

/// A home with AWS's files, and the server.
struct Stage {
    area: Area,
    server: Server,
}

impl Stage {
    fn new(service: impl Fn(&Seen) -> Option<Act> + Send + Sync + 'static) -> Stage {
        let area = Area::tmpfs();
        std::fs::create_dir_all(area.join("home/.aws/sso/cache")).unwrap();
        let server = Server::start(move |seen| service(seen).unwrap_or_else(|| s3(seen)));
        Stage { area, server }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url)
    }

    /// Writes a file below the home.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.area.join("home").join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, line: &str, variables: &[(&str, &str)]) -> Run {
        let mut command = Command::new(tool_path("timeout"));
        command.args(["-k", "5", "60"]).arg(program()).args(line.split_whitespace());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.area.join("home")).env("LC_ALL", "C.UTF-8");
        command.env("AWS_REGION", "us-east-1").env("AWS_ENDPOINT_URL_S3", &self.server.url);
        if !variables.iter().any(|(name, _)| name.starts_with("AWS_EC2_METADATA_SERVICE")) {
            command.env("AWS_EC2_METADATA_DISABLED", "true");
        }
        Run::new(line.to_owned(), command.envs(variables.iter().copied()).output().unwrap())
    }

    /// Lists a bucket, which must succeed, signed with these credentials alone.
    #[track_caller]
    fn lists_as(&self, line: &str, variables: &[(&str, &str)], key: &str, token: Option<&str>) {
        self.run(line, variables).ok();
        let lists = self.seen("GET /bkt?");
        assert!(!lists.is_empty(), "{line}: no request for a list");
        for list in lists {
            assert_eq!(signer(&list), Some(key), "{line}");
            assert_eq!(list.header("x-amz-security-token"), token, "{line}");
        }
    }

    /// Requests whose line begins with this.
    fn seen(&self, start: &str) -> Vec<Seen> {
        let all = self.server.seen();
        all.into_iter().filter(|seen| seen.line.starts_with(start)).collect()
    }

    /// Bodies of the requests to the service that issues tokens (STS), and the keys that signed them.
    fn asked_of_sts(&self) -> Vec<(Option<String>, String)> {
        let one = |seen: Seen| {
            let body = String::from_utf8(seen.body.clone()).unwrap();
            (signer(&seen).map(str::to_owned), body)
        };
        self.seen("POST / ").into_iter().map(one).collect()
    }
}

/// An empty bucket.
fn s3(seen: &Seen) -> Act {
    match seen.line.starts_with("GET /bkt?") {
        true => answer(
            "200 OK",
            "",
            "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
        ),
        false => refusal("404 Not Found", "", "NoSuchKey"),
    }
}

/// The access key in the header Authorization.
fn signer(seen: &Seen) -> Option<&str> {
    let (_, rest) = seen.header("authorization")?.split_once("Credential=")?;
    rest.split('/').next()
}

fn json(body: &str) -> Act {
    answer("200 OK", "content-type: application/json\r\n", body)
}

/// Credentials as containers and instances get them.
fn of_metadata(key: &str, token: &str) -> String {
    format!(
        "{{\"Code\":\"Success\",\"LastUpdated\":\"2020-01-01T00:00:00Z\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"{key}\",\
         \"SecretAccessKey\":\"s\",\"Token\":\"{token}\",\"Expiration\":\"{LATER}\"}}"
    )
}

/// STS: `ASIA1` and `token1` for the role, `ASIA2` and `token2` for the second one.
fn sts(seen: &Seen) -> Option<Act> {
    if !seen.line.starts_with("POST / ") {
        return None;
    }
    let body = String::from_utf8_lossy(&seen.body);
    let actions = ["AssumeRoleWithWebIdentity", "AssumeRole"];
    let action = actions.iter().find(|action| body.contains(&format!("Action={action}&")))?;
    let number = match body.contains("second") {
        true => 2,
        false => 1,
    };
    let text = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><AssumedRoleUser>\
         <AssumedRoleId>AROA:me</AssumedRoleId><Arn>arn:aws:sts::123456789012:assumed-role/reader/me</Arn>\
         </AssumedRoleUser><Credentials><AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
         <SessionToken>token{number}</SessionToken><Expiration>{LATER}</Expiration></Credentials></{action}Result>\
         <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></{action}Response>"
    );
    Some(answer("200 OK", "content-type: text/xml\r\n", &text))
}

#[test]
fn a_role_with_a_source_profile() {
    let stage = Stage::new(sts);
    stage.file(
        ".aws/credentials",
        "[base]\naws_access_key_id = AKBASE\naws_secret_access_key = s\n",
    );
    stage.file(
        ".aws/config",
        &format!(
            "[profile p]\nrole_arn = {ROLE}\nsource_profile = base\nrole_session_name = me\nexternal_id = e1\n"
        ),
    );
    let endpoint = stage.url("");
    let at = [("AWS_ENDPOINT_URL_STS", endpoint.as_str())];
    stage.lists_as("ls --profile p s3://bkt", &at, "ASIA1", Some("token1"));
    let asked = stage.asked_of_sts();
    let [(key, body)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(key.as_deref(), Some("AKBASE"));
    for part in [
        "RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Freader",
        "RoleSessionName=me",
        "ExternalId=e1",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

#[test]
fn a_role_that_another_role_may_take() {
    let stage = Stage::new(sts);
    stage.file(
        ".aws/config",
        &format!(
            "[profile base]\naws_access_key_id = AKBASE\naws_secret_access_key = s\n\
             [profile p]\nrole_arn = {ROLE}\nsource_profile = base\n\
             [profile 'two of them']\nrole_arn = {ROLE}-second\nsource_profile = p\n"
        ),
    );
    let endpoint = stage.url("");
    // By its name in the environment, too, and with the endpoint in the file.
    let at = [("AWS_ENDPOINT_URL_STS", endpoint.as_str()), ("AWS_PROFILE", "two of them")];
    stage.lists_as("ls s3://bkt", &at, "ASIA2", Some("token2"));
    let keys: Vec<_> = stage.asked_of_sts().into_iter().filter_map(|(key, _)| key).collect();
    assert_eq!(keys, ["AKBASE", "ASIA1"]);
}

#[test]
fn a_role_with_a_credential_source() {
    let service = |seen: &Seen| match seen.line.as_str() {
        "GET /creds HTTP/1.1" => Some(json(&of_metadata("AKCONTAINER", "tc"))),
        _ => sts(seen).or_else(|| instance(seen)),
    };
    for (source, key, variables) in [
        (
            "Environment",
            "AKENV",
            &[("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "s")][..],
        ),
        ("EcsContainer", "AKCONTAINER", &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "URL/creds")]),
        ("Ec2InstanceMetadata", "AKINSTANCE", &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "URL")]),
    ] {
        let stage = Stage::new(service);
        let text = format!("[profile p]\nrole_arn = {ROLE}\ncredential_source = {source}\n");
        stage.file(".aws/config", &text);
        let endpoint = stage.url("");
        let values: Vec<_> = variables
            .iter()
            .map(|(name, value)| (*name, value.replace("URL", &endpoint)))
            .collect();
        let mut all: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.push(("AWS_ENDPOINT_URL_STS", &endpoint));
        stage.lists_as("ls --profile p s3://bkt", &all, "ASIA1", Some("token1"));
        let signers: Vec<_> = stage.asked_of_sts().into_iter().filter_map(|(key, _)| key).collect();
        assert_eq!(signers, [key], "{source}");
    }
}

#[test]
fn a_web_identity() {
    let stage = Stage::new(sts);
    let token = stage.file("token", "jwt.of.somebody");
    let token = token.to_str().unwrap();
    stage.file(
        ".aws/config",
        &format!("[profile p]\nrole_arn = {ROLE}\nweb_identity_token_file = {token}\n"),
    );
    let endpoint = stage.url("");
    let at = ("AWS_ENDPOINT_URL_STS", endpoint.as_str());
    stage.lists_as("ls --profile p s3://bkt", &[at], "ASIA1", Some("token1"));
    let by_environment = [
        at,
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token),
        ("AWS_ROLE_ARN", ROLE),
        ("AWS_ROLE_SESSION_NAME", "pod"),
    ];
    stage.lists_as("ls s3://bkt", &by_environment, "ASIA1", Some("token1"));
    let asked = stage.asked_of_sts();
    assert_eq!(asked.len(), 2);
    for (key, body) in &asked {
        // The token proves who asks: there is nothing to sign with.
        assert_eq!(*key, None);
        assert!(body.contains("WebIdentityToken=jwt.of.somebody"), "{body}");
    }
    assert!(asked[1].1.contains("RoleSessionName=pod"), "{}", asked[1].1);
}

/// SSO's portal: credentials of a role for the token of somebody who has logged in; and the service that renews tokens.
fn sso(seen: &Seen) -> Option<Act> {
    if seen.line.starts_with("GET /federation/credentials?") {
        return Some(match seen.header("x-amz-sso_bearer_token") {
            Some("valid" | "renewed") => json(
                "{\"roleCredentials\":{\"accessKeyId\":\"ASIASSO\",\"secretAccessKey\":\"s\",\
                 \"sessionToken\":\"tokensso\",\"expiration\":4070908800000}}",
            ),
            _ => answer(
                "401 Unauthorized",
                "x-amzn-errortype: UnauthorizedException\r\n",
                "{\"message\":\"Session token not found or invalid\"}",
            ),
        });
    }
    seen.line.starts_with("POST /token ").then(|| {
        json("{\"accessToken\":\"renewed\",\"expiresIn\":3600,\"tokenType\":\"Bearer\",\"refreshToken\":\"r2\"}")
    })
}

/// Name of a file of tokens (AWS SDKs and Tools Reference Guide, "IAM Identity Center credential provider").
fn cached(identifier: &str) -> String {
    let hash = Checksum::of(Algorithm::Sha1, identifier.as_bytes()).value;
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".aws/sso/cache/{hex}.json")
}

const PORTAL: &str = "https://example.awsapps.com/start";

#[test]
fn sso_by_session_and_by_profile() {
    let stage = Stage::new(sso);
    stage.file(
        ".aws/config",
        &format!(
            "[sso-session work]\nsso_start_url = {PORTAL}\nsso_region = us-east-1\n\
             sso_registration_scopes = sso:account:access\n\
             [profile p]\nsso_session = work\nsso_account_id = 123456789012\nsso_role_name = reader\n\
             [profile old]\nsso_start_url = {PORTAL}\nsso_region = us-east-1\nsso_account_id = 123456789012\n\
             sso_role_name = reader\n\
             [profile above]\nrole_arn = {ROLE}\nsource_profile = p\n"
        ),
    );
    let token = format!(
        "{{\"accessToken\":\"valid\",\"expiresAt\":\"{LATER}\",\"region\":\"us-east-1\",\"startUrl\":\"{PORTAL}\"}}"
    );
    stage.file(&cached("work"), &token);
    stage.file(&cached(PORTAL), &token);
    let endpoint = stage.url("");
    let at = [("AWS_ENDPOINT_URL_SSO", endpoint.as_str())];
    for profile in ["p", "old"] {
        let line = format!("ls --profile {profile} s3://bkt");
        stage.lists_as(&line, &at, "ASIASSO", Some("tokensso"));
    }
    let asked = stage.seen("GET /federation/credentials?");
    assert_eq!(asked.len(), 2);
    for seen in asked {
        assert!(seen.line.contains("role_name=reader"), "{}", seen.line);
        assert!(seen.line.contains("account_id=123456789012"), "{}", seen.line);
    }
}

#[test]
fn an_old_token_of_sso_is_renewed_or_named() {
    let stage = Stage::new(sso);
    stage.file(
        ".aws/config",
        &format!(
            "[sso-session work]\nsso_start_url = {PORTAL}\nsso_region = us-east-1\n\
             [profile p]\nsso_session = work\nsso_account_id = 123456789012\nsso_role_name = reader\n"
        ),
    );
    let endpoint = stage.url("");
    let at =
        [("AWS_ENDPOINT_URL_SSO", endpoint.as_str()), ("AWS_ENDPOINT_URL_SSO_OIDC", &endpoint)];
    let line = "ls --profile p s3://bkt";
    let old = format!(
        "\"expiresAt\":\"2020-01-01T00:00:00Z\",\"region\":\"us-east-1\",\"startUrl\":\"{PORTAL}\""
    );
    // Nobody has logged in, or too long ago.
    stage.run(line, &at).expect(2).says(&["no credentials ("]);
    stage.file(&cached("work"), &format!("{{\"accessToken\":\"stale\",{old}}}"));
    stage.run(line, &at).expect(2).says(&["no credentials ("]);
    assert!(stage.seen("GET /bkt").is_empty(), "a request without credentials");
    let renewable = format!(
        "{{\"accessToken\":\"stale\",\"refreshToken\":\"r1\",\"clientId\":\"c\",\"clientSecret\":\"cs\",\
         \"registrationExpiresAt\":\"{LATER}\",{old}}}"
    );
    stage.file(&cached("work"), &renewable);
    stage.lists_as(line, &at, "ASIASSO", Some("tokensso"));
    let asked = stage.seen("POST /token ");
    let body = String::from_utf8(asked[0].body.clone()).unwrap();
    assert!(asked.len() == 1 && body.contains("\"refreshToken\":\"r1\""), "{body}");
    // The next run finds the new one.
    let kept = std::fs::read_to_string(stage.area.join("home").join(cached("work"))).unwrap();
    assert!(kept.contains("renewed"), "{kept}");
}

#[test]
fn a_process() {
    let stage = Stage::new(|_| None);
    let script = stage.file(
        "keys.sh",
        &format!(
            "echo '{{\"Version\":1,\"AccessKeyId\":\"AKPROCESS\",\"SecretAccessKey\":\"s\",\"SessionToken\":\"tp\",\
             \"Expiration\":\"{LATER}\"}}'\n"
        ),
    );
    let text = format!("[profile p]\ncredential_process = sh {}\n", script.display());
    stage.file(".aws/config", &text);
    stage.lists_as("ls --profile p s3://bkt", &[], "AKPROCESS", Some("tp"));
    // A failure of it is named, without what it has written.
    stage.file("keys.sh", "echo secret; exit 3\n");
    let run = stage.run("ls --profile p s3://bkt", &[]);
    run.expect(2).says(&["no credentials ("]);
    assert!(!run.err().contains("secret\n"), "{run}");
}

#[test]
fn a_container() {
    let stage = Stage::new(|seen| {
        (seen.line == "GET /creds HTTP/1.1").then(|| match seen.header("authorization") {
            Some("Bearer pod") => json(&of_metadata("AKPOD", "tpod")),
            Some(_) => refusal("403 Forbidden", "", "AccessDenied"),
            None => json(&of_metadata("AKTASK", "ttask")),
        })
    });
    let uri = stage.url("/creds");
    let uri = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri.as_str());
    stage.lists_as("ls s3://bkt", &[uri], "AKTASK", Some("ttask"));
    // EKS Pod Identity has its token in a file.
    let stage = Stage { area: Area::tmpfs(), ..stage };
    std::fs::create_dir_all(stage.area.join("home")).unwrap();
    let token = stage.file("token", "Bearer pod");
    let token = ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap());
    stage.run("ls s3://bkt", &[uri, token]).ok();
    let last = stage.seen("GET /bkt?").pop().unwrap();
    assert_eq!((signer(&last), last.header("x-amz-security-token")), (Some("AKPOD"), Some("tpod")));
    let token = ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer other");
    stage.run("ls s3://bkt", &[uri, token]).expect(2).says(&["no credentials ("]);
}

/// The metadata service of an instance, version 2: a token first.
fn instance(seen: &Seen) -> Option<Act> {
    const ROLES: &str = "GET /latest/meta-data/iam/security-credentials/";
    let path = seen.line.strip_suffix(" HTTP/1.1")?;
    if path == "PUT /latest/api/token" {
        let lifetime = seen.header("x-aws-ec2-metadata-token-ttl-seconds")?;
        let head = format!("x-aws-ec2-metadata-token-ttl-seconds: {lifetime}\r\n");
        return Some(answer("200 OK", &head, "a-token"));
    }
    let role = path.strip_prefix(ROLES)?;
    if seen.header("x-aws-ec2-metadata-token") != Some("a-token") {
        return Some(answer("401 Unauthorized", "", ""));
    }
    Some(match role {
        "" => answer("200 OK", "content-type: text/plain\r\n", "the-role"),
        "the-role" => json(&of_metadata("AKINSTANCE", "ti")),
        _ => answer("404 Not Found", "", ""),
    })
}

#[test]
fn an_instance() {
    let stage = Stage::new(instance);
    let endpoint = stage.url("");
    let at = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str())];
    stage.lists_as("ls s3://bkt", &at, "AKINSTANCE", Some("ti"));
    // Switched off, there are none.
    let off = [at[0], ("AWS_EC2_METADATA_DISABLED", "true")];
    stage.run("ls s3://bkt", &off).expect(2).says(&["no credentials; set "]);
}

#[test]
fn credentials_that_end_during_a_run_are_fetched_again() {
    // S3 takes the second role's only, which the container hands out from the second time on.
    let stage = Stage::new(|seen| match seen.line.as_str() {
        "GET /creds HTTP/1.1" => {
            let number = u8::from(seen.number > 0);
            Some(json(&of_metadata(&format!("AK{number}"), &format!("t{number}"))))
        }
        _ if seen.header("x-amz-security-token") == Some("t0") => {
            Some(refusal("400 Bad Request", "", "ExpiredToken"))
        }
        _ => None,
    });
    let uri = stage.url("/creds");
    stage.run("ls s3://bkt", &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri)]).ok();
    let lists = stage.seen("GET /bkt?");
    let signers: Vec<_> = lists.iter().filter_map(signer).collect();
    assert_eq!(signers, ["AK0", "AK1"]);
}

#[test]
fn the_first_source_that_is_set_counts() {
    let stage = Stage::new(|seen| match seen.line.as_str() {
        "GET /creds HTTP/1.1" => Some(json(&of_metadata("AKTASK", "tt"))),
        _ => instance(seen),
    });
    let uri = stage.url("/creds");
    let container = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri.as_str());
    let endpoint = stage.url("");
    let metadata = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str());
    let keys = [("AWS_ACCESS_KEY_ID", "AKENV"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let last = |line: &str, variables: &[(&str, &str)]| {
        stage.run(line, variables).ok();
        let last = stage.seen("GET /bkt?").pop().unwrap();
        signer(&last).map(str::to_owned)
    };
    let of = |key: &str| Some(key.to_owned());
    assert_eq!(last("ls s3://bkt", &[metadata, container]), of("AKTASK"));
    assert_eq!(last("ls s3://bkt", &[metadata, container, keys[0], keys[1]]), of("AKENV"));
    stage.file(
        ".aws/credentials",
        "[default]\naws_access_key_id = AKDEFAULT\naws_secret_access_key = s\n\
         [named]\naws_access_key_id = AKNAMED\naws_secret_access_key = s\n",
    );
    assert_eq!(last("ls s3://bkt", &[metadata, container]), of("AKDEFAULT"));
    assert_eq!(last("ls s3://bkt", &[container, ("AWS_PROFILE", "named")]), of("AKNAMED"));
    let line = "ls --profile named s3://bkt";
    assert_eq!(last(line, &[container, keys[0], keys[1]]), of("AKNAMED"));
    assert_eq!(last("ls --no-sign-request s3://bkt", &[container, keys[0], keys[1]]), None);
}

#[test]
fn each_side_has_its_own() {
    let stage = Stage::new(|seen| {
        let one = "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>f</Key>\
                   <LastModified>2020-01-01T00:00:00Z</LastModified><ETag>\"e\"</ETag><Size>0</Size>\
                   </Contents></ListBucketResult>";
        let none = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
        match seen.line.split(['?', ' ']).take(2).collect::<Vec<_>>().as_slice() {
            ["GET", "/bkt"] => Some(answer("200 OK", "", one)),
            ["GET", "/tgt"] => Some(answer("200 OK", "", none)),
            _ => sts(seen),
        }
    });
    stage.file(
        ".aws/config",
        &format!(
            "[profile base]\naws_access_key_id = AKBASE\naws_secret_access_key = s\n\
             [profile reader]\nrole_arn = {ROLE}\nsource_profile = base\n\
             [profile writer]\naws_access_key_id = AKWRITER\naws_secret_access_key = s\n"
        ),
    );
    let endpoint = stage.url("");
    let line = "sync -r --source-profile reader --destination-profile writer s3://bkt/ s3://tgt/";
    let run = stage.run(line, &[("AWS_ENDPOINT_URL_STS", endpoint.as_str())]);
    let from = stage.seen("GET /bkt?").pop().unwrap();
    assert_eq!(
        (signer(&from), from.header("x-amz-security-token")),
        (Some("ASIA1"), Some("token1"))
    );
    // The object is not there to be copied, but both sides were listed.
    run.expect(24);
    let to = stage.seen("GET /tgt?").pop().unwrap();
    assert_eq!((signer(&to), to.header("x-amz-security-token")), (Some("AKWRITER"), None));
}

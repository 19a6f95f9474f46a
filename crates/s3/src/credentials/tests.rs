//! Sources of credentials, and refreshing.

use super::*;
use crate::script::{Server, ServerSession, answer, block_on, refusal};
use crate::{Client, ErrorKind, Request, S3Session, Settings};
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future;
use http::Method;
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, SystemTime};

/// Provides `AK1`, `AK2` …, each valid for some time.
#[derive(Debug)]
struct Numbered {
    calls: Arc<AtomicU32>,
    valid: Duration,
    fails_from: u32,
}

impl ProvideCredentials for Numbered {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if number >= self.fails_from {
            return future::ProvideCredentials::ready(Err(CredentialsError::not_loaded("gone")));
        }
        let expires = SystemTime::now() + self.valid;
        let keys = Credentials::new(format!("AK{number}"), "SK", None, Some(expires), "test");
        future::ProvideCredentials::ready(Ok(keys))
    }
}

fn credential_cache(valid_s: u64, fails_from: u32) -> (CredentialCache, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let valid = Duration::from_secs(valid_s);
    (CredentialCache::fetched(Numbered { calls: Arc::clone(&calls), valid, fails_from }), calls)
}

#[test]
fn keys_are_fetched_once_for_all_who_find_them_expired() {
    let (credential_cache, calls) = credential_cache(3600, 99);
    block_on(async {
        assert_eq!(credential_cache.refresh(1).await, Ok(true));
        assert_eq!(credential_cache.credentials().unwrap().access_key, "AK1");
        // Other requests failed with the old version.
        assert_eq!(credential_cache.refresh(1).await, Ok(true));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(credential_cache.refresh(credential_cache.version()).await, Ok(true));
        assert_eq!(credential_cache.credentials().unwrap().access_key, "AK2");
    });
}

#[test]
fn keys_are_fetched_ahead_by_one_core() {
    let (credential_cache, _) = credential_cache(3600, 3);
    let now_s = crate::time::now_s();
    block_on(async {
        credential_cache.refresh(1).await.unwrap();
        assert!(!credential_cache.claims_refresh(now_s));
        assert!(!credential_cache.claims_refresh(now_s + 3600 - AHEAD_S - 10));
        let due_s = now_s + 3600 - AHEAD_S + 10;
        assert!(credential_cache.claims_refresh(due_s));
        assert!(!credential_cache.claims_refresh(due_s), "a second core fetches, too");
        credential_cache.refresh_ahead(due_s).await;
        assert_eq!(credential_cache.credentials().unwrap().access_key, "AK2");
        // The next fetch fails: the keys stay, and a pause follows.
        let due_s = now_s + 2 * 3600;
        assert!(credential_cache.claims_refresh(due_s));
        credential_cache.refresh_ahead(due_s).await;
        assert_eq!(credential_cache.credentials().unwrap().access_key, "AK2");
        assert!(!credential_cache.claims_refresh(due_s + PAUSE_S - 1));
        assert!(credential_cache.claims_refresh(due_s + PAUSE_S));
    });
}

#[test]
fn keys_of_a_short_life_are_not_fetched_all_the_time() {
    let (credential_cache, _) = credential_cache(100, 99);
    let now_s = crate::time::now_s();
    block_on(credential_cache.refresh(1)).unwrap();
    assert!(!credential_cache.claims_refresh(now_s + 40));
    assert!(credential_cache.claims_refresh(now_s + 55));
}

#[test]
fn fixed_keys_that_expired_are_an_error() {
    let server = Server::start(|_| refusal("400 Bad Request", "", "ExpiredToken"));
    let client = Client::new(&server.session(Settings::default()));
    let put = Request::new("PutObject", Method::PUT, Some("bucket")).key(b"k").body("x");
    let error = block_on(client.send(&put)).unwrap_err();
    assert_eq!((error.kind, server.seen().len()), (ErrorKind::Credentials, 1));
}

/// Runs the test below in its own process with a clean environment.
fn child(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("credentials::tests::{test}"), "--nocapture"]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        command.env_remove(name);
    }
    command.env("HAKOBU_TEST_CHILD", "1").env("AWS_EC2_METADATA_DISABLED", "true");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn is_child() -> bool {
    std::env::var_os("HAKOBU_TEST_CHILD").is_some()
}

#[test]
fn a_process_hands_out_new_keys_when_the_old_ones_expired() {
    if !is_child() {
        let name = format!("hakobu-process-{}-{}", std::process::id(), fastrand::u64(..));
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&home).unwrap();
        let count = home.join("count");
        let script = home.join("keys.sh");
        let text = format!(
            "echo x >> {0}\nn=$(wc -l < {0} | tr -d ' ')\n\
             echo '{{\"Version\":1,\"AccessKeyId\":\"AK'$n'\",\"SecretAccessKey\":\"S\",\
             \"SessionToken\":\"T'$n'\",\"Expiration\":\"2099-01-01T00:00:00Z\"}}'\n",
            count.display()
        );
        std::fs::write(&script, text).unwrap();
        let config = home.join("config");
        let text = format!("[profile p]\ncredential_process = sh {}\n", script.display());
        std::fs::write(&config, text).unwrap();
        child(
            "a_process_hands_out_new_keys_when_the_old_ones_expired",
            &[("AWS_CONFIG_FILE", config.to_str().unwrap()), ("HOME", home.to_str().unwrap())],
        );
        std::fs::remove_dir_all(&home).unwrap();
        return;
    }
    let server = Server::start(|seen| match seen.header("x-amz-security-token") {
        Some("T2") => answer("200 OK", "", ""),
        _ => refusal("400 Bad Request", "", "ExpiredToken"),
    });
    let settings = Settings {
        endpoint_url: Some(server.url.clone()),
        profile: Some("p".into()),
        ..Settings::default()
    };
    let client = Client::new(&S3Session::open(&settings).unwrap());
    let put = Request::new("PutObject", Method::PUT, Some("bucket")).key(b"k").body("x");
    block_on(async {
        client.send(&put).await.unwrap();
        client.send(&put).await.unwrap();
    });
    let keys: Vec<_> = server
        .seen()
        .iter()
        .map(|s| s.header("x-amz-security-token").unwrap().to_owned())
        .collect();
    assert_eq!(keys, ["T1", "T2", "T2"]);
}

#[test]
fn a_profile_in_quotes_has_its_keys() {
    if !is_child() {
        let name = format!("hakobu-quoted-{}-{}", std::process::id(), fastrand::u64(..));
        let home = std::env::temp_dir().join(name);
        std::fs::create_dir_all(home.join(".aws")).unwrap();
        let config = "[profile 'my profile']\nregion = eu-north-1\n";
        std::fs::write(home.join(".aws/config"), config).unwrap();
        let keys = "[my profile]\naws_access_key_id = AKQ\naws_secret_access_key = S\n";
        std::fs::write(home.join(".aws/credentials"), keys).unwrap();
        child(
            "a_profile_in_quotes_has_its_keys",
            &[("AWS_PROFILE", "my profile"), ("HOME", home.to_str().unwrap())],
        );
        std::fs::remove_dir_all(&home).unwrap();
        return;
    }
    let named = Settings { profile: Some("my profile".into()), ..Settings::default() };
    for settings in [Settings::default(), named] {
        let session = S3Session::open(&settings).unwrap();
        assert_eq!(session.credential_cache.credentials().unwrap().access_key, "AKQ");
        assert_eq!(session.resolved.region, "eu-north-1");
    }
}

#[test]
fn a_container_hands_out_keys_over_http() {
    if !is_child() {
        let body = "{\"AccessKeyId\":\"AKC\",\"SecretAccessKey\":\"S\",\"Token\":\"TC\",\
                    \"Expiration\":\"2099-01-01T00:00:00Z\"}";
        let server = Server::start(move |seen| match seen.line.contains("/keys") {
            true => answer("200 OK", "content-type: application/json\r\n", body),
            false => refusal("404 Not Found", "", "NotFound"),
        });
        let url = format!("{}/keys", server.url);
        child(
            "a_container_hands_out_keys_over_http",
            &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &url), ("HOME", "/nowhere")],
        );
        assert!(server.seen().iter().any(|seen| seen.line.starts_with("GET /keys ")));
        return;
    }
    let session = S3Session::open(&Settings::default()).unwrap();
    assert_eq!(session.credential_cache.credentials().unwrap().access_key, "AKC");
}

#[test]
fn no_keys_at_all_are_one_clear_sentence() {
    if !is_child() {
        return child("no_keys_at_all_are_one_clear_sentence", &[("HOME", "/nowhere")]);
    }
    let error = S3Session::open(&Settings::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Credentials);
    assert!(error.message.starts_with("no credentials"), "{}", error.message);
    assert!(error.message.contains("--no-sign-request"), "{}", error.message);
}

#[test]
fn half_a_pair_of_keys_is_named() {
    let lookup = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "AK".to_owned());
    let settings = Settings { endpoint_url: Some("http://h".into()), ..Settings::default() };
    let error = S3Session::open_with(&settings, &lookup).map(|_| ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Credentials);
    assert!(error.message.contains("AWS_SECRET_ACCESS_KEY is not"), "{}", error.message);
}

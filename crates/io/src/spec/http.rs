//! Options of `ioengine=http`.

use super::known::{Known, put, stays, value};
use super::units::{one_of, refuse};
use crate::job::{Engine, HttpMode, Https, Job, Secret};

/// All of them.
pub const OPTIONS: &[Known] = &[
    value("http_host", |d, v| put(&mut d.job.http.host, text(v))).commas(),
    value("http_mode", |d, v| {
        use HttpMode::{S3, Swift, Webdav};
        put(&mut d.job.http.mode, one_of(v, &[("webdav", Webdav), ("s3", S3), ("swift", Swift)]))
    }),
    value("https", |d, v| put(&mut d.job.http.https, https(v))),
    value("http_user", |d, v| put(&mut d.job.http.user, text(v))).commas(),
    value("http_pass", |d, v| put(&mut d.job.http.password, secret(v))).commas(),
    value("http_s3_keyid", |d, v| put(&mut d.job.http.key_id, text(v))).commas(),
    value("http_s3_key", |d, v| put(&mut d.job.http.key, secret(v))).commas(),
    value("http_s3_security_token", |d, v| put(&mut d.job.http.session, secret(v))).commas(),
    value("http_s3_region", |d, v| put(&mut d.job.http.region, text(v))),
    value("http_s3_storage_class", |d, v| put(&mut d.job.http.storage_class, text(v))),
    value("http_s3_sse_customer_key", |d, v| put(&mut d.job.http.customer_key, secret(v))).commas(),
    value("http_s3_sse_customer_algorithm", |d, v| {
        put(&mut d.job.http.customer_algorithm, text(v))
    }),
    value("http_swift_auth_token", |d, v| put(&mut d.job.http.token, secret(v))).commas(),
    value("http_object_mode", |d, v| {
        put(&mut d.job.http.ranges, one_of(v, &[("block", false), ("range", true)]))
    }),
    stays("http_verbose", &["0"]),
];

/// Names of options whose values are shown nowhere.
pub const SECRETS: &[&str] = &[
    "http_pass",
    "http_s3_key",
    "http_s3_security_token",
    "http_s3_sse_customer_key",
    "http_swift_auth_token",
];

/// A text that may stand in a header; nothing is none.
fn text(text: &str) -> Result<Option<String>, String> {
    secret(text).map(|text| Some(text.0).filter(|text| !text.is_empty()))
}

fn secret(text: &str) -> Result<Secret, String> {
    match text.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        true => Ok(Secret(text.to_owned())),
        false => Err("has a character that no header may have".to_owned()),
    }
}

fn https(text: &str) -> Result<Https, String> {
    match text {
        "off" | "0" => Ok(Https::Off),
        "on" | "1" => Ok(Https::On),
        "insecure" => Ok(Https::Insecure),
        _ => Err("is none of off, on, insecure".to_owned()),
    }
}

/// Refuses what does not go with a server.
///
/// # Errors
/// Options that exclude each other.
pub fn check(job: &Job) -> Result<(), String> {
    let http = &job.http;
    if job.engine != Engine::Http {
        return Ok(());
    }
    refuse(
        http.ranges && job.rw.writes,
        "http_object_mode=range is for jobs that read: a write makes a whole object of a block",
    )?;
    refuse(
        http.user.as_deref().is_some_and(|user| user.contains(':')),
        "http_user has a colon, which HTTP has between user and password",
    )?;
    refuse(http.user.is_none() && !http.password.0.is_empty(), "http_pass needs http_user")
}

/// Checks options that a job needs to run, but not to be parsed: environment variables may be empty then.
pub fn can_run(job: &Job) -> Result<(), String> {
    let http = &job.http;
    let missing = match http.mode {
        HttpMode::S3 if http.key_id.is_none() => "http_mode=s3 needs http_s3_keyid=",
        HttpMode::S3 if http.key.0.is_empty() => "http_mode=s3 needs http_s3_key=",
        HttpMode::Swift if http.token.0.is_empty() => {
            "http_mode=swift needs http_swift_auth_token="
        }
        _ => return Ok(()),
    };
    if job.engine == Engine::Http { Err(missing.to_owned()) } else { Ok(()) }
}

//! SigV4 (Amazon S3 API reference, "Authenticating requests"), header form.

use crate::server::client::{ACCESS, Answer, SECRET, Served};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt::Write;

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

/// Time in SigV4 format.
fn now() -> String {
    let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Civil date from days since 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{:02}Z", second % 60)
}

/// Headers that sign a request; path and query are those of the target, encoded and in canonical order.
pub fn headers(method: &str, target: &str, secret: &str) -> String {
    headers_for(method, target, secret, "UNSIGNED-PAYLOAD")
}

/// The same, with the payload hash given.
fn headers_for(method: &str, target: &str, secret: &str, payload: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let time = now();
    let scope = format!("{}/us-east-1/s3/aws4_request", &time[..8]);
    let names = "host;x-amz-content-sha256;x-amz-date";
    let canonical = format!(
        "{method}\n{path}\n{query}\nhost:test\nx-amz-content-sha256:{payload}\n\
         x-amz-date:{time}\n\n{names}\n{payload}"
    );
    let digest = hex(&Sha256::digest(canonical.as_bytes()));
    let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in scope.split('/') {
        key = hmac(&key, part);
    }
    let signature = hex(&hmac(&key, &to_sign));
    format!(
        "x-amz-date: {time}\r\nx-amz-content-sha256: {payload}\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential={ACCESS}/{scope}, SignedHeaders={names}, \
         Signature={signature}\r\n"
    )
}

/// Value of `x-amz-content-sha256` for a body.
pub fn sha256(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

impl Served {
    /// Sends a request, optionally signed for another body.
    pub fn signed_for(&self, method: &str, target: &str, payload: &str, body: &[u8]) -> Answer {
        self.ask(method, target, &headers_for(method, target, SECRET, payload), body)
    }

    /// Sends a signed request on its own connection.
    pub fn signed(&self, method: &str, target: &str, more: &str, body: &[u8]) -> Answer {
        let headers = headers(method, target, SECRET) + more;
        self.ask(method, target, &headers, body)
    }
}

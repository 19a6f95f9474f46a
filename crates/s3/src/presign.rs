//! Presigned URLs.

use super::error::{Error, Kind};
use super::request::Request;
use super::sign::{self, EXPIRES_MAX_S, Signer};
use super::store::Store;
use std::time::Duration;

/// Creates a presigned URL, valid for `expires` (at most seven days) from now. Headers and body of the
/// request are not signed.
///
/// # Errors
/// `Credentials` if there are none, or expired ones cannot be refreshed; `Invalid` for a duration of zero or
/// above the limit.
pub async fn presign(store: &Store, request: &Request, expires: Duration) -> Result<String, Error> {
    let wrong = |kind, what: &str| Err(Error::new(kind, request.operation, what));
    let expires_s = expires.as_secs();
    if !(1..=EXPIRES_MAX_S).contains(&expires_s) {
        return wrong(Kind::Invalid, "a presigned URL is valid for one second to seven days");
    }
    let now_s = store.server_now_s();
    if store.vault.claims_refresh(now_s) {
        store.vault.refresh_ahead(now_s).await;
    }
    let Some(keys) = store.vault.keys() else {
        return wrong(Kind::Credentials, "a presigned URL needs credentials to sign with");
    };
    let place = store.place(request.bucket.as_deref());
    Ok(sign::presigned_url(
        &Signer::new(&keys, &place.region, now_s),
        request.method.as_str(),
        if place.tls { "https" } else { "http" },
        &place.authority,
        &place.path(request.key.as_deref()),
        &request.query,
        expires_s,
        now_s,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Opened;
    use crate::script::{Server, answer, block_on};
    use crate::settings::Settings;
    use http::Method;

    #[test]
    fn a_url_says_where_and_for_how_long() {
        let server = Server::start(|_| answer("200 OK", "", ""));
        let store = server.store(Settings { region: Some("eu-x-1".into()), ..Settings::default() });
        let get = Request::new("GetObject", Method::GET, Some("b")).key(b"a/ b");
        let url = block_on(presign(&store, &get, Duration::from_secs(60))).unwrap();
        assert!(url.starts_with(&format!("{}/b/a/%20b?X-Amz-", server.url)), "{url}");
        assert!(url.contains("X-Amz-Expires=60&") && url.contains("%2Feu-x-1%2Fs3%2F"), "{url}");
    }

    #[test]
    fn what_cannot_be_signed_is_refused() {
        let server = Server::start(|_| answer("200 OK", "", ""));
        let get = Request::new("GetObject", Method::GET, Some("b")).key(b"k");
        let kind = |store: &Store, s| {
            block_on(presign(store, &get, Duration::from_secs(s))).map_err(|e| e.kind).unwrap_err()
        };
        let store = server.store(Settings::default());
        assert_eq!(kind(&store, 0), Kind::Invalid);
        assert_eq!(kind(&store, EXPIRES_MAX_S + 1), Kind::Invalid);
        let anonymous = Settings { no_sign_request: true, ..Settings::default() };
        assert_eq!(kind(&server.store(anonymous), 60), Kind::Credentials);
    }
}

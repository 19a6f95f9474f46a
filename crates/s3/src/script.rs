//! The scripted server, with a session for it.

use crate::{Addressing, S3Session, Settings};
pub(crate) use hakobu_testserver::script::*;
use std::sync::Arc;

/// Opens a session for a scripted server, with dummy keys.
pub(crate) trait ServerSession {
    fn session(&self, settings: Settings) -> Arc<S3Session>;
}

impl ServerSession for Server {
    fn session(&self, settings: Settings) -> Arc<S3Session> {
        let settings = Settings {
            endpoint_url: Some(self.url.clone()),
            addressing: Addressing::Path,
            ..settings
        };
        let lookup = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("AK".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("SK".to_owned()),
            _ => None,
        };
        S3Session::open_with(&settings, &lookup).unwrap()
    }
}

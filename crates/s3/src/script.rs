//! The scripted server, with a store for it.

use crate::{Addressing, Settings, Store};
pub(crate) use hakobu_testserver::script::*;
use std::sync::Arc;

/// Opens a store for a scripted server, with dummy keys.
pub(crate) trait Opened {
    fn store(&self, settings: Settings) -> Arc<Store>;
}

impl Opened for Server {
    fn store(&self, settings: Settings) -> Arc<Store> {
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
        Store::open_with(&settings, &lookup).unwrap()
    }
}

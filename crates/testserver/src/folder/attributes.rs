//! Headers and metadata of an object.

use s3s::dto::{Timestamp, TimestampFormat};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Attributes of an object, stored as JSON beside it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Attributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<HashMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_redirect_location: Option<String>,
    /// MD5 of the caller's key for the object (SSE-C). The content is stored as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_key_md5: Option<String>,
}

/// Extracts the attributes of a request.
macro_rules! attributes_of {
    ($input:expr) => {
        $crate::folder::attributes::Attributes {
            user_metadata: $input.metadata.take(),
            content_encoding: $input.content_encoding.take(),
            content_type: $input.content_type.take(),
            content_disposition: $input.content_disposition.take(),
            content_language: $input.content_language.take(),
            cache_control: $input.cache_control.take(),
            website_redirect_location: $input.website_redirect_location.take(),
            ..Default::default()
        }
        .expiring($input.expires.take())
    };
}
pub(super) use attributes_of;

/// Adds the attributes to a response.
macro_rules! add_attributes {
    ($output:expr, $attributes:expr) => {
        let attributes = $attributes;
        $output.expires = attributes.expires();
        $output.metadata = attributes.user_metadata;
        $output.content_encoding = attributes.content_encoding;
        $output.content_type = attributes.content_type;
        $output.content_disposition = attributes.content_disposition;
        $output.content_language = attributes.content_language;
        $output.cache_control = attributes.cache_control;
        $output.website_redirect_location = attributes.website_redirect_location;
        $crate::folder::customer_key::add_customer_key!($output, attributes.customer_key_md5);
    };
}
pub(super) use add_attributes;

impl Attributes {
    pub fn expiring(mut self, at: Option<Timestamp>) -> Attributes {
        let mut text = Vec::new();
        let written = at.map(|at| at.format(TimestampFormat::DateTime, &mut text));
        self.expires =
            written.and_then(|done| done.ok()).and_then(|()| String::from_utf8(text).ok());
        self
    }

    pub fn expires(&self) -> Option<Timestamp> {
        Timestamp::parse(TimestampFormat::DateTime, self.expires.as_deref()?).ok()
    }
}

//! GetBucketVersioning and PutBucketVersioning.

use super::put::with_document;
use super::read;
use super::trust::PageCheck;
use crate::xml::Node;
use crate::{Client, Error, Reply, Request};
use http::Method;

const GET: &str = "GetBucketVersioning";
const PUT: &str = "PutBucketVersioning";

/// State of a bucket's versioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versioning {
    /// Each write makes a new version.
    Enabled,
    /// Versions are kept, and new writes replace the version `null`.
    Suspended,
}

impl Versioning {
    /// Parses AWS's word.
    pub fn parse(text: &str) -> Option<Versioning> {
        [Versioning::Enabled, Versioning::Suspended].into_iter().find(|it| it.word() == text)
    }

    /// AWS's word.
    pub fn word(self) -> &'static str {
        match self {
            Versioning::Enabled => "Enabled",
            Versioning::Suspended => "Suspended",
        }
    }
}

/// The versioning of a bucket; `None` if it was never enabled.
///
/// # Errors
/// Those of the request; `Corrupt` for an unknown state.
pub async fn get_versioning(client: &Client, bucket: &str) -> Result<Option<Versioning>, Error> {
    let request = Request::new(GET, Method::GET, Some(bucket)).query("versioning", "");
    versioning_of(&client.send(&request).await?)
}

fn versioning_of(reply: &Reply) -> Result<Option<Versioning>, Error> {
    const ROOT: &[u8] = b"VersioningConfiguration";
    let (mut state, mut check) = (None, PageCheck::default());
    read(GET, reply, ROOT, |node| {
        if let Node::Leaf { parent: ROOT, name: b"Status", text } = node
            // Some servers send an empty one for a bucket that never had versions.
            && !text.trim_ascii().is_empty()
        {
            let word = std::str::from_utf8(text.trim_ascii()).ok();
            check.set(&mut state, "Status", text, word.and_then(Versioning::parse));
        }
    })?;
    check.finish(GET)?;
    Ok(state)
}

/// Sets the versioning of a bucket.
///
/// # Errors
/// Those of the request.
pub async fn put_versioning(
    client: &Client,
    bucket: &str,
    versioning: Versioning,
) -> Result<(), Error> {
    client.send(&put_request(bucket, versioning)).await.map(|_| ())
}

fn put_request(bucket: &str, versioning: Versioning) -> Request {
    let body = format!(
        "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>{}</Status>\
         </VersioningConfiguration>",
        versioning.word()
    );
    with_document(Request::new(PUT, Method::PUT, Some(bucket)).query("versioning", ""), body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn states_are_read() {
        let of = |inner: &str| {
            let body = format!("<VersioningConfiguration>{inner}</VersioningConfiguration>");
            versioning_of(&Reply::of(body))
        };
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("<Status></Status>").unwrap(), None);
        assert_eq!(of("<Status>Enabled</Status>").unwrap(), Some(Versioning::Enabled));
        assert_eq!(of("<MfaDelete>x</MfaDelete>").unwrap(), None);
        let suspended = of("<MfaDelete>Disabled</MfaDelete><Status>Suspended</Status>");
        assert_eq!(suspended.unwrap(), Some(Versioning::Suspended));
        for wrong in ["<Status>On</Status>", "<Status>Enabled</Status><Status>Enabled</Status>"] {
            assert_eq!(of(wrong).unwrap_err().kind, Kind::Corrupt, "{wrong}");
        }
    }

    #[test]
    fn a_request_names_the_state() {
        let request = put_request("b", Versioning::Suspended);
        let body = std::str::from_utf8(&request.body).unwrap();
        assert!(body.contains("<Status>Suspended</Status>"), "{body}");
        assert!(request.headers.iter().any(|(name, _)| name == "content-md5"));
    }
}

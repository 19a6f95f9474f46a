//! A run folder in S3: objects below a prefix. A file is made by a conditional PUT, which holds its
//! condition also where the answer to a first try was lost.

use super::{Folder, Trouble};
use bytes::{Bytes, BytesMut};
use hakobu_s3::ops::{GetOptions, ListQuery, ObjectPages, delete_object, get_object, put_object};
use hakobu_s3::with_session;
use hakobu_s3::{Checksum, Client, Error, ErrorKind, S3Session, Settings};
use hakobu_transfer::location::S3Url;
use http::HeaderValue;
use http::header::IF_NONE_MATCH;
use std::pin::Pin;
use std::sync::mpsc;

/// The largest file that is read: a plan of a million shards takes less.
const BYTES_MAX: u64 = 1 << 30;

/// Work for the thread that owns the client; it sends its result itself.
type Job = Box<dyn for<'c> FnOnce(&'c Client, &'c str) -> Working<'c> + Send>;
type Working<'c> = Pin<Box<dyn Future<Output = ()> + 'c>>;

/// See the module. One thread owns client and connections; orders wait for it.
pub struct Bucket {
    shown: String,
    prefix: Vec<u8>,
    orders: mpsc::Sender<Job>,
}

impl Bucket {
    /// Opens the store; nothing is asked of it yet.
    ///
    /// # Errors
    /// The settings cannot be used, or the prefix is empty.
    pub fn open(url: &S3Url, settings: &Settings) -> Result<Bucket, Trouble> {
        let mut prefix = url.key.clone();
        while prefix.last() == Some(&b'/') {
            prefix.pop();
        }
        if url.bucket.is_empty() || prefix.is_empty() {
            return Err(Trouble::lasting("a run folder in S3 needs a bucket and a prefix"));
        }
        prefix.push(b'/');
        let store =
            S3Session::open(settings).map_err(|error| Trouble::lasting(error.to_string()))?;
        let (orders, inbox) = mpsc::channel::<Job>();
        let bucket = url.bucket.clone();
        let shown = format!("'s3://{}/{}'", bucket, String::from_utf8_lossy(&prefix));
        let serve = move || {
            let served = with_session(&store, async |client| {
                while let Ok(job) = inbox.recv() {
                    job(&client, &bucket).await;
                }
                Ok(())
            });
            // Orders fail when their receiver is gone.
            drop(served);
        };
        let started = std::thread::Builder::new().name("run-folder".into()).spawn(serve);
        started.map_err(|error| Trouble::passing(format!("cannot start a thread: {error}")))?;
        Ok(Bucket { shown, prefix, orders })
    }

    /// A name of the folder is a part of a key, in which `..` has no meaning.
    fn key(&self, name: &str) -> Vec<u8> {
        [&self.prefix, name.as_bytes()].concat()
    }

    /// Writes an object, with `new` only where there is none; whether it was written.
    fn put(&self, verb: &str, name: &str, content: &[u8], new: bool) -> Result<bool, Trouble> {
        let (key, body) = (self.key(name), Bytes::copy_from_slice(content));
        self.ask(verb, name, async move |client, bucket| {
            let algorithm = client.session().upload_checksum();
            let checksum = algorithm.map(|algorithm| Checksum::of(algorithm, &body));
            let condition = (IF_NONE_MATCH, HeaderValue::from_static("*"));
            let headers = if new { vec![condition] } else { Vec::new() };
            match put_object(client, bucket, &key, body, checksum.as_ref(), &headers).await {
                Ok(_) => Ok(true),
                Err(error) if new && error.kind == ErrorKind::Precondition => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Names in a folder; with `after` those of one page.
    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, Trouble> {
        let key = |name: &str| self.key(&format!("{folder}/{name}"));
        let (prefix, after) = (key(""), after.map(key));
        self.ask("list", folder, async move |client, bucket| {
            let one_page = after.is_some();
            let start_after = after.unwrap_or_default();
            let query = ListQuery { prefix: prefix.clone(), start_after, ..ListQuery::default() };
            let mut pages = ObjectPages::new(query);
            let mut names = Vec::new();
            while let Some(page) = pages.next(client, bucket).await? {
                let keys =
                    page.objects.iter().filter_map(|object| object.key.strip_prefix(&*prefix));
                names.extend(keys.filter_map(|name| String::from_utf8(name.to_vec()).ok()));
                if one_page {
                    break;
                }
            }
            Ok(names)
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        verb: &str,
        name: &str,
        order: impl AsyncFnOnce(&Client, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (reply, answer) = mpsc::channel();
        let job: Job = Box::new(|client, bucket| {
            Box::pin(async move { drop(reply.send(order(client, bucket).await)) })
        });
        let sent = self.orders.send(job).is_ok();
        let answer = answer.recv().ok().filter(|_| sent);
        let gone = || Error::new(ErrorKind::Connection, "", "its client has ended");
        answer.unwrap_or_else(|| Err(gone())).map_err(|error| {
            let lasting = matches!(
                error.kind,
                ErrorKind::AccessDenied | ErrorKind::Invalid | ErrorKind::NotImplemented
            );
            Trouble {
                again: !lasting && !error.stops_run(),
                message: format!("cannot {verb} {name} in {}: {error}", self.shown),
            }
        })
    }
}

async fn get(client: &Client, bucket: &str, key: &[u8]) -> Result<Vec<u8>, Error> {
    let mut tries = 1;
    loop {
        let read = async {
            let mut download = get_object(client, bucket, key, &GetOptions::default()).await?;
            let mut content = BytesMut::new();
            while let Some(bytes) = download.chunk().await? {
                content.extend_from_slice(&bytes);
                if content.len() as u64 > BYTES_MAX {
                    return Err(Error::new(ErrorKind::Invalid, "GetObject", "it is too large"));
                }
            }
            Ok(content.to_vec())
        };
        match read.await {
            Err(error) if error.is_transient() && client.may_retry(tries, &error).await => {
                tries += 1;
            }
            read => return read,
        }
    }
}

impl Folder for Bucket {
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, Trouble> {
        self.put("create", name, content, true)
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), Trouble> {
        self.put("write", name, content, false).map(drop)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Trouble> {
        let key = self.key(name);
        self.ask("read", name, async move |client, bucket| match get(client, bucket, &key).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        self.list(folder, None)
    }

    fn names_after(&self, folder: &str, after: &str) -> Result<Vec<String>, Trouble> {
        self.list(folder, Some(after))
    }

    fn remove(&self, name: &str) -> Result<(), Trouble> {
        let key = self.key(name);
        self.ask("remove", name, async move |client, bucket| {
            delete_object(client, bucket, &key, None).await.map(drop)
        })
    }

    fn shown(&self) -> String {
        self.shown.clone()
    }
}

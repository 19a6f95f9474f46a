//! The run folder: small files with names, on a file system or in S3. Its operations are those that both can do
//! atomically: a file appears complete or not at all.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream};
use hakobu_core::error::{Fatal, cannot, quoted};
use hakobu_s3::ops::{GetOptions, ListQuery, ObjectPages, delete_object, get_object, put_object};
use hakobu_s3::{Checksum, Client, Error, ErrorKind, S3Session, Settings, with_session};
use hakobu_sys::{errno, file, host, process};
use hakobu_transfer::journal::Owner;
use hakobu_transfer::location::{Location, S3Url};
use http::HeaderValue;
use http::header::IF_NONE_MATCH;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

/// Failure of an operation on the run folder, or reason why a worker ended early or a plan cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// Another try may succeed later: the folder is full, or its server is away.
    pub is_transient: bool,
    /// The work was asked to stop.
    pub is_interrupted: bool,
    /// A sentence without a full stop.
    pub message: String,
}

impl RunError {
    /// An error that stays.
    pub fn permanent(message: impl Into<String>) -> RunError {
        RunError { is_transient: false, is_interrupted: false, message: message.into() }
    }

    /// An error that may be over at the next try.
    pub fn transient(message: impl Into<String>) -> RunError {
        RunError { is_transient: true, is_interrupted: false, message: message.into() }
    }
}

/// The content of a file of the folder.
///
/// # Errors
/// It has no form in JSON: better no file than an empty one.
pub fn json(content: &impl Serialize) -> Result<Vec<u8>, RunError> {
    serde_json::to_vec(content)
        .map_err(|error| RunError::permanent(format!("cannot write a file of the run: {error}")))
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Reads a file of the folder; `None` where it is not there, or not whole.
pub fn parsed<T: DeserializeOwned>(
    folder: &dyn RunFolder,
    name: &str,
) -> Result<Option<T>, RunError> {
    let content = folder.read(name)?.unwrap_or_default();
    Ok(serde_json::from_slice(&content).ok())
}

/// Returns whether a name is one of the run folder's own: relative, with at most one slash, and without `..`. Files of
/// the folder hold names of others, and may be forged.
pub(crate) fn is_inside(name: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    name.split('/').count() <= 2 && name.split('/').all(is_plain)
}

/// Returns whether a word can be a part of a file's name in the folder: of a worker, or of a verification.
pub(crate) fn is_word(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !word.is_empty() && word.len() <= 64 && word.bytes().all(plain)
}

/// A name that nothing else has: 16 hexadecimal digits.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn random_name() -> Result<String, RunError> {
    let bytes = host::random()
        .map_err(|error| RunError::permanent(format!("cannot draw a random name: {error}")))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// A run folder. Names are relative, with at most one slash.
pub trait RunFolder: Send + Sync {
    /// Makes a file, whole or not at all; false where there is one of this name.
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, RunError>;

    /// Makes a file or replaces it, atomically.
    fn replace(&self, name: &str, content: &[u8]) -> Result<(), RunError>;

    /// Reads a file; `None` where there is none.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RunError>;

    /// Reads files, concurrently where that is faster; `None` where there is none, in the order of the names.
    fn read_all(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, RunError>;

    /// Names in a folder of the run folder, in no order; none where it does not exist.
    fn names(&self, folder: &str) -> Result<Vec<String>, RunError>;

    /// The next names after `after` in byte order, as many as one request returns; all names where that costs as much.
    fn names_after(&self, folder: &str, after: &str) -> Result<Vec<String>, RunError>;

    /// Names in a folder and the time since each was written, by the clock of the folder's server: clocks of two machines
    /// are not compared.
    fn ages(&self, folder: &str) -> Result<Vec<(String, Duration)>, RunError>;

    /// Removes a file; one that is not there is no failure.
    fn remove(&self, name: &str) -> Result<(), RunError>;

    /// The folder as the user spells it.
    fn shown(&self) -> String;
}

/// Opens a run folder; with `make` one that is not there is made.
///
/// # Errors
/// It is not there, belongs to others, or others can read it.
pub fn open(
    typed: &OsStr,
    settings: &Settings,
    make: bool,
) -> Result<Arc<dyn RunFolder>, RunError> {
    let location = Location::parse(typed);
    match location.map_err(|Fatal { message, .. }| RunError::permanent(message))? {
        Location::Local(path) => Ok(Arc::new(LocalFolder::open(&path, make)?)),
        Location::S3(url) => Ok(Arc::new(BucketFolder::open(&url, settings)?)),
        Location::Null => Err(RunError::permanent("null: cannot hold a run")),
    }
}

/// A run folder on a file system that all machines share.
#[derive(Debug)]
pub struct LocalFolder {
    path: PathBuf,
    /// Names of temporary files: process and a number.
    me: String,
    next: AtomicU64,
}

impl LocalFolder {
    /// Opens a folder, and makes it where that is asked for. It belongs to this user, and no one
    /// else may look into it.
    ///
    /// # Errors
    /// It is not there, or not ours.
    pub fn open(path: &Path, make: bool) -> Result<LocalFolder, RunError> {
        if make
            && let Err(error) = DirBuilder::new().mode(0o700).create(path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(io_error("create", path, error));
        }
        let meta = fs::symlink_metadata(path).map_err(|error| io_error("open", path, error))?;
        let (uid, mode) = (meta.uid(), meta.mode() & 0o7777);
        let refused = |why: &str| {
            let hint = "hint: a run folder belongs to the user that runs it, mode 0700";
            Err(RunError::permanent(format!(
                "cannot use run folder {}: {why}\n{hint}",
                quoted(path)
            )))
        };
        if !meta.is_dir() {
            return refused("it is not a directory");
        }
        if uid != process::euid() {
            return refused(&format!("it belongs to user {uid}"));
        }
        if mode & 0o077 != 0 {
            return refused(&format!("other users have access (mode {mode:04o})"));
        }
        let Owner { host, boot, pid, start } = Owner::me();
        let me = format!("{host:08x}{boot:08x}{pid:x}{start:x}");
        Ok(LocalFolder {
            path: path.to_owned(),
            me,
            next: AtomicU64::new(fastrand::u64(..1 << 40)),
        })
    }

    /// The place of a file, or of a folder of files.
    fn place(&self, name: &str) -> Result<PathBuf, RunError> {
        match is_inside(name) {
            true => Ok(self.path.join(name)),
            false => {
                let why = format!("{} is not a file of run folder {}", quoted(name), self.shown());
                Err(RunError::permanent(why))
            }
        }
    }

    /// Returns the time of the file system, which may be another machine's: that of a file that is made for it.
    fn now(&self) -> SystemTime {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let probe = self.path.join(format!(".{}-{number:x}", self.me));
        let made =
            file::write_temporary(&probe, b"").and_then(|()| fs::metadata(&probe)?.modified());
        drop(fs::remove_file(&probe));
        // A folder that cannot be written to is most likely one of this machine.
        made.unwrap_or_else(|_| SystemTime::now())
    }

    /// Writes a file under a temporary name beside its place.
    fn draft(&self, name: &str, content: &[u8]) -> Result<(PathBuf, PathBuf), RunError> {
        let path = self.place(name)?;
        let folder = path.parent().unwrap_or(&self.path);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temp = folder.join(format!(".{}-{number:x}", self.me));
        let write = || file::write_temporary(&temp, content);
        let made = match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match DirBuilder::new().mode(0o700).create(folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => write(),
                }
            }
            made => made,
        };
        made.map_err(|error| io_error("write", &path, error))?;
        Ok((temp, path))
    }
}

impl RunFolder for LocalFolder {
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, RunError> {
        let (temp, path) = self.draft(name, content)?;
        let linked = fs::hard_link(&temp, &path);
        let made = match linked {
            Ok(()) => Ok(true),
            // The answer to a first try may have been lost (NFS): then this file is ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(fs::metadata(&temp).is_ok_and(|meta| meta.nlink() > 1))
            }
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(errno::EPERM | errno::EOPNOTSUPP | errno::ENOSYS | errno::EMLINK)
                ) =>
            {
                exclusive(&path, content)
            }
            Err(error) => Err(error),
        };
        drop(fs::remove_file(&temp));
        made.map_err(|error| io_error("create", &path, error))
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), RunError> {
        let (temp, path) = self.draft(name, content)?;
        fs::rename(&temp, &path).map_err(|error| {
            drop(fs::remove_file(&temp));
            io_error("write", &path, error)
        })
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        let path = self.place(name)?;
        match fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("read", &path, error)),
        }
    }

    fn read_all(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, RunError> {
        names.iter().map(|name| self.read(name)).collect()
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, RunError> {
        let path = self.place(folder)?;
        let list = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path)? {
                names.extend(entry?.file_name().into_string().ok());
            }
            names.retain(|name| !name.starts_with('.'));
            Ok::<_, io::Error>(names)
        };
        match list() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed.map_err(|error| io_error("list", &path, error)),
        }
    }

    fn names_after(&self, folder: &str, _: &str) -> Result<Vec<String>, RunError> {
        self.names(folder)
    }

    fn ages(&self, folder: &str) -> Result<Vec<(String, Duration)>, RunError> {
        let names = self.names(folder)?;
        let now = self.now();
        let age = |name: String| {
            let written =
                fs::metadata(self.path.join(folder).join(&name)).and_then(|m| m.modified());
            // One that is gone meanwhile has no age.
            let written = written.ok()?;
            Some((name, now.duration_since(written).unwrap_or_default()))
        };
        Ok(names.into_iter().filter_map(age).collect())
    }

    fn remove(&self, name: &str) -> Result<(), RunError> {
        let path = self.place(name)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn shown(&self) -> String {
        quoted(&self.path)
    }
}

/// Makes a file where the file system has no hard links. A reader may see it before its content.
fn exclusive(path: &Path, content: &[u8]) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let written = file.write_all(content).and_then(|()| file::close(file));
            if written.is_err() {
                drop(fs::remove_file(path));
            }
            written.map(|()| true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(fs::read(path).is_ok_and(|there| there == content))
        }
        Err(error) => Err(error),
    }
}

fn io_error(verb: &str, path: &Path, error: io::Error) -> RunError {
    let permanent = [errno::EACCES, errno::EPERM, errno::EROFS, errno::ENOENT, errno::ENOTDIR];
    let is_transient = !error.raw_os_error().is_some_and(|code| permanent.contains(&code));
    RunError { is_transient, is_interrupted: false, message: cannot(verb, path, error) }
}

/// The largest file that is read: a plan of a million shards takes less.
const BYTES_MAX: u64 = 1 << 30;
/// Files that are read at the same time.
const READS_MAX: usize = 64;

/// Work for the thread that owns the client; it sends its result itself.
type Job = Box<dyn for<'c> FnOnce(&'c Client, &'c str) -> Working<'c> + Send>;
type Working<'c> = Pin<Box<dyn Future<Output = ()> + 'c>>;

/// A run folder in S3: objects below a prefix. A file is made by a conditional PUT, which holds its condition also where
/// the response to a first try was lost. One thread owns client and connections; orders wait for it.
pub struct BucketFolder {
    shown: String,
    prefix: Vec<u8>,
    orders: mpsc::Sender<Job>,
}

impl BucketFolder {
    /// Opens the store; nothing is asked of it yet.
    ///
    /// # Errors
    /// The settings cannot be used, or the prefix is empty.
    pub fn open(url: &S3Url, settings: &Settings) -> Result<BucketFolder, RunError> {
        let mut prefix = url.key.clone();
        while prefix.last() == Some(&b'/') {
            prefix.pop();
        }
        if url.bucket.is_empty() || prefix.is_empty() {
            return Err(RunError::permanent("a run folder in S3 needs a bucket and a prefix"));
        }
        prefix.push(b'/');
        let store =
            S3Session::open(settings).map_err(|error| RunError::permanent(error.to_string()))?;
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
        started.map_err(|error| RunError::transient(format!("cannot start a thread: {error}")))?;
        Ok(BucketFolder { shown, prefix, orders })
    }

    /// A name of the folder is a part of a key, in which `..` has no meaning.
    fn key(&self, name: &str) -> Vec<u8> {
        [&self.prefix, name.as_bytes()].concat()
    }

    /// Writes an object, with `new` only where there is none; whether it was written.
    fn put(&self, verb: &str, name: &str, content: &[u8], new: bool) -> Result<bool, RunError> {
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
    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, RunError> {
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
    ) -> Result<T, RunError> {
        let (reply, response) = mpsc::channel();
        let job: Job = Box::new(|client, bucket| {
            Box::pin(async move { drop(reply.send(order(client, bucket).await)) })
        });
        let sent = self.orders.send(job).is_ok();
        let response = response.recv().ok().filter(|_| sent);
        let gone = || Error::new(ErrorKind::Connection, "", "its client has ended");
        response.unwrap_or_else(|| Err(gone())).map_err(|error| {
            let permanent = matches!(
                error.kind,
                ErrorKind::AccessDenied | ErrorKind::Invalid | ErrorKind::NotImplemented
            );
            RunError {
                is_transient: !permanent && !error.stops_run(),
                is_interrupted: false,
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

impl RunFolder for BucketFolder {
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, RunError> {
        self.put("create", name, content, true)
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), RunError> {
        self.put("write", name, content, false).map(drop)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        let key = self.key(name);
        self.ask("read", name, async move |client, bucket| match get(client, bucket, &key).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn read_all(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, RunError> {
        let keys: Vec<Vec<u8>> = names.iter().map(|name| self.key(name)).collect();
        let shown = names.first().cloned().unwrap_or_default();
        self.ask("read", &shown, async move |client, bucket| {
            let reads = keys.iter().map(async |key| match get(client, bucket, key).await {
                Ok(content) => Ok(Some(content)),
                Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            });
            stream::iter(reads).buffered(READS_MAX).try_collect().await
        })
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, RunError> {
        self.list(folder, None)
    }

    fn names_after(&self, folder: &str, after: &str) -> Result<Vec<String>, RunError> {
        self.list(folder, Some(after))
    }

    fn ages(&self, folder: &str) -> Result<Vec<(String, Duration)>, RunError> {
        let prefix = self.key(&format!("{folder}/"));
        self.ask("list", folder, async move |client, bucket| {
            let query = ListQuery { prefix: prefix.clone(), ..ListQuery::default() };
            let mut pages = ObjectPages::new(query);
            let mut written = Vec::new();
            while let Some(page) = pages.next(client, bucket).await? {
                for object in page.objects {
                    let name = object.key.strip_prefix(&*prefix).map(<[u8]>::to_vec);
                    let name = name.and_then(|name| String::from_utf8(name).ok());
                    written.extend(name.map(|name| (name, object.mtime.s)));
                }
            }
            let ahead_s = client.session().clock_ahead_s();
            let here = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let now_s = i64::try_from(here.as_secs()).unwrap_or(i64::MAX).saturating_add(ahead_s);
            let age = |s: i64| Duration::from_secs(now_s.saturating_sub(s).max(0).unsigned_abs());
            Ok(written.into_iter().map(|(name, s)| (name, age(s))).collect())
        })
    }

    fn remove(&self, name: &str) -> Result<(), RunError> {
        let key = self.key(name);
        self.ask("remove", name, async move |client, bucket| {
            delete_object(client, bucket, &key, None).await.map(drop)
        })
    }

    fn shown(&self) -> String {
        self.shown.clone()
    }
}

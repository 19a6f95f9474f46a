//! Per-directory files of filter rules, read from the source of a listing: below an open folder, or below a prefix
//! with one request for each folder.

use super::ReadMergeFile;
use crate::engine::read_merge_file;
use crate::object::get::check;
use hakobu_s3::ops::{GetOptions, get_object};
use hakobu_s3::with_session;
use hakobu_s3::{Client, Error, ErrorKind, S3Session};
use hakobu_sys::links::Links;
use hakobu_sys::{AsFd, OwnedFd, dir, errno};
use std::ffi::CString;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Maximum size of a rule file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Returns a reader of the per-directory rule files below an open folder, through symlinks that `links` allows.
pub fn merge_files(top: Arc<OwnedFd>, links: Links) -> ReadMergeFile {
    Box::new(move |folder, name| {
        if folder.is_empty() {
            return read_merge_file(&links, (*top).as_fd(), name);
        }
        match dir::open_below((*top).as_fd(), &CString::new(folder)?) {
            Ok(opened) => read_merge_file(&links, opened.as_fd(), name),
            // A folder that only the other side has.
            Err(error) if errno::is_gone(&error) || errno::is_no_dir(&error) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

/// A key to read, and the channel for the answer.
type Question = (Vec<u8>, SyncSender<io::Result<Option<Vec<u8>>>>);

/// Returns a reader of the per-directory rule files below a prefix. Its thread and its connection start with the
/// first request.
pub fn merge_objects(store: &Arc<S3Session>, bucket: &str, prefix: &[u8]) -> ReadMergeFile {
    let (store, bucket, prefix) = (Arc::clone(store), bucket.to_owned(), prefix.to_vec());
    let mut reader: Option<SyncSender<Question>> = None;
    Box::new(move |folder, name| {
        let leaves = name.split(|byte| *byte == b'/').any(|part| part == b"..");
        if leaves || name.starts_with(b"/") {
            return Err(io::Error::other("it lies outside the prefix"));
        }
        let slash = if folder.is_empty() { &b""[..] } else { b"/" };
        let key = [&*prefix, folder, slash, name].concat();
        let questions = match &mut reader {
            Some(questions) => questions,
            None => {
                let (questions, asked) = sync_channel(1);
                let (store, bucket) = (Arc::clone(&store), bucket.clone());
                std::thread::Builder::new()
                    .name("filter-files".to_owned())
                    .spawn(move || answer(&store, &bucket, &asked))?;
                reader.insert(questions)
            }
        };
        let gone = |_| io::Error::other("the thread that reads it has ended");
        let (reply, answered) = sync_channel(1);
        questions.send((key, reply)).map_err(|_| gone(()))?;
        answered.recv().map_err(|_| gone(()))?
    })
}

/// Answers requests until the sender is gone.
fn answer(store: &Arc<S3Session>, bucket: &str, asked: &Receiver<Question>) {
    let done = with_session(store, async |client| {
        while let Ok((key, reply)) = asked.recv() {
            // The receiver may be gone.
            let _ = reply.send(read(&client, bucket, &key).await);
        }
        Ok(())
    });
    if let Err(error) = done
        && let Ok((_, reply)) = asked.recv()
    {
        let _ = reply.send(Err(io::Error::other(error.to_string())));
    }
}

/// Returns the content of a rule object; `None` if there is none.
async fn read(client: &Client, bucket: &str, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut tried = 1;
    loop {
        match whole(client, bucket, key).await {
            Ok(content) => return Ok(Some(content)),
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            Err(error)
                if error.kind == ErrorKind::Corrupt && client.may_retry(tried, &error).await =>
            {
                tried += 1;
            }
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
    }
}

async fn whole(client: &Client, bucket: &str, key: &[u8]) -> Result<Vec<u8>, Error> {
    let mut download = get_object(client, bucket, key, &GetOptions::default()).await?;
    if download.size() > BYTES_MAX {
        return Err(Error::new(ErrorKind::Invalid, "GetObject", "too large for a file of rules"));
    }
    let mut frames = Vec::new();
    while let Some(frame) = download.chunk().await? {
        frames.push(frame);
    }
    if client.session().checks_downloads() {
        check(&download.headers, &frames)?;
    }
    Ok(frames.concat())
}

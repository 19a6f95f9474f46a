//! The files of an inventory, of this machine or in a store. A data file is compared with its size
//! and checksum before anything of it is used.

use super::manifest::DataFile;
use crate::location::Location;
use hakobu_core::error::Cause;
use hakobu_s3::ops::{GetOptions, get_object};
use hakobu_s3::with_session;
use hakobu_s3::{Algorithm, Error, Hasher, S3Session, Settings};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest manifest: one of a million files takes less.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// Location of an inventory.
pub enum Files {
    /// On this machine.
    Local(PathBuf),
    /// In a bucket, by the key of its manifest.
    Store { store: Arc<S3Session>, bucket: String, key: Vec<u8> },
}

fn said(error: io::Error) -> String {
    Cause::System(error).to_string()
}

impl Files {
    /// # Errors
    /// A sentence: the store cannot be opened.
    pub fn open(manifest: &Location, settings: &Settings) -> Result<Files, String> {
        match manifest {
            Location::Local(path) => Ok(Files::Local(path.clone())),
            Location::S3(url) => {
                let store = S3Session::open(settings).map_err(|error| error.to_string())?;
                let (bucket, key) = (url.bucket.clone(), url.key.clone());
                Ok(Files::Store { store, bucket, key })
            }
            Location::Null => Err("null: is not a file".to_owned()),
        }
    }

    /// The manifest's content.
    ///
    /// # Errors
    /// A sentence.
    pub fn manifest(&self) -> Result<Vec<u8>, String> {
        let file = match self {
            Files::Local(path) => File::open(path).map_err(said)?,
            Files::Store { store, bucket, key } => fetched(store, bucket, key)?,
        };
        let mut content = Vec::new();
        file.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut content).map_err(said)?;
        match content.len() as u64 > MANIFEST_BYTES_MAX {
            true => Err("its manifest is too large".to_owned()),
            false => Ok(content),
        }
    }

    /// A data file, checked, at its beginning.
    ///
    /// # Errors
    /// A sentence: it is not there, cannot be read, or is another file than the manifest names.
    pub fn data(&self, named: &DataFile) -> Result<File, String> {
        let mut file = match self {
            Files::Local(manifest) => {
                let places = beside(manifest, &named.key);
                let found = places.iter().find_map(|path| File::open(path).ok());
                found.ok_or("it is neither beside its manifest nor in a folder data there")?
            }
            Files::Store { store, bucket, .. } => fetched(store, bucket, named.key.as_bytes())?,
        };
        let mut hasher = Hasher::new(Algorithm::Md5);
        let mut buffer = vec![0; 256 << 10];
        let mut size = 0;
        loop {
            match file.read(&mut buffer).map_err(said)? {
                0 => break,
                some => {
                    hasher.update(buffer.get(..some).unwrap_or_default());
                    size += some as u64;
                }
            }
        }
        if size != named.size {
            return Err(format!("it has {size} bytes, and its manifest says {}", named.size));
        }
        if hasher.finish().value != named.md5 {
            return Err("its MD5 checksum is not that of its manifest".to_owned());
        }
        file.seek(SeekFrom::Start(0)).map_err(said)?;
        Ok(file)
    }
}

/// An object in a file without a name, at its beginning.
fn fetched(store: &Arc<S3Session>, bucket: &str, key: &[u8]) -> Result<File, String> {
    let mut file = tempfile::tempfile().map_err(|error| {
        format!("cannot make a file in {}: {}", std::env::temp_dir().display(), said(error))
    })?;
    let mut unwritten = None;
    let got = with_session(store, async |client| {
        let mut tries = 1;
        loop {
            let read = async {
                let mut download = get_object(&client, bucket, key, &GetOptions::default()).await?;
                while let Some(bytes) = download.chunk().await? {
                    if let Err(error) = file.write_all(&bytes) {
                        unwritten = Some(error);
                        break;
                    }
                }
                Ok::<(), Error>(())
            };
            match read.await {
                Err(error) if error.is_transient() && client.may_retry(tries, &error).await => {
                    tries += 1;
                    let anew = file.seek(SeekFrom::Start(0)).and_then(|_| file.set_len(0));
                    if let Err(error) = anew {
                        unwritten = Some(error);
                        return Ok(());
                    }
                }
                read => return read,
            }
        }
    });
    got.map_err(|error| error.to_string())?;
    if let Some(error) = unwritten {
        return Err(format!(
            "cannot keep it in {}: {}",
            std::env::temp_dir().display(),
            said(error)
        ));
    }
    file.seek(SeekFrom::Start(0)).map_err(said)?;
    Ok(file)
}

/// Places on this machine of what a manifest names: its last component beside the manifest, in a
/// folder `data` there, and in the `data` of the inventory.
fn beside(manifest: &Path, key: &str) -> Vec<PathBuf> {
    let folder = manifest.parent().map(PathBuf::from).unwrap_or_default();
    let name = key.rsplit('/').next().unwrap_or_default();
    if matches!(name, "" | "." | "..") {
        return Vec::new();
    }
    [folder.join(name), folder.join("data").join(name), folder.join("../data").join(name)].into()
}

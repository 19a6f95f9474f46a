//! Versions of a folder that keeps none: as in a bucket whose versioning was never enabled, each object is one
//! version, `null`.

use super::list;
use super::store::Folder;
use s3s::dto::{
    ListObjectVersionsInput, ListObjectVersionsOutput, ListObjectsInput, Object, ObjectVersion,
    ObjectVersionStorageClass,
};
use s3s::{S3Result, s3_error};

/// The version ID of every object.
pub const NULL: &str = "null";

/// `GET ?versions`.
pub fn list(folder: &Folder, input: ListObjectVersionsInput) -> S3Result<ListObjectVersionsOutput> {
    let page = list::objects(
        folder,
        ListObjectsInput {
            bucket: input.bucket,
            prefix: input.prefix,
            delimiter: input.delimiter,
            encoding_type: input.encoding_type,
            marker: input.key_marker,
            max_keys: input.max_keys,
            ..Default::default()
        },
    )?;
    let class = || ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
    let version = |object: Object| ObjectVersion {
        key: object.key,
        version_id: Some(NULL.to_owned()),
        is_latest: Some(true),
        last_modified: object.last_modified,
        e_tag: object.e_tag,
        size: object.size,
        storage_class: Some(class()),
        ..Default::default()
    };
    Ok(ListObjectVersionsOutput {
        name: page.name,
        prefix: page.prefix,
        key_marker: page.marker,
        max_keys: page.max_keys,
        is_truncated: page.is_truncated,
        next_key_marker: page.next_marker,
        versions: page.contents.map(|objects| objects.into_iter().map(version).collect()),
        common_prefixes: page.common_prefixes,
        delimiter: page.delimiter,
        encoding_type: page.encoding_type,
        ..Default::default()
    })
}

/// Checks that a requested version is the one that there is.
pub fn check(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some(NULL) => Ok(()),
        Some(_) => Err(s3_error!(NoSuchVersion, "objects here have the version 'null' only")),
    }
}

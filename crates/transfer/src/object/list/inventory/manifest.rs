//! `manifest.json` of an S3 Inventory (Amazon S3 User Guide, "Locating your inventory list").

use hakobu_s3::ops::Etag;
use serde::Deserialize;

/// A manifest that can be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The bucket that was listed.
    pub bucket: String,
    /// The columns of its files.
    pub columns: Columns,
    /// Its files.
    pub files: Vec<DataFile>,
}

/// A file of an inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Its key in the bucket of the inventory.
    pub key: String,
    /// Its bytes.
    pub size: u64,
    /// MD5 over them.
    pub md5: [u8; 16],
}

/// Positions of the columns that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Number of columns.
    pub count: usize,
    /// `Bucket`.
    pub bucket: usize,
    /// `Key`.
    pub key: usize,
    /// `Size`.
    pub size: usize,
    /// `LastModifiedDate`.
    pub modified: usize,
    /// `ETag`.
    pub etag: Option<usize>,
    /// `IsLatest`.
    pub latest: Option<usize>,
    /// `IsDeleteMarker`.
    pub marker: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    source_bucket: String,
    file_format: String,
    file_schema: String,
    files: Vec<WrittenFile>,
}

#[derive(Deserialize)]
struct WrittenFile {
    key: String,
    size: u64,
    #[serde(rename = "MD5checksum")]
    md5: String,
}

/// Reads a manifest.
///
/// # Errors
/// A sentence: why it cannot be used.
pub fn parse(content: &[u8]) -> Result<Manifest, String> {
    let written: Written = serde_json::from_slice(content)
        .map_err(|error| format!("it is not a manifest of an S3 Inventory: {error}"))?;
    let Written { source_bucket, file_format, file_schema, files } = written;
    if !file_format.eq_ignore_ascii_case("CSV") {
        return Err(format!(
            "reading {file_format} files is not supported\nhint: configure the inventory for CSV"
        ));
    }
    let columns = columns(&file_schema)?;
    let files = files.into_iter().map(|WrittenFile { key, size, md5 }| {
        let md5 = Etag::from(md5.to_ascii_lowercase())
            .md5()
            .ok_or_else(|| format!("'{key}' has no MD5 checksum"))?;
        Ok(DataFile { key, size, md5 })
    });
    let files: Result<Vec<DataFile>, String> = files.collect();
    Ok(Manifest { bucket: source_bucket, columns, files: files? })
}

fn columns(schema: &str) -> Result<Columns, String> {
    let names: Vec<&str> = schema.split(',').map(str::trim).collect();
    let at = |wanted: &str| names.iter().position(|name| *name == wanted);
    let needed = |wanted: &str| {
        let missing =
            || format!("it has no column {wanted}\nhint: add it to the inventory's configuration");
        at(wanted).ok_or_else(missing)
    };
    let columns = Columns {
        count: names.len(),
        bucket: needed("Bucket")?,
        key: needed("Key")?,
        size: needed("Size")?,
        modified: needed("LastModifiedDate")?,
        etag: at("ETag"),
        latest: at("IsLatest"),
        marker: at("IsDeleteMarker"),
    };
    // Rows of one key could not be told apart.
    if at("VersionId").is_some() {
        needed("IsLatest")?;
        needed("IsDeleteMarker")?;
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, schema: &str, md5: &str) -> String {
        format!(
            r#"{{"sourceBucket":"b","destinationBucket":"arn:aws:s3:::d","version":"2016-11-30",
            "fileFormat":"{format}","fileSchema":"{schema}",
            "files":[{{"key":"d/x.csv.gz","size":7,"MD5checksum":"{md5}"}}]}}"#
        )
    }

    const MD5: &str = "000102030405060708090a0b0c0d0e0f";

    proptest::proptest! {
        /// Bytes that are no manifest are a sentence, and nothing worse.
        #[test]
        fn anything_can_be_read(content: Vec<u8>, schema in "[A-Za-z, ]{0,60}", md5 in "\\PC{0,40}") {
            drop(parse(&content));
            drop(parse(written("CSV", &schema, &md5.replace(['"', '\\'], "")).as_bytes()));
        }
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let schema = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate";
        let found = parse(written("CSV", schema, MD5).as_bytes()).unwrap();
        let Columns { count, key, size, latest, marker, etag, .. } = found.columns;
        assert_eq!((count, key, size, latest, marker, etag), (7, 1, 5, Some(3), Some(4), None));
        assert_eq!((found.files[0].size, found.files[0].md5[15]), (7, 15));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let plain = "Bucket, Key, Size, LastModifiedDate";
        for (text, why) in [
            (written("ORC", plain, MD5), "reading ORC files is not supported"),
            (written("Parquet", plain, MD5), "reading Parquet files is not supported"),
            (written("CSV", "Bucket, Key, Size", MD5), "no column LastModifiedDate"),
            (written("CSV", "Bucket, Key, LastModifiedDate", MD5), "no column Size"),
            (
                written("CSV", "Bucket, Key, VersionId, Size, LastModifiedDate", MD5),
                "no column IsLatest",
            ),
            (written("CSV", plain, "00"), "has no MD5 checksum"),
            (written("CSV", plain, &"+1".repeat(16)), "has no MD5 checksum"),
            ("{}".to_owned(), "not a manifest of an S3 Inventory"),
        ] {
            let refused = parse(text.as_bytes()).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}

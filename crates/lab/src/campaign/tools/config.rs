//! Settings files of S3 programs, and the environment that keeps them from looking for keys elsewhere.

use super::quote::quoted;
use super::table::SettingsFormat;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Endpoint and keys of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreAccess {
    /// `http://HOST:PORT`.
    pub endpoint: String,
    /// Access key.
    pub access_key: String,
    /// Secret key.
    pub secret_key: String,
    /// Region for signatures.
    pub region: String,
}

impl StoreAccess {
    /// Variables read by every S3 program, overriding the user's: keys and region, no profile, no metadata
    /// service of a cloud.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let pairs = [
            ("AWS_ACCESS_KEY_ID", self.access_key.as_str()),
            ("AWS_SECRET_ACCESS_KEY", &self.secret_key),
            ("AWS_DEFAULT_REGION", &self.region),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", "/dev/null"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ];
        let mut all = self.place();
        all.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        all
    }

    /// Variables for the endpoint without keys, for places with the user's keys.
    pub fn place(&self) -> BTreeMap<String, String> {
        let pairs = [
            ("AWS_REGION", self.region.as_str()),
            ("RCLONE_CONFIG_LAB_TYPE", "s3"),
            ("RCLONE_CONFIG_LAB_PROVIDER", "Other"),
            ("RCLONE_CONFIG_LAB_ENV_AUTH", "true"),
            ("RCLONE_CONFIG_LAB_ENDPOINT", &self.endpoint),
            ("RCLONE_CONFIG_LAB_REGION", &self.region),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// A file to write before the first run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    /// Path.
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

impl SettingsFile {
    /// Shell command that writes the file, readable only by its owner because it may contain keys.
    pub fn command(&self) -> String {
        let path = quoted(&self.path.to_string_lossy());
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let folder = quoted(&folder.to_string_lossy());
        let text = quoted(&self.text);
        format!("umask 077 && mkdir -p {folder} && printf %s {text} > {path}")
    }
}

/// Settings file of a program below `folder`, one for each setting.
pub fn settings_file(
    config: SettingsFormat,
    folder: &Path,
    access: &StoreAccess,
    requests: &str,
    queue: &str,
) -> Option<SettingsFile> {
    let (name, text) = match config {
        SettingsFormat::No => return None,
        SettingsFormat::Aws => (
            format!("aws-{}-{}.ini", plain(requests), plain(queue)),
            format!(
                "[default]\ns3 =\n  max_concurrent_requests = {requests}\n  \
                 max_queue_size = {queue}\n"
            ),
        ),
        SettingsFormat::AwsPublished => (
            format!("aws-published-{}-{}.ini", plain(requests), plain(queue)),
            format!(
                "[default]\nmax_queue_size = {queue}\ns3 =\n  \
                 max_concurrent_requests = {requests}\n"
            ),
        ),
        SettingsFormat::S3cmd => {
            let (scheme, host) =
                access.endpoint.split_once("://").unwrap_or(("http", &access.endpoint));
            let secure = if scheme == "https" { "True" } else { "False" };
            let port = host.rsplit(':').next().unwrap_or_default();
            let keys = match access.access_key.as_str() {
                "" => String::new(),
                key => format!("access_key = {key}\nsecret_key = {}\n", access.secret_key),
            };
            (
                format!("s3cmd-{}.ini", plain(port)),
                format!(
                    "[default]\n{keys}bucket_location = {}\nhost_base = {host}\n\
                     host_bucket = {host}\nuse_https = {secure}\n",
                    access.region
                ),
            )
        }
    };
    Some(SettingsFile { path: folder.join(name), text })
}

/// Replaces all but ASCII letters and digits by `_`, for a file name.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

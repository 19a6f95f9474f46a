//! Known programs: their commands, lookup, versions and installation, and the settings files and environment that S3
//! programs need.

use crate::campaign::template::quoted;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Name of the running program itself.
pub const OWN: &str = "hakobu";

/// Finds a known tool by name.
pub fn known_tool(name: &str) -> Option<&'static KnownTool> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Finds a known program by name.
pub fn known_program(name: &str) -> Option<&'static KnownProgram> {
    PROGRAMS.iter().find(|program| program.name == name)
}

/// Folders with programs, in the order of `PATH`.
pub fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// Path of a program: a path is returned as it is, a name is looked up in `folders` in order.
pub fn find_program(name: impl AsRef<Path>, folders: &[PathBuf]) -> Option<PathBuf> {
    let name = name.as_ref();
    if name.components().count() > 1 {
        return Some(name.to_owned()).filter(|path| is_program(path));
    }
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Metrics to extract from a program's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// Nothing.
    #[default]
    Nothing,
    /// Summary line of a transfer with `--json`: its verdict, `bytes`, `files`, `jobs`.
    Own,
    /// fio's JSON on standard output: `iops`, `bw_bytes_per_s`, `lat_mean_ns`, `clat_mean_ns`, `clat_p50_ns`,
    /// `clat_p99_ns`, `clat_p999_ns`, over reads, writes and all jobs.
    Fio,
    /// Job log of GNU parallel on standard output: `items_s`, the sum of its jobs' times, and `concurrency`,
    /// that sum ÷ the time of the run.
    Joblog,
}

/// Format of a program's settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFormat {
    /// None.
    No,
    /// aws-cli, with the settings for requests and queue below `s3`, where it reads them.
    Aws,
    /// aws-cli, with the queue at the top of the profile, where a published study set it and aws-cli ignores
    /// it.
    AwsPublished,
    /// s3cmd's.
    S3cmd,
}

/// A known tool: a program, or several that work together.
#[derive(Clone, Copy, Debug)]
pub struct KnownTool {
    /// Name in campaigns.
    pub name: &'static str,
    /// Command that copies the folder `{src}` into the empty folder `{dst}`; empty if unsupported.
    pub copy: &'static str,
    /// Command that uploads `{src}` to `{dst}`, an `s3://` URL, at `{endpoint}`; empty if unsupported.
    pub upload: &'static str,
    /// Command that measures the folder `{dst}` itself; empty if unsupported.
    pub measure: &'static str,
    /// File for standard input.
    pub stdin: &'static str,
    /// Folder of the files of `{src}` after a copy.
    pub arrives: &'static str,
    /// True if it removes `{src}`: each run then gets a fresh copy of the data set.
    pub moves: bool,
    /// Required programs; [`crate::campaign::tools::OWN`] is this one.
    pub needs: &'static [&'static str],
    /// Default parameters; `cpus` is the number of CPUs.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Format of its output.
    pub output: OutputFormat,
    /// Format of its settings file.
    pub config: SettingsFormat,
}

/// Defaults of the table.
const PLAIN: KnownTool = KnownTool {
    name: "",
    copy: "",
    upload: "",
    measure: "",
    stdin: "",
    arrives: "{dst}",
    moves: false,
    needs: &[],
    defaults: &[],
    output: OutputFormat::Nothing,
    config: SettingsFormat::No,
};

/// Default parameters of fio and programs with its options.
const FIO_DEFAULTS: &[(&str, &str)] = &[
    ("rw", "randread"),
    ("numjobs", "1"),
    ("bs", "4k"),
    ("ioengine", "sync"),
    ("iodepth", "16"),
    ("direct", "1"),
    ("file_bytes", "104857600"),
];

/// The known tools.
pub const KNOWN: &[KnownTool] = &[
    KnownTool {
        name: "hakobu",
        copy: "{own} sync -a --json --no-memory -j {jobs} {options} {src}/ {dst}/",
        upload: "{own} sync -r --json --no-memory -j {jobs} --endpoint-url {endpoint} {options} \
                 {src}/ {dst}/",
        needs: &[OWN],
        defaults: &[("jobs", "auto")],
        output: OutputFormat::Own,
        ..PLAIN
    },
    KnownTool { name: "cp", copy: "cp -a {options} {src}/. {dst}/", needs: &["cp"], ..PLAIN },
    KnownTool {
        name: "mv",
        copy: "mv {options} {src} {dst}/moved",
        arrives: "{dst}/moved",
        moves: true,
        needs: &["mv"],
        ..PLAIN
    },
    KnownTool {
        name: "hakobu-mv",
        copy: "{own} mv --json --no-memory -j {jobs} {options} {src} {dst}/moved",
        arrives: "{dst}/moved",
        moves: true,
        needs: &[OWN],
        defaults: &[("jobs", "auto")],
        output: OutputFormat::Own,
        ..PLAIN
    },
    KnownTool {
        name: "rsync",
        copy: "rsync -a {options} {src}/ {dst}/",
        needs: &["rsync"],
        ..PLAIN
    },
    KnownTool {
        name: "parallel-rsync",
        copy: "parallel --joblog /dev/stdout -j {jobs} rsync -avR {} {dst!q}/",
        output: OutputFormat::Joblog,
        stdin: "{list}",
        // -R keeps the whole path of each name.
        arrives: "{dst}{src}",
        needs: &["parallel", "rsync"],
        defaults: &[("jobs", "cpus")],
        ..PLAIN
    },
    KnownTool {
        name: "fpsync",
        copy: "fpsync -n {jobs} {options} {src}/ {dst}/",
        needs: &["fpsync", "rsync"],
        defaults: &[("jobs", "cpus")],
        ..PLAIN
    },
    KnownTool {
        name: "xcp",
        copy: "xcp --recursive --no-progress --workers {jobs} {options} {src} {dst}/copy",
        arrives: "{dst}/copy",
        needs: &["xcp"],
        defaults: &[("jobs", "4")],
        ..PLAIN
    },
    KnownTool {
        name: "cpz",
        copy: "cpz {options} {src} {dst}/copy",
        arrives: "{dst}/copy",
        needs: &["cpz"],
        ..PLAIN
    },
    KnownTool {
        name: "rclone",
        copy: "rclone copy --config /dev/null --transfers {jobs} {options} {src} {dst}",
        upload: "rclone copy --config /dev/null --transfers {jobs} {options} {src} \
                 lab:{bucket}/{prefix}",
        needs: &["rclone"],
        defaults: &[("jobs", "4")],
        ..PLAIN
    },
    KnownTool {
        name: "aws-s3",
        upload: "aws s3 cp {src} {dst}/ --recursive --quiet --endpoint-url {endpoint} {options}",
        needs: &["aws"],
        defaults: &[("requests", "10"), ("queue_size", "1000")],
        config: SettingsFormat::Aws,
        ..PLAIN
    },
    KnownTool {
        name: "aws-s3-published",
        upload: "aws s3 cp {src} {dst}/ --recursive --quiet --endpoint-url {endpoint} {options}",
        needs: &["aws"],
        defaults: &[("requests", "10"), ("queue_size", "1000")],
        config: SettingsFormat::AwsPublished,
        ..PLAIN
    },
    KnownTool {
        name: "s5cmd",
        upload: "s5cmd --endpoint-url {endpoint} --numworkers {jobs} {options} cp {src}/ {dst}/",
        needs: &["s5cmd"],
        defaults: &[("jobs", "256")],
        ..PLAIN
    },
    KnownTool {
        name: "s3cmd",
        upload: "s3cmd -c {config} --no-progress {options} put --recursive {src}/ {dst}/",
        needs: &["s3cmd"],
        config: SettingsFormat::S3cmd,
        ..PLAIN
    },
    KnownTool {
        name: "parallel-s3cmd",
        output: OutputFormat::Joblog,
        upload: "parallel --joblog /dev/stdout -j {jobs} s3cmd -c {config!q} --no-progress put {} {dst!q}/",
        stdin: "{list}",
        needs: &["parallel", "s3cmd"],
        defaults: &[("jobs", "100%")],
        config: SettingsFormat::S3cmd,
        ..PLAIN
    },
    KnownTool {
        name: "fio",
        measure: "fio --name=io --directory={dst} --rw={rw} --numjobs={numjobs} --bs={bs} \
                  --ioengine={ioengine} --iodepth={iodepth} --direct={direct} --size={file_bytes} \
                  --group_reporting --output-format=json {options}",
        needs: &["fio"],
        defaults: FIO_DEFAULTS,
        output: OutputFormat::Fio,
        ..PLAIN
    },
    KnownTool {
        name: "hakobu-io",
        // Existing files were laid out for all tools that measure them, and stay.
        measure: "{own} io --name=io --directory={dst} --rw={rw} --numjobs={numjobs} --bs={bs} \
                  --ioengine={ioengine} --iodepth={iodepth} --direct={direct} --size={file_bytes} \
                  --group_reporting --output-format=json --allow-overwrite --keep {options}",
        needs: &[OWN],
        defaults: FIO_DEFAULTS,
        output: OutputFormat::Fio,
        ..PLAIN
    },
];

/// Installation of a program, and the command that prints its version.
pub struct KnownProgram {
    /// Command name.
    pub name: &'static str,
    /// Command that installs it.
    pub install: &'static str,
    /// Arguments that print its version.
    pub version: &'static [&'static str],
}

const fn program(
    name: &'static str,
    install: &'static str,
    version: &'static [&'static str],
) -> KnownProgram {
    KnownProgram { name, install, version }
}

/// All programs that known tools use.
pub const PROGRAMS: &[KnownProgram] = &[
    program("cp", "apt-get install coreutils", &["--version"]),
    program("mv", "apt-get install coreutils", &["--version"]),
    program("rsync", "apt-get install rsync", &["--version"]),
    program("parallel", "apt-get install parallel", &["--version"]),
    program("fpsync", "apt-get install fpart", &["-h"]),
    program("xcp", "cargo install xcp", &["--version"]),
    program("cpz", "cargo install cpz", &["--version"]),
    program("rclone", "go install github.com/rclone/rclone@latest", &["version"]),
    program("aws", "pip install awscli", &["--version"]),
    program("s5cmd", "go install github.com/peak/s5cmd/v2@latest", &["version"]),
    program("s3cmd", "apt-get install s3cmd", &["--version"]),
    program("fio", "apt-get install fio", &["--version"]),
];

// Settings files of S3 programs, and the environment that keeps them from looking for keys elsewhere.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::spec::tool::FIXED;
    use crate::campaign::template::Template;
    use std::process::Command;

    #[test]
    fn every_known_tool_is_whole() {
        let fixed = FIXED;
        for known in KNOWN {
            let name = known.name;
            let ways = [known.copy, known.upload, known.measure];
            assert!(ways.iter().any(|way| !way.is_empty()), "{name}");
            for way in ways.iter().chain([&known.stdin]).filter(|way| !way.is_empty()) {
                let template = Template::parse(way).unwrap();
                assert!(!template.needs_shell(), "{name}: {way}");
                for hole in template.names() {
                    let has_default = known.defaults.iter().any(|(name, _)| *name == hole);
                    assert!(fixed.contains(&hole) || has_default, "{name}: {hole}");
                }
            }
            assert!(!known.needs.is_empty(), "{name}");
            for program in known.needs.iter().filter(|program| **program != OWN) {
                assert!(known_program(program).is_some(), "{name}: nothing installs {program}");
            }
            assert_eq!(KNOWN.iter().filter(|other| other.name == name).count(), 1, "{name}");
        }
        assert_eq!(known_program("s5cmd").unwrap().version, ["version"]);
    }

    #[test]
    fn programs_are_found_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, mode| {
            let path = dir.path().join(name);
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (good, _) = (file("good", 0o755), file("plain", 0o644));
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let path = [PathBuf::from("/nowhere"), dir.path().to_owned()];
        assert_eq!(find_program("good", &path), Some(good.clone()));
        assert_eq!(find_program("plain", &path), None);
        assert_eq!(find_program("folder", &path), None);
        assert_eq!(find_program(&good, &[]), Some(good));
    }

    #[test]
    fn settings_are_written_as_they_are_meant() {
        let access = StoreAccess {
            endpoint: "http://127.0.0.1:9".into(),
            access_key: "K".into(),
            secret_key: "S'$x".into(),
            region: "us-east-1".into(),
        };
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a b");
        let made = |config| settings_file(config, &folder, &access, "32", "10000").unwrap();
        let (right, published) = (made(SettingsFormat::Aws), made(SettingsFormat::AwsPublished));
        let section = right.text.find("s3 =").unwrap();
        assert!(right.text.find("max_queue_size = 10000").unwrap() > section, "{}", right.text);
        let section = published.text.find("s3 =").unwrap();
        assert!(published.text.find("max_queue_size = 10000").unwrap() < section);
        assert!(published.text.contains("\n  max_concurrent_requests = 32\n"));
        assert_ne!(right.path, published.path);
        let settings = made(SettingsFormat::S3cmd);
        assert!(settings.text.contains("host_base = 127.0.0.1:9\n"), "{}", settings.text);
        let status = Command::new("sh").arg("-c").arg(settings.command()).status().unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read_to_string(&settings.path).unwrap(), settings.text);
        let mode = std::fs::metadata(&settings.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(settings_file(SettingsFormat::No, &folder, &access, "", "").is_none());
        let environment = access.environment();
        assert_eq!(environment["AWS_SECRET_ACCESS_KEY"], "S'$x");
        assert_eq!(environment["AWS_EC2_METADATA_DISABLED"], "true");
    }
}

//! Table of known programs: commands, version arguments, installation.

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
    /// Required programs; [`super::OWN`] is this one.
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
        needs: &[super::OWN],
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
        needs: &[super::OWN],
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
        needs: &[super::OWN],
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

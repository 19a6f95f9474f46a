//! The table of known programs: what starts them, how they say their version, what installs them.
//! A program is run, never read.

/// What is taken from a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing.
    Nothing,
    /// The summary of hakobu's `--json`.
    Own,
    /// fio's JSON.
    Fio,
}

/// A configuration that a program reads from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Config {
    /// None.
    No,
    /// aws-cli's, with requests and queue where it reads them: below `s3`.
    Aws,
    /// aws-cli's, with the queue at the top of the profile, where a published study set it and
    /// aws-cli does not read it.
    AwsPublished,
    /// s3cmd's.
    S3cmd,
}

/// A known program, or several that are one way to do it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// What a campaign calls it.
    pub name: &'static str,
    /// It copies a folder `{src}` into the empty folder `{dst}`; empty where it cannot.
    pub copy: &'static str,
    /// It uploads `{src}` to `{dst}`, an `s3://` URL, at `{endpoint}`; empty where it cannot.
    pub upload: &'static str,
    /// It measures the folder `{dst}` itself; empty where it does not.
    pub measure: &'static str,
    /// What it reads from.
    pub stdin: &'static str,
    /// Where the files of `{src}` are after a copy.
    pub arrives: &'static str,
    /// Programs that have to be there, [`super::OWN`] being this one.
    pub needs: &'static [&'static str],
    /// Parameters, and what they are where a campaign says nothing; `cpus` is the number of CPUs.
    pub defaults: &'static [(&'static str, &'static str)],
    /// What it prints.
    pub output: Output,
    /// What it reads its settings from.
    pub config: Config,
}

/// What all have that have nothing of their own.
const PLAIN: Known = Known {
    name: "",
    copy: "",
    upload: "",
    measure: "",
    stdin: "",
    arrives: "{dst}",
    needs: &[],
    defaults: &[],
    output: Output::Nothing,
    config: Config::No,
};

/// What fio, and what has its options, runs with.
const FIO_DEFAULTS: &[(&str, &str)] = &[
    ("rw", "randread"),
    ("numjobs", "1"),
    ("bs", "4k"),
    ("ioengine", "sync"),
    ("iodepth", "16"),
    ("direct", "1"),
    ("file_bytes", "104857600"),
];

/// The programs.
pub const KNOWN: &[Known] = &[
    Known {
        name: "hakobu",
        copy: "{own} sync -a --json --no-memory -j {jobs} {options} {src}/ {dst}/",
        upload: "{own} sync -r --json --no-memory -j {jobs} --endpoint-url {endpoint} {options} \
                 {src}/ {dst}/",
        needs: &[super::OWN],
        defaults: &[("jobs", "auto")],
        output: Output::Own,
        ..PLAIN
    },
    Known { name: "cp", copy: "cp -a {options} {src}/. {dst}/", needs: &["cp"], ..PLAIN },
    Known { name: "rsync", copy: "rsync -a {options} {src}/ {dst}/", needs: &["rsync"], ..PLAIN },
    Known {
        name: "parallel-rsync",
        copy: "parallel -j {jobs} rsync -avR {} {dst!q}/",
        stdin: "{list}",
        // -R keeps the whole path of each name.
        arrives: "{dst}{src}",
        needs: &["parallel", "rsync"],
        defaults: &[("jobs", "cpus")],
        ..PLAIN
    },
    Known {
        name: "fpsync",
        copy: "fpsync -n {jobs} {options} {src}/ {dst}/",
        needs: &["fpsync", "rsync"],
        defaults: &[("jobs", "cpus")],
        ..PLAIN
    },
    Known {
        name: "xcp",
        copy: "xcp --recursive --no-progress --workers {jobs} {options} {src} {dst}/copy",
        arrives: "{dst}/copy",
        needs: &["xcp"],
        defaults: &[("jobs", "4")],
        ..PLAIN
    },
    Known {
        name: "cpz",
        copy: "cpz {options} {src} {dst}/copy",
        arrives: "{dst}/copy",
        needs: &["cpz"],
        ..PLAIN
    },
    Known {
        name: "rclone",
        copy: "rclone copy --config /dev/null --transfers {jobs} {options} {src} {dst}",
        upload: "rclone copy --config /dev/null --transfers {jobs} {options} {src} \
                 lab:{bucket}/{prefix}",
        needs: &["rclone"],
        defaults: &[("jobs", "4")],
        ..PLAIN
    },
    Known {
        name: "aws-s3",
        upload: "aws s3 cp {src} {dst}/ --recursive --quiet --endpoint-url {endpoint} {options}",
        needs: &["aws"],
        defaults: &[("requests", "10"), ("queue_size", "1000")],
        config: Config::Aws,
        ..PLAIN
    },
    Known {
        name: "aws-s3-published",
        upload: "aws s3 cp {src} {dst}/ --recursive --quiet --endpoint-url {endpoint} {options}",
        needs: &["aws"],
        defaults: &[("requests", "10"), ("queue_size", "1000")],
        config: Config::AwsPublished,
        ..PLAIN
    },
    Known {
        name: "s5cmd",
        upload: "s5cmd --endpoint-url {endpoint} --numworkers {jobs} {options} cp {src}/ {dst}/",
        needs: &["s5cmd"],
        defaults: &[("jobs", "256")],
        ..PLAIN
    },
    Known {
        name: "s3cmd",
        upload: "s3cmd -c {config} --no-progress {options} put --recursive {src}/ {dst}/",
        needs: &["s3cmd"],
        config: Config::S3cmd,
        ..PLAIN
    },
    Known {
        name: "parallel-s3cmd",
        upload: "parallel -j {jobs} s3cmd -c {config!q} --no-progress put {} {dst!q}/",
        stdin: "{list}",
        needs: &["parallel", "s3cmd"],
        defaults: &[("jobs", "100%")],
        config: Config::S3cmd,
        ..PLAIN
    },
    Known {
        name: "fio",
        measure: "fio --name=io --directory={dst} --rw={rw} --numjobs={numjobs} --bs={bs} \
                  --ioengine={ioengine} --iodepth={iodepth} --direct={direct} --size={file_bytes} \
                  --group_reporting --output-format=json {options}",
        needs: &["fio"],
        defaults: FIO_DEFAULTS,
        output: Output::Fio,
        ..PLAIN
    },
    Known {
        name: "hakobu-io",
        // What is there was laid out for all tools that measure it, and stays.
        measure: "{own} io --name=io --directory={dst} --rw={rw} --numjobs={numjobs} --bs={bs} \
                  --ioengine={ioengine} --iodepth={iodepth} --direct={direct} --size={file_bytes} \
                  --group_reporting --output-format=json --allow-overwrite --keep {options}",
        needs: &[super::OWN],
        defaults: FIO_DEFAULTS,
        output: Output::Fio,
        ..PLAIN
    },
];

/// What installs a program, and what makes it say its version.
pub struct Program {
    /// The word that starts it.
    pub name: &'static str,
    /// The command that installs it.
    pub install: &'static str,
    /// Its arguments to say its version.
    pub version: &'static [&'static str],
}

const fn program(
    name: &'static str,
    install: &'static str,
    version: &'static [&'static str],
) -> Program {
    Program { name, install, version }
}

/// All programs that known tools are made of.
pub const PROGRAMS: &[Program] = &[
    program("cp", "apt-get install coreutils", &["--version"]),
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

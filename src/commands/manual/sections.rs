//! Sections of manual pages besides the help: examples, environment and files of each command.

/// A command line, and its purpose.
pub type Example = (&'static str, &'static str);

/// Returns the examples of a command. Tests run every one of them.
pub fn examples(command: &str) -> &'static [Example] {
    let found = EXAMPLES.iter().find(|(names, _)| names.split(' ').any(|name| name == command));
    found.map_or(&[], |(_, examples)| examples)
}

const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "sync",
        &[
            ("hakobu sync -aHAX --delete /srv/data/ /mnt/new/", "Mirror a tree to another volume."),
            ("hakobu sync -a --exclude='*.tmp' -n -i src/ dst/", "Show what would change."),
            ("hakobu sync -a src/ s3://data/src/", "Upload a tree, with times and modes."),
            ("hakobu sync -a --delete s3://data/photos/ photos/", "Mirror a prefix to a folder."),
        ],
    ),
    (
        "cp",
        &[
            ("hakobu cp -a src copy", "Copy a tree with everything that cp -a keeps."),
            ("hakobu cp -r s3://data/photos/ s3://copy/photos/", "Copy between buckets."),
            ("hakobu cp 's3://data/photos/2026-*.jpg' .", "Download by a wildcard."),
        ],
    ),
    (
        "mv",
        &[
            ("hakobu mv src /mnt/new/", "Move a tree to another file system, checked."),
            ("hakobu mv big.iso s3://data/", "Upload a file and remove it here."),
        ],
    ),
    (
        "verify",
        &[
            ("hakobu verify -HAX src same", "Compare two trees with links, ACLs and attributes."),
            (
                "hakobu verify photos/ s3://data/photos/",
                "Compare a folder with a prefix, by the checksums that are stored.",
            ),
        ],
    ),
    (
        "rm",
        &[
            ("hakobu rm -rf old", "Remove a tree with several workers."),
            ("hakobu rm -rn s3://data/photos/", "Show which objects would be removed."),
        ],
    ),
    (
        "ls",
        &[
            ("hakobu ls", "List buckets."),
            ("hakobu ls -h s3://data/photos/", "List a prefix with sizes for people."),
            ("hakobu ls -R --summarize s3://data/", "List everything in a bucket."),
        ],
    ),
    (
        "du",
        &[
            ("hakobu du -sh src", "Sum up a tree."),
            ("hakobu du -h s3://data", "Sum up the prefixes of a bucket."),
        ],
    ),
    (
        "cat",
        &[
            ("hakobu cat s3://data/notes.txt", "Write an object to standard output."),
            ("hakobu cat --range 0-99 s3://data/notes.txt", "Write its first 100 bytes."),
        ],
    ),
    ("pipe", &[("tar c src | hakobu pipe s3://data/src.tar", "Store a stream as an object.")]),
    (
        "head stat",
        &[("hakobu head --json s3://data/notes.txt", "Show the metadata of an object as JSON.")],
    ),
    ("mb", &[("hakobu mb s3://new-bucket", "Make a bucket.")]),
    ("rb", &[("hakobu rb --force s3://copy", "Empty a bucket and remove it.")]),
    (
        "bucket-version",
        &[
            ("hakobu bucket-version s3://data", "Show whether a bucket keeps versions."),
            ("hakobu bucket-version --json s3://data s3://copy", "The same of two, as JSON lines."),
        ],
    ),
    (
        "presign",
        &[(
            "hakobu presign --expires-in 12h s3://data/notes.txt",
            "Make a URL that can be read without credentials for twelve hours.",
        )],
    ),
    (
        "mpu",
        &[
            ("hakobu mpu ls s3://data", "List unfinished uploads."),
            ("hakobu mpu abort --older-than 7d s3://data", "Abort those older than a week."),
        ],
    ),
    ("run", &[("hakobu run commands.txt", "Run the commands of a file, one a line.")]),
    (
        "cluster",
        &[
            (
                "hakobu cluster plan -a src/ /mnt/new/ --run run && hakobu cluster work run && \
                 hakobu cluster collect run",
                "Plan a transfer in a run folder, do it with one worker, and finish it.",
            ),
            (
                "hakobu sync -a src/ /mnt/new/ --cluster local:2 --run run2",
                "Do all of that with two workers on this machine.",
            ),
            (
                "hakobu sync -a src/ /mnt/new/ --cluster local:2 --run run3 --verify",
                "Compare all transferred entries afterwards, also on the workers.",
            ),
        ],
    ),
    (
        "watch",
        &[
            ("hakobu watch -- cp -a src copy", "Report what limited a command."),
            (
                "hakobu watch --svg run.svg --csv run.csv -- tar cf src.tar src",
                "Record and draw the load of a command.",
            ),
        ],
    ),
    (
        "bench",
        &[(
            "hakobu bench -r 3 --prepare 'rm -rf dst' 'cp -a src dst' 'hakobu cp -a src dst'",
            "Compare two commands, with runs interleaved.",
        )],
    ),
    (
        "io",
        &[(
            "hakobu io --name=a --rw=randread --bs=4k --size=4m --numjobs=2",
            "Measure random reads of two jobs.",
        )],
    ),
    ("results", &[("hakobu results show small", "Show the results in a folder as a table.")]),
    ("report", &[("hakobu report small -o report.html", "Make a page with pictures.")]),
    (
        "compare",
        &[(
            "hakobu compare small/ large/ --price A=0.096/h --price B=0.384/h",
            "Compare two machines, with prices.",
        )],
    ),
    ("demo", &[("hakobu demo", "Upload, download and verify generated files.")]),
    (
        "serve",
        &[
            ("hakobu serve s3 store --listen 127.0.0.1:9000 # until Ctrl-C", "Serve a folder."),
            ("hakobu serve null --latency 20ms # until Ctrl-C", "Serve nothing, slowly."),
        ],
    ),
    (
        "man",
        &[
            ("hakobu man sync | man -l -", "Read the manual page of a command."),
            ("hakobu man --install ~/.local/share/man", "Install all pages for man(1)."),
        ],
    ),
    (
        "completions",
        &[
            ("hakobu completions --install bash", "Install the completions for bash."),
            ("hakobu completions zsh > _hakobu", "Write those for zsh to a file."),
        ],
    ),
];

/// A name and its meaning.
pub type Meaning = (&'static str, &'static str);

/// Groups of commands that share variables and files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Commands that can open a store.
    Store,
    /// Commands that tune the number of jobs and store it, or keep a record of their run.
    State,
    /// Commands that keep results.
    Results,
}

/// Environment variables that a group reads.
pub const ENVIRONMENT: &[(Group, &[Meaning])] = &[
    (
        Group::Store,
        &[
            ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "Credentials."),
            ("AWS_PROFILE", "The profile with credentials and settings."),
            ("AWS_REGION, AWS_DEFAULT_REGION", "The region."),
            (
                "AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, S3_ENDPOINT_URL",
                "The address of the store, the first that is set.",
            ),
            ("AWS_CA_BUNDLE", "Certificates to trust instead of the system's."),
            ("AWS_MAX_ATTEMPTS", "How often a request is tried."),
            (
                "AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE",
                "Files to read instead of those below ~/.aws.",
            ),
        ],
    ),
    (Group::State, &[("XDG_STATE_HOME", "The folder of state files instead of ~/.local/state.")]),
    (
        Group::Results,
        &[
            ("XDG_STATE_HOME", "The folder of state and results instead of ~/.local/state."),
            ("XDG_CACHE_HOME", "The folder of data sets instead of ~/.cache."),
            ("NO_COLOR", "No colours, if it is set and not empty."),
        ],
    ),
];

/// Files that a group uses.
pub const FILES: &[(Group, &[Meaning])] = &[
    (Group::Store, &[("~/.aws/config, ~/.aws/credentials", "Profiles, as aws has them.")]),
    (
        Group::State,
        &[(
            "~/.local/state/hakobu/",
            "Numbers of jobs that were good, records of runs under way, and of transfers that \
             --resume can go on with.",
        )],
    ),
    (
        Group::Results,
        &[
            ("~/.local/state/hakobu/results/", "Results, a folder each."),
            ("~/.cache/hakobu/", "Data sets and targets of campaigns."),
        ],
    ),
];

/// Variables that every command reads.
pub const ALWAYS: &[Meaning] = &[("LC_ALL, LC_CTYPE, LANG", "Whether names are shown as UTF-8.")];

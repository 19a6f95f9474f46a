//! Syntax and meaning of campaigns, and positions of errors.

use crate::campaign::data::{FileContent, FileSizes};
use crate::campaign::spec::CampaignSpec;
use crate::campaign::spec::data::{ScaleBy, scale_number};
use crate::campaign::spec::place::PlaceLocation;
use crate::campaign::spec::rules::{CacheState, CheckLevel};
use crate::campaign::spec::toml::SpecError;
use crate::campaign::tools::OutputFormat;
use std::time::Duration;

/// A valid campaign.
const WHOLE: &str = r#"name = "whole"
title = "All that there is"
question = "Is everything read?"
study = "A study"
x = "jobs"
groups = ["kind"]
target = "store"
control = "hakobu"

[scale]
default = 0.5

[data.small]
line = "Test file {n}"
count = 2000
name = "test_file_{n}.txt"
min_count = 10

[data.mixed]
count = 100
size = { median = "64KiB", sigma = 1.5, max = "16MiB" }
depth = 2
fan_out = 4
seed = 7
hard_links = 3
symlinks = 2

[data.large]
size = "4GiB"
min_size = "64MiB"
content = "zero"

[place.disk]
path = "target"

[place.store]
serve = "folder"
latency = "50ms"
bandwidth = "100MB"
in_flight = 8
bucket = "things"

[place.cloud]
url = "s3://bucket/some/prefix/"
endpoint = "https://example.com"

[scaled.file_bytes]
size = "100MiB"
min = "1MiB"

[sweep]
jobs = [1, 4, "400%"]
kind = ["a", "b"]

[[tool]]
use = "hakobu"
sweep = {}

[[tool]]
name = "mine"
command = "mine -j {jobs} --kind={kind} {options} {src} {dst} | tee {work}/log"
options = ["--size={file_bytes}"]
needs = ["tee"]
install = "apt-get install mine"
env = { MINE = "{bucket}" }
set = { jobs = 3 }
arrives = "{dst}/x"
extract = "fio-json"

[[condition]]
cpus = 1

[[condition]]
latency = "100ms"

[run]
setup = ["mkdir -p {work}/a", "echo {jobs_max}"]
prepare = "true"
cache = "cold"
empty = false
timeout = "5m"

[repeat]
warmup = 1
min = 2
max = 4
tight = 0.05
budget = "4m"
seed = 9

[check]
what = "tree"
compare = "all"

[[published]]
machine = "large"
series = "mine"
x = [1, 4]
values = [10.5, 3]

[[published]]
machine = "large"
series = "other"
group = "rw read"
values = 7.25
"#;

#[test]
fn everything_is_read() {
    let spec = CampaignSpec::parse("whole.toml", WHOLE).unwrap();
    assert_eq!((spec.header.name.as_str(), spec.scale), ("whole", 0.5));
    assert_eq!(spec.header.x_name.as_deref(), Some("jobs"));
    let [small, mixed, large] = &spec.data[..] else { panic!("{:?}", spec.data) };
    assert_eq!(small.recipe.sizes, FileSizes::Line);
    assert_eq!(small.recipe.content, FileContent::Text("Test file {n}".into()));
    assert_eq!((small.by, small.min_count), (ScaleBy::Count, 10));
    assert_eq!((mixed.recipe.depth, mixed.recipe.hard_links, mixed.recipe.seed), (2, 3, 7));
    let FileSizes::Lognormal { median, sigma, min, max } = mixed.recipe.sizes else { panic!() };
    assert_eq!((median, sigma, min, max), (65_536, 1.5, 0, 16 << 20));
    assert_eq!((large.by, large.min_bytes), (ScaleBy::Size, 64 << 20));
    assert_eq!(large.recipe.content, FileContent::Zero);
    let PlaceLocation::Server {
        null, latency, bandwidth_bytes_per_s, in_flight_max, bucket, ..
    } = &spec.place("store").unwrap().at
    else {
        panic!()
    };
    assert_eq!((*null, *latency, bucket.as_str()), (false, Duration::from_millis(50), "things"));
    assert_eq!((*bandwidth_bytes_per_s, *in_flight_max), (Some(100_000_000), Some(8)));
    let PlaceLocation::Url { prefix, endpoint, .. } = &spec.place("cloud").unwrap().at else {
        panic!()
    };
    assert_eq!(
        (prefix.as_str(), endpoint.as_deref()),
        ("some/prefix", Some("https://example.com"))
    );
    let [own, mine] = &spec.tools[..] else { panic!() };
    assert!(own.own && own.sweep == Some(Vec::new()) && own.output == OutputFormat::Own);
    assert!(!mine.own && mine.output == OutputFormat::Fio && mine.set["jobs"] == "3");
    assert!(mine.command().unwrap().needs_shell());
    assert_eq!(spec.sweep[0].values, ["1", "4", "400%"]);
    assert_eq!(spec.conditions.len(), 2);
    assert_eq!(spec.rules.cache, CacheState::Cold);
    assert!(!spec.rules.empty && spec.rules.sync && spec.rules.setup.len() == 2);
    assert_eq!((spec.repeat.warmup, spec.repeat.max, spec.repeat.seed), (1, 4, 9));
    assert_eq!(spec.check, Some(CheckLevel::Tree { compare: u64::MAX }));
    let figures: Vec<_> = spec.header.published.iter().map(|each| (each.x, each.value)).collect();
    assert_eq!(figures, [(Some(1.0), 10.5), (Some(4.0), 3.0), (None, 7.25)]);
    let [one, _, other] = &spec.header.published[..] else { panic!("{:?}", spec.header.published) };
    assert!(one.is_of("rw read") && one.is_of("rw write") && one.label() == "mine");
    assert!(other.is_of("rw read") && !other.is_of("rw write"));
    assert_eq!(other.label(), "other, rw read");
    assert_eq!(spec.header.text, WHOLE);
}

/// Each change makes the campaign invalid; expected message, line and column.
#[test]
fn errors_point_at_their_place() {
    for (old, new, place, said) in [
        ("name = \"whole\"", "name = \"a b\"", (1, 8), "name: must be lower-case letters"),
        ("name = \"whole\"", "", (1, 1), "'name' is missing"),
        ("question =", "qestion =", (1, 1), "'question' is missing; is 'qestion' it?"),
        ("study =", "studdy =", (4, 1), "studdy: is not known here; did you mean 'study'?"),
        ("x = \"jobs\"", "x = \"job\"", (5, 5), "'job' is not swept; did you mean 'jobs'?"),
        ("x = \"jobs\"", "x = 3", (5, 5), "x: a text is expected here, not a whole number"),
        ("[\"kind\"]", "[\"kin\"]", (6, 11), "groups: 'kin' is not swept"),
        ("target = \"store\"", "target = \"stor\"", (7, 10), "there is no place 'stor'"),
        ("target = \"store\"\n", "", (1, 1), "'target' has to say"),
        ("control = \"hakobu\"", "control = \"cp\"", (8, 11), "there is no tool 'cp'"),
        ("default = 0.5", "default = 0", (11, 11), "scale.default: must be more than 0"),
        ("count = 2000", "count = -1", (15, 9), "data.small.count: must not be negative"),
        ("count = 2000", "count = 0", (15, 9), "data.small.count: must be between 1"),
        (
            "count = 2000",
            "count = \"2000\"",
            (15, 9),
            "a whole number is expected here, not a text",
        ),
        ("count = 2000", "cuont = 2000", (15, 1), "data.small.cuont: is not known here; did you"),
        ("test_file_{n}", "test_file", (16, 8), "data.small.name: needs {n}"),
        ("test_file_{n}", "a/{n}", (16, 8), "data.small.name: must not contain a slash"),
        ("\"64KiB\"", "\"64XB\"", (21, 19), "data.mixed.size.median: '64XB' is not a size"),
        ("sigma = 1.5", "sgma = 1.5", (21, 28), "data.mixed.size.sgma: is not known here"),
        ("size = \"4GiB\"", "", (28, 7), "data.large: 'size' is missing"),
        ("content = \"zero\"", "content = \"zeros\"", (31, 11), "'zeros' is neither"),
        ("path = \"target\"", "path = \"../x\"", (34, 8), "place.disk.path: must not contain"),
        ("latency = \"50ms\"", "latency = \"50\"", (38, 11), "'50' is not a duration such as"),
        ("serve = \"folder\"", "serve = \"tape\"", (37, 9), "'tape' is neither folder nor null"),
        ("path = \"target\"\n", "", (33, 8), "give one of 'path', 'serve' and 'url'"),
        ("url = \"s3://bucket/", "url = \"bucket/", (44, 7), "is not an s3:// URL"),
        ("\"https://ex", "\"ftp://ex", (45, 12), "must begin with http:// or https://"),
        ("\"https://ex", "\"https://u:p@ex", (45, 12), "must have no user and password"),
        ("jobs = [1, 4, \"400%\"]", "jobs = []", (52, 1), "sweep.jobs: needs one value"),
        ("jobs = [1, 4, \"400%\"]", "jobs = [1, 4, 1]", (52, 15), "sweep.jobs: 1 is there twice"),
        ("kind = [\"a\", \"b\"]", "src = [\"a\"]", (53, 1), "has a special meaning"),
        (
            "use = \"hakobu\"",
            "use = \"hakobo\"",
            (56, 7),
            "no tool 'hakobo' is known; did you mean",
        ),
        ("-j {jobs}", "-j {jbos}", (61, 11), "{jbos} is not defined"),
        ("{src} {dst}", "'{src} {dst}", (61, 11), "has a ' that is not closed"),
        ("--size={file_bytes}", "--size={bytes}", (62, 12), "{bytes} is not defined"),
        ("MINE = \"{bucket}\"", "MINE = \"{buckets}\"", (65, 9), "tool[2].env.MINE: {buckets}"),
        ("extract = \"fio-json\"", "extract = \"x\"", (68, 11), "tool[2].extract: 'x' is neither"),
        (
            "cpus = 1",
            "cpu = 1",
            (71, 1),
            "condition[1].cpu: is not known here; did you mean 'cpus'",
        ),
        ("{jobs_max}", "{jobs_min}", (77, 31), "run.setup: {jobs_min} is not defined"),
        ("cache = \"cold\"", "cache = \"cool\"", (79, 9), "'cool' is neither any nor cold"),
        ("min = 2\nmax", "min = 20\nmax", (83, 2), "repeat: 'max' must not be below 'min'"),
        ("tight = 0.05", "tight = 5", (87, 9), "repeat.tight: must be a share"),
        ("compare = \"all\"", "compare = \"most\"", (93, 11), "must be a number of files, or"),
        ("x = [1, 4]\n", "x = [1]\n", (98, 5), "published[1].x: 1 numbers for 2 values"),
        ("title = \"", "title = ", (2, 9), ""),
        ("[check]", "[run]", (91, 2), ""),
    ] {
        assert!(WHOLE.contains(old), "{old}");
        let text = WHOLE.replacen(old, new, 1);
        let error = CampaignSpec::parse("c.toml", &text).unwrap_err();
        let shown = error.to_string();
        assert!(error.message.contains(said), "{new}: {shown}");
        assert_eq!((error.line, error.column), place, "{new}: {shown}");
        assert!(shown.starts_with(&format!("c.toml:{}:{}: ", place.0, place.1)), "{shown}");
    }
}

/// A minimal campaign with these lines added.
fn with(lines: &str) -> Result<CampaignSpec, SpecError> {
    let text = format!("name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n{lines}");
    CampaignSpec::parse("a.toml", &text)
}

#[test]
fn what_contradicts_itself_is_refused() {
    let tool = "[[tool]]\nname = \"t\"\ncommand = \"true\"\n";
    assert!(with(tool).is_ok(), "{:?}", with(tool));
    for (lines, said) in [
        ("", "there is no [[tool]]"),
        ("[[tool]]\nuse = \"cp\"\n", "needs a place to write to"),
        ("[place.p]\npath = \"p\"\n[[tool]]\nuse = \"cp\"\n", "needs data"),
        ("[place.p]\npath = \"p\"\n[[tool]]\nuse = \"aws-s3\"\n", "cannot copy into 'p'"),
        ("[place.s]\nserve = \"null\"\n[[tool]]\nuse = \"cp\"\n", "cannot upload to 's'"),
        ("[place.s]\nserve = \"null\"\n[[tool]]\nuse = \"fio\"\n", "cannot upload to 's'"),
        (
            "[[tool]]\nname = \"t\"\ncommand = \"cp {src} x\"\n[place.p]\npath = \"p\"\n",
            "needs data",
        ),
        ("[[tool]]\nname = \"t\"\n", "give 'use' or 'command'"),
        ("[[tool]]\nuse = \"cp\"\ncommand = \"cp\"\n", "exclude each other"),
        ("[[tool]]\nname = \"t\"\ncommand = \" \"\n", "is an empty command"),
        ("[[tool]]\nname = \"t\"\ncommand = \"a\"\noptions = \"b\"\n", "'options' have no place"),
        ("[tool]\nuse = \"cp\"\n", "a list of tables"),
        ("[data.d]\nsize = 1\ncount = 2\nhard_links = 3\n", "must be between 0 and 2"),
        ("[data.d]\nsize = { uniform = [\"2k\", \"1k\"] }\n", "the smaller one first"),
        ("[data.d]\nsize = { median = \"1k\", max = \"1\" }\n", "between 'min' and 'max'"),
        ("[data.d]\nsize = { max = \"1\" }\n", "give either 'uniform' or 'median'"),
        ("[data.d]\nsize = 1\nline = \"a\"\ncontent = \"zero\"\n", "is for content = \"text\""),
        ("[data.d]\ncount = 9\nsize = 1\ndepth = 9\nfan_out = 99\n", "are too many"),
        ("[data.\"a/b\"]\nsize = 1\n", "the name must be"),
        ("data = 3\n", "a table is expected here"),
        ("x = 2020-01-01\n", ""),
    ] {
        let error = with(lines).expect_err(lines);
        assert!(error.message.contains(said), "{lines}: {error}");
    }
    let twice = with(&format!("{tool}{tool}")).unwrap_err();
    assert!(twice.message.contains("there are two named 't'"), "{twice}");
    assert_eq!(twice.line, 7, "{twice}");
    let same = with(&format!("{tool}[[condition]]\ncpus = 1\n[[condition]]\ncpus = 1\n"));
    assert!(same.unwrap_err().message.contains("is there twice"));
}

#[test]
fn the_swept_number_is_guessed_where_there_is_one() {
    let tool = "[[tool]]\nname = \"t\"\ncommand = \"true {n}\"\n";
    let x = |sweep: &str| with(&format!("{tool}[sweep]\nn = {sweep}\n")).unwrap().header.x_name;
    assert_eq!(x("[1, 2]").as_deref(), Some("n"));
    assert_eq!(x("[1, \"2%\"]"), None);
    let none = with(&format!("x = \"\"\n{tool}[sweep]\nn = [1]\n")).unwrap().header.x_name;
    assert_eq!(none, None);
}

#[test]
fn a_scale_multiplies_and_keeps_to_its_least() {
    let spec = CampaignSpec::parse("whole.toml", WHOLE).unwrap();
    let count = |scale| spec.data[0].at(scale).count;
    assert_eq!([count(1.0), count(0.5), count(0.001), count(2.0)], [2000, 1000, 10, 4000]);
    let bytes = |scale| spec.data[2].at(scale).totals().bytes;
    assert_eq!([bytes(1.0), bytes(0.5), bytes(1e-6)], [4 << 30, 2 << 30, 64 << 20]);
    let mixed = spec.data[1].at(0.02);
    assert_eq!((mixed.count, mixed.hard_links, mixed.symlinks), (2, 2, 2));
    let mut fixed = spec.data[0].clone();
    fixed.by = ScaleBy::Nothing;
    assert_eq!(fixed.at(0.1), fixed.recipe);
    // A number below the least at scale 1 stays as it is.
    assert_eq!(
        [scale_number(5, 0.1, 10), scale_number(5, 2.0, 10), scale_number(0, 9.0, 1)],
        [5, 10, 0]
    );
}

#[test]
fn a_place_can_be_another() {
    let spec = CampaignSpec::parse("whole.toml", WHOLE).unwrap();
    let (disk, store) = (spec.place("disk").unwrap(), spec.place("store").unwrap());
    assert_eq!(
        disk.parse_replacement("/mnt/{x}").unwrap().at,
        PlaceLocation::Path("/mnt/{x}".into())
    );
    let url = store.parse_replacement("s3://b/p/").unwrap();
    assert!(matches!(&url.at, PlaceLocation::Url { prefix, .. } if prefix == "p"), "{url:?}");
    assert!(
        store.parse_replacement("/mnt").is_err() && store.parse_replacement("s3:///p").is_err()
    );
    assert!(disk.parse_replacement(" ").is_err());
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        if let Err(error) = CampaignSpec::parse("x", &text) {
            proptest::prop_assert!(error.line >= 1 && error.column >= 1);
        }
    }
}

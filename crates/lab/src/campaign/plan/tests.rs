//! Plans of the repository's campaigns and of small ones: exact commands, groups, controls, parts left out.

use crate::campaign::plan::{PlanEnvironment, PlanError, PlanOptions, make};
use crate::campaign::spec::CampaignSpec;
use crate::campaign::throttle::{DiskThrottle, ThrottleError};
use crate::campaign::tools::{OutputFormat, PROGRAMS};
use crate::campaign::{CampaignPlan, PlannedCell, RunAction, RunCheck};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn no_throttle(_: &Path, _: Option<&Path>) -> Result<DiskThrottle, ThrottleError> {
    Err(ThrottleError::NoGroups)
}

/// A machine with two CPUs and these programs, valid as long as the folder.
fn environment(programs: &[&str]) -> (tempfile::TempDir, PlanEnvironment) {
    let dir = tempfile::tempdir().unwrap();
    for name in programs {
        let path = dir.path().join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = vec![dir.path().to_owned()];
    let environment = PlanEnvironment {
        path,
        cpus: 2,
        throttle: no_throttle,
        is_one_fs: |_, _| false,
        is_free: |_| true,
        is_memory: |_| false,
    };
    (dir, environment)
}

fn options() -> PlanOptions {
    PlanOptions {
        work: "/area".into(),
        cache: "/cache".into(),
        own: "/bin/hakobu".into(),
        secret_key: "S".into(),
        ..PlanOptions::default()
    }
}

/// Those that are known, and those that a campaign names itself.
fn all_programs() -> Vec<&'static str> {
    let named = ["ssh", "ssh-keygen", "scp", "python3", "tar"];
    PROGRAMS.iter().map(|program| program.name).chain(named).collect()
}

fn planned(text: &str, programs: &[&str]) -> Result<CampaignPlan, String> {
    let (_dir, environment) = environment(programs);
    Ok(make(&CampaignSpec::parse("t.toml", text)?, &options(), &environment)?)
}

/// Plans a campaign with these lines after its head.
fn small(lines: &str, programs: &[&str]) -> Result<CampaignPlan, String> {
    planned(&format!("name = \"t\"\ntitle = \"T\"\nquestion = \"?\"\n{lines}"), programs)
}

fn campaigns() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../campaigns");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (stem, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 5, "{found:?}");
    found
}

fn commands(plan: &CampaignPlan) -> Vec<&str> {
    plan.cells.iter().map(|planned| planned.cell.command.as_str()).collect()
}

// Plans of small campaigns, and options of the user.

#[test]
fn a_place_can_be_another_and_only_what_is_ours_is_emptied() {
    let (_, text) = campaigns().remove(0);
    let (_dir, environment) = environment(&["cp"]);
    let spec = CampaignSpec::parse("a", &text).unwrap();
    let with = |name: &str, place: &str| {
        let places = BTreeMap::from([(name.to_owned(), place.to_owned())]);
        make(&spec, &PlanOptions { places, ..options() }, &environment)
    };
    let plan = with("target", "/mnt/a b").unwrap();
    let own = PathBuf::from("/mnt/a b/hakobu-a-rsync-parallel");
    let target = own.join("content");
    let empty = RunAction::Empty { own: own.clone(), below: "content".into() };
    assert!(plan.cells.iter().all(|each| each.prepare[0] == empty));
    assert_eq!(plan.own, [own]);
    let cp = plan.cells.iter().find(|each| each.cell.series == "cp").unwrap();
    assert!(cp.cell.command.ends_with(" '/mnt/a b/hakobu-a-rsync-parallel/content/'"));
    assert_eq!(plan.places["target"], target);
    let why = with("taget", "/mnt").unwrap_err().to_string();
    assert!(why.contains("no place 'taget'; did you mean 'target'?"), "{why}");
}

#[test]
fn a_bucket_is_emptied_and_looked_at_by_the_program_itself() {
    let text = "[data.d]\ncount = 3\nsize = 5\n[place.s]\nserve = \"folder\"\n[[tool]]\nuse = \"aws-s3\"\n";
    let text = format!("name = \"t\"\ntitle = \"T\"\nquestion = \"?\"\n{text}");
    let (_dir, environment) = environment(&["aws"]);
    let places = BTreeMap::from([("s".to_owned(), "s3://things/p".to_owned())]);
    let spec = CampaignSpec::parse("t", &text).unwrap();
    let plan = make(&spec, &PlanOptions { places, ..options() }, &environment).unwrap();
    assert!(plan.servers.is_empty());
    let cell = &plan.cells[0];
    let empty = "/bin/hakobu rm -r -f --endpoint-url=https://s3.us-east-1.amazonaws.com \
                 --region=us-east-1 s3://things/p/hakobu-t/";
    assert_eq!(cell.prepare[0], RunAction::Shell(empty.into()));
    // Only the campaign's own data are removed: the setup refuses objects of others.
    let guard = plan.setup.iter().find(|line| line.contains("s3://things/p/hakobu-t.made"));
    assert!(
        guard.is_some_and(|line| line.contains("was not created by hakobu")),
        "{:?}",
        plan.setup
    );
    assert!(cell.conclude[0].starts_with("/bin/hakobu verify -q "), "{:?}", cell.conclude);
    assert!(cell.conclude[0].ends_with(" s3://things/p/hakobu-t/"), "{:?}", cell.conclude);
    assert!(!cell.launch.env.contains_key("AWS_SECRET_ACCESS_KEY"), "the keys are the user's");
}

#[test]
fn conditions_make_groups_and_servers() {
    let text = "[data.d]\nsize = 5\n[place.s]\nserve = \"null\"\nlatency = \"5ms\"\n\
                [[tool]]\nuse = \"hakobu\"\n[[condition]]\ncpus = 2\n\
                [[condition]]\nlatency = \"20ms\"\n[[condition]]\niops = 5\n";
    let plan = small(text, &[]).unwrap();
    let groups: Vec<&str> = plan.cells.iter().map(|each| each.cell.group.as_str()).collect();
    let (first, second) = ("2 CPUs, 5 ms latency", "20 ms latency");
    assert_eq!(groups, [first, first, second, second]);
    assert_eq!(plan.servers.len(), 2);
    assert_ne!(plan.servers[0].listen, plan.servers[1].listen);
    assert_eq!(plan.servers[1].latency, Duration::from_millis(20));
    assert!(plan.cells.iter().all(|each| each.check == RunCheck::Exit));
    let said = plan.header.left_out.join("\n");
    assert!(said.contains("5 IOPS, 5 ms latency: nothing here can limit that place"), "{said}");
    assert!(said.contains("s: nothing is kept there, so nothing is checked"), "{said}");
}

#[test]
fn own_commands_are_filled_and_checked() {
    let text = "x = \"jobs\"\n[data.d]\ncount = 2\nsize = 5\n[place.p]\npath = \"p\"\n\
                [sweep]\njobs = [1, 2]\nmode = [\"a b\", \"c\"]\n\
                [[tool]]\nname = \"mine\"\ncommand = \"mine {mode} -j{jobs} {src} | cat > {dst}/x\"\n\
                needs = [\"cat\"]\narrives = \"{dst}/{data}\"\n\
                [[tool]]\nname = \"plain\"\ncommand = \"plain {name} {cpus}\"\nset = { jobs = 7 }\n\
                [check]\nwhat = \"count\"\n[run]\nprepare = \"echo {mode_max}{jobs_max}\"\n";
    let refused = small(text, &["mine", "cat", "plain"]).unwrap_err();
    assert!(refused.contains("{mode_max}"), "no number, no largest one: {refused}");
    let text = text.replace("{mode_max}", "{name} ");
    let plan = small(&text, &["mine", "cat", "plain"]).unwrap();
    let folder = plan.data[0].1.to_str().unwrap();
    assert_eq!(commands(&plan)[1], format!("mine c -j1 {folder} | cat > /area/places/p/content/x"));
    assert_eq!(plan.cells[0].launch.argv[..2], ["sh", "-c"]);
    assert!(plan.cells[0].launch.argv[2].starts_with("mine 'a b' -j1 "));
    assert_eq!(plan.cells[0].cell.series, "mine, mode a b");
    assert_eq!(plan.cells[0].prepare[1], RunAction::Shell("echo mine 2".into()));
    let target = PathBuf::from("/area/places/p/content/d");
    let count = RunCheck::Count { target, files: 2, bytes: Some(10) };
    assert_eq!(plan.cells[0].check, count);
    assert_eq!(commands(&plan)[4], "plain plain 2");
    assert_eq!((plan.cells[4].cell.x, plan.cells[4].cell.series.as_str()), (Some(7.0), "plain"));
    let without = small(&text, &["mine", "plain"]).unwrap();
    assert_eq!(without.header.left_out, ["mine: cat is not installed"]);
    let none = small(&text, &[]).unwrap_err();
    assert!(none.starts_with("there is nothing to run: mine: mine and cat is not"), "{none}");
}

#[test]
fn a_command_that_names_what_is_not_there_is_refused() {
    let text =
        "[place.p]\npath = \"p\"\n[[tool]]\nname = \"t\"\ncommand = \"t {dst} {endpoint}\"\n";
    let why = small(text, &["t"]).unwrap_err();
    assert_eq!(why, "tool 't': there is nothing for {endpoint}");
}

#[test]
fn data_in_memory_cannot_be_cold() {
    let (_, text) = campaigns().remove(4);
    let spec = CampaignSpec::parse("e", &text).unwrap();
    let (_dir, mut environment) = environment(&["cp"]);
    let cold = |plan: &CampaignPlan| {
        let is_cold = |action: &RunAction| matches!(action, RunAction::Cold(_));
        plan.cells.iter().filter(|each| each.prepare.iter().any(is_cold)).count()
    };
    let plan = make(&spec, &options(), &environment).unwrap();
    assert_eq!(cold(&plan), plan.cells.len());
    environment.is_memory = |_| true;
    let plan = make(&spec, &options(), &environment).unwrap();
    assert_eq!(cold(&plan), 0);
    assert!(plan.header.left_out.iter().any(|line| line.contains("its files cannot be cold")));
}

#[test]
fn scales_are_checked() {
    let (_, text) = campaigns().remove(0);
    let spec = CampaignSpec::parse("a", &text).unwrap();
    let (_dir, environment) = environment(&[]);
    let files = |scale| {
        let plan = make(&spec, &PlanOptions { scale, ..options() }, &environment)?;
        Ok::<u64, PlanError>(plan.header.data[0].files)
    };
    assert_eq!(files(Some(1.0)).unwrap(), 2000);
    assert_eq!(files(Some(0.001)).unwrap(), 64);
    assert_eq!(files(None).unwrap(), 200);
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(files(Some(wrong)), Err(PlanError::Scale(_))), "{wrong}");
    }
    // Too many files are refused before they are counted one by one.
    let why = files(Some(1_000_000.0)).unwrap_err().to_string();
    assert!(why.contains("more than 100000000 files at the scale 1000000"), "{why}");
}

#[test]
fn the_control_can_be_chosen() {
    let text = "[data.d]\nsize = 5\n[place.p]\npath = \"p\"\n\
                [[tool]]\nuse = \"hakobu\"\n[[tool]]\nuse = \"cp\"\n\
                [[tool]]\nname = \"cp, again\"\nuse = \"cp\"\n";
    let control = |head: &str| {
        let plan = small(&format!("{head}{text}"), &["cp"]).unwrap();
        plan.cells.iter().find_map(|each| each.cell.control_of).unwrap()
    };
    assert_eq!(control(""), 0);
    assert_eq!(control("control = \"cp\"\n"), 1);
    assert_eq!(control("control = \"cp, again\"\n"), 2);
}

#[test]
fn another_endpoint_is_for_stores_that_commands_name() {
    let text = "[data.d]\nsize = 5\n[place.s]\nurl = \"s3://things/p\"\n\
                endpoint = \"https://a.example\"\n[prove]\nendpoint = \"https://b.example\"\n\
                [[tool]]\nuse = \"hakobu\"\n";
    let plan = small(text, &[]).unwrap();
    assert_eq!(plan.other_endpoint.as_deref(), Some("https://b.example"));
    assert_eq!(plan.cells[0].endpoint.as_deref(), Some("https://a.example"));
    assert!(
        plan.cells[0].names_endpoint() && plan.header.left_out.is_empty(),
        "{:?}",
        plan.header.left_out
    );
    // Embedded servers have random keys.
    let served = text
        .replace("url = \"s3://things/p\"\nendpoint = \"https://a.example\"", "serve = \"null\"");
    let plan = small(&served, &[]).unwrap();
    assert_eq!(plan.cells[0].endpoint, None);
    assert!(plan.header.left_out.iter().any(|line| line.starts_with("another endpoint: ")));
    for (wrong, said) in [
        (text.replace("https://b", "b"), "endpoint: must begin with http:// or https://"),
        (text.replace("[prove]", "[prove]\nother = 1"), "prove.other"),
        (
            text.replace(
                "url = \"s3://things/p\"\nendpoint = \"https://a.example\"",
                "path = \"p\"",
            ),
            "is for places in S3",
        ),
    ] {
        let why = small(&wrong, &[]).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
}

// The campaigns of the repository can be planned, with and without the programs, as their studies describe.

#[test]
fn every_campaign_plans_with_all_programs() {
    for (name, text) in campaigns() {
        let plan = planned(&text, &all_programs()).unwrap();
        assert_eq!(plan.header.name, name);
        assert_eq!(plan.header.text, text);
        let study = CampaignSpec::parse("", &text).unwrap().study;
        assert_eq!(plan.header.published.is_empty(), study.is_none(), "{name}");
        let missing = plan.header.left_out.iter().filter(|line| line.contains("not installed"));
        assert_eq!(missing.count(), 0, "{name}: {:?}", plan.header.left_out);
        for (number, planned) in plan.cells.iter().enumerate() {
            assert_eq!(planned.cell.id as usize, number, "{name}");
            assert!(planned.launch.timeout.is_some() && !planned.launch.argv.is_empty());
        }
        let groups = |controls: bool| {
            let cells = plan.cells.iter().map(|planned| &planned.cell);
            let cells = cells.filter(|cell| cell.control_of.is_some() == controls);
            let mut groups: Vec<&str> = cells.map(|cell| cell.group.as_str()).collect();
            groups.sort_unstable();
            groups.dedup();
            groups
        };
        assert_eq!(groups(true), groups(false), "{name}: a control in every group");
        let page = format!("{}/../../docs/campaigns/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains(&format!("hakobu bench campaigns/{name}.toml")), "{name}");
        assert!(page.contains(&study.unwrap_or_default()), "{name}");
    }
}

#[test]
fn every_figure_of_a_study_stands_on_its_page() {
    for (name, text) in campaigns() {
        let page = format!("{}/../../docs/campaigns/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&page).unwrap().replace(',', "");
        for figure in CampaignSpec::parse("", &text).unwrap().header.published {
            let value = figure.value.to_string();
            assert!(page.contains(&value), "{name}: {figure:?}");
        }
    }
}

#[test]
fn missing_programs_are_left_out_with_what_installs_them() {
    for (name, text) in campaigns() {
        let known = text.contains("use = \"hakobu\"");
        let plan = match planned(&text, &[]) {
            Ok(plan) => plan,
            Err(why) => {
                assert!(!known && why.contains("apt-get install"), "{name}: {why}");
                continue;
            }
        };
        assert!(plan.cells.iter().all(|planned| planned.cell.own), "{name}");
        let said = plan.header.left_out.join("\n");
        assert!(said.contains("is not installed; install it with: "), "{name}: {said}");
    }
    let (_, text) = campaigns().remove(0);
    let plan = planned(&text, &["cp", "rsync"]).unwrap();
    let said = plan.header.left_out.join("\n");
    for line in [
        "parallel + rsync: parallel is not installed; install it with: apt-get install parallel",
        "fpsync: fpsync is not installed; install it with: apt-get install fpart",
        "xcp: xcp is not installed; install it with: cargo install xcp",
        "4 CPUs: needs 4 CPUs, and 2 are usable",
        "3000 IOPS, 125 MB/s: there are no control groups",
    ] {
        assert!(said.contains(line), "{line} is not in:\n{said}");
    }
    let programs: Vec<&str> = plan.programs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(programs, ["hakobu", "rsync", "cp"]);
    assert_eq!(plan.programs[0].1, Path::new("/bin/hakobu"));
}

#[test]
fn the_first_study_is_planned_as_it_was() {
    let (_, text) = campaigns().remove(0);
    let plan = planned(&text, &all_programs()).unwrap();
    assert_eq!(plan.header.x_name.as_deref(), Some("jobs"));
    assert_eq!((plan.header.data[0].files, plan.header.data[0].name.as_str()), (200, "files"));
    assert_eq!(plan.header.data[0].bytes, 9 * 12 + 90 * 13 + 101 * 14);
    let folder = plan.data[0].1.to_str().unwrap().to_owned();
    assert!(folder.starts_with("/cache/files-"), "{folder}");
    let cells: Vec<&PlannedCell> =
        plan.cells.iter().filter(|each| each.cell.group == "1 CPU").collect();
    let shown: Vec<(String, Option<f64>)> =
        cells.iter().map(|each| (each.cell.series.clone(), each.cell.x)).collect();
    let series = |name: &str, x| (name.to_owned(), x);
    let mut wanted = vec![series("hakobu", None)];
    wanted.extend([1.0, 4.0, 8.0, 16.0, 32.0].map(|x| series("parallel + rsync", Some(x))));
    wanted.extend(["rsync", "cp", "fpsync", "xcp", "cpz", "hakobu"].map(|name| series(name, None)));
    assert_eq!(shown, wanted);
    let eight = cells[3];
    assert_eq!(
        eight.cell.command,
        format!(
            "parallel --joblog /dev/stdout -j 8 rsync -avR {{}} /area/places/target/content/ < {folder}.list"
        )
    );
    let argv = [
        "parallel",
        "--joblog",
        "/dev/stdout",
        "-j",
        "8",
        "rsync",
        "-avR",
        "{}",
        "/area/places/target/content/",
    ];
    assert_eq!(eight.launch.argv, argv);
    assert_eq!(eight.launch.stdin, Some(PathBuf::from(format!("{folder}.list"))));
    assert_eq!(eight.launch.cpus, Some(1));
    assert_eq!(eight.cell.conditions["cpus"], "1");
    let arrived = PathBuf::from(format!("/area/places/target/content{folder}"));
    let source = PathBuf::from(&folder);
    let tree = RunCheck::Tree { source: source.clone(), target: arrived, compare: u64::MAX };
    assert_eq!(eight.check, tree);
    let own = PathBuf::from("/area/places/target");
    let target = RunAction::Empty { own, below: "content".into() };
    let before = [target, RunAction::Sync, RunAction::Warm(source)];
    assert_eq!(eight.prepare, before);
    let own = cells[0];
    assert!(own.cell.own && own.extract == OutputFormat::Own);
    assert_eq!(
        own.cell.command,
        format!(
            "/bin/hakobu sync -a --json --no-memory -j auto {folder}/ /area/places/target/content/"
        )
    );
    let control = cells[cells.len() - 1];
    assert_eq!(control.cell.control_of, Some(own.cell.id));
    assert_eq!((&control.launch, &control.cell.command), (&own.launch, &own.cell.command));
    // The default number of jobs is the number of CPUs.
    assert!(cells[8].cell.command.starts_with("fpsync -n 1 "), "{}", cells[8].cell.command);
}

#[test]
fn uploads_reach_the_server_of_the_plan() {
    let (_, text) = campaigns().remove(1);
    let plan = planned(&text, &all_programs()).unwrap();
    let [server] = &plan.servers[..] else { panic!("{:?}", plan.servers) };
    assert_eq!((server.latency, &server.secret_key), (Duration::from_millis(60), &"S".to_owned()));
    let port: u16 = server.listen.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    assert!((20_000..30_000).contains(&port));
    let kept = server.folder.clone().unwrap();
    assert!(kept.starts_with("/area/served"), "{kept:?}");
    let again = planned(&text, &all_programs()).unwrap();
    let is_same = again.cells == plan.cells && again.servers == plan.servers;
    assert!(is_same, "a campaign that goes on has the same plan");
    let aws: Vec<&PlannedCell> =
        plan.cells.iter().filter(|each| each.cell.series.starts_with("aws s3 cp,")).collect();
    assert_eq!(aws.len(), 14);
    let cell = &aws[1];
    assert_eq!(cell.cell.x, Some(10.0));
    assert_eq!(cell.cell.series, "aws s3 cp, queue size 10000");
    assert_eq!(cell.cell.group, "60 ms latency");
    let config = "/area/settings/aws-10-10000.ini";
    let folder = plan.data[0].1.to_str().unwrap();
    let wanted = format!(
        "AWS_CONFIG_FILE={config} aws s3 cp {folder} s3://campaign/run/ --recursive --quiet \
         --endpoint-url http://127.0.0.1:{port}"
    );
    assert_eq!(cell.cell.command, wanted);
    assert_eq!(cell.launch.env["AWS_CONFIG_FILE"], config);
    assert_eq!(cell.launch.env["AWS_SECRET_ACCESS_KEY"], "S");
    assert!(plan.setup.iter().any(|command| command.contains(config)), "{:?}", plan.setup);
    let seen = kept.join("campaign/run");
    let own = kept.parent().unwrap().to_owned();
    let below = PathBuf::from("content/campaign/run");
    assert_eq!(cell.prepare[0], RunAction::Empty { own, below });
    assert!(matches!(&cell.check, RunCheck::Tree { target, compare: 20, .. } if *target == seen));
    let published = plan.cells.iter().filter(|each| each.cell.command.contains("aws-published-"));
    assert_eq!(published.count(), 14);
    // The figures of the study refer to series of the plan.
    for figure in &plan.header.published {
        let is_same = |each: &PlannedCell| each.cell.series == figure.series;
        assert!(plan.cells.iter().any(is_same), "{figure:?}");
    }
    let own = plan.cells.iter().find(|each| each.cell.own).unwrap();
    assert!(own.cell.command.contains(&format!("--endpoint-url http://127.0.0.1:{port} ")));
}

#[test]
fn fio_keeps_patterns_apart() {
    let (_, text) = campaigns().remove(2);
    let plan = planned(&text, &["fio"]).unwrap();
    for figure in &plan.header.published {
        let cells = plan.cells.iter().map(|planned| &planned.cell);
        let mut same = cells.filter(|cell| cell.series == figure.series && cell.x == figure.x);
        assert!(same.next().is_some(), "{figure:?}");
    }
    assert_eq!((plan.header.metric.as_str(), plan.header.more_is_better), ("iops", true));
    // Two tools and a control.
    assert_eq!(plan.cells.len(), 4 * (8 + 8 + 1));
    let setup = plan.setup.join("\n");
    let bytes = 16_777_216;
    assert!(setup.contains("mkdir -p /area/places/disk/content"), "{setup}");
    assert!(setup.contains(&format!("--numjobs=128 --size={bytes} ")), "{setup}");
    let cell = plan.cells.iter().find(|each| each.cell.x == Some(32.0)).unwrap();
    assert_eq!((cell.cell.group.as_str(), cell.cell.series.as_str()), ("rw read", "fio"));
    assert_eq!(
        cell.cell.command,
        format!(
            "fio --name=io --directory=/area/places/disk/content --rw=read --numjobs=32 --bs=4k \
             --ioengine=sync --iodepth=16 --direct=1 --size={bytes} --group_reporting \
             --output-format=json --runtime=2"
        )
    );
    assert_eq!((&cell.check, &cell.extract), (&RunCheck::Exit, &OutputFormat::Fio));
    assert_eq!(cell.prepare, [RunAction::Sync], "nothing is emptied");
    let control = plan.cells.iter().find(|each| each.cell.control_of.is_some()).unwrap();
    assert_eq!(control.cell.x, Some(16.0), "the middle of the sweep");
    let own = plan.cells.iter().find(|each| each.cell.own && each.cell.x == Some(32.0)).unwrap();
    assert_eq!((own.cell.group.as_str(), own.cell.series.as_str()), ("rw read", "hakobu io"));
    assert!(own.cell.command.starts_with("/bin/hakobu io --name=io "), "{}", own.cell.command);
    let same = [" --rw=read --numjobs=32 --bs=4k --ioengine=sync --iodepth=16 ", " --runtime=2"];
    assert!(same.iter().all(|words| own.cell.command.contains(words)), "{}", own.cell.command);
    assert_eq!(own.extract, OutputFormat::Fio);
}

#[test]
fn a_move_gets_a_copy_of_its_own_and_needs_two_file_systems() {
    let (name, text) = campaigns().remove(4);
    let plan = planned(&text, &all_programs()).unwrap();
    let of = |series: &str| {
        let mut cells = plan.cells.iter().filter(|each| each.cell.control_of.is_none());
        cells.find(|each| each.cell.series == series).unwrap_or_else(|| panic!("{name}: {series}"))
    };
    let source = plan.data[0].1.to_str().unwrap();
    let given = format!("{source}.moving");
    let target = "/area/places/target/content/moved";
    let (mv, own) = (of("mv"), of("hakobu mv"));
    assert_eq!(mv.cell.command, format!("mv {given} {target}"));
    let wanted = format!("/bin/hakobu mv --json --no-memory -j auto {given} {target}");
    assert_eq!(own.cell.command, wanted);
    for each in [mv, own] {
        let copied = RunAction::Shell(format!("rm -rf {given} && cp -a {source} {given}"));
        let before = [copied, RunAction::Sync, RunAction::Cold(given.clone().into())];
        assert_eq!(each.prepare[1..], before);
        assert_eq!(each.source.as_deref(), Some(Path::new(&given)));
        assert_eq!(each.conclude, [format!("test ! -e {given} || {{ rm -rf {given}; false; }}")]);
        let RunCheck::Tree { source: compared, target: arrived, .. } = &each.check else {
            panic!("{:?}", each.check)
        };
        assert_eq!((compared.to_str(), arrived.to_str()), (Some(source), Some(target)));
    }
    assert_eq!(of("cp").source.as_deref(), Some(Path::new(source)));
    let (_dir, mut environment) = environment(&all_programs());
    environment.is_one_fs = |_, _| true;
    let plan =
        make(&CampaignSpec::parse("t.toml", &text).unwrap(), &options(), &environment).unwrap();
    let said = plan.header.left_out.join("\n");
    assert!(said.contains("mv: source and target are on one file system"), "{said}");
    assert!(plan.cells.iter().all(|each| !each.cell.series.ends_with("mv")), "{said}");
}

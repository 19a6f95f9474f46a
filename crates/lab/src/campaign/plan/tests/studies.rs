//! The campaigns of the repository can be planned, with and without the programs, as their studies describe.

use super::*;
use crate::campaign::tools::OutputFormat;
use crate::campaign::{PlannedCell, RunAction, RunCheck};
use std::time::Duration;

#[test]
fn every_campaign_plans_with_all_programs() {
    for (name, text) in campaigns() {
        let plan = planned(&text, &all_programs()).unwrap();
        assert_eq!(plan.header.name, name);
        assert_eq!(plan.header.text, text);
        assert!(!plan.header.published.is_empty(), "{name}");
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
        let study = CampaignSpec::parse("", &text).unwrap().study.unwrap();
        assert!(page.contains(&study), "{name}: {study}");
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
        "3000 IOPS, 125 MB/s: control groups are not for us",
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
    let (_dir, mut ground) = ground(&all_programs());
    ground.is_one_fs = |_, _| true;
    let plan = make(&CampaignSpec::parse("t.toml", &text).unwrap(), &wishes(), &ground).unwrap();
    let said = plan.header.left_out.join("\n");
    assert!(said.contains("mv: source and target are on one file system"), "{said}");
    assert!(plan.cells.iter().all(|each| !each.cell.series.ends_with("mv")), "{said}");
}

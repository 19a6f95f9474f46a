//! Plans of small campaigns, and options of the user.

use super::*;
use crate::campaign::{RunAction, RunCheck};
use std::time::Duration;

#[test]
fn a_place_can_be_another_and_only_what_is_ours_is_emptied() {
    let (_, text) = campaigns().remove(0);
    let (_dir, ground) = ground(&["cp"]);
    let spec = CampaignSpec::parse("a", &text).unwrap();
    let with = |name: &str, place: &str| {
        let places = BTreeMap::from([(name.to_owned(), place.to_owned())]);
        make(&spec, &PlanOptions { places, ..wishes() }, &ground)
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
    let why = with("taget", "/mnt").unwrap_err();
    assert!(why.contains("no place 'taget'; did you mean 'target'?"), "{why}");
}

#[test]
fn a_bucket_is_emptied_and_looked_at_by_the_program_itself() {
    let text = "[data.d]\ncount = 3\nsize = 5\n[place.s]\nserve = \"folder\"\n[[tool]]\nuse = \"aws-s3\"\n";
    let text = format!("name = \"t\"\ntitle = \"T\"\nquestion = \"?\"\n{text}");
    let (_dir, ground) = ground(&["aws"]);
    let places = BTreeMap::from([("s".to_owned(), "s3://things/p".to_owned())]);
    let spec = CampaignSpec::parse("t", &text).unwrap();
    let plan = make(&spec, &PlanOptions { places, ..wishes() }, &ground).unwrap();
    assert!(plan.servers.is_empty());
    let cell = &plan.cells[0];
    let empty = "/bin/hakobu rm -r -f --endpoint-url=https://s3.us-east-1.amazonaws.com \
                 --region=us-east-1 s3://things/p/hakobu-t/";
    assert_eq!(cell.prepare[0], RunAction::Shell(empty.into()));
    // Only the campaign's own data are removed: the setup refuses objects of others.
    let guard = plan.setup.iter().find(|line| line.contains("s3://things/p/hakobu-t.made"));
    assert!(guard.is_some_and(|line| line.contains("was not made by hakobu")), "{:?}", plan.setup);
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
    let (_dir, mut ground) = ground(&["cp"]);
    let cold = |plan: &CampaignPlan| {
        let is_cold = |action: &RunAction| matches!(action, RunAction::Cold(_));
        plan.cells.iter().filter(|each| each.prepare.iter().any(is_cold)).count()
    };
    let plan = make(&spec, &wishes(), &ground).unwrap();
    assert_eq!(cold(&plan), plan.cells.len());
    ground.is_memory = |_| true;
    let plan = make(&spec, &wishes(), &ground).unwrap();
    assert_eq!(cold(&plan), 0);
    assert!(plan.header.left_out.iter().any(|line| line.contains("its files cannot be cold")));
}

#[test]
fn scales_are_checked() {
    let (_, text) = campaigns().remove(0);
    let spec = CampaignSpec::parse("a", &text).unwrap();
    let (_dir, ground) = ground(&[]);
    let files = |scale| {
        let plan = make(&spec, &PlanOptions { scale, ..wishes() }, &ground)?;
        Ok::<u64, String>(plan.header.data[0].files)
    };
    assert_eq!(files(Some(1.0)), Ok(2000));
    assert_eq!(files(Some(0.001)), Ok(64));
    assert_eq!(files(None), Ok(200));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(files(Some(wrong)).is_err(), "{wrong}");
    }
    // Too many files are refused before they are counted one by one.
    let why = files(Some(1_000_000.0)).unwrap_err();
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

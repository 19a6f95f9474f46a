//! Runs with S3: at an end, and as the run folder, also where the server fails.

use super::Stage;
use crate::common::diff::Fields;
use crate::common::running::Running;
use crate::common::soon;
use crate::objects::server::{Server, embedded};
use crate::objects::stage::{Tree, tree as files};
use crate::server::client::Served;
use crate::server::sign::sha256;

fn small_tree(stage: &Stage, count: u64) {
    for number in 0..count {
        let path = stage.src().join(format!("d{}/f{number}", number % 7));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("content {number}").repeat(1 + number as usize * 7)).unwrap();
        crate::common::grow::set_mtime(&path, 1_700_000_000 + number as i64, 0);
    }
}

pub fn below(stage: &Stage, prefix: &str) -> Tree {
    let all = embedded().objects(&stage.bucket).into_iter();
    let named =
        all.filter_map(|(key, body)| Some((key.strip_prefix(prefix.as_bytes())?.to_vec(), body)));
    named.collect()
}

#[test]
fn up_and_down_and_with_deletion() {
    let stage = Stage::with_bucket("updown");
    small_tree(&stage, 60);
    embedded().put(&stage.bucket, b"p/extraneous", b"x");
    embedded().put(&stage.bucket, b"p/d1/f1", b"an old one");
    stage.ok("cluster plan -r --delete --shard-size=4M --run RUN SRC/ BKT/p/");
    assert!(stage.plan()["shards"].as_array().unwrap().len() > 4);
    stage.workers(3);
    assert!(below(&stage, "p/").contains_key(&b"extraneous"[..]), "a worker removed something");
    let run = stage.ok("cluster collect --json RUN");
    assert_eq!(below(&stage, "p/"), files(&stage.src()));
    let summary = run.out();
    let summary = summary.lines().find(|line| line.contains("\"summary\"")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!((&summary["files"], &summary["deleted"]), (&0.into(), &1.into()), "{summary}");
    std::fs::remove_dir_all(stage.run()).unwrap();
    stage.ok("cluster plan -r --shard-size=4M --run RUN BKT/p/ DST");
    stage.workers(3);
    stage.ok("cluster collect RUN");
    assert_eq!(files(&stage.dst()), files(&stage.src()));
}

#[test]
fn objects_that_change_after_the_plan_are_left_to_collect() {
    let stage = Stage::with_bucket("changed");
    small_tree(&stage, 10);
    stage.ok("sync -r SRC/ BKT/p/");
    stage.ok("cluster plan -r --run RUN BKT/p/ DST");
    embedded().put(&stage.bucket, b"p/d1/f1", b"this object is another one by now");
    stage.ok("cluster work RUN");
    assert!(!stage.dst().join("d1/f1").exists());
    let problems = format!("{:?}", stage.results());
    assert!(problems.contains("it has changed since the plan was made"), "{problems}");
    stage.ok("cluster collect RUN");
    assert_eq!(files(&stage.dst()), below(&stage, "p/"));
}

/// A worker that was slow, or stood still, while others did its work and more.
#[test]
fn a_worker_replaces_only_the_object_that_it_saw() {
    for old in [false, true] {
        let slow = "--fault slow:rate=3000,in=request,op=PUT,key=p/f,times=9";
        let server = Served::start(&format!("s3 DIR {slow}"));
        let bucket = server.root().join("bbb");
        std::fs::create_dir_all(bucket.join("p")).unwrap();
        let stage = Stage { bucket: "bbb".into(), ..Stage::new() };
        std::fs::write(stage.src().join("f"), vec![7; 9_000]).unwrap();
        if old {
            let put = server.signed_for("PUT", "/bbb/p/f", &sha256(b"an old one"), b"an old one");
            assert_eq!(put.status, 200, "{}", put.text());
        }
        let url = server.url();
        worker(&stage, "cluster plan -r --run RUN SRC/ BKT/p/", &url).wait().ok();
        let slow = worker(&stage, "cluster work RUN", &url);
        assert!(soon(|| stage.run().join("claims/000000.0").exists()));
        std::thread::sleep(std::time::Duration::from_millis(1000));
        let newer = b"newer, by somebody else";
        let put = server.signed_for("PUT", "/bbb/p/f", &sha256(newer), newer);
        assert_eq!(put.status, 200, "{}", put.text());
        slow.wait().ok();
        assert_eq!(std::fs::read(bucket.join("p/f")).unwrap(), newer, "old one there: {old}");
    }
}

/// The same where objects are relayed from another server, and where the server copies them.
#[test]
fn a_worker_copies_only_over_the_object_that_it_saw() {
    for (relayed, old) in [(true, false), (true, true), (false, false), (false, true)] {
        let slow = "--fault slow:rate=3000,in=request,op=PUT,key=p/f,times=9";
        let server = Served::start(&format!("s3 DIR {}", if relayed { slow } else { "" }));
        let bucket = server.root().join("bbb");
        std::fs::create_dir_all(bucket.join("s")).unwrap();
        let stage = Stage { bucket: "bbb".into(), ..Stage::new() };
        let put = |key: &str, body: &[u8]| {
            let put = server.signed_for("PUT", &format!("/bbb/{key}"), &sha256(body), body);
            assert_eq!(put.status, 200, "{}", put.text());
        };
        let mut from = "BKT/s/".to_owned();
        let mut options = "-r --rps-limit=1".to_owned();
        match relayed {
            true => {
                let other = Stage::with_bucket(&format!("relayed-{old}"));
                embedded().put(&other.bucket, b"s/f", &[7; 9_000]);
                from = format!("s3://{}/s/", other.bucket);
                options = format!("-r --source-endpoint-url={}", Server::url(embedded()));
            }
            false => put("s/f", &[7; 9_000]),
        }
        if old {
            put("p/f", b"an old one");
        }
        let url = server.url();
        let plan = format!("cluster plan {options} --run RUN {from} BKT/p/");
        worker(&stage, &plan, &url).wait().ok();
        let looked = |count: usize| {
            let log = std::fs::read_to_string(server.area.join("log")).unwrap_or_default();
            log.lines().filter(|line| line.contains("HEAD") && line.contains("/bbb/p/f")).count()
                > count
        };
        let before = std::fs::read_to_string(server.area.join("log")).unwrap_or_default();
        let before =
            before.lines().filter(|l| l.contains("HEAD") && l.contains("/bbb/p/f")).count();
        let copying = worker(&stage, "cluster work RUN", &url);
        assert!(soon(|| looked(before)), "the worker has not looked at the target");
        if relayed {
            // Its request is under way.
            std::thread::sleep(std::time::Duration::from_millis(1000));
        }
        let newer = b"newer, by somebody else";
        put("p/f", newer);
        copying.wait().ok();
        let what = format!("relayed: {relayed}, old one there: {old}");
        assert_eq!(std::fs::read(bucket.join("p/f")).unwrap(), newer, "{what}");
        assert!(stage.results().iter().all(|done| done["failed"] == 0), "{what}");
    }
}

/// Starts a worker against a server.
pub fn worker(stage: &Stage, line: &str, server: &str) -> Running {
    Running::start(line, stage.command(line, Some(server)))
}

#[test]
fn a_run_folder_in_s3() {
    let stage = Stage::with_bucket("folder");
    super::tree(&stage.src(), 1);
    stage.ok("cluster plan -aH --delete --shard-size=1M --run BKT/runs/one SRC/ DST");
    stage.go("cluster plan -aH --run BKT/runs/one SRC/ DST").expect(1).says(&["it holds a plan"]);
    let url = Server::url(embedded());
    let workers: Vec<Running> =
        (0..4).map(|_| worker(&stage, "cluster work BKT/runs/one", &url)).collect();
    for worker in workers {
        worker.wait().ok();
    }
    let done = below(&stage, "runs/one/done/");
    let done: Vec<&str> =
        done.values().flat_map(|segment| str::from_utf8(segment).unwrap().lines()).collect();
    let claims = below(&stage, "runs/one/claims/");
    let plan: serde_json::Value =
        serde_json::from_slice(&below(&stage, "runs/one/")[&b"plan.json"[..]]).unwrap();
    let shards = plan["shards"].as_array().unwrap().len();
    assert_eq!((done.len(), claims.len()), (shards, shards));
    stage.ok("cluster status --json BKT/runs/one");
    stage.ok("cluster collect BKT/runs/one");
    stage.same(&Fields::ALL);
}

#[test]
fn a_run_folder_in_s3_that_answers_badly() {
    // Refused, failed after they were carried out, cut off: each more than once, on claims and results.
    let faults = [
        "--fault error:status=503,code=SlowDown,key=run/claims,times=6",
        "--fault error:status=500,code=InternalError,late=yes,op=PUT,key=run/claims,skip=1,times=4",
        "--fault error:status=500,code=InternalError,late=yes,op=PUT,key=run/done,times=4",
        "--fault reset:after=10,op=PUT,key=run/done,skip=5,times=3",
        "--fault error:status=503,code=SlowDown,key=run/workers,times=4",
        "--fault error:status=503,code=SlowDown,key=run/shards,skip=3,times=6",
    ];
    let server = Served::start(&format!("s3 DIR {}", faults.join(" ")));
    let stage = Stage { bucket: "bbb".into(), ..Stage::new() };
    std::fs::create_dir(server.root().join("bbb")).unwrap();
    super::tree(&stage.src(), 2);
    let url = server.url();
    let plan = "cluster plan -aH --shard-size=1M --run BKT/run SRC/ DST";
    worker(&stage, plan, &url).wait().ok();
    let workers: Vec<Running> =
        (0..3).map(|_| worker(&stage, "cluster work BKT/run", &url)).collect();
    for worker in workers {
        worker.wait().ok();
    }
    let status = worker(&stage, "cluster status --json BKT/run", &url).wait();
    let status: serde_json::Value = serde_json::from_str(status.ok().out().trim()).unwrap();
    assert_eq!(status["done"]["shards"], status["shards"]);
    assert_eq!(status["done"]["redone"], 0, "a shard was done twice: {status}");
    worker(&stage, "cluster collect BKT/run", &url).wait().ok();
    stage.same(&Fields::ALL);
}

/// A listing of results that was made before the last one was written.
#[test]
fn a_shard_is_not_redone_whose_worker_ended_meanwhile() {
    let server = Served::start("s3 DIR --fault list:drop=1,key=run/done");
    let stage = Stage { bucket: "bbb".into(), ..Stage::new() };
    std::fs::create_dir(server.root().join("bbb")).unwrap();
    super::tree(&stage.src(), 2);
    let url = server.url();
    let plan = "cluster plan -aH --shard-size=1M --run BKT/run SRC/ DST";
    worker(&stage, plan, &url).wait().ok();
    for _ in 0..2 {
        worker(&stage, "cluster work BKT/run", &url).wait().ok();
    }
    let claims = std::fs::read_dir(server.root().join("bbb/run/claims")).unwrap();
    let claims: Vec<String> =
        claims.map(|claim| claim.unwrap().file_name().into_string().unwrap()).collect();
    assert!(claims.iter().all(|claim| claim.ends_with(".0")), "{claims:?}");
}

#[test]
fn a_run_folder_in_s3_that_is_away_can_be_tried_again() {
    let stage = Stage { bucket: "bbb".into(), ..Stage::new() };
    super::tree(&stage.src(), 3);
    let run = worker(&stage, "cluster work BKT/run", "http://127.0.0.1:9").wait();
    run.expect(75);
}

#[test]
fn ends_in_s3_that_are_away_can_be_tried_again() {
    let stage = Stage::with_bucket("away");
    small_tree(&stage, 5);
    stage.ok("cluster plan -r --run RUN SRC/ BKT/p/");
    let run = worker(&stage, "cluster work RUN", "http://127.0.0.1:9").wait();
    run.expect(75);
    assert_eq!(std::fs::read_dir(stage.run().join("claims")).unwrap().count(), 0, "a claim stays");
    stage.ok("cluster work RUN");
    stage.ok("cluster collect RUN");
    assert_eq!(below(&stage, "p/"), files(&stage.src()));
}

#[test]
fn killed_workers_with_everything_in_s3() {
    let stage = Stage::with_bucket("killed");
    for number in 0..4_u8 {
        let path = stage.src().join(format!("d{}/f{number}", number % 3));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, vec![number; 3_000_000]).unwrap();
    }
    embedded().put(&stage.bucket, b"p/extraneous", b"x");
    stage.ok("cluster plan -r --delete --bwlimit=2M --shard-size=1M --run BKT/run SRC/ BKT/p/");
    let line = "cluster work --stale-after=3s BKT/run";
    let mut workers: Vec<Running> = (0..3).map(|_| stage.start(line)).collect();
    for at in [0, 2, 1] {
        std::thread::sleep(std::time::Duration::from_millis(700));
        workers[at].signal(rustix::process::Signal::KILL);
        workers[at] = stage.start(line);
    }
    for worker in workers {
        worker.wait().ok();
    }
    assert!(below(&stage, "p/").contains_key(&b"extraneous"[..]), "a worker removed something");
    stage.ok("cluster collect --stale-after=3s BKT/run");
    assert_eq!(below(&stage, "p/"), files(&stage.src()));
    stage.ok("cluster work BKT/run");
    stage.ok("cluster collect BKT/run");
    assert_eq!(below(&stage, "p/"), files(&stage.src()));
}

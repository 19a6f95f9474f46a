//! `ioengine=exec`: programs that run for the time of a job.

use super::{area, io, measured, names, number};
use std::time::{Duration, Instant};

#[test]
fn a_program_runs_for_the_time_of_its_job() {
    let area = area();
    std::fs::write(
        area.join("job.fio"),
        "[global]\ntime_based\nruntime=1\n[watch]\nioengine=exec\nprogram=/bin/sh\n\
         arguments=watch.sh %r %n\n[work]\nioengine=null\nsize=1m\n",
    )
    .unwrap();
    std::fs::write(area.join("watch.sh"), "echo $1 $2\necho oh >&2\nexec sleep 100\n").unwrap();
    let began = Instant::now();
    let found = measured(area.path(), "--allow-exec job.fio");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(number(&found, "/jobs/1/read/total_ios") > 0);
    assert_eq!(number(&found, "/jobs/0/read/total_ios"), 0);
    assert_eq!(found["hakobu"]["engines"][0]["ioengine"], "exec");
    let said = |name: &str| std::fs::read_to_string(area.join(name)).unwrap();
    assert_eq!(
        (said("watch.0.stdout"), said("watch.0.stderr")),
        ("1 watch\n".into(), "oh\n".into())
    );
    // Its earlier output is not overwritten.
    let run = io(area.path(), "--allow-exec job.fio");
    run.expect(1).says(&["watch.0.stdout already exists"]);
    assert_eq!(said("watch.0.stdout"), "1 watch\n");
}

#[test]
fn one_that_does_not_end_is_killed_after_its_grace() {
    let area = area();
    std::fs::write(area.join("deaf.sh"), "trap '' TERM\nwhile :; do sleep 0.1; done\n").unwrap();
    let line = "--allow-exec --name=deaf --ioengine=exec --program=/bin/sh --std_redirect=0 --runtime=1 \
                --grace_time=500ms --arguments=deaf.sh";
    let began = Instant::now();
    measured(area.path(), line);
    let took = began.elapsed();
    assert!((Duration::from_millis(1400)..Duration::from_secs(6)).contains(&took), "{took:?}");
    assert!(names(area.path()).iter().all(|name| !name.contains("std")));
}

#[test]
fn programs_that_fail_or_are_not_there_are_named() {
    let area = area();
    let line = "--name=p --ioengine=exec --std_redirect=0";
    for (program, why) in [
        ("/bin/false", "/bin/false has failed: exit status: 1"),
        ("/no/such", "/no/such: No such file"),
        (".", ".: Permission denied"),
    ] {
        let run = io(area.path(), &format!("{line} --allow-exec --program={program}"));
        run.expect(1).says(&["ioengine=exec", why]);
    }
    io(area.path(), &format!("{line} --allow-exec --program=/bin/true")).ok();
    // Nothing is started without leave, and nothing is by --parse-only.
    io(area.path(), &format!("{line} --program=/bin/true"))
        .expect(2)
        .says(&["--allow-exec permits"]);
    io(area.path(), &format!("{line} --program=/no/such --parse-only")).ok();
    io(area.path(), line).expect(2);
    io(area.path(), &format!("{line} --allow-exec")).expect(2).says(&["needs program="]);
}

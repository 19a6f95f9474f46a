//! `verify`, `rm` and `du`, compared with similar programs; `ls` of paths.

mod calls;
mod coreutils;
mod du;
mod filtered;
mod limits;
pub mod place;
mod rm;
pub mod slow;
mod verify;

use self::place::Place;

// `hakobu ls` is for stores: a path is refused with the commands that list it.

#[test]
fn a_path_is_refused_with_advice() {
    let place = Place::new();
    place.sh("mkdir t; touch t/f");
    for line in ["ls t", "ls -l t/f", "ls --json nowhere", "ls s3://b t", "--profile p ls t"] {
        let out = place.run(line);
        out.expect(2)
            .says(&["is a path: hakobu ls lists buckets and objects (s3://BUCKET/PREFIX)"]);
        out.says(&["hint: for paths there is ls(1), or hakobu sync --list-only PATH"]);
        assert_eq!(out.out(), "", "{line}");
    }
    // The advice holds.
    assert!(place.run("sync --list-only t/").ok().out().ends_with(" f\n"));
    place.run("ls --nosuch").expect(2).says(&["unexpected argument '--nosuch'"]);
    place.run("ls -la s3://b").expect(2).says(&["-a is not supported: every key is listed"]);
    assert!(place.run("ls --help").ok().out().contains("hakobu ls [OPTIONS] [s3://BUCKET"));
}

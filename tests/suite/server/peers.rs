//! Other S3 clients, if installed, work with both servers.

use crate::common::{have, must};
use crate::server::client::{ACCESS, SECRET, Served};
use std::process::Command;

fn client(program: &str, server: &Served) -> Command {
    let mut command = Command::new(program);
    command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
    command.current_dir(server.area.path()).arg("--endpoint-url").arg(server.url());
    command
}

/// Runs a command line of a client.
fn run(program: &str, server: &Served, line: &str) -> String {
    let out = must(client(program, server).args(line.split_whitespace()));
    String::from_utf8(out).unwrap()
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 3) as u8).collect()
}

#[test]
fn s5cmd_works_with_both() {
    if !have("s5cmd", "s5cmd against both servers") {
        return;
    }
    let server = Served::start("s3 DIR");
    std::fs::write(server.area.join("large"), content(12_000_000)).unwrap();
    run("s5cmd", &server, "mb s3://bkt");
    run("s5cmd", &server, "cp --part-size 5 large s3://bkt/p/large");
    run("s5cmd", &server, "cp s3://bkt/p/large back");
    assert!(std::fs::read(server.area.join("back")).unwrap() == content(12_000_000));
    assert!(run("s5cmd", &server, "ls s3://bkt/*").contains("12000000"));
    run("s5cmd", &server, "rm s3://bkt/*");
    let null = Served::start("null --keys 2500");
    std::fs::write(null.area.join("large"), content(12_000_000)).unwrap();
    run("s5cmd", &null, "cp --part-size 5 large s3://bkt/p/large");
    run("s5cmd", &null, "cp s3://bkt/x.size-7000000 back");
    assert_eq!(std::fs::read(null.area.join("back")).unwrap().len(), 7_000_000);
    assert_eq!(run("s5cmd", &null, "ls s3://bkt/*").lines().count(), 2500);
    assert_eq!(run("s5cmd", &null, "rm s3://bkt/*").lines().count(), 2500);
}

#[test]
fn aws_works_with_both() {
    if !have("aws", "aws against both servers") {
        return;
    }
    let server = Served::start("s3 DIR");
    std::fs::create_dir(server.root().join("bkt")).unwrap();
    std::fs::write(server.area.join("large"), content(12_000_000)).unwrap();
    run("aws", &server, "s3 cp --only-show-errors large s3://bkt/p/large");
    run("aws", &server, "s3 cp --only-show-errors s3://bkt/p/large back");
    assert!(std::fs::read(server.area.join("back")).unwrap() == content(12_000_000));
    let null = Served::start("null --keys 2500");
    std::fs::write(null.area.join("large"), content(12_000_000)).unwrap();
    run("aws", &null, "s3 cp --only-show-errors large s3://bkt/p/large");
    run("aws", &null, "s3 cp --only-show-errors s3://bkt/x.size-9000000 back");
    assert_eq!(std::fs::read(null.area.join("back")).unwrap().len(), 9_000_000);
    assert_eq!(run("aws", &null, "s3 ls --recursive s3://bkt").lines().count(), 2500);
}

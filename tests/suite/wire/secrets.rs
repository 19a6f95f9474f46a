//! User and password in the URL of an endpoint are refused and never shown.

use crate::wire::server::Stage;

#[test]
fn passwords_of_endpoints_are_not_shown() {
    let stage = Stage::new();
    stage.source("small", 10);
    let server = stage.null("");
    for url in [
        "http://user:s3cret@127.0.0.1:1",
        "https://user:s3cret@127.0.0.1:1/path",
        "http://user:s3/cret@127.0.0.1:1",
        "user:s3cret@127.0.0.1",
        "http://127.0.0.1:x/?password=s3cret",
        "http://s3cret@",
    ] {
        for line in [
            "ls -v --endpoint-url=URL s3://bkt",
            "sync -r -v --json --endpoint-url=URL SRC/ s3://bkt/",
            "cp -v --endpoint-url URL SRC/small s3://bkt/",
            "mv --source-endpoint-url=URL --destination-endpoint-url=URL s3://a/b s3://c/d",
            "rm --json --endpoint-url=URL s3://bkt/k",
            "cat --endpoint-url=URL s3://bkt/k",
            "presign --endpoint-url=URL s3://bkt/k",
            "ls --endpoint-urls=URL s3://bkt",
        ] {
            let line = line.replace("URL", url);
            // This server's URL is added where no other is named.
            let run = server.run(&line);
            assert_ne!(run.code, 0, "{run}");
            let said = run.out() + &run.err();
            assert!(!said.contains("cret"), "{run}");
        }
        let run = server.run_with("ls --endpoint-url= s3://bkt", &[("AWS_ENDPOINT_URL", url)]);
        assert!(!(run.out() + &run.err()).contains("cret"), "{run}");
    }

    // A file of commands, shown and run.
    let file = stage.area.join("lines");
    let lines = "ls --endpoint-url http://u:s3cret@h s3://bkt\n\
                 cp --endpoint-url=http://u:s3cret@h /etc/hostname s3://bkt/k\n";
    std::fs::write(&file, lines).unwrap();
    let run = server.run(&format!("run -n {}", file.display()));
    run.ok();
    assert!(run.out().contains("***@h") && !run.out().contains("cret"), "{run}");
    let run = server.run(&format!("run {}", file.display()));
    assert_ne!(run.code, 0, "{run}");
    assert!(!(run.out() + &run.err()).contains("cret"), "{run}");
}

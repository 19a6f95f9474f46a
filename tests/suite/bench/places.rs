//! Foreign places: a bucket on another server.

use crate::bench::{hakobu, lines, runs};
use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::have;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const KEYS: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "hakobutest"),
    ("AWS_SECRET_ACCESS_KEY", "hakobutestsecret"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
];

/// Upload tools, by their names in campaigns.
const TOOLS: [(&str, &str); 4] =
    [("s5cmd", "s5cmd"), ("aws", "aws-s3"), ("rclone", "rclone"), ("s3cmd", "s3cmd")];

/// versitygw on a folder, stopped when dropped.
struct Gateway {
    child: Child,
    url: String,
}

impl Gateway {
    fn start(root: &Path) -> Gateway {
        std::fs::create_dir(root).unwrap();
        // It cannot report its port, so a currently free one is chosen.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new("versitygw");
        command.args(["--access", KEYS[0].1, "--secret", KEYS[1].1, "--region", KEYS[2].1]);
        command.args(["--quiet", "--port", &free.to_string(), "posix"]).arg(root);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let gateway = Gateway { child, url: format!("http://{free}") };
        let begun = Instant::now();
        while TcpStream::connect(free).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "versitygw does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        gateway
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_bucket_is_measured_against_and_the_rest_of_it_left_alone() {
    if !have("versitygw", "campaigns against a bucket") {
        return;
    }
    let area = Area::tmpfs();
    let gateway = Gateway::start(&area.join("root"));
    let with_keys = |words: &[&str]| {
        let mut command = hakobu(&area, words);
        // Some versions of rclone only start with the system's certificates.
        command.envs(KEYS).env_remove("AWS_CA_BUNDLE");
        let output = command.output().unwrap();
        Run::new(words.join(" "), output)
    };
    let on_store = |words: &[&str]| with_keys(&[words, &["--endpoint-url", &gateway.url]].concat());
    on_store(&["mb", "s3://bucket"]).ok();
    std::fs::write(area.join("mine"), "mine").unwrap();
    on_store(&["cp", "mine", "s3://bucket/pre/mine"]).ok();
    let mut text = format!(
        "name = \"bucket\"\ntitle = \"A bucket\"\nquestion = \"Which uploads?\"\n\
         [data.small]\ncount = 20\nsize = \"4KiB\"\ndepth = 1\n\
         [place.store]\nurl = \"s3://bucket/pre\"\nendpoint = \"{}\"\nregion = \"us-east-1\"\n\
         [repeat]\nmin = 2\nmax = 2\n[check]\nwhat = \"tree\"\ncompare = \"all\"\n\
         [[tool]]\nuse = \"hakobu\"\n",
        gateway.url
    );
    let mut wanted = vec!["hakobu"];
    for (program, tool) in TOOLS {
        if have(program, "an upload in a campaign") {
            text += &format!("[[tool]]\nuse = \"{tool}\"\n");
            wanted.push(tool);
        }
    }
    std::fs::write(area.join("c.toml"), &text).unwrap();
    with_keys(&["bench", "-o", "out", "c.toml"]).ok();
    let lines = lines(&area.join("out"));
    let cells = lines[0]["cells"].as_array().unwrap();
    for run in runs(&area) {
        assert_eq!(run["ok"], true, "{run}");
    }
    for tool in wanted {
        let of_tool =
            |id: &serde_json::Value| cells.iter().any(|c| &c["id"] == id && c["series"] == tool);
        assert!(runs(&area).iter().any(|run| of_tool(&run["cell"])), "{tool} did not run");
    }
    // A missing upload is noticed, because the prefix was emptied before.
    let tools = text.find("[[tool]]").unwrap();
    let nothing = "[[tool]]\nname = \"nothing\"\ncommand = \"true {src} {dst}\"\n";
    std::fs::write(area.join("n.toml"), format!("{}{nothing}", &text[..tools])).unwrap();
    let failed = with_keys(&["bench", "-o", "nothing", "n.toml"]);
    failed.expect(1);
    let lost = crate::bench::of_kind(&crate::bench::lines(&area.join("nothing")), "run");
    assert!(lost.iter().all(|run| run["ok"] == false && !run["problem"].is_null()), "{lost:?}");
    // A prefix with foreign objects is not emptied.
    on_store(&["cp", "mine", "s3://bucket/pre/hakobu-other/mine"]).ok();
    std::fs::write(area.join("o.toml"), text.replace("name = \"bucket\"", "name = \"other\""))
        .unwrap();
    with_keys(&["bench", "-o", "other", "o.toml"]).expect(1).says(&["hakobu-other", "left alone"]);
    assert_eq!(on_store(&["cat", "s3://bucket/pre/hakobu-other/mine"]).ok().out(), "mine");
    // Each run found its prefix empty, and nothing else was changed.
    assert_eq!(on_store(&["cat", "s3://bucket/pre/mine"]).ok().out(), "mine");
}

//! What is said in forty situations, in every language: the catalogue in docs/explain.md is this text. A change of words
//! shows here as a change of `catalogue.md`; `HAKOBU_WRITE_CATALOGUE=1` writes it anew.

use crate::verdict::tests::commands::{command, on_disk, on_one_cpu, states};
use crate::verdict::tests::local::{cold, one_cpu, throttled};
use crate::verdict::tests::stores::{capped, far, narrow};
use crate::verdict::tests::*;

/// A title, and the facts of the situation.
type Situation = (&'static str, Facts);

fn with(mut facts: Facts, change: impl FnOnce(&mut Facts)) -> Facts {
    change(&mut facts);
    facts
}

/// Sets the CPUs used by the work and by all processes, and the share of time that runnable threads waited.
fn cpus(facts: &mut Facts, used: f64, all: f64, delay: f64) {
    (facts.cpu_used, facts.machine_used, facts.run_delay) = (used, Some(all), Some(delay));
}

fn limit(option: &'static str, limit: f64, reached: f64) -> Facts {
    with(local(&[(Phase::Limit, 3.7), (Phase::Write, 0.2)]), |facts| {
        cpus(facts, 0.1, 0.3, 0.01);
        facts.limits = vec![UserLimit { option, limit, reached }];
    })
}

fn network(facts: &mut Facts) -> &mut NetworkFacts {
    facts.network.as_mut().unwrap()
}

/// Runs of a campaign's cell at 8 jobs, after a doubling that brought this factor.
fn cell(gain: f64) -> Facts {
    with(Facts::default(), |facts| {
        (facts.about, facts.span_s, facts.cpus, facts.jobs) = (About::Cell, 10.0, 2.0, 8.0);
        (facts.machine_cpus, facts.cpus_allowed) = (Some(2.0), Some(2.0));
        facts.curve = points(&[(4.0, 100.0), (8.0, 100.0 * gain)]);
    })
}

fn limits() -> Vec<Situation> {
    vec![
        ("A rate limit: `--bwlimit=4m`", limit("--bwlimit", 4.194_304e6, 4.18e6)),
        ("A limit of file operations: `--iops-limit=500`", limit("--iops-limit", 500.0, 498.0)),
        ("A limit of requests: `--rps-limit=100`", {
            with(upload(&[(Phase::Limit, 30.0), (Phase::Answer, 1.0)]), |facts| {
                facts.limits =
                    vec![UserLimit { option: "--rps-limit", limit: 100.0, reached: 99.4 }];
            })
        }),
        ("Workers wait for memory: `--memory=8m`", {
            upload(&[(Phase::Room, 20.0), (Phase::Answer, 2.0), (Phase::Send, 1.0)])
        }),
    ]
}

fn processors() -> Vec<Situation> {
    let full = || {
        with(local(&[(Phase::Create, 2.0), (Phase::Write, 2.0)]), |facts| {
            cpus(facts, 1.98, 2.0, 0.41);
        })
    };
    vec![
        ("Both CPUs are busy", full()),
        ("Both CPUs are busy, and twice the jobs were no faster", {
            with(full(), |facts| {
                facts.curve = points(&[(1.0, 50.0), (2.0, 98.0), (4.0, 98.2)]);
            })
        }),
        ("Bound to one CPU: `taskset -c 0`", one_cpu()),
        ("A CPU quota of a container", {
            with(one_cpu(), |facts| {
                (facts.cpus, facts.cpus_allowed) = (0.5, Some(2.0));
                cpus(facts, 0.49, 0.6, 0.3);
                facts.quota_throttled = Some(0.9);
            })
        }),
        ("A virtual machine whose CPUs are shared", {
            with(one_cpu(), |facts| {
                facts.cpus = 2.0;
                cpus(facts, 1.3, 1.35, 0.19);
                facts.stolen = Some(0.6);
            })
        }),
        ("Other processes use the CPUs", {
            with(local(&[(Phase::Create, 2.0), (Phase::Write, 2.0)]), |facts| {
                cpus(facts, 0.9, 1.99, 0.6);
            })
        }),
        ("CPUs with a disk limit close behind", {
            with(throttled(3000.0, true), |facts| {
                cpus(facts, 1.95, 1.99, 0.3);
                facts.disks[0].ceilings[0].reached = 2000.0;
            })
        }),
        ("One job: `-j 1`", {
            with(local(&[(Phase::Read, 0.4), (Phase::Write, 0.59)]), |facts| {
                (facts.jobs, facts.jobs_fixed) = (1.0, true);
                cpus(facts, 0.98, 1.05, 0.01);
                facts.thread_used = Some(0.97);
            })
        }),
        ("`--prove` halved the CPUs: throughput halved", {
            with(full(), |facts| {
                facts.experiments = vec![made(Resource::Cpu, 0.5, (0.93, 0.85, 1.02))];
            })
        }),
        ("`--prove` halved the CPUs: nothing changed", {
            with(full(), |facts| {
                facts.experiments = vec![made(Resource::Cpu, 0.5, (0.04, -0.03, 0.1))];
            })
        }),
    ]
}

fn storage() -> Vec<Situation> {
    vec![
        ("Small files, to a volume limited to 3,000 IOPS", throttled(3000.0, true)),
        ("Large files, to a volume limited to 125 MB/s", throttled(125e6, false)),
        ("A disk without a known limit, read with 32 jobs", {
            with(cold(32.0, 9000.0), |facts| {
                facts.curve = points(&[(8.0, 30.0), (16.0, 36.0), (32.0, 37.0)]);
            })
        }),
        ("The same with large requests", {
            with(cold(32.0, 9000.0), |facts| {
                facts.curve = points(&[(8.0, 30.0), (16.0, 36.0), (32.0, 37.0)]);
                facts.disks[0].read_bytes_per_s = 9000.0 * 262_144.0;
            })
        }),
        ("A disk with high latency: more jobs scale", {
            with(cold(4.0, 5000.0), |facts| {
                facts.curve = points(&[(1.0, 10.0), (2.0, 19.5), (4.0, 38.0)]);
            })
        }),
        ("One directory for all files", {
            with(
                local(&[(Phase::Create, 7.0), (Phase::Write, 0.6), (Phase::Settle, 0.4)]),
                |facts| {
                    (facts.jobs, facts.cpus, facts.machine_cpus) = (8.0, 8.0, Some(8.0));
                    cpus(facts, 1.6, 2.0, 0.03);
                    facts.pressure =
                        Pressure { cpu: Some(0.05), io: Some(0.01), memory: Some(0.0) };
                    facts.curve = points(&[(2.0, 95.0), (4.0, 100.0), (8.0, 98.0)]);
                    facts.lock_waits = Some(0.7);
                },
            )
        }),
        ("A slow pipe or network file system as the source", {
            with(local(&[(Phase::Read, 0.99), (Phase::Write, 0.01)]), |facts| {
                cpus(facts, 0.02, 0.1, 0.0);
                facts.foreign = vec![Side::Source];
            })
        }),
        ("The same as the target", {
            with(local(&[(Phase::Read, 0.01), (Phase::Write, 0.99)]), |facts| {
                cpus(facts, 0.02, 0.1, 0.0);
                facts.foreign = vec![Side::Target];
            })
        }),
    ]
}

fn stores() -> Vec<Situation> {
    vec![
        ("A distant bucket, with `-j 4`", {
            with(far(4.0), |facts| {
                (facts.jobs_fixed, facts.answer_min_ms) = (true, Some(50.1));
            })
        }),
        ("A distant bucket: more jobs scale", {
            with(far(8.0), |facts| {
                facts.curve = points(&[(2.0, 40.0), (4.0, 79.0), (8.0, 157.0)]);
            })
        }),
        ("The same, with as many jobs as memory allows", {
            with(far(250.0), |facts| {
                facts.curve = points(&[(64.0, 40.0), (128.0, 79.0), (250.0, 150.0)]);
            })
        }),
        ("`--prove` raised the jobs by half: throughput rose by half", {
            with(far(8.0), |facts| {
                facts.experiments = vec![made(Resource::Latency, 1.5, (0.97, 0.85, 1.1))];
            })
        }),
        ("A server that handles 16 requests at a time", {
            with(capped(), |facts| {
                facts.answer_min_ms = Some(51.0);
                facts.curve = points(&[(8.0, 160.0), (16.0, 318.0), (32.0, 320.0), (64.0, 319.0)]);
            })
        }),
        ("A server that throttles: 503 Slow Down", {
            with(upload(&[(Phase::Answer, 2.0), (Phase::Pause, 6.0)]), |facts| {
                facts.throttled_per_s = 30.0;
            })
        }),
        ("A server that reads slowly", {
            with(upload(&[(Phase::Send, 28.0), (Phase::Answer, 3.0)]), |facts| {
                network(facts).peer_window_full = Some(0.9);
                network(facts).send_queue_full = Some(0.9);
            })
        }),
        ("A slow path to the server", narrow()),
        ("A path that loses packets", {
            with(narrow(), |facts| {
                network(facts).rtt_ms = Some(0.3);
                network(facts).retransmits = Some(0.02);
            })
        }),
        ("A full link of 1 Gbit/s", {
            with(narrow(), |facts| {
                network(facts).bytes_per_s = 1.18e8;
                network(facts).link_bytes_per_s = Some(1.25e8);
            })
        }),
    ]
}

fn others() -> Vec<Situation> {
    vec![
        ("`watch`: a command with three processes on one CPU", on_one_cpu()),
        ("`watch`: a command with one busy thread", {
            with(command(), |facts| {
                cpus(facts, 1.02, 1.1, 0.01);
                facts.thread_used = Some(0.99);
            })
        }),
        ("`watch`: a command blocked on a disk at its limit", {
            with(on_disk(), |facts| {
                facts.disks[0].ceilings = vec![Ceiling {
                    operations: false,
                    direction: Direction::Writes,
                    limit: 1.25e8,
                    reached: 1.24e8,
                    from: "io.max",
                }];
            })
        }),
        ("`watch`: a command that waits for a server", {
            with(command(), |facts| {
                facts.threads = Some(states(0.0, 0.9));
                facts.network = Some(NetworkFacts {
                    bytes_per_s: 1e6,
                    link_bytes_per_s: Some(1.25e8),
                    ..NetworkFacts::default()
                });
            })
        }),
        ("`watch`: `rsync --bwlimit` while other processes use the CPUs", {
            with(command(), |facts| {
                cpus(facts, 0.18, 1.99, 0.65);
                facts.threads = Some(ThreadFacts { runnable: Some(0.6), ..states(0.0, 0.0) });
            })
        }),
        ("`bench`: 8 jobs wait most of their time, and scale", {
            with(cell(1.9), |facts| cpus(facts, 0.4, 0.5, 0.0))
        }),
        ("A transfer while other processes use the CPUs", {
            with(upload(&[(Phase::Answer, 31.3), (Phase::Send, 0.7)]), |facts| {
                cpus(facts, 0.04, 1.86, 0.03);
            })
        }),
        ("A run that was too short", {
            with(local(&[(Phase::Create, 2.9), (Phase::Write, 0.8), (Phase::List, 0.3)]), |facts| {
                facts.span_s = 0.0;
            })
        }),
    ]
}

/// The catalogue as the section of docs/explain.md.
fn catalogue() -> String {
    let parts = [
        ("Limits that you set", limits()),
        ("CPUs", processors()),
        ("Disks and file systems", storage()),
        ("Buckets and networks", stores()),
        ("Commands, campaigns, and what stays unknown", others()),
    ];
    let (mut out, mut number) = (String::new(), 0);
    for (title, situations) in parts {
        out += &format!("### {title}\n\n");
        for (what, facts) in situations {
            number += 1;
            let verdict = judge(&facts);
            let [english, japanese] = Language::ALL.map(|language| sentence(&verdict, language));
            out += &format!("{number}. {what}:\n   > {english}\n   >\n   > {japanese}\n\n");
        }
    }
    assert_eq!(number, 40);
    out
}

#[test]
fn forty_situations_in_words() {
    let (text, known) = (catalogue(), include_str!("catalogue.md"));
    if std::env::var_os("HAKOBU_WRITE_CATALOGUE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/verdict/tests/catalogue.md");
        std::fs::write(path, &text).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("<!-- catalogue -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- end of catalogue -->\n").unwrap();
        let page =
            format!("{before}<!-- catalogue -->\n\n{text}<!-- end of catalogue -->\n{after}");
        std::fs::write(path, page).unwrap();
        return;
    }
    for (is, was) in text.lines().zip(known.lines()) {
        assert_eq!(is, was);
    }
    assert_eq!(text, known);
}

/// Sentences of the catalogue: as a reader sees them.
#[test]
fn sentences_are_short_and_plain() {
    let all = [limits(), processors(), storage(), stores(), others()];
    for (what, facts) in all.iter().flatten() {
        let verdict = judge(facts);
        let [english, japanese] = Language::ALL.map(|language| sentence(&verdict, language));
        assert!(english.chars().count() <= 280, "{what}: {english}");
        assert!(
            // The file of a cgroup limit is a name that one has to type.
            !english.contains(" %")
                && !english.contains("((")
                && !english
                    .replace("iops_device", "")
                    .replace("bps_device", "")
                    .replace("write_", "")
                    .contains('_'),
            "{english}"
        );
        assert!(english.is_ascii(), "{english}");
        assert!(japanese.chars().filter(|c| *c == '。').count() >= 1, "{japanese}");
        // No sentence is without one of the two, and no text of the other language is left in it.
        for word in [" of ", " the ", "workers", "would"] {
            assert!(!japanese.contains(word), "{what}: {japanese}");
        }
        for signal in &verdict.signals {
            let words = signal_words(&signal.evidence, Language::Japanese);
            let says = statement_words(signal.says, Language::Japanese);
            assert!(says.chars().any(|c| c >= '\u{2e80}'), "{says}");
            assert!(!words.contains('_') && !words.contains("workers"), "{words}");
        }
    }
}

#[test]
fn every_statement_has_words_of_its_own() {
    for language in Language::ALL {
        let mut all: Vec<&str> =
            Statement::ALL.iter().map(|of| statement_words(*of, language)).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count, "{language:?}");
    }
}

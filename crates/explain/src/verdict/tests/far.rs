//! Transfers over a remote shell.

use crate::verdict::tests::*;

/// The source end of a push with one channel at 100 ms, whose threads mostly wait for the link.
pub(crate) fn push() -> Facts {
    let mut facts = local(&[(Phase::Send, 1.0), (Phase::Idle, 1.5), (Phase::Look, 0.02)]);
    (facts.cpu_used, facts.machine_used, facts.run_delay) = (0.1, Some(0.3), Some(0.01));
    facts.far = Some(FarFacts {
        host: "server".to_owned(),
        same_machine: false,
        bytes_per_s: 19.8e6,
        windows_bytes_per_s: 20.97e6,
        waits: 0.97,
        cpus: 8.0,
        machine_used: 0.6,
        ssh_used: Some(0.1),
        far_ssh_used: Some(0.12),
    });
    facts
}

fn with(change: impl FnOnce(&mut FarFacts)) -> Facts {
    let mut facts = push();
    facts.far.as_mut().map(change).unwrap();
    facts
}

fn said(facts: &Facts) -> [String; 2] {
    let verdict = judge(facts);
    [Language::English, Language::Japanese].map(|language| sentence(&verdict, language))
}

#[test]
fn the_link_is_named_with_what_the_windows_allow() {
    let facts = push();
    assert_eq!(named(&facts), (Resource::Network, Level::AtLimit));
    let [english, japanese] = said(&facts);
    let start = "Bottleneck: network link (19.80 of 20.97 MB/s that ssh's windows allow in the round \
        trip; the sending end waited for it 97% of the time; hakobu used 0.1 of 2 CPUs). A shorter round \
        trip would help, or a server that allows more channels (MaxSessions); more CPUs would not.";
    assert!(english.starts_with(start), "{english}");
    assert!(
        japanese.contains("ネットワーク回線") && japanese.contains("MaxSessions"),
        "{japanese}"
    );
    let line = with(|far| far.windows_bytes_per_s = 4e9);
    assert_eq!(named(&line), (Resource::Network, Level::Consistent));
    let start = "Bottleneck: likely the network link (19.80 MB/s over the link; the sending end";
    assert!(said(&line)[0].starts_with(start), "{}", said(&line)[0]);
    assert!(said(&line)[0].contains("A faster link would help"));
}

#[test]
fn the_other_machine_is_named() {
    let facts = with(|far| far.machine_used = 7.9);
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    let [english, japanese] = said(&facts);
    assert!(
        english.starts_with("Bottleneck: CPU of server (7.9 of 8 CPUs used on server; "),
        "{english}"
    );
    assert!(english.contains("More CPUs on server would help"), "{english}");
    assert!(japanese.contains("server の CPU"), "{japanese}");
    // It is this machine: what is used there is used here.
    let here = with(|far| (far.machine_used, far.same_machine) = (7.9, true));
    assert_ne!(judge(&here).named, BottleneckName::CpuOf("server".to_owned()));
}

#[test]
fn ssh_is_named_where_it_encrypts_all_the_time() {
    for (place, words) in [
        (true, "Bottleneck: encryption by ssh (ssh used 98% of a CPU; "),
        (false, "Bottleneck: encryption by ssh on server (ssh on server used 98% of a CPU; "),
    ] {
        let facts = with(|far| {
            *(if place { &mut far.ssh_used } else { &mut far.far_ssh_used }) = Some(0.98);
            far.windows_bytes_per_s = 4e9;
        });
        assert_eq!(named(&facts), (Resource::Thread, Level::AtLimit));
        let [english, japanese] = said(&facts);
        assert!(english.starts_with(words), "{english}");
        assert!(english.contains("A cipher that takes less CPU time would help"), "{english}");
        assert!(japanese.contains("ssh の暗号化"), "{japanese}");
    }
}

#[test]
fn what_is_not_waited_for_is_not_named() {
    assert_eq!(named(&with(|far| far.waits = 0.3)), UNKNOWN);
    let mut busy = push();
    (busy.machine_used, busy.run_delay) = (Some(1.9), Some(0.01));
    assert_ne!(judge(&busy).named, BottleneckName::Link);
}

//! Samples of this machine, compared with what is known of it by other ways.

use super::super::*;
use std::time::{Duration, Instant};

fn spin(for_: Duration) {
    let began = Instant::now();
    while began.elapsed() < for_ {
        std::hint::black_box(0);
    }
}

#[test]
fn one_spinning_thread_is_one_cpu() {
    let mut sampler = Sampler::new(Watched::ThisProcess);
    let before = sampler.read();
    spin(Duration::from_millis(300));
    let after = sampler.read();
    let rates = Rates::between(&before, &after);
    assert!(rates.span_s >= 0.3 && rates.span_s < 5.0, "{}", rates.span_s);
    assert!(rates.process.cpu() > 0.0, "{rates:?}");
}

#[test]
fn cost() {
    let mut sampler = Sampler::new(Watched::ThisProcess);
    sampler.read();
    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        std::hint::black_box(sampler.read());
        times.push(began.elapsed());
    }
    times.sort();
    // Ten times what it should be: other tests run at the same time.
    assert!(times[0] < Duration::from_millis(5), "a reading takes {:?} at best", times[0]);
}

//! Simulator of a server on a few CPUs, which other programs share: requests queue there, and their number in flight does
//! not change the rate. A simulated clock, single requests, deterministic for a given seed.
//!
//! A request is sent (its content counts as moved at once), arrives after half of the round trip, waits for a CPU, takes
//! its time there, and is finished after the other half. The first request of each job opens a connection, which takes
//! the server several times as long. The share of the CPUs that the server gets is redrawn after each time slice.

use super::{Reading, Tuner};
use fastrand::Rng;
use std::collections::VecDeque;
use std::time::Duration;

const TICK_S: f64 = 0.01;
/// Steps of a tick.
const STEPS: u32 = 10;
/// Content of a request, bytes.
const BYTES: u64 = 100_000;

/// A server and its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub cpus: f64,
    /// CPU time of a request.
    pub request_s: f64,
    pub round_trip_s: f64,
    /// Smallest and largest share of the CPUs that it gets, redrawn after each slice.
    pub share: (f64, f64),
    pub slice_s: f64,
    /// CPU time of a new connection.
    pub connection_s: f64,
}

impl Server {
    /// Fewest jobs that keep its CPUs busy on average.
    pub fn knee(&self) -> f64 {
        let share = (self.share.0 + self.share.1) / 2.0;
        (self.cpus * share * (self.round_trip_s + self.request_s) / self.request_s).max(self.cpus)
    }

    /// Mean rate with all of its CPUs busy.
    pub fn most_per_s(&self) -> f64 {
        self.cpus * (self.share.0 + self.share.1) / 2.0 / self.request_s
    }
}

/// A simulated run.
#[derive(Debug)]
pub struct Simulation {
    server: Server,
    rng: Rng,
    now_s: f64,
    share: f64,
    next_slice_s: f64,
    connections: usize,
    /// On the way there, with the time of arrival, that of sending, and the work left.
    sent: VecDeque<(f64, f64, f64)>,
    /// At the server, in order of arrival: time of sending, work left.
    queue: VecDeque<(f64, f64)>,
    /// On the way back, with the time of arrival.
    back: VecDeque<(f64, f64)>,
    in_flight: usize,
    quickest_s: f64,
    pub reading: Reading,
}

impl Simulation {
    pub fn new(server: Server, seed: u64) -> Simulation {
        Simulation {
            server,
            rng: Rng::with_seed(seed),
            now_s: 0.0,
            share: server.share.1,
            next_slice_s: 0.0,
            connections: 0,
            sent: VecDeque::new(),
            queue: VecDeque::new(),
            back: VecDeque::new(),
            in_flight: 0,
            quickest_s: f64::INFINITY,
            reading: Reading::default(),
        }
    }

    /// Begins requests up to this number.
    fn fill(&mut self, jobs: usize) {
        let server = self.server;
        while self.in_flight < jobs {
            let is_new = self.in_flight >= self.connections;
            self.connections += usize::from(is_new);
            let work_s = server.request_s + if is_new { server.connection_s } else { 0.0 };
            let at_s = self.now_s + server.round_trip_s / 2.0;
            self.sent.push_back((at_s, self.now_s, work_s));
            self.in_flight += 1;
            self.reading.bytes += BYTES;
        }
    }

    fn step(&mut self, jobs: usize, dt_s: f64) {
        let server = self.server;
        self.fill(jobs);
        self.now_s += dt_s;
        if self.now_s >= self.next_slice_s {
            let (low, high) = server.share;
            self.share = low + (high - low) * self.rng.f64();
            self.next_slice_s = self.now_s + server.slice_s * (0.5 + self.rng.f64());
        }
        while self.sent.front().is_some_and(|(at_s, ..)| *at_s <= self.now_s) {
            let Some((_, sent_s, work_s)) = self.sent.pop_front() else { break };
            self.queue.push_back((sent_s, work_s));
        }
        // A request is on one CPU at a time; what that has left in this step goes to the next request.
        let busy = (self.queue.len() as f64).min(server.cpus);
        let mut left_s = busy * self.share * dt_s;
        while let Some((sent_s, work_s)) = self.queue.front_mut() {
            if *work_s > left_s {
                *work_s -= left_s;
                break;
            }
            left_s -= *work_s;
            let sent_s = *sent_s;
            self.queue.pop_front();
            self.back.push_back((self.now_s + server.round_trip_s / 2.0, sent_s));
        }
        while self.back.front().is_some_and(|(at_s, _)| *at_s <= self.now_s) {
            let Some((_, sent_s)) = self.back.pop_front() else { break };
            self.quickest_s = self.quickest_s.min((self.now_s - sent_s).max(dt_s));
            self.in_flight -= 1;
            self.reading.items += 1;
            self.reading.completions += 1;
        }
        self.fill(jobs);
    }

    /// Simulates a tick with these jobs.
    pub fn tick(&mut self, jobs: usize) {
        for _ in 0..STEPS {
            self.step(jobs, TICK_S / f64::from(STEPS));
        }
        // This process uses a tenth of the CPUs; nobody is idle.
        self.reading.cpu += Duration::from_secs_f64(0.1 * TICK_S);
        self.reading.idle = Some((Duration::from_secs_f64(self.now_s), Duration::ZERO));
        self.reading.in_use = self.in_flight;
        self.reading.answering = self.in_flight;
        let known = self.quickest_s.is_finite();
        self.reading.quickest = known.then(|| Duration::from_secs_f64(self.quickest_s));
    }
}

/// Numbers of jobs at each tick, and requests finished, of a run of `seconds`. `from`: the first number, and whether it is
/// a remembered one.
pub fn jobs(
    server: Server,
    seed: u64,
    from: (usize, bool),
    jobs_max: usize,
    seconds: u32,
) -> (Vec<usize>, u64) {
    let mut simulation = Simulation::new(server, seed);
    let mut tuner = Tuner::new(jobs_max, from.0, from.1);
    let mut jobs = from.0;
    let mut all = Vec::new();
    for _ in 0..seconds * 100 {
        simulation.tick(jobs);
        all.push(jobs);
        jobs = tuner.step(Duration::from_secs_f64(simulation.now_s), &simulation.reading);
    }
    (all, simulation.reading.completions)
}

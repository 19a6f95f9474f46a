//! Simulator for the tuner: workloads whose best number of jobs is known, with a simulated clock.
//! Deterministic for a given seed.
//!
//! Time advances in ticks of 10 ms. A workload maps a number of units in flight to a rate (units per second);
//! units complete one service time after they start (by Little's law from rate and units, at least the one
//! without load). A new setting therefore takes effect with that delay, and nothing completes during the
//! first service time.
//!
//! Noise of x % consists of two log-normal factors with mean 1: one with a deviation of x %, drawn for each
//! tick, and one of x/2 %, which varies slowly (first-order autoregressive, time constant 100 ms): the
//! average of a second has a deviation of about a quarter of x %.

use crate::tune::{ENTRY_CREDIT_BYTES, Tuner, WorkCounters};
use fastrand::Rng;
use std::collections::VecDeque;
use std::time::Duration;

/// Seconds per tick.
pub const TICK_S: f64 = 0.01;

/// Response of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Units completed per second.
    pub rate: f64,
    /// Units refused per second.
    pub refused: f64,
    /// Bytes per unit.
    pub bytes: f64,
}

type Curve = Box<dyn Fn(f64, f64) -> Answer>;

/// A simulated workload.
pub struct World {
    /// Response by time in seconds and units in flight.
    curve: Curve,
    /// Service time without load, seconds.
    service_s: f64,
}

const BYTES: f64 = 16384.0;

fn plain(rate: f64) -> Answer {
    Answer { rate, refused: 0.0, bytes: BYTES }
}

impl World {
    fn new(service_s: f64, curve: impl Fn(f64, f64) -> Answer + 'static) -> World {
        World { curve: Box::new(curve), service_s }
    }

    /// Linear up to `cap` units, constant above.
    pub fn linear(service_s: f64, cap: f64) -> World {
        World::new(service_s, move |_, jobs| plain(jobs.min(cap) / service_s))
    }

    /// Universal scalability law (Gunther) with its peak at `peak` units; `serial` is the serial share of the
    /// work.
    pub fn usl(service_s: f64, serial: f64, peak: f64) -> World {
        let crosstalk = (1.0 - serial) / (peak * peak);
        World::new(service_s, move |_, jobs| {
            let slower = 1.0 + serial * (jobs - 1.0) + crosstalk * jobs * (jobs - 1.0);
            plain(jobs / service_s / slower)
        })
    }

    /// Parallel requests disturb each other: one at a time is best.
    pub fn rotating(service_s: f64) -> World {
        World::new(service_s, move |_, jobs| plain(1.0 / service_s / (1.0 + 0.3 * (jobs - 1.0))))
    }

    /// The cap changes at 5 s.
    pub fn moving(service_s: f64, before: f64, after: f64) -> World {
        World::new(service_s, move |t_s, jobs| {
            plain(jobs.min(if t_s < 5.0 { before } else { after }) / service_s)
        })
    }

    /// Linear up to a cap; from `at_s` on units are ten times as large and take the same time.
    pub fn drifting(service_s: f64, cap: f64, at_s: f64) -> World {
        World::new(service_s, move |t_s, jobs| {
            let credit = ENTRY_CREDIT_BYTES as f64;
            let bytes = if t_s < at_s { BYTES } else { 10.0 * (BYTES + credit) - credit };
            Answer { bytes, ..plain(jobs.min(cap) / service_s) }
        })
    }

    /// Linear up to a cap, and a third of the rate above another number.
    pub fn collapsing(service_s: f64, cap: f64, above: f64) -> World {
        World::new(service_s, move |_, jobs| {
            let rate = jobs.min(cap) / service_s;
            plain(if jobs > above { rate / 3.0 } else { rate })
        })
    }

    /// A server that refuses requests above a rate, at a cost for the others.
    pub fn throttled(service_s: f64, most: f64, cost: f64) -> World {
        World::new(service_s, move |_, jobs| {
            let offered = jobs / service_s;
            if offered <= most {
                return plain(offered);
            }
            Answer { refused: offered - most, ..plain(most * (1.0 - cost)) }
        })
    }

    fn goodput(&self, t_s: f64, jobs: usize) -> f64 {
        let answer = (self.curve)(t_s, jobs as f64);
        answer.rate * (answer.bytes + ENTRY_CREDIT_BYTES as f64)
    }

    /// Fewest jobs that reach `share` of the maximum at a time, and the maximum.
    pub fn knee(&self, t_s: f64, jobs_max: usize, share: f64) -> (usize, f64) {
        let best = (1..=jobs_max).map(|jobs| self.goodput(t_s, jobs)).fold(0.0, f64::max);
        let fewest = (1..=jobs_max).find(|jobs| self.goodput(t_s, *jobs) >= share * best);
        (fewest.unwrap_or(jobs_max), best)
    }
}

/// A simulated run.
pub struct Run<'a> {
    world: &'a World,
    noise: f64,
    slow: f64,
    rng: Rng,
    /// Units in flight, with the time from which they take effect.
    past: VecDeque<(f64, usize)>,
    in_effect: Option<usize>,
    now_s: f64,
    exact: [f64; 4],
    reading: WorkCounters,
}

fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

impl<'a> Run<'a> {
    pub fn new(world: &'a World, noise: f64, seed: u64) -> Run<'a> {
        let rng = Rng::with_seed(seed);
        let (past, reading) = (VecDeque::new(), WorkCounters::default());
        Run {
            world,
            noise,
            slow: 0.0,
            rng,
            past,
            in_effect: None,
            now_s: 0.0,
            exact: [0.0; 4],
            reading,
        }
    }

    fn factor(&mut self) -> f64 {
        let quick = normal(&mut self.rng) * self.noise;
        let deviation = self.noise / 2.0;
        let keep = (-TICK_S / 0.1_f64).exp();
        let push = (1.0 - keep * keep).sqrt() * deviation;
        self.slow = self.slow * keep + normal(&mut self.rng) * push;
        let variance = self.noise * self.noise + deviation * deviation;
        (quick + self.slow - variance / 2.0).exp()
    }

    /// Simulates a tick with these jobs; returns the goodput in it (bytes and credits).
    pub fn tick(&mut self, in_use: usize) -> f64 {
        if self.past.back().is_none_or(|last| last.1 != in_use) {
            let before = self.past.back().map_or(1, |last| last.1);
            let answer = (self.world.curve)(self.now_s, before as f64);
            let rate = answer.rate + answer.refused;
            let service_s = (before as f64 / rate.max(1e-9)).max(self.world.service_s);
            self.past.push_back((self.now_s + service_s, in_use));
        }
        while let Some((from_s, jobs)) = self.past.front().copied()
            && from_s <= self.now_s
        {
            self.in_effect = Some(jobs);
            if self.past.len() == 1 {
                break;
            }
            self.past.pop_front();
        }
        let factor = self.factor();
        let answer = match self.in_effect {
            Some(jobs) => (self.world.curve)(self.now_s, jobs as f64),
            None => plain(0.0),
        };
        let units = answer.rate * factor * TICK_S;
        let [bytes, done, refused, _] = &mut self.exact;
        *bytes += units * answer.bytes;
        *done += units;
        *refused += answer.refused * TICK_S;
        self.reading = WorkCounters {
            bytes: *bytes as u64,
            items: *done as u64,
            completions: *done as u64,
            in_use,
            throttled: *refused as u64,
            ..WorkCounters::default()
        };
        self.now_s += TICK_S;
        units * (answer.bytes + ENTRY_CREDIT_BYTES as f64)
    }
}

/// Results of a run of 20 s, relative to the possible.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Goodput in seconds 10 to 20, relative to the best at each moment.
    pub late: f64,
    /// Median number of jobs in that time ÷ the fewest that reach 97 %.
    pub jobs: f64,
    /// Goodput in the first 2 s, relative to the best fixed number.
    pub two: f64,
    /// Goodput in the first 10 s, relative to the best fixed number.
    pub ten: f64,
}

/// Goodput in the first 2 and 10 s, without noise, of the number of jobs that `jobs` returns for a time in seconds.
fn sums(world: &World, jobs: impl Fn(f64) -> usize) -> (f64, f64) {
    let mut run = Run::new(world, 0.0, 0);
    let mut sums = (0.0, 0.0);
    for tick in 0..1000 {
        let moved = run.tick(jobs(run.now_s));
        sums.1 += moved;
        if tick < 200 {
            sums.0 += moved;
        }
    }
    sums
}

/// Goodput of the best fixed number of jobs in the first 2 and 10 s.
pub fn best_fixed(world: &World, jobs_max: usize) -> (f64, f64) {
    let grid = (0..=32).map(|step| 2_f64.powf(f64::from(step) / 4.0).round() as usize);
    let sums = grid.filter(|jobs| *jobs <= jobs_max).map(|jobs| sums(world, |_| jobs));
    sums.fold((0.0, 0.0), |best, sum| (sum.0.max(best.0), sum.1.max(best.1)))
}

/// Upper bound of the first 2 and 10 s, relative to `best`: the best number is known, and reached from the
/// seed by doubling per service time.
pub fn ramp_bound(world: &World, seed: usize, jobs_max: usize, best: (f64, f64)) -> (f64, f64) {
    let sums = sums(world, |now_s| {
        let target = world.knee(now_s, jobs_max, 1.0).0;
        let doublings = (now_s / world.service_s).min(60.0).floor();
        let grown = (seed as f64 * doublings.exp2()).min(target as f64) as usize;
        if target < seed { target } else { grown }
    });
    (sums.0 / best.0, sums.1 / best.1)
}

/// Runs a tuner for 20 s. `best` comes from [`best_fixed`].
pub fn score(
    world: &World,
    noise: f64,
    seed: u64,
    start: (usize, bool),
    jobs_max: usize,
    best: (f64, f64),
) -> (Score, Tuner) {
    let mut run = Run::new(world, noise, seed);
    let mut tuner = Tuner::new(jobs_max, start.0, start.1);
    let mut jobs = start.0;
    let mut score = Score::default();
    let (mut possible, mut used) = (0.0, Vec::new());
    for tick in 0..2000 {
        let t_s = run.now_s;
        let moved = run.tick(jobs);
        match tick {
            ..200 => (score.two, score.ten) = (score.two + moved, score.ten + moved),
            200..1000 => score.ten += moved,
            _ => {
                score.late += moved;
                if tick % 100 == 0 {
                    possible += 100.0 * TICK_S * world.knee(t_s, jobs_max, 1.0).1;
                }
                used.push(jobs);
            }
        }
        jobs = tuner.step(Duration::from_secs_f64(run.now_s), &run.reading);
        assert!((1..=jobs_max).contains(&jobs), "{jobs}");
    }
    score.late /= possible;
    score.two /= best.0;
    score.ten /= best.1;
    used.sort_unstable();
    let fewest = world.knee(15.0, jobs_max, 0.97).0;
    score.jobs = used[used.len() / 2] as f64 / fewest as f64;
    (score, tuner)
}

/// Steps of a tick.
const STEPS: u32 = 10;
/// Content of a request, bytes.
const REQUEST_BYTES: u64 = 100_000;

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
    pub reading: WorkCounters,
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
            reading: WorkCounters::default(),
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
            self.reading.bytes += REQUEST_BYTES;
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

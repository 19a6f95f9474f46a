//! Claims on shards: by one worker, and by many at once.

use super::*;
use crate::folder::LocalFolder;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A run folder, and shards with these costs.
struct Run {
    folder: LocalFolder,
    shards: Vec<(ShardNumber, u64)>,
    _place: tempfile::TempDir,
}

/// The clock of the machine.
const CLOCK: Clock<'static> = &Instant::now;

/// A worker that knows these shards.
fn claims<'a>(folder: &'a dyn RunFolder, shards: &[(ShardNumber, u64)], name: &str) -> Claims<'a> {
    let hour = Duration::from_secs(3600);
    let mut claims = Claims::new(folder, "claims".to_owned(), CLOCK, hour, name);
    claims.add(shards.iter().copied());
    claims
}

/// Results that are none.
struct Nothing;

impl KnownResults for Nothing {
    fn update(&mut self, _: &dyn RunFolder) -> Result<(), RunError> {
        Ok(())
    }

    fn read_all_of(&mut self, _: &dyn RunFolder, _: &str) -> Result<(), RunError> {
        Ok(())
    }

    fn has(&self, _: ShardNumber) -> bool {
        false
    }
}

impl Claims<'_> {
    /// Claims a shard as a worker does.
    fn next(&mut self) -> Result<Option<ClaimId>, RunError> {
        match self.next_free()? {
            Some(claimed) => Ok(Some(claimed)),
            None => self.reclaim(&mut Nothing),
        }
    }
}

impl Run {
    fn new(costs: impl IntoIterator<Item = u64>) -> Run {
        let place = tempfile::tempdir().unwrap();
        let folder = LocalFolder::open(&place.path().join("run"), true).unwrap();
        let shards = costs.into_iter().enumerate().map(|(number, cost)| (number as u64, cost));
        Run { folder, shards: shards.collect(), _place: place }
    }

    /// A worker that has said that it is there.
    fn worker(&self, name: &str) -> Claims<'_> {
        let beat = Heartbeat { worker: name.to_owned(), ..Heartbeat::default() };
        let content = crate::folder::json(&beat).unwrap();
        self.folder.replace(&format!("workers/{name}.json"), &content).unwrap();
        claims(&self.folder, &self.shards, name)
    }
}

/// Number of shards that the only worker picks its first one from.
fn choice_of(costs: impl IntoIterator<Item = u64>) -> usize {
    let run = Run::new(costs);
    let mut worker = run.worker("a");
    worker.list().unwrap();
    let seen: HashSet<usize> = (0..8000).filter_map(|_| worker.free()).collect();
    seen.len()
}

#[test]
fn shards_of_like_cost_are_all_in_the_choice() {
    assert_eq!(choice_of((0..40).map(|n| 1 << n)), *CHOICE.start());
    let steps = [(150, 127), (150, 112), (150, 111)];
    let costs = steps.iter().flat_map(|(count, cost)| std::iter::repeat_n(*cost, *count));
    assert_eq!(choice_of(costs), 300);
    assert_eq!(choice_of([100, 100]), 2);
    assert_eq!(choice_of([]), 0);
}

#[test]
fn a_worker_goes_on_where_it_is_until_it_meets_another() {
    let run = Run::new(std::iter::repeat_n(100, 200));
    let (mut a, mut b) = (run.worker("a"), run.worker("b"));
    let (mut last, mut jumps) = (None, 0);
    for _ in 0..100 {
        let (number, _) = a.next().unwrap().unwrap();
        jumps += u32::from(last.is_some_and(|last| last + 1 != number));
        last = Some(number);
        b.next().unwrap().unwrap();
    }
    // Without this half of all claims would be lost.
    assert!(jumps <= 40, "{jumps} jumps");
}

#[test]
fn each_shard_is_claimed_once() {
    let run = Run::new([5, 4, 3, 2, 1]);
    let (mut a, mut b) = (run.worker("a"), run.worker("b"));
    let mut seen = Vec::new();
    while let Some((number, generation)) = a.next().unwrap() {
        assert_eq!(generation, 0);
        seen.push(number);
        seen.extend(b.next().unwrap().map(|(number, _)| number));
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert!(b.next().unwrap().is_none() && !b.is_all_done());
}

#[test]
fn a_shard_is_claimed_ahead_only_where_others_do_not_lack_it() {
    let run = Run::new([4, 3, 2, 1]);
    let mut alone = run.worker("a");
    for left in (0..4).rev() {
        assert!(alone.next_ahead(1).unwrap().is_some(), "{left}");
    }
    assert!(alone.next_ahead(1).unwrap().is_none());
    // Three workers of which one is known: two shards for each of the others stay.
    let run = Run::new([6, 5, 4, 3, 2, 1]);
    let mut one = run.worker("a");
    assert!(one.next_ahead(3).unwrap().is_some() && one.next_ahead(3).unwrap().is_some());
    assert!(one.next_ahead(3).unwrap().is_none());
    assert!(one.next().unwrap().is_some());
    // The same where the others have said that they are there.
    let run = Run::new([6, 5, 4, 3, 2, 1]);
    let workers = ["a", "b", "c"].map(|name| run.worker(name));
    let [mut first, ..] = workers;
    assert!(first.next_ahead(1).unwrap().is_some() && first.next_ahead(1).unwrap().is_some());
    assert!(first.next_ahead(1).unwrap().is_none());
}

/// A folder that counts its requests; like a store it lists pages of a thousand names.
struct Store {
    inner: LocalFolder,
    creates: AtomicUsize,
    pages: AtomicUsize,
    reads: AtomicUsize,
}

impl Store {
    fn new(inner: LocalFolder) -> Store {
        let zero = AtomicUsize::default;
        Store { inner, creates: zero(), pages: zero(), reads: zero() }
    }

    /// Files made, pages listed and files read so far.
    fn counts(&self) -> [usize; 3] {
        [&self.creates, &self.pages, &self.reads].map(|count| count.load(Ordering::Relaxed))
    }

    fn page(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, RunError> {
        let mut names = self.inner.names(folder)?;
        names.sort_unstable();
        match after {
            Some(after) => {
                names.retain(|name| name.as_str() > after);
                names.truncate(1000);
                self.pages.fetch_add(1, Ordering::Relaxed);
            }
            None => drop(self.pages.fetch_add(names.len() / 1000 + 1, Ordering::Relaxed)),
        }
        Ok(names)
    }
}

impl RunFolder for Store {
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, RunError> {
        self.creates.fetch_add(1, Ordering::Relaxed);
        self.inner.create(name, content)
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), RunError> {
        self.inner.replace(name, content)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read(name)
    }

    fn read_all(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, RunError> {
        names.iter().map(|name| self.read(name)).collect()
    }

    fn ages(&self, folder: &str) -> Result<Vec<(String, Duration)>, RunError> {
        self.inner.ages(folder)
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, RunError> {
        self.page(folder, None)
    }

    fn names_after(&self, folder: &str, after: &str) -> Result<Vec<String>, RunError> {
        self.page(folder, Some(after))
    }

    fn remove(&self, name: &str) -> Result<(), RunError> {
        self.inner.remove(name)
    }

    fn shown(&self) -> String {
        self.inner.shown()
    }
}

/// Requests for each claim: one, and few for what others have claimed meanwhile.
#[test]
fn claims_of_many_workers_cost_few_requests() {
    const SHARDS: usize = 4000;
    const WORKERS: usize = 16;
    let Run { folder, shards, _place } = Run::new(std::iter::repeat_n(100, SHARDS));
    let store = Store::new(folder);
    let worker = |number: usize| claims(&store, &shards, &format!("worker{number}"));
    let mut workers: Vec<Claims<'_>> = (0..WORKERS).map(worker).collect();
    let mut seen = HashSet::new();
    while seen.len() < SHARDS {
        for worker in &mut workers {
            if let Some(claimed) = worker.next().unwrap() {
                assert!(seen.insert(claimed), "{claimed:?} was claimed twice");
            }
        }
    }
    let [creates, pages, reads] = store.counts();
    let lost = creates - SHARDS;
    assert!(lost < SHARDS / 10 && pages < SHARDS / 14, "{lost} lost claims, {pages} pages");
    // Only a lost claim is read; the last ones are by those that wait.
    assert!(reads < SHARDS / 4, "{reads} reads");
}

#[test]
fn a_worker_that_waits_sees_claims_that_were_given_back_without_a_listing() {
    const SHARDS: u64 = 5;
    let Run { folder, shards, _place } = Run::new(std::iter::repeat_n(100, SHARDS as usize));
    let store = Store::new(folder);
    let worker = |name: &str| claims(&store, &shards, name);
    let all = |worker: &mut Claims<'_>| {
        let mut claimed: Vec<ClaimId> =
            std::iter::from_fn(|| worker.next().unwrap()).take(SHARDS as usize).collect();
        claimed.sort_unstable();
        claimed
    };
    let beat = |state: WorkerState| {
        let beat = Heartbeat { worker: "a".to_owned(), state, ..Heartbeat::default() };
        store.replace("workers/a.json", &crate::folder::json(&beat).unwrap()).unwrap();
    };
    let give_all_back = || {
        for number in 0..SHARDS {
            give_back(&store, "claims", (number, 0)).unwrap();
        }
    };
    let first: Vec<ClaimId> = (0..SHARDS).map(|number| (number, 0)).collect();
    beat(WorkerState::Working);
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(worker);
    assert_eq!(all(&mut a), first);
    for waits in [&mut b, &mut c] {
        waits.list().unwrap();
    }
    // This one knows whose the claims are, the other one does not.
    assert_eq!(b.next().unwrap(), None);
    let [_, pages, _] = store.counts();
    for _ in 0..20 {
        assert_eq!(b.next().unwrap(), None);
    }
    give_all_back();
    beat(WorkerState::Ended);
    // The first call forgets the worker that it knew.
    assert_eq!(b.next().unwrap(), None);
    assert_eq!(all(&mut b), first);
    give_all_back();
    assert_eq!(all(&mut c), first);
    assert_eq!(store.counts()[1], pages);
}

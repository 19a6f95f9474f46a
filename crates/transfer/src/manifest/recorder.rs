//! What a run learns about objects, in any order, in bounded memory: sorted runs in temporary files, merged with the
//! manifest of earlier runs at the end.

use super::{Known, ManifestWriter, Modified, Place, Record};
use crate::journal::make_private;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Number of records in memory (about 200 bytes each) before they are sorted and written to a file.
const RECORDS_MAX: usize = 128 << 10;

/// Receives what a run learns about the objects of one place.
pub struct Recorder {
    place: Place,
    /// Folder of temporary files.
    folder: PathBuf,
    /// Number of records in memory.
    records_max: usize,
    /// Bytes of temporary files after which nothing more is recorded.
    bytes_max: u64,
    begun: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last record of each key.
    records: BTreeMap<Box<[u8]>, Record>,
    /// Sorted runs, the oldest first.
    runs: Vec<File>,
    run_bytes: u64,
    /// The last second of the server's clock that a response told, and when its first response came.
    clock: Option<(i64, Instant)>,
    /// Records of objects that were written in that second: a later write may look the same.
    fresh: Vec<Record>,
    /// Recording failed, or became too large.
    is_over: bool,
}

impl Recorder {
    /// Returns a recorder for a place. Temporary files lie in `folder` and have no name there; when they have
    /// `bytes_max` bytes, nothing more is recorded.
    pub fn new(place: Place, folder: PathBuf, bytes_max: u64) -> Recorder {
        let state = Mutex::default();
        let begun = Instant::now();
        Recorder { place, folder, records_max: RECORDS_MAX, bytes_max, begun, state }
    }

    /// Returns for how long it has recorded.
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Records an object that was observed or written while the server's clock showed the second `date_s`. Facts that a
    /// later write within that second would not change visibly are kept back until it is over.
    pub fn learn(&self, record: Record, date_s: i64) {
        if record.etag.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if state.clock.is_none_or(|(last_s, _)| last_s < date_s) {
            state.clock = Some((date_s, Instant::now()));
            let fresh = std::mem::take(&mut state.fresh);
            fresh.into_iter().for_each(|record| self.sort(&mut state, record));
        }
        let now_s = state.clock.map_or(date_s, |(last_s, _)| last_s);
        match record.modified {
            // Someone else's write of this second: the next run sees it settled.
            Modified::At(_) if record.modified.may_recur(date_s) => {}
            Modified::Within(..) if record.modified.may_recur(now_s) => {
                state.fresh.push(record);
                // More than any server stores in a second.
                if state.fresh.len() > self.records_max {
                    state.fresh.clear();
                }
            }
            _ => self.sort(&mut state, record),
        }
    }

    /// Records that a key is not listed any more.
    pub fn forget(&self, key: &[u8]) {
        self.sort(&mut self.state.lock(), Record::gone(key));
    }

    /// Returns how long it takes until the facts about this many objects can be kept that were written in the last
    /// second; `None` if there are none.
    pub fn unsettled(&self) -> Option<(usize, Duration)> {
        let state = self.state.lock();
        let (_, since) = state.clock?;
        let wait = SECOND.saturating_sub(since.elapsed());
        (!state.fresh.is_empty()).then_some((state.fresh.len(), wait))
    }

    /// Keeps the facts of the last second if it is over, else drops them: the next run asks for them.
    pub fn settle(&self) {
        let mut state = self.state.lock();
        let is_over = state.clock.is_some_and(|(_, since)| since.elapsed() >= SECOND);
        let fresh = std::mem::take(&mut state.fresh);
        for record in fresh {
            // What an earlier run knew of it is not true any more.
            let record = if is_over { record } else { Record::gone(&record.key) };
            self.sort(&mut state, record);
        }
    }

    /// Keeps the facts of the last second, too, because the run goes on for longer: other processes of it look at the
    /// objects once more.
    pub fn settle_all(&self) {
        let mut state = self.state.lock();
        let fresh = std::mem::take(&mut state.fresh);
        fresh.into_iter().for_each(|record| self.sort(&mut state, record));
    }

    /// Returns about how many records there are.
    pub fn changes(&self) -> u64 {
        let state = self.state.lock();
        (state.records.len() + state.runs.len() * self.records_max) as u64
    }

    fn sort(&self, state: &mut State, record: Record) {
        if state.is_over {
            return;
        }
        state.records.insert(record.key.clone(), record);
        if state.records.len() >= self.records_max && self.spill(state).is_err() {
            // The folder is full or cannot be written: what is known so far may still fit.
            state.is_over = true;
        }
    }

    fn spill(&self, state: &mut State) -> io::Result<()> {
        make_private(&self.folder)?;
        let file = tempfile::tempfile_in(&self.folder)?;
        let mut writer = ManifestWriter::new(BufWriter::new(file), &self.place)?;
        for record in state.records.values() {
            writer.push(record)?;
        }
        let (buffered, _) = writer.finish()?;
        let file = buffered.into_inner().map_err(|error| error.into_error())?;
        state.run_bytes += file.metadata()?.len();
        state.runs.push(file);
        state.records.clear();
        state.is_over |= state.run_bytes >= self.bytes_max;
        Ok(())
    }

    /// Merges everything with the records of an older manifest into a new one, the newest record of a key first, and
    /// returns the number of records. Keys that are gone are left out, and those after `bytes_max` bytes of the new
    /// one. Damage of the old one ends it.
    ///
    /// # Errors
    /// Those of writing, and of reading the temporary files.
    pub fn merge<R: Read + Seek, W: Write>(
        &self,
        old: Option<Known<R>>,
        to: W,
        bytes_max: u64,
    ) -> io::Result<(W, u64)> {
        let mut state = self.state.lock();
        let records = std::mem::take(&mut state.records);
        let runs = std::mem::take(&mut state.runs);
        let mut inputs = Vec::new();
        inputs.extend(old.map(Input::Old));
        for run in runs {
            inputs.push(Input::Run(Known::open(run, &self.place)?));
        }
        inputs.push(Input::Memory(records.into_values()));
        merge_all(inputs, ManifestWriter::new(to, &self.place)?, bytes_max)
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// Records in the order of their keys.
enum Input<R> {
    Old(Known<R>),
    Run(Known<File>),
    Memory(std::collections::btree_map::IntoValues<Box<[u8]>, Record>),
}

impl<R: Read + Seek> Input<R> {
    fn next(&mut self) -> io::Result<Option<Record>> {
        match self {
            Input::Old(known) => Ok(known.next().unwrap_or_default()),
            Input::Run(known) => known.next(),
            Input::Memory(records) => Ok(records.next()),
        }
    }
}

/// Merges manifests, of which later ones are newer, into one about a place. Those of other places of the bucket count as far
/// as they are about its keys; one that is damaged ends there.
///
/// # Errors
/// None in practice: everything is in memory.
pub fn merge_contents(contents: Vec<Vec<u8>>, place: &Place) -> io::Result<Vec<u8>> {
    let mut inputs: Vec<Input<io::Cursor<Vec<u8>>>> = Vec::new();
    for content in contents {
        let Ok((mut known, of)) = Known::open_any(io::Cursor::new(content)) else { continue };
        if of == *place {
            inputs.push(Input::Old(known));
            continue;
        }
        if (&of.endpoint, &of.bucket) != (&place.endpoint, &place.bucket) {
            continue;
        }
        let mut moved = BTreeMap::new();
        while let Ok(Some(mut record)) = known.next() {
            let key = [&*of.prefix, &*record.key].concat();
            if let Some(key) = key.strip_prefix(&*place.prefix) {
                record.key = key.into();
                moved.insert(record.key.clone(), record);
            }
        }
        inputs.push(Input::Memory(moved.into_values()));
    }
    let (content, _) = merge_all(inputs, ManifestWriter::new(Vec::new(), place)?, u64::MAX)?;
    Ok(content)
}

/// Merges inputs, of which later ones are newer.
fn merge_all<R: Read + Seek, W: Write>(
    mut inputs: Vec<Input<R>>,
    mut writer: ManifestWriter<W>,
    bytes_max: u64,
) -> io::Result<(W, u64)> {
    // The smallest key first, and of equal ones the newest.
    let mut heads = BinaryHeap::new();
    let mut waiting: Vec<Option<Record>> = Vec::new();
    for (number, input) in inputs.iter_mut().enumerate() {
        let record = input.next()?;
        heads.extend(record.as_ref().map(|record| Reverse((record.key.clone(), Reverse(number)))));
        waiting.push(record);
    }
    let mut last: Option<Box<[u8]>> = None;
    while let Some(Reverse((key, Reverse(number)))) = heads.pop() {
        let (Some(slot), Some(input)) = (waiting.get_mut(number), inputs.get_mut(number)) else {
            break;
        };
        let record = std::mem::replace(slot, input.next()?);
        heads.extend(slot.as_ref().map(|next| Reverse((next.key.clone(), Reverse(number)))));
        if last.as_ref() == Some(&key) {
            continue;
        }
        last = Some(key);
        if let Some(record) = record.filter(|record| !record.is_gone()) {
            if writer.written_bytes() >= bytes_max {
                break;
            }
            writer.push(&record)?;
        }
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::FileMetadata;
    use hakobu_core::unit::Time;
    use hakobu_s3::ops::Etag;
    use std::io::Cursor;

    fn place() -> Place {
        Place { endpoint: "e".into(), bucket: "b".into(), prefix: Vec::new() }
    }

    fn recorder(records_max: usize) -> Recorder {
        Recorder { records_max, ..Recorder::new(place(), std::env::temp_dir(), u64::MAX) }
    }

    fn record(key: &str, size: u64) -> Record {
        Record {
            key: key.as_bytes().into(),
            etag: Etag::new("e"),
            size,
            modified: Modified::At(Time { s: 5, ns: 0 }),
            learnt_day: 1,
            facts: FileMetadata::default(),
        }
    }

    fn written(key: &str, from_s: i64, until_s: i64) -> Record {
        Record { modified: Modified::Within(from_s, until_s), ..record(key, 1) }
    }

    fn merged(recorder: &Recorder, old: Option<&[u8]>) -> Vec<u8> {
        let old = old.map(|old| Known::open(Cursor::new(old), &place()).unwrap());
        recorder.merge(old, Vec::new(), u64::MAX).unwrap().0
    }

    fn all(content: &[u8]) -> Vec<(String, u64)> {
        let mut known = Known::open(Cursor::new(content), &place()).unwrap();
        let mut all = Vec::new();
        while let Some(record) = known.next().unwrap() {
            all.push((String::from_utf8(record.key.into_vec()).unwrap(), record.size));
        }
        all
    }

    #[test]
    fn the_newest_record_of_a_key_counts() {
        for records_max in [1, 2, 3, 100] {
            let first = recorder(records_max);
            for (key, size) in [("c", 1), ("a", 1), ("b", 1), ("a", 2), ("d", 1)] {
                first.learn(record(key, size), 10);
            }
            let old = merged(&first, None);
            let count = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
                pairs.iter().map(|(key, size)| ((*key).to_owned(), *size)).collect()
            };
            assert_eq!(all(&old), count(&[("a", 2), ("b", 1), ("c", 1), ("d", 1)]));
            let second = recorder(records_max);
            second.forget(b"b");
            second.learn(record("c", 3), 10);
            second.forget(b"d");
            second.learn(record("d", 4), 10);
            second.learn(record("e", 5), 10);
            second.forget(b"e");
            assert_eq!(all(&merged(&second, Some(&old))), count(&[("a", 2), ("c", 3), ("d", 4)]));
        }
    }

    #[test]
    fn a_new_one_has_a_largest_size() {
        let recorder = recorder(1000);
        for number in 0..60_000 {
            let etag = format!(
                "{:032x}",
                (number as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
            );
            let record = Record { etag: Etag::new(&etag), ..record(&format!("{number:06}"), 1) };
            recorder.learn(record, 10);
        }
        let (content, count) = recorder.merge(None::<Known<File>>, Vec::new(), 500_000).unwrap();
        assert!((500_000..700_000).contains(&content.len()), "{}", content.len());
        let all = all(&content);
        assert_eq!(all.len() as u64, count);
        assert_eq!(all.first().unwrap().0, "000000");
        assert_eq!(all.last().unwrap().0, format!("{:06}", all.len() - 1));
    }

    #[test]
    fn what_is_written_is_known_once_its_second_is_over() {
        let recorder = recorder(100);
        recorder.learn(written("a", 9, 10), 10);
        assert_eq!(recorder.changes(), 0);
        assert_eq!(recorder.unsettled().unwrap().0, 1);
        // A response of the next second.
        recorder.learn(written("b", 11, 11), 11);
        assert_eq!(recorder.unsettled().unwrap().0, 1);
        // One that comes late is of a second that is over.
        recorder.learn(written("c", 9, 10), 10);
        recorder.settle();
        assert_eq!(recorder.unsettled(), None);
        let names: Vec<_> = all(&merged(&recorder, None)).into_iter().map(|(key, _)| key).collect();
        assert_eq!(names, ["a", "c"]);
    }

    #[test]
    fn what_was_known_of_an_unsettled_object_is_gone() {
        let first = recorder(100);
        first.learn(record("a", 1), 10);
        let old = merged(&first, None);
        let second = recorder(100);
        second.learn(written("a", 9, 10), 10);
        second.settle();
        assert_eq!(all(&merged(&second, Some(&old))), []);
    }

    #[test]
    fn an_object_of_this_second_is_not_settled() {
        let recorder = recorder(100);
        recorder.learn(record("a", 1), 5);
        recorder
            .learn(Record { modified: Modified::At(Time { s: 5, ns: 3 }), ..record("b", 1) }, 5);
        recorder.learn(record("c", 1), 6);
        let names: Vec<_> = all(&merged(&recorder, None)).into_iter().map(|(key, _)| key).collect();
        assert_eq!(names, ["b", "c"]);
    }
}

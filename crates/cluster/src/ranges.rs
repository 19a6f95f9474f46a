//! Ranges of a plan that were listed: the files that announce their shards, and what is known of them.
//!
//! A range is announced in parts while it is listed, so that other workers can take its first shards. Names of the files
//! say which shards a part has and whether it is the last one: a listing of names tells a worker all that it can claim.

use crate::claims::KnownResults;
use crate::folder::{self, RunError, RunFolder};
use crate::plan::{
    ClusterPlan, Phase, Shard, ShardFile, ShardNumber, class, parts_of, range_text, shard_number,
};
use crate::shard::crc64;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// Shards of a range that were announced together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangePart {
    pub range: u32,
    /// Generation of the claim by which it was listed.
    pub generation: u32,
    /// Place of the first shard in its listing.
    pub first: u32,
    pub shards: Vec<Shard>,
    /// Roots that names begin in, encoded.
    pub roots: Vec<String>,
    /// Candidates for deletion, of the last part: files below `shards/`.
    #[serde(default)]
    pub removals: Vec<ShardFile>,
    /// Directories between paths whose attributes differ after the transfer, of the last part: files below `shards/`.
    #[serde(default)]
    pub directories: Vec<ShardFile>,
    /// The last part of the range has this.
    pub end: Option<RangeEnd>,
}

/// Result of listing a range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RangeEnd {
    pub worker: String,
    /// Names that could not be examined; without deletion then.
    pub failed: u64,
    pub vanished: u64,
    /// Number of candidates for deletion.
    pub removals: u64,
    /// Number of unfinished files at the target after the transfer, which other runs have left.
    #[serde(default)]
    pub leftovers: u64,
    /// Problems: a sentence without names, how many, and the first one's path.
    pub problems: Vec<(String, u64, String)>,
    /// Seconds that it took.
    pub took_s: f64,
}

/// The most runs of classes in the name of a file, which has at most 255 bytes.
const RUNS_MAX: usize = 13;

/// The name of a part's file says what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartName {
    pub range: u32,
    pub generation: u32,
    pub first: u32,
    pub count: u32,
    /// Classes of the shards in their order, each with the number of shards that it holds for.
    pub classes: Vec<(u64, u32)>,
    pub is_end: bool,
}

impl PartName {
    fn text(&self) -> String {
        let PartName { first, count, classes, is_end, .. } = self;
        let of = range_text((self.range, self.generation));
        let end = if *is_end { ".end" } else { "" };
        let runs: Vec<_> =
            classes.iter().map(|(class, many)| format!("{class:x}x{many}")).collect();
        format!("{of}.{first:06}.{count}.{}{end}.json", runs.join("-"))
    }

    fn parse(name: &str) -> Option<PartName> {
        let mut words = name.strip_suffix(".json")?.split('.');
        let (range, generation) = words.next()?.split_once('-')?;
        let (range, generation) = (range.parse().ok()?, u32::from_str_radix(generation, 16).ok()?);
        let (first, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let runs = words.next()?.split('-').filter(|run| !run.is_empty());
        let run = |run: &str| {
            let (class, many) = run.split_once('x')?;
            Some((u64::from_str_radix(class, 16).ok()?, many.parse().ok()?))
        };
        let classes: Vec<(u64, u32)> = runs.map(run).collect::<Option<_>>()?;
        let is_end = match (words.next(), words.next()) {
            (None, _) => false,
            (Some("end"), None) => true,
            _ => return None,
        };
        let fits = u32::checked_add(first, count).is_some_and(|end| end < 1 << 24);
        let many = classes.iter().map(|(_, many)| u64::from(*many)).sum::<u64>();
        let fits = fits && many == u64::from(count);
        fits.then_some(PartName { range, generation, first, count, classes, is_end })
    }

    fn numbers(&self) -> impl Iterator<Item = ShardNumber> + use<> {
        let PartName { range, generation, first, count, .. } = *self;
        (first..first + count).map(move |place| shard_number(range, generation, place))
    }

    /// The shards, each with the class of its cost.
    fn shards(&self) -> impl Iterator<Item = (ShardNumber, u64)> + '_ {
        let classes = self.classes.iter().flat_map(|(class, many)| (0..*many).map(|_| *class));
        self.numbers().zip(classes)
    }

    /// Runs of equal classes; those that have no room in a name are one, of the most expensive.
    fn runs(classes: impl Iterator<Item = u64>) -> Vec<(u64, u32)> {
        let mut runs: Vec<(u64, u32)> = Vec::new();
        for class in classes {
            let is_full = runs.len() >= RUNS_MAX;
            match runs.last_mut() {
                Some((last, many)) if *last == class || is_full => {
                    (*last, *many) = (class.max(*last), *many + 1);
                }
                _ => runs.push((class, 1)),
            }
        }
        runs
    }
}

impl RangePart {
    /// Content of its file: JSON, and its checksum on a line of its own.
    ///
    /// # Errors
    /// See [`folder::json`].
    pub fn content(&self) -> Result<Vec<u8>, RunError> {
        let mut content = folder::json(self)?;
        let sum = crc64(&content);
        content.push(b'\n');
        content.extend_from_slice(sum.as_bytes());
        content.push(b'\n');
        Ok(content)
    }

    /// Reads the content of a file; `None` where it is not what was written.
    fn parse(content: &[u8]) -> Option<RangePart> {
        let content = content.strip_suffix(b"\n")?;
        let at = content.iter().rposition(|byte| *byte == b'\n')?;
        let (json, sum) = (content.get(..at)?, content.get(at + 1..)?);
        (crc64(json).as_bytes() == sum).then(|| serde_json::from_slice(json).ok())?
    }

    /// Name of its file, in the folder of its phase.
    pub fn name(&self) -> String {
        PartName {
            range: self.range,
            generation: self.generation,
            first: self.first,
            count: self.shards.len() as u32,
            classes: PartName::runs(self.shards.iter().map(|shard| class(shard.cost))),
            is_end: self.end.is_some(),
        }
        .text()
    }
}

/// The folder with the parts of a phase.
pub fn parts_folder(phase: &Phase) -> String {
    match phase {
        Phase::Transfer | Phase::Verify(_) => "ranges".to_owned(),
        Phase::Look(_) => phase.results(),
    }
}

/// Parts that are known by their names.
#[derive(Default)]
pub struct KnownRanges {
    folder: String,
    seen: HashSet<String>,
    /// By the number of the first shard, and whether it is an end: a part without a shard has the number of the next one.
    parts: BTreeMap<(ShardNumber, bool), PartName>,
    /// Ranges that were listed to their end, and by which generation.
    ended: BTreeMap<u32, u32>,
    /// Parts that were noted since `take_news`.
    news: Vec<PartName>,
}

impl KnownRanges {
    /// Nothing is known yet of the parts in this folder; see [`parts_folder`].
    pub fn new(folder: String) -> KnownRanges {
        KnownRanges { folder, ..KnownRanges::default() }
    }

    /// Returns shards that were announced since the last call, each with its cost, roughly.
    pub fn take_new_shards(&mut self) -> Vec<(ShardNumber, u64)> {
        self.take_news().iter().flat_map(PartName::shards).collect()
    }

    /// Returns the parts that were noted since the last call.
    fn take_news(&mut self) -> Vec<PartName> {
        std::mem::take(&mut self.news)
    }

    /// The file of a part.
    fn file(&self, part: &PartName) -> String {
        format!("{}/{}", self.folder, part.text())
    }

    /// Notes a part by the name of its file.
    pub fn note(&mut self, name: &str) {
        if !self.seen.insert(name.to_owned()) {
            return;
        }
        let Some(part) = PartName::parse(name) else { return };
        let first = shard_number(part.range, part.generation, part.first);
        self.parts.insert((first, part.is_end), part.clone());
        if part.is_end {
            let latest = self.ended.entry(part.range).or_insert(part.generation);
            *latest = part.generation.max(*latest);
        }
        self.news.push(part);
    }

    /// Returns the number of ranges that were listed to their end.
    pub fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Returns the number of shards that were announced.
    pub fn shards(&self) -> u64 {
        self.parts.values().map(|part| u64::from(part.count)).sum()
    }

    /// Returns the names of the files of all parts; of a range with an end only those of the generation that reached it
    /// last.
    pub fn files(&self) -> Vec<String> {
        let current = |part: &&PartName| {
            self.ended.get(&part.range).is_none_or(|generation| *generation == part.generation)
        };
        let parts = self.parts.values().filter(current);
        parts.map(|part| self.file(part)).collect()
    }

    /// Reads the part with a shard.
    ///
    /// # Errors
    /// It cannot be read, or holds something else than its name says.
    pub fn read_part(
        &self,
        folder: &dyn RunFolder,
        number: ShardNumber,
    ) -> Result<Option<RangePart>, RunError> {
        let upto = self.parts.range(..=(number, true)).rev();
        let mut holding = upto.take(2).map(|(_, part)| part);
        let part = holding.find(|part| part.numbers().any(|one| one == number));
        let Some(part) = part else { return Ok(None) };
        let read = folder.read(&self.file(part))?.and_then(|content| RangePart::parse(&content));
        Ok(read.filter(|read| read.is_as_named(part)))
    }
}

impl RangePart {
    fn is_as_named(&self, name: &PartName) -> bool {
        (self.range, self.generation, self.first) == (name.range, name.generation, name.first)
            && self.shards.len() as u32 == name.count
            && self.shards.iter().all(Shard::is_inside)
            && self.removals.iter().chain(&self.directories).all(ShardFile::is_inside)
    }

    /// Returns the shard of a number.
    pub fn shard(&self, number: ShardNumber) -> Option<&Shard> {
        let (of, place) = parts_of(number);
        let place = place.checked_sub(self.first)?;
        (of == Some((self.range, self.generation))).then(|| self.shards.get(place as usize))?
    }
}

/// Reads parts concurrently. A part that is damaged is left out, and counted.
///
/// # Errors
/// Those of the run folder.
pub fn read_parts(
    folder: &dyn RunFolder,
    files: &[String],
) -> Result<(Vec<RangePart>, usize), RunError> {
    let mut parts = Vec::new();
    let mut damaged = 0;
    for (name, content) in files.iter().zip(folder.read_all(files)?) {
        let name = name.rsplit('/').next().and_then(PartName::parse);
        let part = content.and_then(|content| RangePart::parse(&content));
        match part.zip(name).filter(|(part, name)| part.is_as_named(name)) {
            Some((part, _)) => parts.push(part),
            None => damaged += 1,
        }
    }
    Ok((parts, damaged))
}

/// What a plan has, as far as it is known: all of it, once every range was listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlannedTotals {
    /// Ranges of the plan; 0 where it listed both ends itself.
    pub ranges: u32,
    /// Ranges that were listed.
    pub ranges_listed: u32,
    pub shards: u64,
    pub entries: u64,
    pub bytes: u64,
    /// Names that could not be examined.
    pub problems: u64,
}

impl PlannedTotals {
    /// Returns whether all ranges were listed.
    pub fn is_whole(&self) -> bool {
        self.ranges_listed == self.ranges
    }
}

/// Follows what is planned while ranges are listed. Parts are read once each.
#[derive(Default)]
pub struct PlanWatch {
    known: KnownRanges,
    totals: PlannedTotals,
}

impl PlanWatch {
    pub fn new() -> PlanWatch {
        PlanWatch {
            known: KnownRanges::new(parts_folder(&Phase::Transfer)),
            ..PlanWatch::default()
        }
    }

    /// Reads what was announced since the last call.
    ///
    /// # Errors
    /// Those of the run folder.
    pub fn update(
        &mut self,
        folder: &dyn RunFolder,
        plan: &ClusterPlan,
    ) -> Result<PlannedTotals, RunError> {
        if plan.ranges() == 0 {
            let ClusterPlan { shards, entries, bytes, problems, .. } = plan;
            let (entries, bytes, problems) = (*entries, *bytes, *problems);
            let shards = shards.len() as u64;
            return Ok(PlannedTotals {
                shards,
                entries,
                bytes,
                problems,
                ..PlannedTotals::default()
            });
        }
        self.known.update(folder)?;
        let news = self.known.take_news();
        let files: Vec<String> = news.iter().map(|part| self.known.file(part)).collect();
        // What could not be read is new at the next call.
        let (parts, _) =
            read_parts(folder, &files).inspect_err(|_| self.known.news.extend(news))?;
        let totals = &mut self.totals;
        for part in parts {
            totals.entries += part.shards.iter().map(|shard| shard.entries).sum::<u64>();
            totals.bytes += part.shards.iter().map(|shard| shard.bytes).sum::<u64>();
            totals.problems += part.end.map_or(0, |end| end.failed + end.vanished);
        }
        (totals.ranges, totals.ranges_listed) = (plan.ranges(), self.known.ended() as u32);
        totals.shards = self.known.shards();
        Ok(*totals)
    }
}

impl KnownResults for KnownRanges {
    fn update(&mut self, folder: &dyn RunFolder) -> Result<(), RunError> {
        folder.names(&self.folder)?.iter().for_each(|name| self.note(name));
        Ok(())
    }

    /// Parts do not have the name of their worker: all are listed.
    fn read_all_of(&mut self, folder: &dyn RunFolder, _: &str) -> Result<(), RunError> {
        self.update(folder)
    }

    fn has(&self, number: ShardNumber) -> bool {
        u32::try_from(number).is_ok_and(|range| self.ended.contains_key(&range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::LocalFolder;

    fn part(range: u32, first: u32, costs: &[u64], ends: bool) -> RangePart {
        let shards = costs.iter().map(|cost| Shard { cost: *cost, ..Shard::default() });
        let end = ends.then(RangeEnd::default);
        RangePart { range, first, shards: shards.collect(), end, ..RangePart::default() }
    }

    #[test]
    fn names_of_parts_say_what_they_hold() {
        for (part, costs) in [(part(3, 0, &[5, 900], false), 2), (part(0, 7, &[], true), 0)] {
            let name = PartName::parse(&part.name()).unwrap();
            assert_eq!(name.text(), part.name());
            assert_eq!((name.count, name.is_end), (costs, part.end.is_some()));
            assert!(part.is_as_named(&name));
        }
        for bad in [
            "",
            "a.json",
            "000001-0.0.1.json",
            "1-0.4294967295.9.0x9.json",
            "1-0.0.1.0x1.x.json",
            "1-0.0.2.0x1.json",
            "1-0.0.1.0.json",
        ] {
            assert_eq!(PartName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_parts_say_what_each_shard_costs() {
        let falling = [&[1 << 27; 40][..], &[1 << 26; 9], &[1 << 24; 3]].concat();
        let name = PartName::parse(&part(0, 2, &falling, false).name()).unwrap();
        let known: Vec<u64> = name.shards().map(|(_, class)| class).collect();
        assert_eq!(known, falling);
        assert_eq!(name.shards().next().unwrap().0, shard_number(0, 0, 2));
        // There is room for so many changes: none of the rest is taken for cheaper than it is.
        let mixed: Vec<u64> =
            (0..64).map(|at| if at % 2 == 0 { u64::MAX / 2 } else { 7 }).collect();
        let text = part(u32::MAX, (1 << 24) - 70, &mixed, true).name();
        assert!(text.len() <= 255, "{text}");
        let name = PartName::parse(&text).unwrap();
        assert_eq!(name.shards().count(), 64);
        assert!(name.shards().zip(&mixed).all(|((_, known), cost)| known >= class(*cost)));
    }

    #[test]
    fn shards_are_known_by_the_names_of_parts() {
        let place = tempfile::tempdir().unwrap();
        let folder = LocalFolder::open(&place.path().join("run"), true).unwrap();
        let parts = [part(0, 0, &[1, 2, 3], false), part(0, 3, &[], true), part(4, 0, &[9], true)];
        for part in &parts {
            let content = part.content().unwrap();
            assert_eq!(RangePart::parse(&content).as_ref(), Some(part));
            for at in 0..content.len() {
                let mut damaged = content.clone();
                damaged[at] ^= 1;
                assert_eq!(RangePart::parse(&damaged), None, "{at}");
            }
            folder.create(&format!("ranges/{}", part.name()), &content).unwrap();
        }
        let mut known = KnownRanges::new(parts_folder(&Phase::Transfer));
        known.update(&folder).unwrap();
        assert_eq!((known.shards(), known.ended()), (4, 2));
        assert!(known.has(0) && known.has(4) && !known.has(1));
        assert_eq!(known.take_new_shards().len(), 4);
        known.update(&folder).unwrap();
        assert!(known.take_new_shards().is_empty());
        let number = shard_number(0, 0, 2);
        let read = known.read_part(&folder, number).unwrap().unwrap();
        assert_eq!(read.shard(number).unwrap().cost, 3);
        assert!(known.read_part(&folder, shard_number(0, 0, 3)).unwrap().is_none());
        let last = known.read_part(&folder, shard_number(4, 0, 0)).unwrap().unwrap();
        assert!(last.end.is_some());
        assert_eq!(read_parts(&folder, &known.files()).unwrap().0.len(), 3);
    }
}

//! The plan of a run: options as words of the command line, both ends, and what is to be done: either a table of shards,
//! or ranges of names that workers list. It is written last, and atomically: a folder with a plan has all its shards.
//! Then the phases of the run: the transfer of its shards, the look at both ends after it and, where that is asked for,
//! their verification.

use crate::folder::{self, RunError, RunFolder};
use hakobu_transfer::journal;
use hakobu_transfer::plan::NameRange;
use serde::{Deserialize, Serialize};

/// Version of the files of a run folder.
pub const FORMAT: u32 = 3;

/// The file of the plan.
pub const PLAN: &str = "plan.json";
/// The mark of a plan that is being made.
pub const BEGUN: &str = "planning.json";
/// The mark of a run that is being collected, or was.
pub const COLLECTED: &str = "collected.json";
/// The report of a run that was collected.
pub const REPORT: &str = "report.json";
/// The mark of a verification.
pub const VERIFYING: &str = "verify.json";
/// The mark of a look at both ends.
pub const LOOKING: &str = "look.json";

/// One transfer on many machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlan {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program, which reads the words.
    pub version: String,
    /// A random name of the run.
    pub id: String,
    /// The command line of `sync`, encoded by `journal::text`.
    pub words: Vec<String>,
    /// Folder in which relative paths of the words begin, encoded in the same way.
    pub folder: String,
    /// Local directories of both ends and their inodes: a machine that sees others has not mounted
    /// the file system.
    pub ends: Vec<EndDirectory>,
    /// Both ends are local paths.
    pub local: bool,
    /// Entries to transfer.
    pub entries: u64,
    /// Bytes to transfer.
    pub bytes: u64,
    /// Roots that names of shards begin in, encoded as words.
    pub roots: Vec<String>,
    /// Problems met while planning; `collect` reports them.
    pub problems: u64,
    /// The shards of a plan that listed both ends itself, in the order of their numbers.
    pub shards: Vec<Shard>,
    /// Names at which the key space is cut into ranges, sorted and encoded; none where the plan listed both ends.
    #[serde(default)]
    pub cuts: Vec<String>,
    /// Cost at which a shard of a range is full.
    #[serde(default)]
    pub shard_cost: u64,
    /// Cost of all entries of a range, as far as samples tell.
    #[serde(default)]
    pub range_cost: u64,
    /// Names at the source, as far as samples tell; of a plan with ranges.
    #[serde(default)]
    pub estimated_names: u64,
    /// Workers that are expected.
    #[serde(default)]
    pub workers: u64,
    /// Run folder of an earlier run of the same ends, whose manifest says what is known of objects; encoded.
    #[serde(default)]
    pub previous: Option<String>,
}

/// A local directory at one end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndDirectory {
    /// Its path, encoded.
    pub path: String,
    /// Its inode number; device numbers differ between machines.
    pub ino: u64,
}

/// One shard: entries that one worker transfers together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Bytes, and operations at what one of them costs in bytes.
    pub cost: u64,
    pub entries: u64,
    /// Bytes of content.
    pub bytes: u64,
    pub pieces: Vec<ShardFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardFile {
    /// Its name below `shards/`.
    pub name: String,
    /// CRC64/NVME of the file, as 16 hexadecimal digits.
    pub crc64: String,
}

impl Shard {
    /// Returns whether its files are inside of the run folder.
    pub fn is_inside(&self) -> bool {
        self.pieces.iter().all(ShardFile::is_inside)
    }
}

impl ShardFile {
    /// Returns whether the file is inside of `shards/`.
    pub fn is_inside(&self) -> bool {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        self.name.bytes().all(fine) && !self.name.starts_with('.')
    }
}

impl ClusterPlan {
    /// Reads and checks the plan of a folder.
    ///
    /// # Errors
    /// There is none, it is damaged, or another version of the program made it.
    pub fn read(folder: &dyn RunFolder, version: &str) -> Result<ClusterPlan, RunError> {
        let shown = folder.shown();
        let Some(content) = folder.read(PLAN)? else {
            let why = match folder.read(BEGUN)? {
                Some(_) => "its plan was not finished",
                None => "it holds no plan",
            };
            return Err(RunError::permanent(format!("cannot use run folder {shown}: {why}")));
        };
        let damaged = |why: String| {
            RunError::permanent(format!("cannot use the plan in {shown}: {why}\nhint: plan again"))
        };
        /// The part that every version of the program can read.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            version: String,
        }
        let head: Head = serde_json::from_slice(&content).map_err(|e| damaged(e.to_string()))?;
        if head.format != FORMAT {
            return Err(RunError::permanent(format!(
                "cannot use the plan in {shown}: hakobu {} made it in format {}, and this is hakobu {version} with \
                 format {FORMAT}\n\
                 hint: finish the run with the program that planned it, or plan again into another folder",
                head.version, head.format
            )));
        }
        if head.version != version {
            return Err(RunError::permanent(format!(
                "cannot use the plan in {shown}: hakobu {} made it, and this is hakobu {version}\n\
                 hint: use the same version on all machines",
                head.version
            )));
        }
        let plan: ClusterPlan =
            serde_json::from_slice(&content).map_err(|e| damaged(e.to_string()))?;
        if !plan.shards.iter().all(Shard::is_inside) {
            return Err(damaged("it names a file outside of the run folder".into()));
        }
        Ok(plan)
    }

    /// Number of ranges that workers list; 0 where the plan listed both ends itself.
    pub fn ranges(&self) -> u32 {
        match self.cuts.len() {
            0 => 0,
            cuts => u32::try_from(cuts + 1).unwrap_or(u32::MAX),
        }
    }

    /// Number of units that workers claim: ranges, or shards where the plan has them already.
    pub fn units(&self) -> u64 {
        match self.ranges() {
            0 => self.shards.len() as u64,
            ranges => u64::from(ranges),
        }
    }

    /// The range of a number; `None` where there is none.
    pub fn range(&self, number: u32) -> Option<NameRange> {
        if number >= self.ranges() {
            return None;
        }
        let cut = |at: usize| self.cuts.get(at).map(|cut| journal::bytes(cut));
        let number = number as usize;
        let from = number.checked_sub(1).and_then(cut).unwrap_or_default();
        Some(NameRange { from, until: cut(number) })
    }
}

/// Number of a shard: that of the listing that made it, and its place among the shards of the listing.
pub type ShardNumber = u64;

/// Binary digits of a shard's place in its listing.
const PLACE_BITS: u32 = 24;
/// Listings of one range: a listing is repeated when its worker is gone.
pub const LISTINGS_MAX: u32 = 16;

/// The number of a shard of a range. `generation`: that of the claim on the range.
pub fn shard_number(range: u32, generation: u32, place: u32) -> ShardNumber {
    let listing = 1
        + u64::from(range) * u64::from(LISTINGS_MAX)
        + u64::from(generation.min(LISTINGS_MAX - 1));
    listing << PLACE_BITS | u64::from(place)
}

/// Range, generation and place of a shard's number; no range for a shard of the plan.
pub fn parts_of(number: ShardNumber) -> (Option<(u32, u32)>, u32) {
    let place = (number & ((1 << PLACE_BITS) - 1)) as u32;
    let listing = (number >> PLACE_BITS).checked_sub(1);
    let of = listing.map(|listing| {
        let per_range = u64::from(LISTINGS_MAX);
        ((listing / per_range) as u32, (listing % per_range) as u32)
    });
    (of, place)
}

/// The part of file names that stands for a shard. The order of texts is that of the numbers.
pub fn number_text(number: ShardNumber) -> String {
    match parts_of(number) {
        (None, place) => format!("{place:06}"),
        (Some(of), place) => format!("{}-{place:06}", range_text(of)),
    }
}

/// The part of file names that stands for a range and the generation of its claim.
pub fn range_text((range, generation): (u32, u32)) -> String {
    format!("{range:06}-{generation:x}")
}

/// The number of a shard, from the part of a file's name that [`number_text`] made.
pub fn parse_number(text: &str) -> Option<ShardNumber> {
    let mut parts = text.split('-');
    let first: u32 = parts.next()?.parse().ok()?;
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => Some(u64::from(first)),
        (Some(generation), Some(place), None) => {
            let generation = u32::from_str_radix(generation, 16).ok()?;
            Some(shard_number(first, generation, place.parse().ok()?))
        }
        _ => None,
    }
}

/// A shard's number for a reader.
pub fn shown_number(number: ShardNumber) -> String {
    match parts_of(number) {
        (None, place) => place.to_string(),
        (Some((range, _)), place) => format!("{place} of range {range}"),
    }
}

/// The class of a cost: rounded down to its three highest binary digits; costs of one class differ by a quarter at most.
pub fn class(cost: u64) -> u64 {
    let digits = u64::BITS - cost.leading_zeros();
    let rest = digits.saturating_sub(3);
    cost >> rest << rest
}

/// Work on the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They are transferred.
    Transfer,
    /// Both ends are looked at once more, range by range. Each look has a random name: one that was made before the run
    /// was collected says nothing to a later collect.
    Look(String),
    /// Their entries are compared at both ends. Each verification has a random name: one that was
    /// made before the run was collected once more says nothing.
    Verify(String),
}

/// The mark of a look, or of a verification.
#[derive(Serialize, Deserialize)]
struct Mark {
    id: String,
}

/// Reads a mark; `None` where there is none.
///
/// # Errors
/// It names files outside of the folder.
fn mark(folder: &dyn RunFolder, name: &str) -> Result<Option<String>, RunError> {
    match folder::parsed::<Mark>(folder, name)? {
        Some(Mark { id }) if !folder::is_word(&id) => {
            let shown = folder.shown();
            Err(RunError::permanent(format!("{name} in {shown} is damaged: '{id:?}' is no name")))
        }
        mark => Ok(mark.map(|mark| mark.id)),
    }
}

/// Makes a mark with a random name, where there is none.
fn make_mark(folder: &dyn RunFolder, name: &str) -> Result<(), RunError> {
    let mark = folder::json(&Mark { id: folder::random_name()? })?;
    folder.create(name, &mark).map(drop)
}

impl Phase {
    /// Folder of the claims.
    pub fn claims(&self) -> String {
        match self {
            Phase::Transfer => "claims".to_owned(),
            Phase::Look(id) => format!("look-{id}-claims"),
            Phase::Verify(id) => format!("verify-{id}-claims"),
        }
    }

    /// Folder of the results.
    pub fn results(&self) -> String {
        match self {
            Phase::Transfer => "done".to_owned(),
            Phase::Look(id) => format!("look-{id}"),
            Phase::Verify(id) => format!("verify-{id}"),
        }
    }

    /// Reason why a worker of this phase must not go on; `None` while the phase lasts.
    pub fn end_reason(&self, folder: &dyn RunFolder) -> Result<Option<&'static str>, RunError> {
        match self {
            Phase::Transfer => Ok(folder.read(COLLECTED)?.map(|_| "the run was collected")),
            Phase::Look(_) | Phase::Verify(_) => {
                let current = match self {
                    Phase::Look(_) => Phase::current_look(folder)?,
                    _ => Phase::current_verification(folder)?,
                };
                let lasts = current.as_ref() == Some(self);
                Ok((!lasts).then_some("the run is collected once more"))
            }
        }
    }

    /// The look at both ends that was begun; `None` where there is none.
    ///
    /// # Errors
    /// The mark names files outside of the folder.
    pub fn current_look(folder: &dyn RunFolder) -> Result<Option<Phase>, RunError> {
        Ok(mark(folder, LOOKING)?.map(Phase::Look))
    }

    /// Begins a look at both ends, or joins the one that was begun.
    pub fn begin_look(folder: &dyn RunFolder) -> Result<Phase, RunError> {
        make_mark(folder, LOOKING)?;
        let gone = || RunError::transient("the run is collected once more");
        Phase::current_look(folder)?.ok_or_else(gone)
    }

    /// Gives up a look: the next collect begins another one.
    pub fn forget_look(folder: &dyn RunFolder) -> Result<(), RunError> {
        folder.remove(LOOKING)
    }

    /// The verification that was begun; `None` where there is none.
    ///
    /// # Errors
    /// The mark names files outside of the folder.
    pub fn current_verification(folder: &dyn RunFolder) -> Result<Option<Phase>, RunError> {
        Ok(mark(folder, VERIFYING)?.map(Phase::Verify))
    }

    /// Begins the verification of a run that was collected, or joins the one that was begun; `None`
    /// where the run was not collected yet.
    pub fn begin_verification(folder: &dyn RunFolder) -> Result<Option<Phase>, RunError> {
        if folder.read(REPORT)?.is_none() {
            return Ok(None);
        }
        make_mark(folder, VERIFYING)?;
        Phase::current_verification(folder)
    }

    /// Gives up a verification: the run is collected once more.
    pub fn forget_report(folder: &dyn RunFolder) -> Result<(), RunError> {
        folder.remove(REPORT)?;
        folder.remove(VERIFYING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn numbers_survive_and_keep_their_order(
            a in (0..1_000_000_u32, 0..LISTINGS_MAX, 0..1_000_000_u32),
            b in (0..1_000_000_u32, 0..LISTINGS_MAX, 0..1_000_000_u32),
        ) {
            let [a, b] = [a, b].map(|(range, generation, place)| {
                let number = shard_number(range, generation, place);
                assert_eq!(parts_of(number), (Some((range, generation)), place));
                assert_eq!(parse_number(&number_text(number)), Some(number));
                number
            });
            proptest::prop_assert_eq!(a.cmp(&b), number_text(a).cmp(&number_text(b)));
        }
    }

    #[test]
    fn ranges_cover_all_names_once() {
        let cuts = ["b", "c/", "f"].map(str::to_owned).to_vec();
        let plan = ClusterPlan { cuts, ..ClusterPlan::default() };
        let ranges: Vec<NameRange> = (0..).map_while(|number| plan.range(number)).collect();
        assert_eq!(ranges.len(), 4);
        assert_eq!((&*ranges[0].from, ranges[3].until.clone()), (&b""[..], None));
        assert!(ranges.windows(2).all(|two| two[0].until.as_ref() == Some(&two[1].from)));
        assert_eq!(ClusterPlan::default().ranges(), 0);
    }

    #[test]
    fn numbers_of_a_plan_are_plain() {
        assert_eq!((number_text(7), parse_number("000007")), ("000007".to_owned(), Some(7)));
        assert_eq!(parse_number("x"), None);
        assert_eq!(parse_number("000001-0"), None);
    }
}

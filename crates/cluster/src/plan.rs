//! The plan of a run: options as words of the command line, both ends, and the table of shards. It is written last, and
//! atomically: a folder with a plan has all its shards. Then the phases of the run: the transfer of its shards and, where
//! that is asked for, their verification.

use crate::folder::{self, RunError, RunFolder};
use serde::{Deserialize, Serialize};

/// Version of the files of a run folder.
pub const FORMAT: u32 = 2;

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
    /// The shards in the order of their numbers.
    pub shards: Vec<Shard>,
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
        if head.version != version || head.format != FORMAT {
            return Err(RunError::permanent(format!(
                "cannot use the plan in {shown}: hakobu {} made it, and this is hakobu {version}\n\
                 hint: use the same version on all machines",
                head.version
            )));
        }
        let plan: ClusterPlan =
            serde_json::from_slice(&content).map_err(|e| damaged(e.to_string()))?;
        let safe = |piece: &ShardFile| {
            let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
            piece.name.bytes().all(fine) && !piece.name.starts_with('.')
        };
        if !plan.shards.iter().all(|shard| shard.pieces.iter().all(safe)) {
            return Err(damaged("it names a file outside of the run folder".into()));
        }
        Ok(plan)
    }

    /// Numbers of the shards, the most expensive first: what is left at the end is small. Those of like cost stay in the
    /// order of the tree.
    pub fn order(&self) -> Vec<u32> {
        let count = u32::try_from(self.shards.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by_key(|number| std::cmp::Reverse(self.class(*number)));
        order
    }

    /// Cost of a shard, rounded down to its three highest binary digits: costs of one class differ by a quarter at most.
    pub fn class(&self, number: u32) -> u64 {
        let cost = self.shards.get(number as usize).map_or(0, |shard| shard.cost);
        let digits = u64::BITS - cost.leading_zeros();
        let rest = digits.saturating_sub(3);
        cost >> rest << rest
    }
}

/// The part of file names that stands for a shard.
pub fn number_text(number: u32) -> String {
    format!("{number:06}")
}

/// Work on the shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They are transferred.
    Transfer,
    /// Their entries are compared at both ends. Each verification has a random name: one that was
    /// made before the run was collected once more says nothing.
    Verify(String),
}

#[derive(Serialize, Deserialize)]
struct VerificationMark {
    id: String,
}

impl Phase {
    /// Folder of the claims.
    pub fn claims(&self) -> String {
        match self {
            Phase::Transfer => "claims".to_owned(),
            Phase::Verify(id) => format!("verify-{id}-claims"),
        }
    }

    /// Folder of the results.
    pub fn results(&self) -> String {
        match self {
            Phase::Transfer => "done".to_owned(),
            Phase::Verify(id) => format!("verify-{id}"),
        }
    }

    /// Reason why a worker of this phase must not go on; `None` while the phase lasts.
    pub fn end_reason(&self, folder: &dyn RunFolder) -> Result<Option<&'static str>, RunError> {
        match self {
            Phase::Transfer => Ok(folder.read(COLLECTED)?.map(|_| "the run was collected")),
            Phase::Verify(_) => {
                let lasts = Phase::current_verification(folder)?.as_ref() == Some(self);
                Ok((!lasts).then_some("the run is collected once more"))
            }
        }
    }

    /// The verification that was begun; `None` where there is none.
    ///
    /// # Errors
    /// The mark names files outside of the folder.
    pub fn current_verification(folder: &dyn RunFolder) -> Result<Option<Phase>, RunError> {
        match folder::parsed::<VerificationMark>(folder, VERIFYING)? {
            Some(VerificationMark { id }) if !folder::is_word(&id) => {
                let shown = folder.shown();
                Err(RunError::permanent(format!(
                    "{VERIFYING} in {shown} is damaged: '{id:?}' is no name"
                )))
            }
            mark => Ok(mark.map(|mark| Phase::Verify(mark.id))),
        }
    }

    /// Begins the verification of a run that was collected, or joins the one that was begun; `None`
    /// where the run was not collected yet.
    pub fn begin_verification(folder: &dyn RunFolder) -> Result<Option<Phase>, RunError> {
        if folder.read(REPORT)?.is_none() {
            return Ok(None);
        }
        let mark = folder::json(&VerificationMark { id: format!("{:016x}", fastrand::u64(..)) })?;
        folder.create(VERIFYING, &mark)?;
        Phase::current_verification(folder)
    }

    /// Gives up a verification: the run is collected once more.
    pub fn forget_report(folder: &dyn RunFolder) -> Result<(), RunError> {
        folder.remove(REPORT)?;
        folder.remove(VERIFYING)
    }
}

//! The plan of a run: options as words of the command line, both ends, and the table of shards.
//! It is written last, and atomically: a folder with a plan has all its shards.

use crate::folder::{Folder, Trouble};
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
pub struct Plan {
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
    pub ends: Vec<End>,
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
pub struct End {
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
    /// Entries.
    pub entries: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Its files.
    pub pieces: Vec<Piece>,
}

/// One file of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its name below `shards/`.
    pub name: String,
    /// CRC64/NVME of the file, as 16 hexadecimal digits.
    pub crc64: String,
}

impl Plan {
    /// Reads and checks the plan of a folder.
    ///
    /// # Errors
    /// There is none, it is damaged, or another version of the program made it.
    pub fn read(folder: &dyn Folder, version: &str) -> Result<Plan, Trouble> {
        let shown = folder.shown();
        let Some(content) = folder.read(PLAN)? else {
            let why = match folder.read(BEGUN)? {
                Some(_) => "its plan was not finished",
                None => "it holds no plan",
            };
            return Err(Trouble::lasting(format!("cannot use run folder {shown}: {why}")));
        };
        let damaged = |why: String| {
            Trouble::lasting(format!("cannot use the plan in {shown}: {why}\nhint: plan again"))
        };
        /// The part that every version of the program can read.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            version: String,
        }
        let head: Head = serde_json::from_slice(&content).map_err(|e| damaged(e.to_string()))?;
        if head.version != version || head.format != FORMAT {
            return Err(Trouble::lasting(format!(
                "cannot use the plan in {shown}: hakobu {} made it, and this is hakobu {version}\n\
                 hint: use the same version on all machines",
                head.version
            )));
        }
        let plan: Plan = serde_json::from_slice(&content).map_err(|e| damaged(e.to_string()))?;
        let safe = |piece: &Piece| {
            let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
            piece.name.bytes().all(fine) && !piece.name.starts_with('.')
        };
        if !plan.shards.iter().all(|shard| shard.pieces.iter().all(safe)) {
            return Err(damaged("it names a file outside of the folder".into()));
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

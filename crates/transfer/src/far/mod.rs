//! The wire between the engines of two machines: what one end announces (`source_end`) becomes what arrives at the other
//! (`target_end`). How a run is made of them is in `run/far`.

mod delta;
mod link;
mod said;
mod source_end;
mod target_end;
mod waits;

pub use link::{FarLink, FarMark, FarPeer, Lane, LaneEnd, LinkSample};
pub use said::{Relay, Said, told};
pub(crate) use source_end::{ENTRIES_MAX, MESSAGE_BYTES};
pub use source_end::{Sender, SourceEnd, SourceSends};
pub use target_end::TargetEnd;

pub use crate::local::SourceFacts;
use hakobu_core::control::Control;
use hakobu_core::error::{Fatal, foreign};
use hakobu_core::unit::Totals;
use hakobu_remote::link::LinkError;
use hakobu_remote::message::ProtocolError;
use serde::{Deserialize, Serialize};

/// Number of the protocol. Both ends need the same one; versions of the program may differ.
pub const PROTOCOL: u32 = 1;

/// rsync's exit codes: an error in the protocol's stream, a timeout.
const STREAM: u8 = 12;
const TIMEOUT: u8 = 30;

/// The first message of each end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the program, for messages.
    pub version: String,
    /// Of the near end: what the agent is to do.
    pub task: Option<Task>,
    /// Of an agent: where other agents hand over further lanes; empty if they cannot.
    pub lanes: String,
    /// Of an agent that is the source end: what the sources are.
    pub facts: SourceFacts,
    /// Both ends are on one machine. Of the target end there: device and inode of its directory.
    pub is_here: bool,
    pub place: Option<(u64, u64)>,
    /// Of an agent: it is the target end. Two of them would wait for each other.
    pub writes: bool,
    /// Of the agent: why it does not do it.
    pub refused: Option<Refusal>,
    /// Parts of files that options name.
    pub files: Vec<FilePart>,
    /// Another greeting follows, with more of them.
    pub more: bool,
    /// Of the near end, before its task: the list of names, of the agent's machine, that it needs for it.
    pub list: Option<ListRequest>,
}

/// A part of a file that an option names; the parts of one file come in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePart {
    /// Its name in the option; `None`: the list of names, which end with zero bytes.
    pub name: Option<String>,
    /// Encoded as paths are.
    pub content: String,
}

/// A list of names (`--files-from=HOST:FILE`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListRequest {
    /// Encoded as paths are.
    pub path: String,
    /// Names end with zero bytes, not with lines.
    pub nul: bool,
    /// As in [`Task`].
    pub silence_s: u64,
}

/// What an agent is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Task {
    /// It is the source end.
    pub reads: bool,
    /// The command that it is a part of: `sync`, `cp`.
    pub command: String,
    /// Lines of entries are wanted, and those of unchanged ones.
    pub items: bool,
    pub items_unchanged: bool,
    /// Options of the command.
    pub options: Vec<TaskOption>,
    /// Paths of the sources, or of the target, encoded.
    pub paths: Vec<String>,
    /// For the target end: what the sources are.
    pub facts: SourceFacts,
    /// For the source end: device and inode of the target, if it is a directory. On one machine it is not copied into itself.
    pub place: Option<(u64, u64)>,
    /// Boot ID of the near end's machine.
    pub machine: String,
    /// The near end can open further lanes.
    pub opens_lanes: bool,
    /// Seconds that an end may be silent; 0: for ever.
    pub silence_s: u64,
}

/// An option by its name in the table of its command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskOption {
    pub name: String,
    pub on: bool,
    pub count: u8,
    /// Encoded as paths are.
    pub value: String,
}

/// An error with rsync's exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusal {
    pub code: u8,
    pub message: String,
}

impl Refusal {
    /// Returns the error of the other end, which is one whatever its code is.
    pub fn fatal(self) -> Fatal {
        let code = if self.code == 0 { STREAM } else { self.code };
        Fatal::new(code, foreign(&self.message))
    }
}

/// The last message of an end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bye {
    pub totals: Totals,
    pub stopped: bool,
    pub fatal: Option<Refusal>,
}

impl Bye {
    /// Returns whether the end has done its part, as far as it says.
    fn is_clean(&self) -> bool {
        !self.stopped && self.fatal.is_none()
    }
}

/// An end said that it is done, and was not.
const LEFT_OPEN: ProtocolError = ProtocolError("it ended before it had done its part");

/// Returns why an end is lost: once a run was asked to stop, it may end at any moment, for the same signal.
fn stopped_or(error: LinkError, control: &Control) -> LinkError {
    match (&error, control.is_stopped()) {
        (LinkError::Io(_), true) => LinkError::Io(std::io::ErrorKind::Interrupted.into()),
        _ => error,
    }
}

/// Returns whether an end is lost because the run was asked to stop.
pub fn is_stop(error: &LinkError) -> bool {
    matches!(error, LinkError::Io(error) if error.kind() == std::io::ErrorKind::Interrupted)
}

/// Returns whether an end is lost because it was silent for too long.
pub fn is_silence(error: &LinkError) -> bool {
    matches!(error, LinkError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut)
}

/// Returns the error of a run whose other end is lost.
pub fn lost(error: &LinkError, host: &str) -> Fatal {
    if is_silence(error) {
        return Fatal::new(TIMEOUT, format!("{host} said nothing for longer than --timeout"));
    }
    let cause = match error {
        LinkError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the connection was closed".to_owned()
        }
        other => other.to_string(),
    };
    Fatal::new(STREAM, format!("lost the other end ({host}): {cause}"))
}

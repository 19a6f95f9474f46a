//! Hard links among the transferred files: the first name of a group is copied, later ones are
//! linked to it. A name that comes while the first is still being copied waits in the group.
//!
//! A group is forgotten when all its names have come; names outside of the transfer keep it. This
//! is the one structure that grows with the data: about 100 bytes for each open group.

use super::node::Node;
use super::pool::lock;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex};

/// A name of a group: where its target is (to be).
pub struct Member {
    /// The directory.
    pub node: Arc<Node>,
    /// Which source of it.
    pub side: usize,
    /// The name in the source.
    pub name: CString,
    /// The name at the target, where it differs.
    pub target_name: Option<Box<CStr>>,
}

impl Member {
    /// The name at the target.
    pub fn at_target(&self) -> &CStr {
        self.target_name.as_deref().unwrap_or(&self.name)
    }
}

/// Where the first name of a group is at the target.
#[derive(Clone)]
pub struct Leader {
    /// The directory.
    pub node: Arc<Node>,
    /// The name in it.
    pub name: Arc<CStr>,
    /// Its copy was complete and its source unchanged: sources of later names may go, too.
    pub checked: bool,
}

enum State {
    Copying(Vec<Member>),
    Done(Leader),
}

struct Group {
    state: State,
    /// Names that have not come yet.
    left: u64,
}

/// What a name of a group has to do.
pub enum Role {
    /// It is the first: copy it, then call [`Groups::finished`].
    First,
    /// The first is being copied: it was taken into the group and will be handed out by
    /// `finished`.
    Waits,
    /// The first is there: link to it.
    Follows(Leader),
}

/// All open groups, by device and inode of the source.
#[derive(Default)]
pub struct Groups {
    shards: [Mutex<HashMap<(u64, u64), Group>>; 16],
}

impl Groups {
    fn shard(&self, id: (u64, u64)) -> &Mutex<HashMap<(u64, u64), Group>> {
        // Neighbouring inodes are met by the same worker: spread by the low bits.
        &self.shards[(id.1 % 16) as usize]
    }

    /// Announces a name with `nlink` names in all. `member` is made only where the name waits.
    pub fn join(&self, id: (u64, u64), nlink: u64, member: impl FnOnce() -> Member) -> Role {
        let mut groups = lock(self.shard(id));
        let Some(group) = groups.get_mut(&id) else {
            let left = nlink.saturating_sub(1);
            groups.insert(id, Group { state: State::Copying(Vec::new()), left });
            return Role::First;
        };
        group.left = group.left.saturating_sub(1);
        match &mut group.state {
            State::Copying(waiting) => {
                waiting.push(member());
                Role::Waits
            }
            State::Done(leader) => {
                let leader = leader.clone();
                if group.left == 0 {
                    groups.remove(&id);
                }
                Role::Follows(leader)
            }
        }
    }

    /// Whether a group of this file is open: when sources are removed as they are copied, the
    /// last name of a group looks as if it were the only one.
    pub fn knows(&self, id: (u64, u64)) -> bool {
        lock(self.shard(id)).contains_key(&id)
    }

    /// The first name is at the target (`leader`), or could not be put there (`None`). Returns
    /// the names that waited: to be linked, or if there is no leader, to be tried in its place.
    pub fn finished(&self, id: (u64, u64), leader: Option<Leader>) -> Vec<Member> {
        let mut groups = lock(self.shard(id));
        let Some(group) = groups.get_mut(&id) else { return Vec::new() };
        let waiting = match &mut group.state {
            State::Copying(waiting) => std::mem::take(waiting),
            State::Done(_) => Vec::new(),
        };
        match leader {
            Some(leader) if group.left > 0 => group.state = State::Done(leader),
            // Without a leader the group begins anew with the next name.
            _ => {
                groups.remove(&id);
            }
        }
        waiting
    }
}

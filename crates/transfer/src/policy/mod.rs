//! Decisions about entries: the options of a transfer as plain values, the pure function that decides from two
//! entries, and the filter rules. Makes no file system call.

mod chmod;
mod decide;
pub mod filter;
mod grain;
mod range;

use self::filter::XattrSides;
pub use crate::policy::chmod::{ChmodError, ChmodRules};
pub use crate::policy::decide::{Action, Reason, compare, decide};
pub use crate::policy::grain::Grain;
pub(crate) use crate::policy::grain::{is_newer, same_time};
pub use crate::policy::range::NameRange;
use hakobu_core::error::Fatal;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_sys::paths::Links;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

/// Handling of a symlink in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Symlinks {
    /// Skip and report it (rsync without `-l`).
    #[default]
    Skip,
    /// Create the same symlink (`-l`, `cp -P`).
    Keep,
    /// Copy its referent (`-L`).
    Follow,
}

/// Time at which extraneous entries of the target are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delete {
    /// Never.
    #[default]
    No,
    /// In a separate walk before anything is copied.
    Before,
    /// In each directory when its source has been listed to the end.
    During,
    /// In a second walk after everything was copied (`--delete-after`, `--delete-delay`).
    After,
}

/// Creation of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sparse {
    /// Holes of the source stay holes if the file system reports them.
    #[default]
    Auto,
    /// Runs of zeroes become holes, too (`-S`, `cp --sparse=always`).
    Always,
    /// Every byte is written.
    Never,
}

/// Whether extents are shared with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reflink {
    /// If the file systems can, else copy.
    #[default]
    Auto,
    /// Fail if they cannot.
    Always,
    /// Always copy the bytes.
    Never,
}

/// Type of entry created at the target for a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Content {
    #[default]
    Copy,
    /// A hard link to the source (`cp -l`).
    HardLink,
    /// A symlink to the source's absolute path (`cp -s`).
    Symlink,
}

/// Handling of a file that is unchanged in a tree beside the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Basis {
    /// Hard-link it (`--link-dest`).
    #[default]
    Link,
    /// Copy its content from there (`--copy-dest`).
    Copy,
    /// Leave it out of the target (`--compare-dest`).
    Compare,
}

impl Basis {
    /// Returns the option that requests it.
    pub fn option(self) -> &'static str {
        match self {
            Basis::Link => "--link-dest",
            Basis::Copy => "--copy-dest",
            Basis::Compare => "--compare-dest",
        }
    }
}

/// Kind of checksum that is shown for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// XXH128: the default of rsync 3.2 and later.
    Xxh128,
    /// MD5.
    Md5,
}

/// Names of backups beside their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Numbering {
    /// The name and the suffix.
    #[default]
    Simple,
    /// Numbered if the file has numbered backups, else simple.
    Existing,
    /// `NAME.~1~`, `NAME.~2~` and so on.
    Numbered,
}

/// Handling of arguments that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MissingArgs {
    /// Report each as an error.
    #[default]
    Tell,
    /// Ignore them (`--ignore-missing-args`).
    Ignore,
    /// Remove them from the target (`--delete-missing-args`).
    Delete,
}

/// Whether missing data is appended to existing files that are shorter than their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Append {
    /// Replace them like others.
    #[default]
    No,
    /// Trust their content (`--append`).
    Blindly,
    /// Compare their content first, and rewrite it if it differs (`--append-verify`).
    Verified,
}

/// Attributes that are kept. An attribute that only a privileged user may set is skipped and counted for others; with
/// `explicit` it is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Preserve {
    /// Permission bits.
    pub mode: bool,
    /// Owner (superuser only).
    pub owner: bool,
    pub group: bool,
    /// Modification times.
    pub times: bool,
    /// Access times as well (cp).
    pub atimes: bool,
    /// POSIX ACLs (implies `mode`).
    pub acls: bool,
    /// Extended attributes.
    pub xattrs: bool,
    /// The owner was requested by name (`-o`, `--chown`, `--preserve=ownership`), not by `-a`.
    pub owner_explicit: bool,
    /// ACLs were requested by name, so failures are errors.
    pub acls_explicit: bool,
    /// Extended attributes were requested by name, so failures are errors.
    pub xattrs_explicit: bool,
    /// Extended attributes that rsync keeps for itself (`user.rsync.%…`) are not part of them.
    pub hides_reserved: bool,
    /// Times of directories are not set (`-O`).
    pub omit_dir_times: bool,
    /// Times of symlinks are not set (`-J`).
    pub omit_link_times: bool,
    /// Access times of regular files only (`-U`).
    pub file_atimes: bool,
    /// Executability is kept if the mode is not (`-E`).
    pub executability: bool,
}

impl Preserve {
    /// Returns whether a copy keeps the extended attribute of that name; the POSIX ACLs are two of them.
    pub fn keeps_xattr(self, name: &[u8], is_root: bool) -> bool {
        if name == b"system.posix_acl_access" || name == b"system.posix_acl_default" {
            return self.acls;
        }
        // Other attributes in system.* belong to the file system (NFSv4 ACLs, dos attributes). XFS shows its ACLs a
        // second time under names of its own.
        self.xattrs
            && !name.starts_with(b"system.")
            && !name.starts_with(b"trusted.SGI_ACL_")
            && (is_root || name.starts_with(b"user."))
    }
}

impl Policy {
    /// Returns the options' rules for names of extended attributes.
    pub fn xattr_rules(&self) -> XattrSides {
        self.filter.as_ref().map(|filter| filter.xattrs()).unwrap_or_default()
    }

    /// Returns whether a copy takes the extended attribute of that name from the source. Rules with the modifier `x`
    /// replace the limits to namespaces, as in rsync.
    pub fn copies_xattr(&self, name: &[u8], is_root: bool, rules: &XattrSides) -> bool {
        self.decides_xattr(name, is_root, rules, XattrSides::copies)
    }

    /// Returns whether a copy removes the extended attribute of that name from the target if the source lacks it.
    pub fn removes_xattr(&self, name: &[u8], is_root: bool, rules: &XattrSides) -> bool {
        self.decides_xattr(name, is_root, rules, XattrSides::removes)
    }

    fn decides_xattr(
        &self,
        name: &[u8],
        is_root: bool,
        rules: &XattrSides,
        decide: impl Fn(&XattrSides, &[u8]) -> bool,
    ) -> bool {
        let is_acl = name == b"system.posix_acl_access" || name == b"system.posix_acl_default";
        if self.preserve.hides_reserved && name.starts_with(b"user.rsync.%") {
            return false;
        }
        let keeps = || self.preserve.keeps_xattr(name, is_root);
        match self.preserve.xattrs && !(is_acl && self.preserve.acls) {
            true => (rules.any() || keeps()) && decide(rules, name),
            false => keeps(),
        }
    }
}

/// Sides of a copy where extended attributes stand for what only root may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FakeSides {
    pub source: bool,
    /// The target and trees beside it.
    pub target: bool,
}

/// Called with the path before an existing target is overwritten (`cp -i`); returns whether to continue.
pub type Ask = Arc<dyn Fn(&std::path::Path) -> bool + Send + Sync>;

/// All options that decide *what* happens, not in which order or how fast.
#[derive(Clone, Default)]
pub struct Policy {
    /// Descends into directories.
    pub recurse: bool,
    /// Creates named directories without descending (`-d`, `--dirs`).
    pub dirs: bool,
    /// Handling of symlinks in the source.
    pub symlinks: Symlinks,
    /// A symlink that is itself a source argument is followed (`cp -H`; trailing slash).
    pub follow_args: bool,
    /// A symlink to a directory in the source is treated as the directory (`-k`).
    pub copy_dirlinks: bool,
    /// A symlink to a directory in the target is treated as the directory (`-K`).
    pub keep_dirlinks: bool,
    /// Symlinks that point outside the tree are skipped.
    pub safe_links: bool,
    /// Symlinks that point outside the tree are replaced by their referents (`--copy-unsafe-links`).
    pub copy_unsafe_links: bool,
    /// Directories above an argument of `-R` are not transferred (`--no-implied-dirs`).
    pub no_implied_dirs: bool,
    /// Handling of arguments that do not exist.
    pub missing_args: MissingArgs,
    /// Hard links among the transferred files stay hard links (`-H`).
    pub hard_links: bool,
    /// Device nodes are created.
    pub devices: bool,
    /// FIFOs and sockets are created.
    pub specials: bool,
    /// Attributes that are kept.
    pub preserve: Preserve,
    /// Changes to the mode bits (`--chmod`).
    pub chmod: Option<ChmodRules>,
    /// Owner for everything (`--chown=USER:`).
    pub chown_uid: Option<u32>,
    /// Group for everything (`--chown=:GROUP`).
    pub chown_gid: Option<u32>,
    /// Mapping of owners (`--usermap`).
    pub users: IdMap,
    /// Mapping of groups (`--groupmap`).
    pub groups: IdMap,
    /// Numbers of another machine's users and groups are kept, not their names (`--numeric-ids`).
    pub numeric_ids: bool,
    /// Creation of holes.
    pub sparse: Sparse,
    /// Shared extents.
    pub reflink: Reflink,
    /// Copy, hard link or symlink.
    pub content: Content,
    /// A target that is newer than the source is skipped (`-u`).
    pub update: bool,
    /// With `update`: a target of the same age is skipped, too, whatever its size (`cp -u`).
    pub update_same: bool,
    /// Equal size is not enough: contents are compared (`-c`).
    pub checksum: bool,
    /// Equal size is enough.
    pub size_only: bool,
    /// Equal size and time are not enough: copy again (`-I`, and plain `cp`).
    pub ignore_times: bool,
    /// Times that differ by at most this many seconds are equal; negative: compare nanoseconds. `None`: compare at
    /// the coarser granularity of both file systems.
    pub modify_window_s: Option<i64>,
    /// At equal size, a target that is not older than its source is the same: its time is that of its upload (objects
    /// without times of their own).
    pub newer_only: bool,
    /// Only entries that already exist in the target.
    pub existing: bool,
    /// Only entries that do not exist in the target yet (`cp -n` as well).
    pub ignore_existing: bool,
    /// Called before overwriting (`-i` of cp).
    pub ask: Option<Ask>,
    /// Existing targets are treated as in cp: they keep their owner and mode, and a device or FIFO is written to
    /// instead of being replaced.
    pub cp_targets: bool,
    /// With `cp_targets`: an existing entry is replaced as a whole (`--remove-destination`).
    pub remove_destination: bool,
    /// Contents of files are not copied: existing files keep theirs, new ones are empty (`--attributes-only`).
    pub attributes_only: bool,
    /// `cp -f`: links that are made instead of copies replace existing entries, and with a backup a file may be copied
    /// onto itself.
    pub forced: bool,
    /// A non-empty directory may be replaced by a file (`--force`, or `--delete`).
    pub force: bool,
    /// Time at which extraneous entries are removed.
    pub delete: Delete,
    /// Entries that a rule hides are removed from the target as well.
    pub delete_excluded: bool,
    /// Maximum number of removals.
    pub max_delete: Option<u64>,
    /// Removes even in directories that could not be listed without error.
    pub ignore_errors: bool,
    /// Maximum size of a regular file, in bytes; larger ones are skipped.
    pub max_size: Option<u64>,
    /// Minimum size of a regular file, in bytes; smaller ones are skipped.
    pub min_size: Option<u64>,
    /// Existing files are written in place, without a temporary name.
    pub inplace: bool,
    /// Changed files of another machine are sent as a whole, not as differences.
    pub whole_file: bool,
    /// Missing data is appended to shorter existing files.
    pub append: Append,
    /// Devices of the source are read as files (`--copy-devices`).
    pub copy_devices: bool,
    /// Existing devices receive the content of regular files (`--write-devices`).
    pub write_devices: bool,
    /// Blocks of new files are reserved before they are written (`--preallocate`).
    pub preallocate: bool,
    /// Content is read without updating the access time (`--open-noatime`).
    pub open_noatime: bool,
    /// Root-only operations are skipped as for other users (`--no-super`).
    pub as_user: bool,
    /// Sides where extended attributes stand for what only root may set (`--fake-super`).
    pub fake: FakeSides,
    /// Files get their final names when all are complete (`--delay-updates`).
    pub delay_updates: bool,
    /// An interrupted file is kept under its name instead of being removed.
    pub partial: bool,
    /// ... in this folder of its directory, or at this path if it is absolute (`--partial-dir`).
    pub partial_dir: Option<PathBuf>,
    /// Directory for temporary files, instead of the target's directory.
    pub temp_dir: Option<PathBuf>,
    /// Replaced and removed targets are kept under another name.
    pub backup: bool,
    pub suffix: Vec<u8>,
    /// Whether that name has a number instead (cp and mv; never with `backup_dir`).
    pub numbering: Numbering,
    /// They are moved to the same path below this folder, which is relative to the target.
    pub backup_dir: Option<PathBuf>,
    /// That folder is the target itself: backups are beside their files, and never extraneous.
    pub backup_dir_is_target: bool,
    /// Trees that are searched for unchanged files; relative ones are relative to the target.
    pub basis_dirs: Vec<PathBuf>,
    /// Handling of an unchanged file found there.
    pub basis: Basis,
    /// Every file is flushed before it gets its name (`--fsync`).
    pub fsync: bool,
    /// Sources (all but directories) are removed when their target is complete and checked.
    pub remove_source_files: bool,
    /// Source directories are removed as well once they are empty (`mv` across file systems).
    pub remove_source_dirs: bool,
    /// Does not cross into other file systems of the source (`-x`).
    pub one_file_system: bool,
    /// With `one_file_system`: mount points are not created as directories, either (`-xx`).
    pub omit_mounts: bool,
    /// Directories without any file below are not created (`-m`).
    pub prune_empty_dirs: bool,
    /// Directories keep their current attributes: a later run sets them.
    pub leave_dirs: bool,
    /// Reports what would happen, changes nothing (`-n`).
    pub dry_run: bool,
    /// Only lists the source (`--list-only`).
    pub list_only: bool,
    /// Symlinks on the path to the target, to `--temp-dir` and `--link-dest`, and to rule files.
    pub links: Links,
    /// The directory that sources, too, must not lead out of (`hakobu agent --root`); paths are relative to it.
    pub root: Option<PathBuf>,
    /// Filter rules; `None` for none.
    pub filter: Option<Arc<filter::Filter>>,
}

impl Policy {
    /// Returns whether the target's own per-directory rule files apply: they may protect extraneous entries.
    pub fn reads_target_rules(&self) -> bool {
        let filter = self.filter.as_deref();
        (self.delete != Delete::No || self.force)
            && filter.is_some_and(filter::Filter::has_merge_files)
    }

    /// Returns whether a source that is (or may be) a symlink to a directory is followed.
    pub fn follows_dirs(&self) -> bool {
        self.copy_dirlinks || self.copy_unsafe_links || self.symlinks == Symlinks::Follow
    }

    /// Returns whether an existing symlink that is named as the target is followed, and a device or FIFO written to, as
    /// cp does unless it makes a new entry.
    pub fn writes_through(&self) -> bool {
        self.cp_targets && !self.backup && !self.remove_destination && self.content == Content::Copy
    }

    /// Returns whether an existing entry is replaced by one that has nothing of it, in cp.
    pub fn makes_anew(&self) -> bool {
        self.cp_targets && (self.backup || self.remove_destination)
    }

    /// Returns whether a link that is made instead of a copy may replace an existing entry.
    pub fn links_replace(&self) -> bool {
        self.forced || self.ask.is_some() || self.makes_anew()
    }

    /// Returns whether a file without other names may have them in the transfer: cp links all symlinks to one file
    /// that it follows.
    pub fn links_followed(&self) -> bool {
        let follows = self.follow_args || self.symlinks == Symlinks::Follow;
        self.cp_targets && self.hard_links && follows
    }

    /// Returns whether a file is completed by appending to the existing target.
    pub fn appends(&self, source: &Meta, target: &Meta) -> bool {
        self.append != Append::No
            && (source.kind, target.kind) == (Kind::File, Kind::File)
            && target.size < source.size
    }

    /// Returns whether sources are removed only at the end: another source may lead to one, its target has no name
    /// yet, or its target would be taken for extraneous without it.
    pub fn removes_sources_late(&self) -> bool {
        let asks_sources = matches!(self.delete, Delete::During | Delete::After);
        // Backups take no name that a source has.
        let backs_up = self.backup && !self.remove_source_dirs;
        self.remove_source_files
            && (self.follows_dirs() || self.delay_updates || asks_sources || backs_up)
    }

    /// Returns whether the end that has the sources is told when the other one has a complete copy of each.
    pub fn tells_arrivals(&self) -> bool {
        self.remove_source_files && !self.dry_run
    }

    /// Returns whether users or groups are mapped.
    pub fn maps_ids(&self) -> bool {
        let named = self.chown_uid.or(self.chown_gid).is_some();
        named || !self.users.is_empty() || !self.groups.is_empty()
    }

    /// Returns the mapped user ID.
    pub fn user_of(&self, uid: u32) -> u32 {
        self.chown_uid.unwrap_or_else(|| self.users.of(uid))
    }

    /// Returns the mapped group ID.
    pub fn group_of(&self, gid: u32) -> u32 {
        self.chown_gid.unwrap_or_else(|| self.groups.of(gid))
    }

    /// Checks that the options are compatible.
    ///
    /// # Errors
    /// Code 1 and a sentence that names the two options.
    pub fn check(&self) -> Result<(), Fatal> {
        if self.delete != Delete::No && !self.recurse && !self.dirs {
            return Err(Fatal::new(
                1,
                "--delete does not work without --recursive (-r) or --dirs (-d)",
            ));
        }
        if self.backup && self.suffix.is_empty() && self.backup_dir.is_none() {
            return Err(Fatal::new(1, "--backup needs a suffix that is not empty"));
        }
        let in_place = [(self.inplace, "--inplace"), (self.append != Append::No, "--append")];
        let later = [
            (self.delay_updates, "--delay-updates"),
            (self.partial_dir.is_some(), "--partial-dir"),
        ];
        for (_, one) in in_place.iter().filter(|(on, _)| *on) {
            if let Some((_, other)) = later.iter().find(|(on, _)| *on) {
                return Err(Fatal::new(1, format!("{one} cannot be used with {other}")));
            }
        }
        if self.backup && self.suffix.contains(&b'/') {
            return Err(Fatal::new(1, "--suffix cannot contain a slash"));
        }
        Ok(())
    }
}

// Entries that an earlier run chose, as they were then.

/// Reason for leaving out an entry that is not what an earlier run chose.
pub const NOT_AS_PLANNED: &str = "it has changed since the plan was made";

/// Entries that an earlier run chose: names below the source, and type, size and time that they had then.
#[derive(Clone, Debug, Default)]
pub struct EntrySelection {
    /// The names, entries of one folder together, with their types.
    pub names: Vec<(Box<[u8]>, Kind)>,
    pub states: HashMap<Box<[u8]>, (Kind, u64, Time)>,
}

impl EntrySelection {
    /// Returns whether an entry is what was chosen. A directory may have changed in all but its type.
    pub fn is_still(&self, name: &[u8], meta: &Meta) -> bool {
        self.states.get(name).is_some_and(|(kind, size, mtime)| {
            let same = (*size, *mtime) == (meta.size, meta.mtime);
            *kind == meta.kind && (*kind == Kind::Dir || same)
        })
    }
}

// Symlinks that point out of the tree.

/// Returns whether the text of a symlink points out of the transferred tree (rsync(1), `--safe-links`,
/// `--copy-unsafe-links`): absolute, empty, or with more `..` than the link's depth. `path` is the link's own path in
/// the transfer.
pub fn is_unsafe_link(text: &[u8], path: &[u8]) -> bool {
    if text.is_empty() || text.starts_with(b"/") {
        return true;
    }
    let deep = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let mut depth = deep.count() as i64 - 1;
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'/').collect();
    let mut named = false;
    for part in &parts {
        match *part {
            b"" | b"." => {}
            b".." => {
                // rsync distrusts `..` after a name: that name may itself be a symlink.
                if named {
                    return true;
                }
                depth -= 1;
                if depth < 0 {
                    return true;
                }
            }
            _ => {
                named = true;
                depth += 1;
            }
        }
    }
    false
}

// Mapping of user and group IDs (`--usermap`, `--groupmap`).

/// Sets of IDs and their targets. The first set that contains an ID counts.
#[derive(Clone, Debug, Default)]
pub struct IdMap {
    sets: Vec<(IdSet, u32)>,
}

/// A set of IDs.
#[derive(Clone, Debug)]
enum IdSet {
    Range(RangeInclusive<u32>),
    /// Those for which the system has no name, which the function looks up.
    Nameless(fn(u32) -> Option<String>),
    /// That which has this name at the other end.
    Named(String),
}

impl IdSet {
    fn contains(&self, id: u32) -> bool {
        match self {
            IdSet::Range(range) => range.contains(&id),
            IdSet::Nameless(name_of) => name_of(id).is_none(),
            IdSet::Named(_) => false,
        }
    }

    /// As [`IdSet::contains`], for an ID of the other end, which has this name there, or none.
    fn contains_far(&self, id: u32, name: &[u8]) -> bool {
        match self {
            IdSet::Range(range) => range.contains(&id),
            IdSet::Nameless(_) => name.is_empty(),
            IdSet::Named(own) => own.as_bytes() == name,
        }
    }
}

impl IdMap {
    /// Returns whether it maps nothing.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Appends a range.
    pub fn add(&mut self, from: RangeInclusive<u32>, to: u32) {
        self.sets.push((IdSet::Range(from), to));
    }

    /// Appends all IDs for which `name_of` returns no name.
    pub fn add_nameless(&mut self, name_of: fn(u32) -> Option<String>, to: u32) {
        self.sets.push((IdSet::Nameless(name_of), to));
    }

    /// Appends the ID that has a name at the other end.
    pub fn add_named(&mut self, name: &str, to: u32) {
        self.sets.push((IdSet::Named(name.to_owned()), to));
    }

    /// Treats all IDs as nameless (`--numeric-ids`).
    pub fn forget_names(&mut self) {
        for (set, _) in &mut self.sets {
            if matches!(set, IdSet::Nameless(_)) {
                *set = IdSet::Range(0..=u32::MAX);
            }
        }
    }

    /// Returns the mapped ID; unmapped IDs are returned as they are.
    pub fn of(&self, id: u32) -> u32 {
        self.sets.iter().find(|(from, _)| from.contains(id)).map_or(id, |(_, to)| *to)
    }

    /// Returns the mapped ID of an ID of the other end, which has this name there, or none.
    pub fn of_far(&self, id: u32, name: &[u8]) -> Option<u32> {
        let found = self.sets.iter().find(|(from, _)| from.contains_far(id, name));
        found.map(|(_, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use super::is_unsafe_link;

    #[test]
    fn links_that_lead_out_are_unsafe() {
        let cases: [(&[u8], &[u8], bool); 9] = [
            (b"x", b"link", false),
            (b"/etc/passwd", b"link", true),
            (b"", b"link", true),
            (b"../x", b"link", true),
            (b"../x", b"a/link", false),
            (b"../../x", b"a/link", true),
            (b"../../x", b"a/b/link", false),
            (b"b/../../x", b"a/link", true),
            (b"./x/y", b"link", false),
        ];
        for (text, path, unsafe_) in cases {
            assert_eq!(is_unsafe_link(text, path), unsafe_, "{text:?} at {path:?}");
        }
    }
    use super::*;

    #[test]
    fn ids_without_a_name() {
        let mut map = IdMap::default();
        map.add_nameless(|id| (id == 5).then(|| "five".to_owned()), 100);
        map.add(0..=9, 1);
        assert_eq!([map.of(5), map.of(6), map.of(20)], [1, 100, 100]);
        map.forget_names();
        assert_eq!(map.of(5), 100);
    }

    #[test]
    fn the_first_range_counts() {
        let mut map = IdMap::default();
        assert_eq!(map.of(7), 7);
        map.add(5..=9, 100);
        map.add(0..=u32::MAX, 1);
        assert_eq!([map.of(4), map.of(5), map.of(9), map.of(10)], [1, 100, 100, 1]);
    }
}

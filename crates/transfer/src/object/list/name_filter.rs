//! Filter rules for whole names: a name is hidden if a folder above it is. Names mostly come in order, so the folders
//! of the last one are cached.

use super::bucket::{StoreQuery, in_runtime};
use super::local::{self, LocalQuery};
use super::{Item, Listing, PAGE_ENTRIES, Page, Trouble, bucket as store, key_of, send_all};
use crate::local::read_merge_file;
use crate::location::s3_path;
use crate::object::get::check;
use crate::object::{Entry, Root};
use crate::policy::Symlinks;
use crate::policy::filter::{Decision, DirRules, Filter, FilterError, Origin, ReadFile};
use futures_util::stream::{StreamExt, iter};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem, quoted};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::ops::{GetOptions, get_object, head_object};
use hakobu_s3::{Client, Error, ErrorKind, S3Session, with_session};
use hakobu_sys::paths::{Links, PathBelow, split};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, meta};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tokio::sync::mpsc::Sender;

/// Reads a per-directory file: the folder (from the listing's root, without a slash at its end; empty for the root)
/// and the file's name in it; `Ok(None)` if there is none.
pub type ReadMergeFile = Box<dyn FnMut(&[u8], &[u8]) -> io::Result<Option<Vec<u8>>> + Send + Sync>;

/// Filter for names of one listing; see the module. It caches the current folder.
pub struct NameFilter {
    filter: Arc<Filter>,
    /// The prefix of the listing's names in the transfer: empty, or ends in a slash.
    lead: Vec<u8>,
    read: Option<ReadMergeFile>,
    /// The files of hidden folders are read as well: in a target they may protect entries.
    reads_hidden: bool,
    top: Decision,
    /// The folders of the last name, from the root down. The root's level stays.
    chain: Vec<Level>,
    /// The path of the last folder in the chain, with the slash at its end, after the lead.
    path: Vec<u8>,
}

struct Level {
    /// Length of its path in `NameFilter::path`, slash included.
    len: usize,
    rules: Arc<DirRules>,
    decision: Decision,
}

impl NameFilter {
    /// Makes a name filter for one source argument. `origin.first` is the prefix of its names in the transfer (`b`
    /// for `/a/b`, nothing for `/a/b/`). `read` loads per-directory files; a store has none. Files above the root are
    /// not read.
    ///
    /// # Errors
    /// A per-directory file of the root cannot be read or holds an invalid rule.
    pub fn new(
        filter: Arc<Filter>,
        origin: &Origin<'_>,
        read: Option<ReadMergeFile>,
    ) -> Result<NameFilter, FilterError> {
        Self::with_above(filter, origin, read, &mut |_| Ok(None))
    }

    /// As [`NameFilter::new`]; `above` loads per-directory files of folders above the root, by absolute path.
    pub fn with_above(
        filter: Arc<Filter>,
        origin: &Origin<'_>,
        mut read: Option<ReadMergeFile>,
        above: &mut ReadFile<'_>,
    ) -> Result<NameFilter, FilterError> {
        let outer = filter.root(origin, above)?;
        let first = origin.first;
        let mut top = Decision::default();
        if !first.is_empty() {
            top = filter.check(&outer, first, true, false);
        }
        let rules = filter.enter(&outer, first, &mut |name| match &mut read {
            Some(read) => read(b"", name),
            None => Ok(None),
        })?;
        let lead = if first.is_empty() { Vec::new() } else { [first, b"/"].concat() };
        let path = lead.clone();
        let chain = vec![Level { len: path.len(), rules, decision: Decision::default() }];
        Ok(NameFilter { filter, lead, read, reads_hidden: false, top, chain, path })
    }

    /// Makes it the name filter of a target, which reads the files of hidden folders, too.
    #[must_use]
    pub fn of_target(self) -> NameFilter {
        NameFilter { reads_hidden: true, ..self }
    }

    /// Returns whether a name is that of a per-directory file.
    pub fn is_rule_file(&self, name: &[u8]) -> bool {
        self.filter.is_merge_file(name.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
    }

    /// Returns the decision about the source argument itself, as a folder.
    pub fn top(&self) -> Decision {
        self.top
    }

    /// Returns the decision about a name from the listing's root; one that ends with a slash is a folder. Entries of
    /// a hidden folder are hidden, those of a protected one protected.
    ///
    /// # Errors
    /// A per-directory file above the name cannot be read or holds an invalid rule. Returned once; after that
    /// everything in that folder is hidden and protected.
    pub fn decide(&mut self, name: &[u8]) -> Result<Decision, FilterError> {
        let (inner, is_dir) = match name.strip_suffix(b"/") {
            Some(inner) => (inner, true),
            None => (name, false),
        };
        if inner.is_empty() {
            // The root's own marker, or a key that is a slash.
            return Ok(self.chain[0].decision);
        }
        let (folder, name) = split(inner);
        self.descend(folder)?;
        let parent = &self.chain[self.chain.len() - 1];
        if parent.decision.hide && parent.decision.protect {
            return Ok(parent.decision);
        }
        self.path.extend_from_slice(name);
        let own = self.filter.check(&parent.rules, &self.path, is_dir, false);
        self.path.truncate(parent.len);
        Ok(or(own, parent.decision))
    }

    /// Returns a sentence about the rule that leaves out a source argument: `name` in it, or all of it if that is empty.
    pub fn left_out(&mut self, name: &[u8]) -> String {
        match self.hiding(name) {
            Some(Some(pattern)) => {
                let pattern = quoted(OsStr::from_bytes(&pattern));
                format!("the filter rules leave it out, by the pattern {pattern}")
            }
            _ => "the filter rules leave it out".to_owned(),
        }
    }

    /// Returns a sentence about rules that leave out everything, of which `name` is one.
    pub fn all_left_out(&mut self, name: &[u8]) -> String {
        let mut text = "the filter rules leave out everything there".to_owned();
        if let Some(pattern) = self.hiding(name) {
            let rule = match pattern {
                Some(pattern) => format!("the pattern {}", quoted(OsStr::from_bytes(&pattern))),
                None => "a rule of a file".to_owned(),
            };
            text += &format!(": {} by {rule}", quoted(OsStr::from_bytes(name)));
        }
        text
    }

    /// Returns the pattern of the rule that excludes a name, or a folder above it; inside `None` for one of a file.
    fn hiding(&mut self, name: &[u8]) -> Option<Option<Vec<u8>>> {
        let inner = name.strip_suffix(b"/").unwrap_or(name);
        self.descend(split(inner).0).ok()?;
        let whole = [&*self.lead, inner].concat();
        let folders = self.chain.iter().skip(1).map(|level| level.len.saturating_sub(1));
        let ends = folders.chain([whole.len()]);
        self.chain.iter().zip(ends).find_map(|(level, end)| {
            let is_dir = end < whole.len() || inner.len() < name.len();
            let rule = self.filter.hiding(&level.rules, whole.get(..end)?, is_dir)?;
            Some(rule.pattern.map(<[u8]>::to_vec))
        })
    }

    /// Changes the chain to that of `folder` (empty, or ends with a slash).
    fn descend(&mut self, folder: &[u8]) -> Result<(), FilterError> {
        let root = self.lead.len();
        while self.chain.len() > 1 && !folder.starts_with(&self.path[root..]) {
            self.chain.pop();
            let len = self.chain.last().map_or(root, |level| level.len);
            self.path.truncate(len);
        }
        while let Some(level) = self.chain.last()
            && let rest = &folder[level.len - root..]
            && let Some(slash) = rest.iter().position(|byte| *byte == b'/')
        {
            self.path.extend_from_slice(&rest[..slash]);
            let own = self.filter.check(&level.rules, &self.path, true, false);
            let decision = or(own, level.decision);
            let mut rules = Arc::clone(&level.rules);
            let (path, read) = (&self.path, &mut self.read);
            let entered = match decision.hide && !self.reads_hidden {
                // The rules in a hidden folder are not read.
                true => Ok(rules.clone()),
                false => self.filter.enter(&rules, path, &mut |name| match read {
                    Some(read) => read(&path[root..], name),
                    None => Ok(None),
                }),
            };
            self.path.push(b'/');
            let len = self.path.len();
            match entered {
                Ok(entered) => {
                    rules = entered;
                    self.chain.push(Level { len, rules, decision });
                }
                Err(error) => {
                    let decision = Decision { hide: true, protect: true };
                    self.chain.push(Level { len, rules, decision });
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

fn or(a: Decision, b: Decision) -> Decision {
    Decision { hide: a.hide || b.hide, protect: a.protect || b.protect }
}

// Per-directory files of filter rules, read from the source of a listing: below an open folder, or below a prefix
// with one request for each folder.

/// Maximum size of a rule file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Returns a reader of the per-directory rule files below an open folder, through symlinks that `links` allows.
pub fn merge_files(top: Arc<OwnedFd>, links: Links) -> ReadMergeFile {
    Box::new(move |folder, name| {
        if folder.is_empty() {
            return read_merge_file(&links, (*top).as_fd(), name);
        }
        match dir::open_below((*top).as_fd(), &CString::new(folder)?) {
            Ok(opened) => read_merge_file(&links, opened.as_fd(), name),
            // A folder that only the other side has.
            Err(error) if errno::is_gone(&error) || errno::is_no_dir(&error) => Ok(None),
            Err(error) => Err(error),
        }
    })
}

/// A key to read, and the channel for the answer.
type Question = (Vec<u8>, SyncSender<io::Result<Option<Vec<u8>>>>);

/// Returns a reader of the per-directory rule files below a prefix. Its thread and its connection start with the
/// first request.
pub fn merge_objects(store: &Arc<S3Session>, bucket: &str, prefix: &[u8]) -> ReadMergeFile {
    let (store, bucket, prefix) = (Arc::clone(store), bucket.to_owned(), prefix.to_vec());
    let mut reader: Option<SyncSender<Question>> = None;
    Box::new(move |folder, name| {
        let leaves = name.split(|byte| *byte == b'/').any(|part| part == b"..");
        if leaves || name.starts_with(b"/") {
            return Err(io::Error::other("it lies outside the prefix"));
        }
        let slash = if folder.is_empty() { &b""[..] } else { b"/" };
        let key = [&*prefix, folder, slash, name].concat();
        let questions = match &mut reader {
            Some(questions) => questions,
            None => {
                let (questions, asked) = sync_channel(1);
                let (store, bucket) = (Arc::clone(&store), bucket.clone());
                std::thread::Builder::new()
                    .name("filter-files".to_owned())
                    .spawn(move || answer(&store, &bucket, &asked))?;
                reader.insert(questions)
            }
        };
        let gone = |_| io::Error::other("the thread that reads it has ended");
        let (reply, answered) = sync_channel(1);
        questions.send((key, reply)).map_err(|_| gone(()))?;
        answered.recv().map_err(|_| gone(()))?
    })
}

/// Answers requests until the sender is gone.
fn answer(store: &Arc<S3Session>, bucket: &str, asked: &Receiver<Question>) {
    let done = with_session(store, async |client| {
        while let Ok((key, reply)) = asked.recv() {
            // The receiver may be gone.
            let _ = reply.send(read(&client, bucket, &key).await);
        }
        Ok(())
    });
    if let Err(error) = done
        && let Ok((_, reply)) = asked.recv()
    {
        let _ = reply.send(Err(io::Error::other(error.to_string())));
    }
}

/// Returns the content of a rule object; `None` if there is none.
async fn read(client: &Client, bucket: &str, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut tried = 1;
    loop {
        match whole(client, bucket, key).await {
            Ok(content) => return Ok(Some(content)),
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            Err(error)
                if error.kind == ErrorKind::Corrupt && client.may_retry(tried, &error).await =>
            {
                tried += 1;
            }
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
    }
}

async fn whole(client: &Client, bucket: &str, key: &[u8]) -> Result<Vec<u8>, Error> {
    let mut download = get_object(client, bucket, key, &GetOptions::default()).await?;
    if download.size() > BYTES_MAX {
        return Err(Error::new(ErrorKind::Invalid, "GetObject", "too large for a file of rules"));
    }
    let mut frames = Vec::new();
    while let Some(frame) = download.chunk().await? {
        frames.push(frame);
    }
    if client.session().checks_downloads() {
        check(&download.headers, &frames)?;
    }
    Ok(frames.concat())
}

// Wildcards in keys as in s5cmd: `*` matches any run of characters, slashes included, `?` one character. There is no
// escaping: `--raw` takes a key literally.

/// A key with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Vec<u8>,
}

impl Pattern {
    /// Returns the pattern, or `None` if the text has no wildcard and so is a plain key.
    pub fn parse(text: &[u8]) -> Option<Pattern> {
        let wild = text.iter().any(|byte| is_wild(*byte));
        wild.then(|| Pattern { text: text.to_vec() })
    }

    /// Returns the pattern as typed.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the common prefix of all matching keys.
    pub fn literal(&self) -> &[u8] {
        let end = self.text.iter().position(|byte| is_wild(*byte));
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// Returns the literal part up to and including its last slash: relative names begin there.
    pub fn root(&self) -> &[u8] {
        let (root, _) = split(self.literal());
        root
    }

    /// Returns whether a whole key matches. Linear in key times number of stars; no recursion.
    pub fn matches(&self, key: &[u8]) -> bool {
        let (mut at, mut in_text) = (0, 0);
        // Position to continue from if the text after the last star does not match: one character later.
        let mut again: Option<(usize, usize)> = None;
        loop {
            let step = match self.text.get(in_text) {
                Some(b'*') => {
                    again = Some((at, in_text + 1));
                    in_text += 1;
                    continue;
                }
                Some(b'?') => character_len(&key[at..]),
                Some(byte) => usize::from(key.get(at) == Some(byte)),
                None if at == key.len() => return true,
                None => 0,
            };
            if step > 0 {
                (at, in_text) = (at + step, in_text + 1);
                continue;
            }
            let Some((from, after_star)) = again else { return false };
            let skipped = character_len(&key[from..]);
            if skipped == 0 {
                return false;
            }
            again = Some((from + skipped, after_star));
            (at, in_text) = (from + skipped, after_star);
        }
    }
}

fn is_wild(byte: u8) -> bool {
    matches!(byte, b'*' | b'?')
}

/// Returns the length in bytes of the first character: of UTF-8, or 1 for invalid bytes; 0 at the end.
fn character_len(bytes: &[u8]) -> usize {
    let Some(first) = bytes.first() else { return 0 };
    let len = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    bytes.get(..len).filter(|bytes| std::str::from_utf8(bytes).is_ok()).map_or(1, <[u8]>::len)
}

// Listings below a root: of everything, or of names from a list (`--files-from`), sorted, without duplicates, each
// examined.

/// Concurrent HEAD requests.
const PARALLEL: usize = 32;

/// Lists everything below a root. `store` is the one of a root in S3, `narrowed` a further common prefix of its names;
/// `query` is for a folder, and its range for both.
pub fn below(
    root: &Root,
    store: Option<&Arc<S3Session>>,
    narrowed: Vec<u8>,
    query: LocalQuery,
) -> Listing {
    match (root, store) {
        (Root::Store { bucket, prefix }, Some(store)) => {
            let (prefix, range) = (prefix.clone(), query.range);
            let mut query = StoreQuery { prefix, narrowed, range, ..StoreQuery::default() };
            if !query.range.is_all() {
                // Others list the other ranges meanwhile; guesses where further pages begin would be requests in vain.
                query.parallel = 1;
            }
            store::store(store, bucket, query)
        }
        (Root::Local { dir, shown }, _) => local::local(Arc::clone(dir), shown, query),
        // `null:` is empty.
        _ => Listing::empty(),
    }
}

/// Lists the given names below a root; `store` is the one of a root in S3. A name that is not a file is a problem; so is
/// a missing one with `must_exist`, otherwise it is skipped. `symlinks`: handling of a local name that is one. With
/// `encode` local names sort by their percent-encoded keys. In local names `./` and doubled slashes are removed; those
/// with `..` are problems.
pub fn from_names(
    root: &Root,
    store: Option<&Arc<S3Session>>,
    symlinks: Symlinks,
    encode: bool,
    names: Vec<Vec<u8>>,
    must_exist: bool,
) -> Listing {
    match (root, store) {
        (Root::Local { dir, shown }, _) => {
            let (sender, listing) = Listing::channel(encode, false);
            let names = sorted(names.iter().map(|name| plain(name)).collect(), encode);
            let (top, shown) = (Arc::clone(dir), shown.clone());
            Listing::start(sender, "list-names", move |sender| {
                let look = |name: &[u8]| match looked_at(&top, name, symlinks) {
                    Ok(meta) => Some(Ok(Entry { name: name.into(), meta, etag: "".into() })),
                    Err(Cause::System(error))
                        if !must_exist && errno::is(&error, errno::ENOENT) =>
                    {
                        None
                    }
                    Err(cause) => {
                        let path = shown.join(OsStr::from_bytes(name));
                        Some(Err(problem(name, path, cause)))
                    }
                };
                send_all(&sender, names.iter().filter_map(|name| look(name)));
            });
            listing
        }
        (Root::Store { bucket, prefix }, Some(store)) => {
            let (sender, listing) = Listing::channel(false, false);
            let names = sorted(names, false);
            let (store, bucket, prefix) = (Arc::clone(store), bucket.clone(), prefix.clone());
            Listing::start(sender, "list-names", move |sender| {
                let client = Client::new(&store);
                in_runtime(&sender, heads(&client, &bucket, &prefix, names, &sender, must_exist));
            });
            listing
        }
        _ => Listing::empty(),
    }
}

fn sorted(mut names: Vec<Vec<u8>>, encode: bool) -> Vec<Vec<u8>> {
    names.retain(|name| !name.is_empty());
    names.sort_by(|a, b| key_of(a, encode).cmp(&key_of(b, encode)));
    names.dedup();
    names
}

/// Normalises a local name.
pub fn plain(name: &[u8]) -> Vec<u8> {
    let parts = name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    parts.collect::<Vec<_>>().join(&b'/')
}

fn problem(name: &[u8], path: PathBuf, cause: Cause) -> Trouble {
    let (operation, class) = (Operation::Stat, ErrorClass::Partial);
    let problem = Problem { operation, source: Some(path), target: None, cause, class };
    Trouble::Problem { name: name.into(), problem }
}

fn looked_at(top: &OwnedFd, name: &[u8], symlinks: Symlinks) -> Result<Meta, Cause> {
    if name.split(|byte| *byte == b'/').any(|part| part == b"..") {
        return Err(Cause::Reason("a name with '..' may leave the directory"));
    }
    let look = || -> io::Result<Meta> {
        let follow = symlinks == Symlinks::Follow;
        let below = PathBelow::find(top.as_fd(), name)?;
        meta::of(below.dir(), below.name(), follow)
    };
    let found = look().map_err(Cause::System)?;
    match found.kind {
        Kind::File => Ok(found),
        Kind::Symlink if symlinks == Symlinks::Keep => Ok(found),
        Kind::Symlink => {
            Err(Cause::Reason("it is a symlink (-l keeps it, -L copies what it points to)"))
        }
        Kind::Dir => {
            Err(Cause::Reason("it is a directory, and only files can be named one by one"))
        }
        _ => Err(Cause::Reason("it is not a regular file, and no object can be one")),
    }
}

async fn heads(
    client: &Client,
    bucket: &str,
    prefix: &[u8],
    names: Vec<Vec<u8>>,
    sender: &Sender<Page>,
    must_exist: bool,
) {
    let looked = iter(names).map(|name| async move {
        let key = [prefix, &name].concat();
        let head = head_object(client, bucket, &key, None).await;
        (name, key, head)
    });
    // In order, and sent as soon as results are known: each may take a while.
    let mut looked = looked.buffered(PARALLEL).ready_chunks(PAGE_ENTRIES);
    while let Some(chunk) = looked.next().await {
        let mut items: Vec<Item> = Vec::with_capacity(chunk.len());
        let mut passed = None;
        for (name, key, head) in chunk {
            passed = None;
            items.push(match head {
                Ok(head) => Ok(Entry {
                    name: name.into(),
                    meta: Meta::bare(Kind::File, head.size, head.mtime),
                    etag: head.etag.into(),
                }),
                Err(error) if error.stops_run() => Err(Trouble::Failed(error)),
                Err(error) if !must_exist && error.kind == hakobu_s3::ErrorKind::NotFound => {
                    passed = Some(name.into());
                    continue;
                }
                Err(error) => {
                    let path = s3_path(bucket, &[&key]);
                    Err(problem(&name, path, Cause::Said(error.to_string())))
                }
            });
        }
        if !items.is_empty() && sender.send(Page::Items(items)).await.is_err() {
            return;
        }
        if let Some(name) = passed
            && sender.send(Page::Passed(name)).await.is_err()
        {
            return;
        }
    }
    let _ = sender.send(Page::End).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Matches characters by definition: every star tries every length.
    fn naive(pattern: &[char], key: &[char]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=key.len()).any(|len| naive(rest, &key[len..])),
            (Some(('?', rest)), Some((_, key))) => naive(rest, key),
            (Some((a, rest)), Some((b, key))) => a == b && naive(rest, key),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_as_the_definition_does(pattern in "[ab/ä*?]{0,8}", key in "[ab/ä]{0,9}") {
            let (chars, keys): (Vec<_>, Vec<_>) = (pattern.chars().collect(), key.chars().collect());
            let Some(parsed) = Pattern::parse(pattern.as_bytes()) else {
                prop_assert!(!pattern.contains(['*', '?']));
                return Ok(());
            };
            let is = parsed.matches(key.as_bytes());
            prop_assert_eq!(is, naive(&chars, &keys));
            prop_assert!(!is || key.as_bytes().starts_with(parsed.literal()));
        }
    }

    #[test]
    fn patterns() {
        let pattern = Pattern::parse(b"logs/2024-*/x?.gz").unwrap();
        assert_eq!(pattern.literal(), b"logs/2024-");
        assert_eq!(pattern.root(), b"logs/");
        assert!(pattern.matches(b"logs/2024-01/deep/er/x1.gz"));
        assert!(!pattern.matches(b"logs/2024-01/x.gz"));
        assert!(Pattern::parse(b"a?").unwrap().matches(b"a\xff"));
        assert_eq!(Pattern::parse(b"plain [x] \\ key"), None);
        let long = [b'a'; 20_000];
        assert!(!Pattern::parse(b"*a*a*a*b").unwrap().matches(&long));
    }
}

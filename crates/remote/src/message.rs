//! Messages between the two ends of a transfer. The *source end* walks and reads; the *target end* looks at what it has,
//! decides, and asks for content.
//!
//! | message | from | meaning |
//! |---|---|---|
//! | Hello | both | JSON: protocol, version; of the near end also what to do |
//! | Dir | source | a directory, numbered by the source, whose entries follow |
//! | Entries | source | names of a directory with their metadata, and content where it is certainly wanted |
//! | End | source | a directory and all below it were announced, and whether it was listed to its end |
//! | Fresh | target | a directory is new: content of files in and below it is wanted unasked |
//! | Want | target | the entries of a chunk whose content is wanted; also says that all of it were looked at; [`WANT_DELTA`] where hashes were sent |
//! | Data | source | content of an entry, in order |
//! | Signs | target | hashes of blocks of the file that an entry replaces: it is sent as differences from that (`delta`) |
//! | Patch | source | parts of an entry's content, in order: bytes, or ranges of the file it replaces; and questions (`refine`) |
//! | Fine | target | the answer to a question: hashes of small blocks |
//! | Checked | target | whether the file that patches made is the source's; if not, it is wanted whole |
//! | Piece | source | content behind the first piece of an entry, by its offset: on any lane |
//! | More | target | how many bytes of a file may be sent behind its first piece; 0: nothing more of it |
//! | Room | target | so much of what came unasked was handled: content, first pieces of files, directories |
//! | Rest | target | the content of an entry, if it is wanted, is wanted from an offset on |
//! | Begins | source | where the content of such an entry begins |
//! | Names | source | the name of a user or group, before the first entry that has its number |
//! | Place | target | its directory, where both ends are on one machine |
//! | Has | target | names of a directory that ended: which of them has no source? What they are asked for may be deleted |
//! | Had | source | a bit for each name, the lowest first: no source has it, by a lookup now; or that it cannot be told |
//! | Arrived | target | an entry is complete under its name, and its source may be removed; or it is not and will not be |
//! | Turn | source | a pass over the sources is over, and all that it announced was sent |
//! | Said | both | JSON: an event, counts |
//! | Lane | both | near end to a further agent: which lane it is, and of which agent; that agent's answer; source: it uses the lane |
//! | Ping | both | asks for an answer at once, or is it |
//! | Stop | both | begin nothing new |
//! | Alive | both | nothing: this end has not been silent |
//! | Bye | both | JSON: the end has done its part, with its counts |
//!
//! Numbers are unsigned LEB128 (DWARF 5, 7.6), signed ones in zigzag form. An entry holds what differs from the one
//! before it in its chunk.

use crate::delta::{Basis, BlockSign, PATCH_OPS_MAX, PatchOp, SIGN_BLOCKS_MAX};
use crate::frame::{BODY_BYTES_MAX, Frame};
use crate::refine::ASK_BLOCKS_MAX;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_core::varint;
use std::fmt;

/// Most entries of a chunk.
pub const CHUNK_ENTRIES_MAX: usize = 64;
/// Most bytes of content in an entry or in one message of content.
pub const CONTENT_BYTES_MAX: usize = 256 << 10;
/// Most lanes besides the first.
pub const LANES_MAX: u8 = 7;
/// Bytes of the name of an agent that takes lanes.
pub const TOKEN_BYTES: usize = 32;
/// Most names that are asked for at once, and most bytes of them.
pub const ASKED_NAMES_MAX: usize = 4096;
pub const ASKED_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 4096;
/// Most bytes of a symlink's text (PATH_MAX).
const TEXT_BYTES_MAX: usize = 4096;
/// Most extended attributes of an entry, and bytes of one (XATTR_NAME_MAX, XATTR_SIZE_MAX).
const XATTRS_MAX: usize = 1024;
const XATTR_NAME_BYTES_MAX: usize = 255;
const XATTR_BYTES_MAX: usize = 64 << 10;
/// Most bytes of the name of a user or group.
pub const ID_NAME_BYTES_MAX: usize = 256;

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Hello(Vec<u8>),
    Dir(Box<DirRecord>),
    Entries {
        dir: u64,
        chunk: u64,
        entries: Vec<EntryRecord>,
    },
    End {
        dir: u64,
        is_listed: bool,
    },
    Fresh {
        dir: u64,
    },
    Want {
        chunk: u64,
        wanted: Vec<u8>,
    },
    Data {
        chunk: u64,
        index: u8,
        content: Vec<u8>,
        state: ContentState,
    },
    Signs(Box<Signs>),
    Patch {
        chunk: u64,
        index: u8,
        patch: Patch,
    },
    Fine {
        chunk: u64,
        index: u8,
        hashes: Vec<u64>,
    },
    Checked {
        chunk: u64,
        index: u8,
        is_right: bool,
    },
    Piece {
        chunk: u64,
        index: u8,
        offset: u64,
        content: Vec<u8>,
        state: ContentState,
    },
    More {
        chunk: u64,
        index: u8,
        bytes: u64,
    },
    Lane {
        number: u8,
        token: Vec<u8>,
    },
    Ping {
        is_answer: bool,
    },
    Room {
        bytes: u64,
    },
    /// `prefix`: hash of what the target has, which has to be the beginning of the content.
    Rest {
        chunk: u64,
        index: u8,
        offset: u64,
        prefix: Option<u128>,
    },
    Begins {
        chunk: u64,
        index: u8,
        offset: u64,
    },
    /// An empty name: the number has none.
    Names {
        is_group: bool,
        id: u32,
        name: Vec<u8>,
    },
    Place {
        dev: u64,
        ino: u64,
    },
    Has {
        dir: u64,
        names: Vec<Vec<u8>>,
        is_last: bool,
    },
    Had {
        dir: u64,
        absent: Vec<u8>,
        is_known: bool,
    },
    Arrived {
        chunk: u64,
        index: u8,
        is_complete: bool,
    },
    Turn,
    Said(Vec<u8>),
    Stop,
    Alive,
    Bye(Vec<u8>),
}

/// What follows a piece of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentState {
    /// More content.
    Goes,
    /// Nothing: the file is complete, and unchanged since it was opened.
    Complete,
    /// Nothing: the file changed or became shorter while it was read.
    Changed,
    /// Nothing: it cannot be read. The source end has told why.
    Failed,
}

impl ContentState {
    fn decode(byte: u8) -> Result<ContentState, ProtocolError> {
        match byte {
            0 => Ok(ContentState::Goes),
            1 => Ok(ContentState::Complete),
            2 => Ok(ContentState::Changed),
            3 => Ok(ContentState::Failed),
            _ => Err(ProtocolError("content has an unknown state")),
        }
    }
}

/// A wanted entry with this bit is sent as differences.
pub const WANT_DELTA: u8 = 0x40;

/// Hashes of blocks of the file that an entry replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signs {
    pub chunk: u64,
    pub index: u8,
    /// In the first message of an entry.
    pub basis: Option<Basis>,
    /// Number of the first block.
    pub first: u64,
    pub blocks: Vec<BlockSign>,
}

/// Parts of an entry's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    pub ops: Vec<PatchOp>,
    pub state: ContentState,
    /// Of the whole content, where it is complete.
    pub hash: u128,
}

/// A directory of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct DirRecord {
    /// Its number in this run, not 0.
    pub number: u64,
    /// Number of the directory that contains it; 0 for those of arguments.
    pub parent: u64,
    /// Its name at the target, below `parent`; empty for those of arguments.
    pub name: Vec<u8>,
    /// Its path in the transfer, where it has no parent.
    pub path: Vec<u8>,
    /// Its path at the source as the user typed it, where it has no parent.
    pub typed: Vec<u8>,
    pub entry: EntryRecord,
    /// Its content is transferred with its attributes, not only single names in it.
    pub is_whole: bool,
    /// It only leads to what is transferred.
    pub is_implied: bool,
}

/// Name and value of an extended attribute.
pub type Xattr = (Vec<u8>, Vec<u8>);

/// An entry of a directory of the source. Metadata that is not sent is that of [`Meta::bare`].
#[derive(Clone, Debug)]
pub struct EntryRecord {
    pub name: Vec<u8>,
    pub meta: Meta,
    /// Text of a symlink.
    pub text: Vec<u8>,
    pub xattrs: Vec<Xattr>,
    /// The whole content.
    pub content: Option<Vec<u8>>,
    /// XXH3 of the content (128 bits), where contents are compared.
    pub hash: Option<u128>,
}

impl PartialEq for EntryRecord {
    fn eq(&self, other: &EntryRecord) -> bool {
        let fields = |of: &EntryRecord| {
            let Meta { kind, mode, size, blocks, uid, gid, nlink, dev, ino, rdev, .. } = of.meta;
            let times = (of.meta.mtime, of.meta.atime);
            (kind, mode, size, blocks, (uid, gid, nlink, dev, ino, rdev), times)
        };
        fields(self) == fields(other)
            && (&self.name, &self.text, &self.xattrs, &self.content, self.hash)
                == (&other.name, &other.text, &other.xattrs, &other.content, other.hash)
    }
}

/// The other end does not keep to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub &'static str);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ProtocolError {}

const HELLO: u8 = 1;
const DIR: u8 = 2;
const ENTRIES: u8 = 3;
const END: u8 = 4;
const FRESH: u8 = 5;
const WANT: u8 = 6;
const DATA: u8 = 7;
const MORE: u8 = 8;
const SAID: u8 = 9;
const STOP: u8 = 10;
const BYE: u8 = 11;
const ROOM: u8 = 12;
const PLACE: u8 = 13;
const REST: u8 = 17;
const BEGINS: u8 = 18;
const NAMES: u8 = 19;
const SIGNS: u8 = 20;
const PATCH: u8 = 21;
const CHECKED: u8 = 22;
const FINE: u8 = 29;
const ALIVE: u8 = 23;
const HAS: u8 = 14;
const HAD: u8 = 15;
const ARRIVED: u8 = 16;
const TURN: u8 = 25;
const PIECE: u8 = 26;
const LANE: u8 = 27;
const PING: u8 = 28;

impl Message {
    /// Returns the frame of a message.
    pub fn encode(self) -> Frame {
        let mut body = Vec::new();
        let kind = match self {
            Message::Hello(json) => return Frame { kind: HELLO, body: json },
            Message::Said(json) => return Frame { kind: SAID, body: json },
            Message::Bye(json) => return Frame { kind: BYE, body: json },
            Message::Dir(dir) => {
                varint::push(dir.number, &mut body);
                varint::push(dir.parent, &mut body);
                let flags = [dir.is_whole, dir.is_implied];
                body.push(flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag)));
                for text in [&dir.name, &dir.path, &dir.typed] {
                    push_bytes(text, &mut body);
                }
                let named = EntryRecord { name: b"d".to_vec(), ..dir.entry };
                EntryEncoder::default().push(&named, &mut body);
                DIR
            }
            Message::Entries { dir, chunk, entries } => {
                varint::push(dir, &mut body);
                varint::push(chunk, &mut body);
                let mut encoder = EntryEncoder::default();
                entries.iter().for_each(|entry| encoder.push(entry, &mut body));
                ENTRIES
            }
            Message::End { dir, is_listed } => {
                varint::push(dir, &mut body);
                body.push(u8::from(is_listed));
                END
            }
            Message::Fresh { dir } => {
                varint::push(dir, &mut body);
                FRESH
            }
            Message::Want { chunk, wanted } => {
                varint::push(chunk, &mut body);
                body.extend_from_slice(&wanted);
                WANT
            }
            Message::Data { chunk, index, content, state } => {
                varint::push(chunk, &mut body);
                body.push(index);
                body.push(state as u8);
                body.extend_from_slice(&content);
                DATA
            }
            Message::Piece { chunk, index, offset, content, state } => {
                varint::push(chunk, &mut body);
                body.push(index);
                varint::push(offset, &mut body);
                body.push(state as u8);
                body.extend_from_slice(&content);
                PIECE
            }
            Message::Lane { number, token } => {
                body.push(number);
                body.extend_from_slice(&token);
                LANE
            }
            Message::Ping { is_answer } => {
                body.push(u8::from(is_answer));
                PING
            }
            Message::Signs(signs) => {
                varint::push(signs.chunk, &mut body);
                body.push(signs.index);
                let in_place = signs.basis.is_some_and(|basis| basis.in_place);
                body.push(u8::from(signs.basis.is_some()) | u8::from(in_place) << 1);
                if let Some(Basis { size, log, seed, .. }) = signs.basis {
                    varint::push(size, &mut body);
                    body.push(log);
                    body.extend_from_slice(&seed.to_le_bytes());
                }
                varint::push(signs.first, &mut body);
                for BlockSign { weak, strong } in &signs.blocks {
                    body.extend_from_slice(&weak.to_le_bytes());
                    body.extend_from_slice(&strong.to_le_bytes());
                }
                SIGNS
            }
            Message::Patch { chunk, index, patch } => {
                varint::push(chunk, &mut body);
                body.push(index);
                body.push(patch.state as u8);
                if patch.state == ContentState::Complete {
                    body.extend_from_slice(&patch.hash.to_le_bytes());
                }
                for op in &patch.ops {
                    match op {
                        PatchOp::Literal(bytes) => {
                            varint::push((bytes.len() as u64) << 1, &mut body);
                            body.extend_from_slice(bytes);
                        }
                        PatchOp::Same { from, length } => {
                            varint::push(length << 1 | 1, &mut body);
                            varint::push(*from, &mut body);
                        }
                        // In the place of a range without bytes.
                        PatchOp::Ask { from, blocks } => {
                            varint::push(1, &mut body);
                            varint::push(*from, &mut body);
                            varint::push(*blocks, &mut body);
                        }
                    }
                }
                PATCH
            }
            Message::Fine { chunk, index, hashes } => {
                varint::push(chunk, &mut body);
                body.push(index);
                body.extend(hashes.iter().flat_map(|hash| hash.to_le_bytes()));
                FINE
            }
            Message::Checked { chunk, index, is_right } => {
                varint::push(chunk, &mut body);
                body.extend([index, u8::from(is_right)]);
                CHECKED
            }
            Message::More { chunk, index, bytes } => {
                varint::push(chunk, &mut body);
                body.push(index);
                varint::push(bytes, &mut body);
                MORE
            }
            Message::Room { bytes } => {
                varint::push(bytes, &mut body);
                ROOM
            }
            Message::Place { dev, ino } => {
                varint::push(dev, &mut body);
                varint::push(ino, &mut body);
                PLACE
            }
            Message::Rest { chunk, index, offset, prefix } => {
                varint::push(chunk, &mut body);
                body.push(index);
                varint::push(offset, &mut body);
                if let Some(prefix) = prefix {
                    body.extend_from_slice(&prefix.to_le_bytes());
                }
                REST
            }
            Message::Begins { chunk, index, offset } => {
                varint::push(chunk, &mut body);
                body.push(index);
                varint::push(offset, &mut body);
                BEGINS
            }
            Message::Names { is_group, id, name } => {
                body.push(u8::from(is_group));
                varint::push(u64::from(id), &mut body);
                push_bytes(&name, &mut body);
                NAMES
            }
            Message::Has { dir, names, is_last } => {
                varint::push(dir, &mut body);
                body.push(u8::from(is_last));
                names.iter().for_each(|name| push_bytes(name, &mut body));
                HAS
            }
            Message::Had { dir, absent, is_known } => {
                varint::push(dir, &mut body);
                body.push(u8::from(is_known));
                body.extend_from_slice(&absent);
                HAD
            }
            Message::Arrived { chunk, index, is_complete } => {
                varint::push(chunk, &mut body);
                body.extend([index, u8::from(is_complete)]);
                ARRIVED
            }
            Message::Turn => TURN,
            Message::Stop => STOP,
            Message::Alive => ALIVE,
        };
        Frame { kind, body }
    }

    /// Reads the message of a frame.
    ///
    /// # Errors
    /// An unknown kind, a field out of its range, a rest.
    pub fn decode(frame: Frame) -> Result<Message, ProtocolError> {
        let Frame { kind, body } = frame;
        let mut fields = Fields(&body);
        let message = match kind {
            HELLO => return Ok(Message::Hello(body)),
            SAID => return Ok(Message::Said(body)),
            BYE => return Ok(Message::Bye(body)),
            DIR => Message::Dir(Box::new(fields.dir()?)),
            ENTRIES => {
                let (dir, chunk) = (fields.number()?, fields.number()?);
                let mut decoder = EntryDecoder::default();
                let mut entries = Vec::new();
                while !fields.0.is_empty() {
                    if entries.len() == CHUNK_ENTRIES_MAX {
                        return Err(ProtocolError("a chunk has too many entries"));
                    }
                    entries.push(decoder.next(&mut fields)?);
                }
                Message::Entries { dir, chunk, entries }
            }
            END => Message::End { dir: fields.number()?, is_listed: fields.flag()? },
            FRESH => Message::Fresh { dir: fields.number()? },
            WANT => {
                let (chunk, wanted) = (fields.number()?, fields.rest());
                let number = |at: &u8| at & !WANT_DELTA;
                let rising = wanted.is_sorted_by(|a, b| number(a) < number(b));
                let is_known = |at: &u8| usize::from(number(at)) < CHUNK_ENTRIES_MAX;
                if !rising || !wanted.iter().all(is_known) {
                    return Err(ProtocolError("a number of an entry is out of its range"));
                }
                Message::Want { chunk, wanted: wanted.to_vec() }
            }
            DATA => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                let (state, content) = fields.content()?;
                Message::Data { chunk, index, content, state }
            }
            PIECE => {
                let (chunk, index, offset) = (fields.number()?, fields.byte()?, fields.number()?);
                let (state, content) = fields.content()?;
                if offset > i64::MAX as u64 {
                    return Err(ProtocolError("a file is too large"));
                }
                Message::Piece { chunk, index, offset, content, state }
            }
            LANE => {
                let (number, token) = (fields.byte()?, fields.rest());
                if !(1..=LANES_MAX).contains(&number) {
                    return Err(ProtocolError("a lane has no number"));
                }
                if ![0, TOKEN_BYTES].contains(&token.len())
                    || !token.iter().all(u8::is_ascii_hexdigit)
                {
                    return Err(ProtocolError("a lane has no name"));
                }
                Message::Lane { number, token: token.to_vec() }
            }
            PING => match fields.byte()? {
                answer @ (0 | 1) => Message::Ping { is_answer: answer == 1 },
                _ => return Err(ProtocolError("a ping has unknown flags")),
            },
            SIGNS => Message::Signs(Box::new(fields.signs()?)),
            PATCH => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                Message::Patch { chunk, index, patch: fields.patch()? }
            }
            FINE => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                let (records, rest) = fields.rest().as_chunks::<8>();
                if !rest.is_empty() || records.len() as u64 > ASK_BLOCKS_MAX {
                    return Err(ProtocolError("there are too many hashes, or a part of one"));
                }
                let hashes = records.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
                Message::Fine { chunk, index, hashes }
            }
            CHECKED => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                let is_right = match fields.byte()? {
                    0 => false,
                    1 => true,
                    _ => return Err(ProtocolError("a check has an unknown result")),
                };
                Message::Checked { chunk, index, is_right }
            }
            MORE => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                Message::More { chunk, index, bytes: fields.number()? }
            }
            ROOM => Message::Room { bytes: fields.number()? },
            PLACE => Message::Place { dev: fields.number()?, ino: fields.number()? },
            REST => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                let offset = fields.number()?;
                let prefix = match fields.0 {
                    [] => None,
                    _ => Some(fields.hash()?),
                };
                Message::Rest { chunk, index, offset, prefix }
            }
            BEGINS => {
                let (chunk, index) = (fields.number()?, fields.byte()?);
                Message::Begins { chunk, index, offset: fields.number()? }
            }
            NAMES => {
                let (is_group, id) = (fields.flag()?, fields.small()?);
                let name = fields.bytes(ID_NAME_BYTES_MAX)?;
                if name.contains(&0) {
                    return Err(ProtocolError("the name of a user holds a zero byte"));
                }
                Message::Names { is_group, id, name: name.to_vec() }
            }
            HAS => {
                let (dir, is_last) = (fields.number()?, fields.flag()?);
                let (mut names, mut bytes) = (Vec::new(), 0);
                while !fields.0.is_empty() {
                    let name = fields.bytes(NAME_BYTES_MAX)?;
                    check_name(name)?;
                    bytes += name.len();
                    if names.len() == ASKED_NAMES_MAX || bytes > ASKED_BYTES_MAX + NAME_BYTES_MAX {
                        return Err(ProtocolError("too many names are asked for at once"));
                    }
                    names.push(name.to_vec());
                }
                Message::Has { dir, names, is_last }
            }
            HAD => {
                let (dir, is_known) = (fields.number()?, fields.flag()?);
                let absent = fields.rest().to_vec();
                if absent.len() > ASKED_NAMES_MAX.div_ceil(8) {
                    return Err(ProtocolError("more names are answered than were asked for"));
                }
                Message::Had { dir, absent, is_known }
            }
            ARRIVED => {
                let (chunk, index, is_complete) =
                    (fields.number()?, fields.byte()?, fields.flag()?);
                Message::Arrived { chunk, index, is_complete }
            }
            TURN => Message::Turn,
            STOP => Message::Stop,
            ALIVE => Message::Alive,
            _ => return Err(ProtocolError("a message is of an unknown kind")),
        };
        match fields.0 {
            [] => Ok(message),
            _ => Err(ProtocolError("a message is too long")),
        }
    }
}

fn push_time(time: Time, out: &mut Vec<u8>) {
    varint::push_signed(time.s, out);
    varint::push(u64::from(time.ns), out);
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::push(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// The part of a body that is not read yet.
struct Fields<'a>(&'a [u8]);

const SHORT: ProtocolError = ProtocolError("a message is too short");

impl<'a> Fields<'a> {
    fn byte(&mut self) -> Result<u8, ProtocolError> {
        let (first, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*first)
    }

    fn flag(&mut self) -> Result<bool, ProtocolError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ProtocolError("a flag is neither set nor clear")),
        }
    }

    fn hash(&mut self) -> Result<u128, ProtocolError> {
        let (hash, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u128::from_le_bytes(*hash))
    }

    fn number(&mut self) -> Result<u64, ProtocolError> {
        varint::read(|| self.byte(), ProtocolError("a number is too large"))
    }

    fn signed(&mut self) -> Result<i64, ProtocolError> {
        self.number().map(varint::signed)
    }

    fn small(&mut self) -> Result<u32, ProtocolError> {
        u32::try_from(self.number()?).map_err(|_| ProtocolError("a number is too large"))
    }

    fn time(&mut self) -> Result<Time, ProtocolError> {
        let (s, ns) = (self.signed()?, self.small()?);
        match ns < 1_000_000_000 {
            true => Ok(Time { s, ns }),
            false => Err(ProtocolError("a time has too many nanoseconds")),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn bytes(&mut self, most: usize) -> Result<&'a [u8], ProtocolError> {
        match self.number()? {
            length if length <= most as u64 => self.take(length as usize),
            _ => Err(ProtocolError("a text is too long")),
        }
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Reads what ends a message of content.
    fn content(&mut self) -> Result<(ContentState, Vec<u8>), ProtocolError> {
        let state = ContentState::decode(self.byte()?)?;
        let content = self.rest();
        if content.len() > CONTENT_BYTES_MAX {
            return Err(ProtocolError("a piece of content is too long"));
        }
        Ok((state, content.to_vec()))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        self.take(N)?.try_into().map_err(|_| SHORT)
    }

    fn signs(&mut self) -> Result<Signs, ProtocolError> {
        let (chunk, index, flags) = (self.number()?, self.byte()?, self.byte()?);
        let basis = match flags {
            0 => None,
            1 | 3 => {
                let (size, log) = (self.number()?, self.byte()?);
                let seed = u64::from_le_bytes(self.array()?);
                let basis = Basis { size, log, seed, in_place: flags == 3 };
                match basis.is_valid() {
                    true => Some(basis),
                    false => return Err(ProtocolError("blocks are too small or too many")),
                }
            }
            _ => return Err(ProtocolError("hashes have unknown flags")),
        };
        let first = self.number()?;
        let (records, rest) = self.rest().as_chunks::<12>();
        if !rest.is_empty() || records.len() > SIGN_BLOCKS_MAX {
            return Err(ProtocolError("there are too many hashes, or a part of one"));
        }
        let block = |record: &[u8; 12]| {
            let [a, b, c, d, strong @ ..] = *record;
            BlockSign { weak: u32::from_le_bytes([a, b, c, d]), strong: u64::from_le_bytes(strong) }
        };
        Ok(Signs { chunk, index, basis, first, blocks: records.iter().map(block).collect() })
    }

    fn patch(&mut self) -> Result<Patch, ProtocolError> {
        let state = ContentState::decode(self.byte()?)?;
        let hash = match state {
            ContentState::Complete => u128::from_le_bytes(self.array()?),
            _ => 0,
        };
        let (mut ops, mut literal) = (Vec::new(), 0);
        while !self.0.is_empty() {
            let number = self.number()?;
            let length = number >> 1;
            if ops.len() < PATCH_OPS_MAX && number == 1 {
                let (from, blocks) = (self.number()?, self.number()?);
                if !(1..=ASK_BLOCKS_MAX).contains(&blocks) {
                    return Err(ProtocolError("hashes of too many blocks are asked for"));
                }
                ops.push(PatchOp::Ask { from, blocks });
                continue;
            }
            if ops.len() == PATCH_OPS_MAX || length == 0 {
                return Err(ProtocolError("a patch has too many parts, or an empty one"));
            }
            ops.push(match number & 1 {
                0 => {
                    literal += length;
                    if length > CONTENT_BYTES_MAX as u64 || literal > CONTENT_BYTES_MAX as u64 {
                        return Err(ProtocolError("a piece of content is too long"));
                    }
                    PatchOp::Literal(self.take(length as usize)?.to_vec())
                }
                _ => PatchOp::Same { from: self.number()?, length },
            });
        }
        Ok(Patch { ops, state, hash })
    }

    fn dir(&mut self) -> Result<DirRecord, ProtocolError> {
        let (number, parent, flags) = (self.number()?, self.number()?, self.byte()?);
        if number == 0 || flags > 3 {
            return Err(ProtocolError("a directory has no number or unknown flags"));
        }
        let name = self.bytes(NAME_BYTES_MAX)?;
        match parent {
            0 if !name.is_empty() => return Err(ProtocolError("an argument has a name")),
            0 => {}
            _ => check_name(name)?,
        }
        let (path, typed) = (self.bytes(BODY_BYTES_MAX)?, self.bytes(BODY_BYTES_MAX)?);
        if !is_inside(path) || typed.contains(&0) {
            return Err(ProtocolError("a path leads out of the transfer"));
        }
        let entry = EntryDecoder::default().next(self)?;
        if entry.meta.kind != Kind::Dir || entry.content.is_some() {
            return Err(ProtocolError("a directory is none"));
        }
        Ok(DirRecord {
            number,
            parent,
            name: name.to_vec(),
            path: path.to_vec(),
            typed: typed.to_vec(),
            entry: EntryRecord { name: Vec::new(), ..entry },
            is_whole: flags & 1 != 0,
            is_implied: flags & 2 != 0,
        })
    }
}

/// Returns whether a path in the transfer is relative, without `.` and `..`.
fn is_inside(path: &[u8]) -> bool {
    path.is_empty() || path.split(|byte| *byte == b'/').all(|part| check_name(part).is_ok())
}

/// Checks that a name is one component of a path.
fn check_name(name: &[u8]) -> Result<(), ProtocolError> {
    match name {
        b"" | b"." | b".." => Err(ProtocolError("a name is empty, '.' or '..'")),
        _ if name.iter().any(|byte| matches!(byte, 0 | b'/')) => {
            Err(ProtocolError("a name holds a slash or a zero byte"))
        }
        _ => Ok(()),
    }
}

/// Bits of an entry's first byte: the number of its type ([`Kind::Unknown`] is an argument that does not exist, whose target is
/// to be removed); what it has in common with the entry before it; more.
const KIND_BITS: u8 = 7;
const SAME_TIME: u8 = 8;
const SAME_OWNER: u8 = 16;
const SAME_MODE: u8 = 32;
const HAS_CONTENT: u8 = 64;
const HAS_MORE: u8 = 128;
/// Bits of the second byte, if there is one.
const ATIME: u8 = 1;
const LINKS: u8 = 2;
const RDEV: u8 = 4;
const XATTRS: u8 = 8;
const BLOCKS: u8 = 16;
const HASH: u8 = 32;

/// Numbers of devices of the other end have this bit, so that no file there is taken for one here.
pub const FAR_DEVICE: u64 = 1 << 63;

/// What the next entry of a chunk may have in common with the one before it.
#[derive(Default)]
struct LastEntry {
    name: Vec<u8>,
    /// Time, owner and mode.
    meta: Option<(Time, (u32, u32), u32)>,
}

#[derive(Default)]
struct EntryEncoder(LastEntry);

impl EntryEncoder {
    fn push(&mut self, entry: &EntryRecord, out: &mut Vec<u8>) {
        let EntryRecord { name, meta, text, xattrs, content, hash } = entry;
        let mut first = meta.kind.number();
        if let Some((time, owner, mode)) = self.0.meta {
            first |= if time == meta.mtime { SAME_TIME } else { 0 };
            first |= if owner == (meta.uid, meta.gid) { SAME_OWNER } else { 0 };
            first |= if mode == meta.mode { SAME_MODE } else { 0 };
        }
        first |= if content.is_some() { HAS_CONTENT } else { 0 };
        let mut more = 0;
        more |= if meta.atime == meta.mtime { 0 } else { ATIME };
        more |= if (meta.nlink, meta.dev, meta.ino) == (1, 0, 0) { 0 } else { LINKS };
        more |= if meta.rdev == 0 { 0 } else { RDEV };
        more |= if xattrs.is_empty() { 0 } else { XATTRS };
        more |= if meta.blocks == meta.size.div_ceil(512) { 0 } else { BLOCKS };
        more |= if hash.is_none() { 0 } else { HASH };
        out.push(first | if more == 0 { 0 } else { HAS_MORE });
        if more != 0 {
            out.push(more);
        }
        let common = match self.0.meta {
            Some(_) => self.0.name.iter().zip(name).take_while(|(a, b)| a == b).count(),
            None => 0,
        };
        varint::push(common as u64, out);
        push_bytes(name.get(common..).unwrap_or_default(), out);
        varint::push(meta.size, out);
        if first & SAME_TIME == 0 {
            push_time(meta.mtime, out);
        }
        if first & SAME_OWNER == 0 {
            varint::push(u64::from(meta.uid), out);
            varint::push(u64::from(meta.gid), out);
        }
        if first & SAME_MODE == 0 {
            varint::push(u64::from(meta.mode), out);
        }
        if meta.kind == Kind::Symlink {
            push_bytes(text, out);
        }
        if more & ATIME != 0 {
            push_time(meta.atime, out);
        }
        if more & LINKS != 0 {
            [meta.nlink, meta.dev, meta.ino].iter().for_each(|number| varint::push(*number, out));
        }
        if more & RDEV != 0 {
            varint::push(meta.rdev, out);
        }
        if more & XATTRS != 0 {
            varint::push(xattrs.len() as u64, out);
            for (name, value) in xattrs {
                push_bytes(name, out);
                push_bytes(value, out);
            }
        }
        if more & BLOCKS != 0 {
            varint::push(meta.blocks, out);
        }
        if let Some(hash) = hash {
            out.extend_from_slice(&hash.to_le_bytes());
        }
        if let Some(content) = content {
            push_bytes(content, out);
        }
        self.0.name.clone_from(name);
        self.0.meta = Some((meta.mtime, (meta.uid, meta.gid), meta.mode));
    }
}

#[derive(Default)]
struct EntryDecoder(LastEntry);

impl EntryDecoder {
    fn next(&mut self, fields: &mut Fields<'_>) -> Result<EntryRecord, ProtocolError> {
        let first = fields.byte()?;
        let kind = Kind::of_number(first & KIND_BITS);
        let kind = kind.ok_or(ProtocolError("an entry has no type"))?;
        let more = if first & HAS_MORE == 0 { 0 } else { fields.byte()? };
        let last = self.0.meta;
        let known = || last.ok_or(ProtocolError("an entry refers to a missing one"));
        let common = fields.number()?;
        if common > self.0.name.len() as u64 {
            return Err(ProtocolError("a name begins with more than there is"));
        }
        let rest = fields.bytes(NAME_BYTES_MAX)?;
        self.0.name.truncate(common as usize);
        self.0.name.extend_from_slice(rest);
        if self.0.name.len() > NAME_BYTES_MAX {
            return Err(ProtocolError("a name is too long"));
        }
        check_name(&self.0.name)?;
        let size = fields.number()?;
        if size > i64::MAX as u64 {
            return Err(ProtocolError("a file is too large"));
        }
        let mtime = if first & SAME_TIME == 0 { fields.time()? } else { known()?.0 };
        let (uid, gid) = match first & SAME_OWNER {
            0 => (fields.small()?, fields.small()?),
            _ => known()?.1,
        };
        let mode = if first & SAME_MODE == 0 { fields.small()? } else { known()?.2 };
        if mode > 0o7777 {
            return Err(ProtocolError("a mode has unknown bits"));
        }
        let mut meta = Meta { mode, uid, gid, ..Meta::bare(kind, size, mtime) };
        let mut text = Vec::new();
        if kind == Kind::Symlink {
            text = fields.bytes(TEXT_BYTES_MAX)?.to_vec();
            if text.is_empty() || text.contains(&0) {
                return Err(ProtocolError("the text of a symlink is empty or holds a zero byte"));
            }
        }
        if more & ATIME != 0 {
            meta.atime = fields.time()?;
        }
        if more & LINKS != 0 {
            (meta.nlink, meta.dev) = (fields.number()?, fields.number()?);
            meta.ino = fields.number()?;
            if meta.dev & FAR_DEVICE == 0 {
                return Err(ProtocolError("a device has a number of this machine"));
            }
        }
        if more & RDEV != 0 {
            meta.rdev = fields.number()?;
        }
        let mut xattrs = Vec::new();
        if more & XATTRS != 0 {
            let count = fields.number()?;
            if count > XATTRS_MAX as u64 {
                return Err(ProtocolError("an entry has too many attributes"));
            }
            for _ in 0..count {
                let name = fields.bytes(XATTR_NAME_BYTES_MAX)?;
                if name.is_empty() || name.contains(&0) {
                    return Err(ProtocolError("an attribute's name is empty or holds a zero byte"));
                }
                xattrs.push((name.to_vec(), fields.bytes(XATTR_BYTES_MAX)?.to_vec()));
            }
        }
        if more & BLOCKS != 0 {
            meta.blocks = fields.number()?;
        }
        let hash = match more & HASH {
            0 => None,
            _ => Some(fields.hash()?),
        };
        if hash.is_some() && kind != Kind::File {
            return Err(ProtocolError("an entry without content has a hash"));
        }
        if more > ATIME | LINKS | RDEV | XATTRS | BLOCKS | HASH {
            return Err(ProtocolError("an entry has unknown fields"));
        }
        let content = match first & HAS_CONTENT {
            0 => None,
            _ => Some(fields.bytes(CONTENT_BYTES_MAX)?.to_vec()),
        };
        if content.as_ref().is_some_and(|it| kind != Kind::File || it.len() as u64 != size) {
            return Err(ProtocolError("an entry's content has another size"));
        }
        self.0.meta = Some((mtime, (uid, gid), mode));
        // With room for the zero byte that it gets.
        let mut name = Vec::with_capacity(self.0.name.len() + 1);
        name.extend_from_slice(&self.0.name);
        Ok(EntryRecord { name, meta, text, xattrs, content, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>().prop_filter("", |b| !matches!(b, 0 | b'/')), 1..40)
            .prop_filter("", |name| check_name(name).is_ok())
    }

    fn time() -> impl Strategy<Value = Time> {
        (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(s, ns)| Time { s, ns })
    }

    prop_compose! {
        fn entry()(
            name in name(), kind in 0..=Kind::Unknown.number(), numbers in any::<(u32, u32, u64, u64)>(),
            times in (time(), time()), same: bool, mode in 0..=0o7777_u32,
            content in proptest::collection::vec(any::<u8>(), 0..30), size in 0..=i64::MAX as u64,
            xattrs in proptest::collection::vec((name_of_attribute(), proptest::collection::vec(any::<u8>(), 0..9)), 0..3),
            pushed: bool, linked: bool,
        ) -> EntryRecord {
            let kind = Kind::of_number(kind).unwrap();
            let content = (kind == Kind::File && pushed).then_some(content);
            let size = content.as_ref().map_or(size, |it| it.len() as u64);
            let (uid, gid, a, b) = numbers;
            let mut meta = Meta { mode, uid, gid, ..Meta::bare(kind, size, times.0) };
            if !same {
                (meta.atime, meta.rdev, meta.blocks) = (times.1, a, b);
            }
            if linked {
                (meta.nlink, meta.dev, meta.ino) = (a, b | FAR_DEVICE, a);
            }
            let text = if kind == Kind::Symlink { b"to".to_vec() } else { Vec::new() };
            let hash = (kind == Kind::File && linked).then_some(u128::from(a) << 64 | u128::from(b));
            EntryRecord { name, meta, text, xattrs, content, hash }
        }
    }

    fn name_of_attribute() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1..=255_u8, 1..20)
    }

    fn basis() -> impl Strategy<Value = Option<Basis>> {
        let basis = (1..1_u64 << 32, any::<u64>(), any::<bool>())
            .prop_map(|(size, seed, in_place)| Basis::of(size, seed, in_place));
        prop_oneof![Just(None), basis]
    }

    fn op() -> impl Strategy<Value = PatchOp> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..50).prop_map(PatchOp::Literal),
            (any::<u64>(), 1..1_u64 << 62)
                .prop_map(|(from, length)| PatchOp::Same { from, length }),
            (any::<u64>(), 1..=ASK_BLOCKS_MAX)
                .prop_map(|(from, blocks)| PatchOp::Ask { from, blocks }),
        ]
    }

    fn message() -> impl Strategy<Value = Message> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..50);
        let wanted = proptest::collection::btree_set(0..CHUNK_ENTRIES_MAX as u8, 0..9);
        let states = [
            ContentState::Goes,
            ContentState::Complete,
            ContentState::Changed,
            ContentState::Failed,
        ];
        prop_oneof![
            bytes().prop_map(Message::Hello),
            bytes().prop_map(Message::Said),
            bytes().prop_map(Message::Bye),
            Just(Message::Stop),
            Just(Message::Alive),
            Just(Message::Turn),
            (any::<(u64, bool)>(), proptest::collection::vec(name(), 0..9))
                .prop_map(|((dir, is_last), names)| Message::Has { dir, names, is_last }),
            (any::<(u64, bool)>(), bytes()).prop_map(|((dir, is_known), absent)| Message::Had {
                dir,
                absent,
                is_known
            }),
            any::<(u64, u8, bool)>().prop_map(|(chunk, index, is_complete)| {
                Message::Arrived { chunk, index, is_complete }
            }),
            any::<(u64, bool)>().prop_map(|(dir, is_listed)| Message::End { dir, is_listed }),
            any::<u64>().prop_map(|dir| Message::Fresh { dir }),
            any::<u64>().prop_map(|bytes| Message::Room { bytes }),
            any::<(u64, u64)>().prop_map(|(dev, ino)| Message::Place { dev, ino }),
            (any::<u64>(), wanted, any::<u64>()).prop_map(|(chunk, wanted, deltas)| {
                let delta = |at: u8| if deltas >> at & 1 == 1 { WANT_DELTA } else { 0 };
                Message::Want {
                    chunk,
                    wanted: wanted.into_iter().map(|at| at | delta(at)).collect(),
                }
            }),
            (
                any::<(u64, u8, u64)>(),
                basis(),
                proptest::collection::vec(any::<(u32, u64)>(), 0..9)
            )
                .prop_map(|((chunk, index, first), basis, blocks)| {
                    let sign = |(weak, strong)| BlockSign { weak, strong };
                    let blocks = blocks.into_iter().map(sign).collect();
                    Message::Signs(Box::new(Signs { chunk, index, basis, first, blocks }))
                }),
            (any::<(u64, u8)>(), proptest::collection::vec(op(), 0..9), 0..4_usize, any::<u128>())
                .prop_map(move |((chunk, index), ops, state, hash)| {
                    let state = states[state];
                    let hash = if state == ContentState::Complete { hash } else { 0 };
                    Message::Patch { chunk, index, patch: Patch { ops, state, hash } }
                }),
            (any::<(u64, u8)>(), proptest::collection::vec(any::<u64>(), 0..=64))
                .prop_map(|((chunk, index), hashes)| Message::Fine { chunk, index, hashes }),
            any::<(u64, u8, bool)>().prop_map(|(chunk, index, is_right)| {
                Message::Checked { chunk, index, is_right }
            }),
            (any::<u64>(), any::<u8>(), bytes(), 0..4_usize).prop_map(
                move |(chunk, index, content, state)| {
                    Message::Data { chunk, index, content, state: states[state] }
                }
            ),
            (any::<(u64, u8)>(), 0..=i64::MAX as u64, bytes(), 0..4_usize).prop_map(
                move |((chunk, index), offset, content, state)| {
                    Message::Piece { chunk, index, offset, content, state: states[state] }
                }
            ),
            (1..=LANES_MAX, any::<Option<u64>>()).prop_map(|(number, token)| {
                let token = token.map(|token| format!("{token:032x}").into_bytes());
                Message::Lane { number, token: token.unwrap_or_default() }
            }),
            any::<bool>().prop_map(|is_answer| Message::Ping { is_answer }),
            any::<(u64, u8, u64)>()
                .prop_map(|(chunk, index, bytes)| { Message::More { chunk, index, bytes } }),
            (any::<(u64, u8, u64)>(), any::<Option<u128>>()).prop_map(
                |((chunk, index, offset), prefix)| Message::Rest { chunk, index, offset, prefix }
            ),
            any::<(u64, u8, u64)>()
                .prop_map(|(chunk, index, offset)| { Message::Begins { chunk, index, offset } }),
            (any::<(bool, u32)>(), name())
                .prop_map(|((is_group, id), name)| { Message::Names { is_group, id, name } }),
            (any::<u64>(), any::<u64>(), proptest::collection::vec(entry(), 0..9))
                .prop_map(|(dir, chunk, entries)| Message::Entries { dir, chunk, entries }),
            (1..=u64::MAX, any::<u64>(), name(), entry(), any::<(bool, bool)>()).prop_map(
                |(number, parent, name, entry, (is_whole, is_implied))| {
                    let meta = Meta { kind: Kind::Dir, ..entry.meta };
                    let (text, content, hash) = (Vec::new(), None, None);
                    let entry =
                        EntryRecord { name: Vec::new(), meta, text, content, hash, ..entry };
                    let top = parent == 0;
                    Message::Dir(Box::new(DirRecord {
                        number,
                        parent,
                        name: if top { Vec::new() } else { name.clone() },
                        path: if top { name.clone() } else { Vec::new() },
                        typed: name,
                        entry,
                        is_whole,
                        is_implied,
                    }))
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn messages_survive(message in message()) {
            prop_assert_eq!(Message::decode(message.clone().encode()), Ok(message));
        }

        /// Bytes that are not a message give an error and never panic; what is read has names that are one component.
        #[test]
        fn anything_can_be_decoded(kind: u8, body: Vec<u8>) {
            if let Ok(Message::Entries { entries, .. }) = Message::decode(Frame { kind, body }) {
                prop_assert!(entries.iter().all(|entry| check_name(&entry.name).is_ok()));
            }
        }

        /// A message with one byte changed is another one or an error.
        #[test]
        fn damaged_messages_can_be_decoded(message in message(), at: usize, with: u8) {
            let mut frame = message.encode();
            if !frame.body.is_empty() {
                let at = at % frame.body.len();
                frame.body[at] = with;
            }
            drop(Message::decode(frame));
        }
    }

    #[test]
    fn names_that_are_no_names_are_refused() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            let meta = Meta::bare(Kind::File, 0, Time::default());
            let of = |name: &[u8]| EntryRecord {
                name: name.to_vec(),
                meta,
                text: Vec::new(),
                xattrs: Vec::new(),
                content: None,
                hash: None,
            };
            let entries = Message::Entries { dir: 1, chunk: 0, entries: vec![of(name)] };
            assert!(Message::decode(entries.encode()).is_err(), "{name:?}");
            let dir = DirRecord {
                number: 2,
                parent: 1,
                name: name.to_vec(),
                path: Vec::new(),
                typed: Vec::new(),
                entry: EntryRecord { meta: Meta { kind: Kind::Dir, ..meta }, ..of(b"d") },
                is_whole: true,
                is_implied: false,
            };
            assert!(Message::decode(Message::Dir(Box::new(dir)).encode()).is_err(), "{name:?}");
        }
        for path in [&b"/"[..], b"/a", b"a/", b"a//b", b"../a", b"a/./b"] {
            assert!(!is_inside(path), "{path:?}");
        }
    }
}

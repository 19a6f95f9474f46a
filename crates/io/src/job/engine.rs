//! Engines of a job, and checksums of its blocks.

/// The engine of blocks (`ioengine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// lseek(2), read(2) and write(2).
    Sync,
    /// pread(2) and pwrite(2).
    Psync,
    /// preadv2(2) and pwritev2(2).
    Pvsync2,
    /// Linux's asynchronous I/O, io_submit(2).
    Libaio,
    /// io_uring(7).
    IoUring,
    /// mmap(2) and a copy.
    Mmap,
    /// A copy from and to memory of its own, which is first touched by that.
    PageFault,
    /// No operation: measures the cost of the benchmark itself.
    Null,
    /// fallocate(2).
    Falloc,
    /// ftruncate(2) to the beginning of each block.
    Ftruncate,
    /// Files are created.
    FileCreate,
    /// stat(2) of files.
    FileStat,
    /// Files are removed.
    FileDelete,
    /// Folders are created.
    DirCreate,
    /// stat(2) of folders.
    DirStat,
    /// Folders are removed.
    DirDelete,
    /// The CPU is kept busy.
    CpuIo,
}

/// Use of a file's name by an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// Its content is moved.
    Content,
    /// It is never opened.
    Nothing,
    /// It is made.
    Made {
        /// It is a folder.
        folder: bool,
    },
    /// It is looked at.
    Seen {
        /// It is a folder.
        folder: bool,
    },
    /// It is removed.
    Removed {
        /// It is a folder.
        folder: bool,
    },
}

impl Engine {
    /// fio's names of all of them; of several for one the first is said.
    pub const NAMES: &[(&str, Engine)] = &[
        ("sync", Engine::Sync),
        ("psync", Engine::Psync),
        ("pvsync2", Engine::Pvsync2),
        ("libaio", Engine::Libaio),
        // Both are other names of it in fio.
        ("linuxaio", Engine::Libaio),
        ("aio", Engine::Libaio),
        ("io_uring", Engine::IoUring),
        ("mmap", Engine::Mmap),
        ("page_fault", Engine::PageFault),
        ("null", Engine::Null),
        // fio's example of an engine in C++, which does nothing as well.
        ("cpp_null", Engine::Null),
        ("falloc", Engine::Falloc),
        ("ftruncate", Engine::Ftruncate),
        ("filecreate", Engine::FileCreate),
        ("filestat", Engine::FileStat),
        ("filedelete", Engine::FileDelete),
        ("dircreate", Engine::DirCreate),
        ("dirstat", Engine::DirStat),
        ("dirdelete", Engine::DirDelete),
        ("cpuio", Engine::CpuIo),
    ];

    /// fio's name of it.
    pub fn name(self) -> &'static str {
        Engine::NAMES.iter().find(|(_, engine)| *engine == self).map_or("", |(name, _)| name)
    }

    /// Its use of the names of its files.
    pub fn named(self) -> Named {
        match self {
            Engine::Null | Engine::PageFault | Engine::CpuIo => Named::Nothing,
            Engine::FileCreate => Named::Made { folder: false },
            Engine::DirCreate => Named::Made { folder: true },
            Engine::FileStat => Named::Seen { folder: false },
            Engine::DirStat => Named::Seen { folder: true },
            Engine::FileDelete => Named::Removed { folder: false },
            Engine::DirDelete => Named::Removed { folder: true },
            _ => Named::Content,
        }
    }

    /// Each operation is about a name, not about content.
    pub fn is_of_names(self) -> bool {
        !matches!(self.named(), Named::Content | Named::Nothing)
    }
}

/// Method of checking written blocks (`verify`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyKind {
    /// CRC-32.
    Crc32,
    /// CRC-32C.
    Crc32c,
    /// CRC-64.
    Crc64,
    /// MD5.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512; its first half.
    Sha512,
    /// xxHash, 64 bits.
    Xxhash,
    /// None: only where a block belongs and which pass wrote it.
    Meta,
    /// The bytes of the pattern, without a header.
    Pattern,
}

//! Plausible errors of each system call, and calls that are excluded, with the reason.

/// Possible effect of a failed call on the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// It goes on, or ends with a message and an exit code.
    End,
    /// The language's runtime may abort: there is no memory or no thread left, and the failure is
    /// not reported to the program. Data must be safe all the same.
    Abort,
}

/// One call: its name, its errors, what it may do.
pub type Row = (&'static str, &'static [&'static str], May);

/// Errors of opening and looking up.
const OPEN: &[&str] =
    &["EIO", "EACCES", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EDQUOT", "EINTR", "ELOOP"];
const LOOK: &[&str] = &["EIO", "EACCES", "ENOMEM", "EINTR", "ESTALE"];
const READ: &[&str] = &["EIO", "EINTR", "EAGAIN", "ENOMEM", "ESTALE"];
const WRITE: &[&str] = &["EIO", "ENOSPC", "EDQUOT", "EINTR", "EAGAIN", "ENOMEM", "EFBIG"];
const NAME: &[&str] = &["EIO", "ENOSPC", "EDQUOT", "EACCES", "ENOMEM", "EROFS", "EINTR"];
const CHANGE: &[&str] = &["EIO", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "ENOMEM"];
const XATTR: &[&str] = &["EIO", "ENOMEM", "ERANGE", "EACCES"];
const SET_XATTR: &[&str] = &["EIO", "ENOSPC", "EDQUOT", "EPERM", "ENOMEM"];
const FLUSH: &[&str] = &["EIO", "ENOSPC", "EDQUOT", "EINTR"];
// EAGAIN is a promise of the kernel to say when a connection is ready, which an injected one breaks.
const SEND: &[&str] = &["EPIPE", "ECONNRESET", "EINTR", "ENOMEM", "EIO"];
const RECEIVE: &[&str] = &["ECONNRESET", "EINTR", "ENOMEM", "EIO"];
const MEMORY: &[&str] = &["ENOMEM"];
const NO_MORE: &[&str] = &["EMFILE", "ENFILE", "ENOMEM"];

pub const ROWS: &[Row] = &[
    // Files and folders.
    ("open", OPEN, May::End),
    ("openat", OPEN, May::End),
    ("openat2", &["EIO", "EACCES", "EMFILE", "ENOMEM", "EINTR", "EAGAIN", "ENOSYS"], May::End),
    ("stat", LOOK, May::End),
    ("lstat", LOOK, May::End),
    ("fstat", LOOK, May::End),
    ("newfstatat", LOOK, May::End),
    ("statx", &["EIO", "EACCES", "ENOMEM", "EINTR", "ESTALE", "ENOSYS"], May::End),
    ("statfs", &["EIO", "ENOMEM", "EINTR", "ENOSYS"], May::End),
    ("fstatfs", &["EIO", "ENOMEM", "EINTR", "ENOSYS"], May::End),
    ("access", LOOK, May::End),
    ("faccessat", LOOK, May::End),
    ("faccessat2", LOOK, May::End),
    ("getdents64", &["EIO", "ENOENT", "EINTR", "ENOMEM", "ESTALE"], May::End),
    ("readlink", LOOK, May::End),
    ("readlinkat", LOOK, May::End),
    ("getcwd", &["ENOMEM", "ENOENT"], May::End),
    ("lseek", &["EIO", "EINVAL", "ENXIO"], May::End),
    ("read", READ, May::End),
    ("readv", READ, May::End),
    ("pread64", READ, May::End),
    ("preadv", READ, May::End),
    ("preadv2", &["EIO", "EINTR", "EAGAIN", "ENOMEM", "EOPNOTSUPP", "ENOSYS"], May::End),
    ("write", WRITE, May::End),
    ("pwrite64", WRITE, May::End),
    ("pwritev", WRITE, May::End),
    ("pwritev2", WRITE, May::End),
    (
        "copy_file_range",
        &["EIO", "ENOSPC", "EDQUOT", "EINTR", "ENOMEM", "EXDEV", "EINVAL", "EOPNOTSUPP", "EFBIG"],
        May::End,
    ),
    ("sendfile", &["EIO", "ENOSPC", "EINTR", "EAGAIN", "EINVAL", "ENOMEM"], May::End),
    ("splice", &["EIO", "ENOSPC", "EINTR", "EAGAIN", "EINVAL", "ENOMEM"], May::End),
    ("fallocate", &["EIO", "ENOSPC", "EDQUOT", "EINTR", "EOPNOTSUPP", "EFBIG"], May::End),
    ("ftruncate", &["EIO", "ENOSPC", "EDQUOT", "EINTR", "EFBIG"], May::End),
    ("fadvise64", &["EIO", "EINVAL"], May::End),
    ("sync_file_range", FLUSH, May::End),
    ("fsync", FLUSH, May::End),
    ("fdatasync", FLUSH, May::End),
    ("syncfs", FLUSH, May::End),
    ("close", FLUSH, May::End),
    ("ioctl", &["EIO", "EOPNOTSUPP", "EINVAL", "ENOTTY", "EINTR", "ENOMEM"], May::End),
    ("flock", &["EINTR", "ENOLCK", "EIO", "EOPNOTSUPP"], May::End),
    ("mkdir", NAME, May::End),
    ("mkdirat", NAME, May::End),
    ("symlinkat", NAME, May::End),
    ("mknodat", &["EIO", "ENOSPC", "EDQUOT", "EPERM", "ENOMEM"], May::End),
    ("link", &["EIO", "ENOSPC", "EDQUOT", "EMLINK", "EPERM", "EEXIST", "ENOENT"], May::End),
    ("linkat", &["EIO", "ENOSPC", "EDQUOT", "EMLINK", "EPERM", "EEXIST", "ENOENT"], May::End),
    ("rename", NAME, May::End),
    ("renameat", NAME, May::End),
    ("renameat2", &["EIO", "ENOSPC", "EDQUOT", "EACCES", "ENOMEM", "EINVAL", "EXDEV"], May::End),
    ("unlink", &["EIO", "EACCES", "EBUSY", "ENOMEM", "EROFS"], May::End),
    ("unlinkat", &["EIO", "EACCES", "EBUSY", "ENOMEM", "EROFS", "EINTR"], May::End),
    ("rmdir", &["EIO", "EACCES", "EBUSY", "ENOTEMPTY"], May::End),
    ("utimensat", CHANGE, May::End),
    ("fchmod", CHANGE, May::End),
    ("fchmodat", CHANGE, May::End),
    ("fchmodat2", &["EIO", "EPERM", "EROFS", "ENOSYS", "EOPNOTSUPP"], May::End),
    ("fchown", CHANGE, May::End),
    ("fchownat", CHANGE, May::End),
    ("getxattr", XATTR, May::End),
    ("lgetxattr", XATTR, May::End),
    ("fgetxattr", XATTR, May::End),
    ("listxattr", XATTR, May::End),
    ("llistxattr", XATTR, May::End),
    ("flistxattr", XATTR, May::End),
    ("setxattr", SET_XATTR, May::End),
    ("lsetxattr", SET_XATTR, May::End),
    ("fsetxattr", SET_XATTR, May::End),
    ("setxattrat", &["EIO", "ENOSPC", "EDQUOT", "EPERM", "ENOSYS"], May::End),
    ("removexattr", SET_XATTR, May::End),
    ("lremovexattr", SET_XATTR, May::End),
    ("fremovexattr", SET_XATTR, May::End),
    // Connections.
    ("socket", &["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"], May::End),
    ("connect", &["ECONNREFUSED", "EHOSTUNREACH", "ETIMEDOUT", "EINTR", "ENOMEM"], May::End),
    ("getsockopt", &["ENOMEM", "ECONNRESET"], May::End),
    ("setsockopt", &["ENOMEM", "EINVAL"], May::End),
    ("getsockname", &["ENOBUFS"], May::End),
    ("getpeername", &["ENOTCONN"], May::End),
    ("shutdown", &["ENOTCONN"], May::End),
    ("sendto", SEND, May::End),
    ("sendmsg", SEND, May::End),
    ("writev", SEND, May::End),
    ("recvfrom", RECEIVE, May::End),
    ("recvmsg", RECEIVE, May::End),
    // Waiting.
    // The asynchronous runtime panics where it cannot be made.
    ("socketpair", NO_MORE, May::Abort),
    ("pipe2", NO_MORE, May::End),
    ("epoll_create1", NO_MORE, May::End),
    ("eventfd2", NO_MORE, May::End),
    ("epoll_ctl", &["ENOMEM", "ENOSPC"], May::End),
    ("epoll_wait", &["EINTR"], May::End),
    ("epoll_pwait", &["EINTR"], May::End),
    ("poll", &["EINTR", "ENOMEM"], May::End),
    ("ppoll", &["EINTR", "ENOMEM"], May::End),
    ("clock_nanosleep", &["EINTR"], May::End),
    ("nanosleep", &["EINTR"], May::End),
    ("getrandom", &["EINTR", "ENOSYS"], May::End),
    ("wait4", &["EINTR"], May::End),
    // Facts about the machine and the process.
    ("fcntl", &["ENOMEM", "EMFILE", "EINVAL"], May::End),
    ("sched_getaffinity", &["EINVAL", "ENOMEM"], May::End),
    ("getrusage", &["EINVAL"], May::End),
    ("prctl", &["EINVAL", "EPERM"], May::End),
    ("ioprio_set", &["EPERM"], May::End),
    ("setpriority", &["EPERM"], May::End),
    // Memory and threads.
    ("mmap", MEMORY, May::Abort),
    ("mremap", MEMORY, May::Abort),
    ("munmap", MEMORY, May::Abort),
    ("mprotect", MEMORY, May::Abort),
    ("madvise", &["ENOMEM", "EAGAIN"], May::Abort),
    ("clone", &["EAGAIN", "ENOMEM"], May::Abort),
    ("clone3", &["EAGAIN", "ENOMEM"], May::Abort),
];

/// Calls that are not made to fail, by reason.
pub const LEFT_ALONE: &[(&str, &[&str])] = &[
    (
        "cannot fail, or not as they are used here",
        &[
            "getpid",
            "gettid",
            "getppid",
            "getuid",
            "geteuid",
            "getgid",
            "getegid",
            "umask",
            "uname",
            "sched_yield",
            "exit",
            "exit_group",
            "restart_syscall",
            "clock_gettime",
            "prlimit64",
        ],
    ),
    ("reports a failure by its value, which an injected error does not imitate", &["brk"]),
    (
        "strace cannot tell waiting, which may be interrupted, from waking, which may not",
        &["futex"],
    ),
    (
        "of the loader, of threads as they begin and of handlers of signals: their failures are \
         bugs, and never reach the program",
        &[
            "execve",
            "arch_prctl",
            "set_tid_address",
            "set_robust_list",
            "rseq",
            "rt_sigreturn",
            "rt_sigaction",
            "rt_sigprocmask",
            "sigaltstack",
            "tgkill",
        ],
    ),
];

/// Panics that a fault brings about which no kernel gives: an error is injected by the name of a
/// call, whatever it is made on.
pub const EXCUSED: &[(&str, &str)] =
    &[("write to the event descriptor that wakes the runtime", "failed to wake I/O driver")];

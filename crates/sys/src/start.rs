//! Starts commands such that their measured usage is their own. Linux includes the memory of the process
//! before exec(2) in `ru_maxrss`, and the time and faults between fork(2) and exec(2). So a copy of this
//! program (`stage`) is forked first, which excludes all written memory from inheritance by its children, and
//! starts the command as a child of this process. The usage of that child before exec(2) is recorded and
//! subtracted.

use crate::child::{self, ProcessEnd};
use crate::memory::Aligned;
use crate::proc::ResourceUsage;
use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr::null;
use std::time::Instant;

/// Processes created per command: the copy of this program, and the command.
pub const PROCESSES: u64 = 2;

impl Command {
    /// Starts the command.
    ///
    /// # Errors
    /// Those of exec(2), fork(2) and the other calls.
    pub fn start(&self) -> io::Result<StartedCommand> {
        let order = Order::new(self)?;
        let began = start(&order)?;
        let pid = u32::try_from(order.pid()).map_err(|_| io::ErrorKind::Other)?;
        Ok(StartedCommand { pid, began, before: order.used_before() })
    }
}

/// A running command.
#[derive(Clone, Copy, Debug)]
pub struct StartedCommand {
    /// Process id, a child of this process.
    pub pid: u32,
    /// Time just before the start.
    pub began: Instant,
    /// Usage of its process before exec(2).
    before: ResourceUsage,
}

impl StartedCommand {
    /// Bytes that it and its waited-for descendants passed to write(2) and similar calls: `wchar` of
    /// proc_pid_io(5). To be read between its end and [`StartedCommand::collect`]; `None` if the kernel does not
    /// count or reveal them.
    pub fn written_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.pid)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
    }

    /// Reaps it, waiting for its end if necessary; returns how it ended, and what it and its descendants
    /// used. [`ResourceUsage::rss_is_bound`] tells if the peak memory is only an upper bound, that of the process
    /// before exec(2).
    ///
    /// # Errors
    /// It is no longer a child of this process.
    pub fn collect(&self) -> io::Result<(ProcessEnd, ResourceUsage)> {
        let (end, used) = child::collect(self.pid)?;
        Ok((end, used.since(&self.before)))
    }
}

/// The place of a process among sessions and process groups, credentials(7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In the process group of this process: keys of the terminal reach both.
    #[default]
    Here,
    /// In a session of its own, without a controlling terminal: job control of a shell finds none that it could
    /// want to have, and nothing stops it for reading from one in the background. It is killed if this process
    /// ends before it.
    Session,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Environment.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; `None` for that of this process.
    pub dir: Option<CString>,
    /// Its place among sessions.
    pub place: Placement,
    /// CPUs that it may use; empty for those of the calling thread.
    pub cpus: Vec<u32>,
    /// Descriptors of standard input, output and error: 0, 1 and 2 in their own positions are inherited.
    pub stdio: [RawFd; 3],
}

impl Command {
    /// A command with the environment and the standard streams of this process.
    pub fn new(argv: Vec<OsString>) -> Command {
        let env = std::env::vars_os().collect();
        let place = Placement::Here;
        Command { argv, env, dir: None, place, cpus: Vec::new(), stdio: [0, 1, 2] }
    }

    /// Paths to try, like execvp(3): the program itself, or in each folder of PATH.
    pub(crate) fn programs(&self) -> io::Result<Vec<CString>> {
        let name = self.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        let bytes = name.as_encoded_bytes();
        if bytes.contains(&b'/') || bytes.is_empty() {
            return Ok(vec![CString::new(bytes)?]);
        }
        let path = self.env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.clone());
        let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
        let folders = std::env::split_paths(&path).map(|folder| match folder.as_os_str() {
            empty if empty.is_empty() => Path::new(".").join(name),
            _ => folder.join(name),
        });
        let names = folders.map(|path| CString::new(path.into_os_string().into_vec()));
        Ok(names.collect::<Result<_, _>>()?)
    }
}

/// Stack of the process between clone(2) and exec(2), bytes.
const STACK_BYTES: usize = 64 << 10;
/// No kernel accepts more arguments and environment, execve(2).
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Alignment of each item.
const ALIGNMENT: usize = 16;

/// The fixed-size part, at the start of the pages.
#[repr(C)]
pub(crate) struct Fixed {
    /// Process id, or a negative errno. Written by the stage.
    pub pid: i32,
    /// Usage of the process before exec(2). Written by the process.
    pub before: libc::rusage,
    /// Programs to try, terminated by null like the next two lists.
    pub programs: *const *const c_char,
    pub argv: *const *const c_char,
    pub env: *const *const c_char,
    /// Working directory, or null.
    pub dir: *const c_char,
    /// It gets a session of its own.
    pub session: bool,
    pub stdio: [i32; 3],
    /// Write end of the pipe for an errno.
    pub errors: i32,
    /// CPU mask, or null.
    pub cpus: *const u8,
    pub cpus_bytes: usize,
}

/// The shared pages.
pub(crate) struct Order {
    pages: Aligned,
    used_bytes: usize,
}

impl Order {
    pub fn new(command: &Command) -> io::Result<Order> {
        let text = |word: &OsStr| CString::new(word.as_bytes());
        let programs = command.programs()?;
        let argv = command.argv.iter().map(|word| text(word)).collect::<Result<Vec<_>, _>>()?;
        let pair = |(key, value): &(_, _)| {
            let (key, value): (&std::ffi::OsString, &std::ffi::OsString) = (key, value);
            CString::new([key.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let env = command.env.iter().map(pair).collect::<Result<Vec<_>, _>>()?;
        let lists = [&programs, &argv, &env];
        let words = || lists.iter().flat_map(|list| list.iter()).chain(&command.dir);
        let each = |word: &CString| word.as_bytes().len() + ALIGNMENT + size_of::<usize>();
        let text_bytes = words().map(each).sum::<usize>();
        if text_bytes > TEXT_BYTES_MAX {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let cpus = mask(&command.cpus);
        let others = size_of::<Fixed>() + cpus.len() + 8 * ALIGNMENT + 3 * size_of::<usize>();
        let pages = Aligned::shared((text_bytes + others).next_multiple_of(4096) + STACK_BYTES)?;
        let used_bytes = size_of::<Fixed>().next_multiple_of(ALIGNMENT);
        let mut order = Order { pages, used_bytes };
        let [programs, argv, env] = lists.map(|list| order.list(list));
        let dir = match &command.dir {
            Some(dir) => order.put(dir.as_bytes_with_nul())?.cast(),
            None => null(),
        };
        let fixed = Fixed {
            pid: -libc::ECHILD,
            // SAFETY: rusage consists of integers, so all zeros is valid.
            before: unsafe { std::mem::zeroed() },
            programs: programs?,
            argv: argv?,
            env: env?,
            dir,
            session: command.place == Placement::Session,
            stdio: command.stdio,
            errors: -1,
            cpus: if cpus.is_empty() { null() } else { order.put(&cpus)? },
            cpus_bytes: cpus.len(),
        };
        // SAFETY: the pages start with room for it, page-aligned, and nothing else refers to them.
        unsafe { order.fixed().write(fixed) };
        Ok(order)
    }

    /// Copies bytes into the pages; returns their address.
    fn put(&mut self, bytes: &[u8]) -> io::Result<*const u8> {
        let at = self.used_bytes.next_multiple_of(ALIGNMENT);
        let end = at + bytes.len();
        if end > self.pages.len() - STACK_BYTES {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        self.used_bytes = end;
        // SAFETY: the range is inside the mapping, and `bytes` cannot overlap the range just reserved.
        unsafe {
            let place = self.pages.as_ptr().add(at);
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            Ok(place)
        }
    }

    /// Copies texts and a null-terminated list of their addresses; returns that of the list.
    fn list(&mut self, texts: &[CString]) -> io::Result<*const *const c_char> {
        let mut places = Vec::new();
        for text in texts {
            places.extend((self.put(text.as_bytes_with_nul())? as usize).to_ne_bytes());
        }
        places.extend(0_usize.to_ne_bytes());
        Ok(self.put(&places)?.cast())
    }

    /// The fixed part.
    pub fn fixed(&self) -> *mut Fixed {
        self.pages.as_ptr().cast()
    }

    /// Start of a stack that grows down from the end of the pages.
    pub fn stack(&self) -> *mut libc::c_void {
        // SAFETY: one past the end of the mapping.
        unsafe { self.pages.as_ptr().add(self.pages.len()) }.cast()
    }

    /// Process id, or a negative errno.
    pub fn pid(&self) -> i32 {
        // SAFETY: the fixed part was written by `new`; the stage has ended.
        unsafe { (&raw const (*self.fixed()).pid).read_volatile() }
    }

    /// Usage of the process before exec(2).
    pub fn used_before(&self) -> ResourceUsage {
        // SAFETY: as above; the process left these pages by exec(2).
        ResourceUsage::from(&unsafe { (&raw const (*self.fixed()).before).read_volatile() })
    }
}

/// CPU mask for sched_setaffinity(2).
fn mask(cpus: &[u32]) -> Vec<u8> {
    let most = cpus.iter().max().map_or(0, |most| *most as usize + 1);
    let mut mask = vec![0; most.div_ceil(64) * 8];
    for cpu in cpus {
        // Working with 64-bit words is correct for either byte order.
        let (word, bit) = (*cpu as usize / 64, *cpu % 64);
        let bytes = (1_u64 << bit).to_ne_bytes();
        for (to, from) in mask.iter_mut().skip(word * 8).zip(bytes) {
            *to |= from;
        }
    }
    mask
}

/// Memory around errno that a child needs, bytes on each side.
const KEPT_BYTES: usize = 16 << 10;

/// Starts the process; returns the time just before. exec(2) has succeeded when this returns.
///
/// # Errors
/// Those of exec(2), fork(2), clone(2) and pipe(2).
pub(crate) fn start(order: &Order) -> io::Result<Instant> {
    let (mut ready, tell_ready) = io::pipe()?;
    let (wait_go, mut go) = io::pipe()?;
    let (mut errors, tell_error) = io::pipe()?;
    // SAFETY: this function has exclusive access to the pages until the fork.
    unsafe { (*order.fixed()).errors = tell_error.as_raw_fd() };
    let hidden = if IS_BARE { written_ranges() } else { Vec::new() };
    // The copy must not handle signals meant for this process.
    let blocked = Blocked::all()?;
    // SAFETY: the copy makes only calls that are safe after fork(2) in a program with threads, and ends by
    // _exit(2).
    let copy = unsafe { libc::fork() };
    if copy == 0 {
        // SAFETY: this is the forked copy; descriptors and pages were created above.
        unsafe {
            run_stage(
                order,
                &hidden,
                [ready.as_raw_fd(), go.as_raw_fd()],
                [tell_ready.as_raw_fd(), wait_go.as_raw_fd()],
            )
        }
    }
    let failed = (copy < 0).then(io::Error::last_os_error);
    drop(blocked);
    if let Some(error) = failed {
        return Err(error);
    }
    drop((tell_ready, wait_go, tell_error));
    let is_ready = ready.read_exact(&mut [0]);
    let began = Instant::now();
    let told = is_ready.and_then(|()| go.write_all(&[1]));
    wait_for(copy)?;
    told?;
    if order.pid() < 0 {
        return Err(io::Error::from_raw_os_error(-order.pid()));
    }
    // exec(2) closes the write end of the pipe.
    let mut why = Vec::new();
    errors.read_to_end(&mut why)?;
    match <[u8; 4]>::try_from(why) {
        Ok(why) => {
            wait_for(order.pid())?;
            Err(io::Error::from_raw_os_error(i32::from_ne_bytes(why)))
        }
        Err(_) => Ok(began),
    }
}

/// Reaps a child.
fn wait_for(pid: i32) -> io::Result<()> {
    loop {
        // SAFETY: the status pointer may be null.
        match unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(()),
        }
    }
}

/// Runs in the copy.
///
/// # Safety
/// Must only be called in a process just created by fork(2).
unsafe fn run_stage(
    order: &Order,
    hidden: &[(usize, usize)],
    close: [i32; 2],
    [ready, go]: [i32; 2],
) -> ! {
    let fixed = order.fixed();
    // SAFETY: these calls are async-signal-safe; all pointers are to memory that the copy has.
    unsafe {
        for fd in close {
            libc::close(fd);
        }
        // The process does not have the code of the handlers.
        for signal in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
            {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
        for (start, bytes) in hidden {
            libc::madvise(*start as *mut libc::c_void, *bytes, libc::MADV_DONTFORK);
        }
        let mut byte = 0_u8;
        let is_told = libc::write(ready, (&raw const byte).cast(), 1) == 1
            && libc::read(go, (&raw mut byte).cast(), 1) == 1;
        if is_told {
            let flags = libc::CLONE_PARENT | libc::SIGCHLD;
            let pid = clone(order.stack(), flags, fixed.cast());
            (&raw mut (*fixed).pid).write_volatile(pid as i32);
        }
        libc::_exit(0)
    }
}

/// Private written memory without code, as start and length, which a child would inherit page by page. The
/// thread-local storage of the calling thread is excluded, because the kernel writes to it for restartable
/// sequences (rseq(2)). If the kernel does not list memory, there are no ranges, and the peak before exec(2)
/// is larger, but still measured.
fn written_ranges() -> Vec<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    // SAFETY: the call returns the address of this thread's errno.
    let local = unsafe { libc::__errno_location() } as usize;
    let kept =
        (local & !(KEPT_BYTES - 1)) - KEPT_BYTES..(local & !(KEPT_BYTES - 1)) + 2 * KEPT_BYTES;
    let mut ranges = Vec::new();
    let mut range = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        if let Some((start, end)) = first.split_once('-')
            && let (Some(start), Some(end)) = (number(start), number(end))
        {
            let is_data = second.ends_with('p') && !second.contains('x');
            range = is_data.then_some(start..end);
        } else if first == "Anonymous:"
            && second != "0"
            && let Some(range) = range.take()
        {
            let parts =
                [range.start..range.end.min(kept.start), range.start.max(kept.end)..range.end];
            ranges.extend(parts.into_iter().filter(|part| !part.is_empty()));
        }
    }
    ranges.into_iter().map(|range| (range.start, range.len())).collect()
}

/// Blocks all signals for the calling thread until dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> io::Result<Blocked> {
        // SAFETY: both sets are plain memory that the calls fill in.
        unsafe {
            let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            match libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old) {
                0 => Ok(Blocked(old)),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was returned by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// True if system calls are implemented here for this architecture. Otherwise libc makes them, and the
/// process inherits all memory.
pub(crate) const IS_BARE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Makes a system call; returns a negative errno on failure.
///
/// # Safety
/// As required by the call.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn call(number: i64, a: usize, b: usize, c: usize, d: usize) -> isize {
    let answer;
    // SAFETY: the kernel clobbers rcx and r11 and returns in rax; the caller is responsible for memory.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            out("rcx") _, out("r11") _,
            options(nostack)
        );
    }
    answer
}

/// The same on another architecture.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn call(number: i64, a: usize, b: usize, c: usize, d: usize) -> isize {
    let answer;
    // SAFETY: the kernel returns in x0 and preserves other registers; the caller is responsible for memory.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d,
            options(nostack)
        );
    }
    answer
}

/// The same on another architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
unsafe fn call(number: i64, a: usize, b: usize, c: usize, d: usize) -> isize {
    // SAFETY: guaranteed by the caller.
    match unsafe { libc::syscall(number as libc::c_long, a, b, c, d) } {
        -1 => -(crate::errno::of(&std::io::Error::last_os_error()) as isize),
        answer => answer as isize,
    }
}

/// Creates the process, which continues in [`begin`]; returns its id, or a negative errno. libc's clone(2)
/// cannot be used: musl's child writes to data of libc, which it does not inherit here.
///
/// # Safety
/// `stack` is the end of a stack, `fixed` is complete; both are in shared pages.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn clone(stack: *mut c_void, flags: c_int, fixed: *mut c_void) -> isize {
    let begin: extern "C" fn(*mut c_void) -> c_int = begin;
    let answer;
    // SAFETY: the kernel clobbers rcx and r11 and returns in rax. The child, for which that is zero, has its
    // own stack, aligned for a call, and never returns from it.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => answer,
            in("rdi") flags as isize, in("rsi") stack as usize & !15,
            in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") fixed, in("r13") begin,
            out("rcx") _, out("r11") _,
        );
    }
    answer
}

/// The same on another architecture.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn clone(stack: *mut c_void, flags: c_int, fixed: *mut c_void) -> isize {
    let begin: extern "C" fn(*mut c_void) -> c_int = begin;
    let answer;
    // SAFETY: the kernel returns in x0 and preserves other registers. The child, for which that is zero, has
    // its own aligned stack and never returns from the call.
    unsafe {
        std::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone,
            inlateout("x0") flags as isize => answer,
            in("x1") stack as usize & !15,
            in("x2") 0, in("x3") 0, in("x4") 0,
            in("x20") fixed, in("x21") begin,
        );
    }
    answer
}

/// The same on another architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) unsafe fn clone(stack: *mut c_void, flags: c_int, fixed: *mut c_void) -> isize {
    // SAFETY: guaranteed by the caller; the child inherits all memory.
    match unsafe { libc::clone(begin, stack, flags, fixed) } {
        -1 => -(crate::errno::of(&std::io::Error::last_os_error()) as isize),
        pid => pid as isize,
    }
}

/// Executes the command, or writes the errno to the pipe.
extern "C" fn begin(fixed: *mut c_void) -> c_int {
    let fixed = fixed.cast::<Fixed>();
    // SAFETY: `fixed` and everything it points to are in pages shared with this process, written before it
    // was created. The calls access only these pages.
    unsafe {
        let why = execute(fixed);
        let error = [why as i32];
        let errors = (*fixed).errors as usize;
        call(libc::SYS_write, errors, error.as_ptr() as usize, size_of::<i32>(), 0);
        call(libc::SYS_exit_group, 127, 0, 0, 0);
    }
    127
}

/// # Safety
/// `fixed` is complete.
#[inline(always)]
unsafe fn execute(fixed: *mut Fixed) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Otherwise it stays in the process group that it was born in.
        if (*fixed).session {
            let answer = call(libc::SYS_setsid, 0, 0, 0, 0);
            if answer < 0 {
                return -answer;
            }
            let (option, kill) = (libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize);
            call(libc::SYS_prctl, option, kill, 0, 0);
        }
        let stdio = (&raw const (*fixed).stdio).cast::<i32>();
        let mut to = 0;
        while to < 3 {
            let from = stdio.add(to).read() as usize;
            if from != to {
                let answer = call(libc::SYS_dup3, from, to, 0, 0);
                if answer < 0 {
                    return -answer;
                }
            }
            to += 1;
        }
        if !(*fixed).dir.is_null() {
            let answer = call(libc::SYS_chdir, (*fixed).dir as usize, 0, 0, 0);
            if answer < 0 {
                return -answer;
            }
        }
        if !(*fixed).cpus.is_null() {
            let (bytes, mask) = ((*fixed).cpus_bytes, (*fixed).cpus as usize);
            let answer = call(libc::SYS_sched_setaffinity, 0, bytes, mask, 0);
            if answer < 0 {
                return -answer;
            }
        }
        // Unblock all signals in the command, like the standard library.
        let none = [0_u64];
        let set = libc::SIG_SETMASK as usize;
        call(libc::SYS_rt_sigprocmask, set, none.as_ptr() as usize, 0, 8);
        let before = &raw mut (*fixed).before;
        call(libc::SYS_getrusage, libc::RUSAGE_SELF as usize, before as usize, 0, 0);
        let mut why = libc::ENOENT as isize;
        let mut program = (*fixed).programs;
        while !program.read().is_null() {
            let (path, argv, env) = (program.read(), (*fixed).argv, (*fixed).env);
            let answer = -call(libc::SYS_execve, path as usize, argv as usize, env as usize, 0);
            // Report a program that may not be executed only if no other one of its name exists.
            let is_missing = answer == libc::ENOENT as isize || answer == libc::ENOTDIR as isize;
            if !is_missing {
                why = answer;
                if answer != libc::EACCES as isize {
                    return why;
                }
            }
            program = program.add(1);
        }
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::fd::AsRawFd;

    fn command(words: &[&str]) -> Command {
        Command::new(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn commands_are_started_with_what_they_are_given() {
        let (mut reader, writer) = io::pipe().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let script = "pwd; echo $HAKOBU_TEST; test $(ps -o sid= -p $$) = $$ && echo own; exit 7";
        let mut command = command(&["sh", "-c", script]);
        command.env.push(("HAKOBU_TEST".into(), "it's".into()));
        command.dir = Some(c"/usr".into());
        command.place = Placement::Session;
        command.stdio = [null.as_raw_fd(), writer.as_raw_fd(), 2];
        let started = command.start().unwrap();
        drop(writer);
        let text = io::read_to_string(&mut reader).unwrap();
        assert_eq!(text, "/usr\nit's\nown\n");
        child::wait_for_end(started.pid).unwrap();
        assert!(started.written_bytes().is_none_or(|bytes| bytes >= text.len() as u64));
        assert_eq!(started.collect().unwrap().0, ProcessEnd::Exited(7));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        for (words, code) in [
            (&["no-such-program-anywhere"][..], libc::ENOENT),
            (&["/no/such"], libc::ENOENT),
            (&["/etc/passwd"], libc::EACCES),
            (&["/usr"], libc::EACCES),
        ] {
            let error = command(words).start().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(code), "{words:?}");
        }
        let mut nowhere = command(&["true"]);
        nowhere.dir = Some(c"/no/such".into());
        assert_eq!(nowhere.start().unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert!(command(&[]).start().is_err());
        assert!(command(&["a\0b"]).start().is_err());
    }

    #[test]
    fn few_cpus_and_few_pages() {
        // The command must not inherit the size of this process.
        let large = vec![1_u8; 64 << 20];
        let cpu = crate::proc::affinity(0).unwrap()[0];
        let mut command =
            command(&["sh", "-c", "grep -q \"^Cpus_allowed_list:.$CPU$\" /proc/self/status"]);
        command.env.push(("CPU".into(), cpu.to_string().into()));
        command.cpus = vec![cpu];
        let started = command.start().unwrap();
        let (end, used) = started.collect().unwrap();
        assert_eq!(end, ProcessEnd::Exited(0));
        assert!(started.before.rss_bytes_max < 1 << 20, "{:?}", started.before);
        assert!(used.rss_bytes_max < 16 << 20 && !used.rss_is_bound, "{used:?}");
        assert!(large.iter().all(|byte| *byte == 1));
    }
}

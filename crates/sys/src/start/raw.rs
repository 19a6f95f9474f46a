//! The process between clone(2) and exec(2). It has its own stack, the shared pages and the program's text,
//! but no heap, thread-local storage or relocated data. So it makes system calls directly: libc's wrappers
//! write errno, which is thread-local.

use super::order::Fixed;
use std::ffi::{c_int, c_void};

/// True if system calls are implemented here for this architecture. Otherwise libc makes them, and the
/// process inherits all memory.
pub(super) const IS_BARE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

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
pub(super) unsafe fn clone(stack: *mut c_void, flags: c_int, fixed: *mut c_void) -> isize {
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
pub(super) unsafe fn clone(stack: *mut c_void, flags: c_int, fixed: *mut c_void) -> isize {
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
pub(super) unsafe fn clone(stack: *mut c_void, flags: c_int, fixed: *mut c_void) -> isize {
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

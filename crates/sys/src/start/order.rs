//! Data for the process that becomes a command, in shared pages: the only memory of this process that it has.

use super::command::{Command, Place};
use crate::memory::Aligned;
use crate::usage::Used;
use std::ffi::{CString, OsStr, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

/// Stack of the process between clone(2) and exec(2), bytes.
const STACK_BYTES: usize = 64 << 10;
/// No kernel accepts more arguments and environment, execve(2).
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Alignment of each item.
const ALIGNMENT: usize = 16;

/// The fixed-size part, at the start of the pages.
#[repr(C)]
pub(super) struct Fixed {
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
pub(super) struct Order {
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
            session: command.place == Place::Session,
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
    pub fn used_before(&self) -> Used {
        // SAFETY: as above; the process left these pages by exec(2).
        Used::from(&unsafe { (&raw const (*self.fixed()).before).read_volatile() })
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

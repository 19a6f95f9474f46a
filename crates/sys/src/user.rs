//! Names of users and groups, from the system's own databases (passwd(5), group(5), NSS).

use std::ffi::{CStr, CString};

fn with_buffer<T>(
    mut call: impl FnMut(&mut [libc::c_char]) -> Result<Option<T>, i32>,
) -> Option<T> {
    let mut len = 1024;
    loop {
        let mut buffer = vec![0; len];
        match call(&mut buffer) {
            Ok(found) => return found,
            Err(libc::ERANGE) if len < 1 << 20 => len *= 4,
            Err(_) => return None,
        }
    }
}

macro_rules! lookup {
    ($call:path, $key:expr, $record:ty, $take:expr) => {
        with_buffer(|buffer| {
            let mut found = std::ptr::null_mut();
            let mut record = std::mem::MaybeUninit::<$record>::uninit();
            // SAFETY: all pointers are to live memory of the stated length; the record is read only if the
            // call has filled it in.
            unsafe {
                match $call(
                    $key,
                    record.as_mut_ptr(),
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    &mut found,
                ) {
                    0 if found.is_null() => Ok(None),
                    0 => Ok(Some($take(&*found))),
                    code => Err(code),
                }
            }
        })
    };
}

fn owned(text: *const libc::c_char) -> String {
    // SAFETY: the record that holds `text` was just filled and NUL-terminates its strings.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Id of a user.
pub fn uid_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    lookup!(libc::getpwnam_r, name.as_ptr(), libc::passwd, |r: &libc::passwd| r.pw_uid)
}

/// Id of a group.
pub fn gid_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    lookup!(libc::getgrnam_r, name.as_ptr(), libc::group, |r: &libc::group| r.gr_gid)
}

/// Name of a user.
pub fn user_name(uid: u32) -> Option<String> {
    lookup!(libc::getpwuid_r, uid, libc::passwd, |r: &libc::passwd| { owned(r.pw_name) })
}

/// Name of a group.
pub fn group_name(gid: u32) -> Option<String> {
    lookup!(libc::getgrgid_r, gid, libc::group, |r: &libc::group| owned(r.gr_name))
}

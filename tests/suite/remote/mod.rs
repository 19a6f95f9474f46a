//! Transfers with an end on another machine. The remote shell of most tests stays on this one (`shell.sh`), so that both ends
//! are what they are everywhere, and the way between is a pair of pipes.

mod confined;
mod cp;
mod damaged;
mod deletion;
mod delta;
mod ends;
mod generated;
mod hostile;
mod install;
mod kills;
mod lanes;
mod lists;
mod options;
mod packing;
mod sshd;
mod trees;
mod verify;

use crate::common::area::Area;
use crate::common::program;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Records of the protocol, for ends in Python.
pub const WIRE: &str = "\
def number(n):
    parts = bytearray()
    while n > 0x7f: parts.append(n & 0x7f | 0x80); n >>= 7
    return bytes(parts) + bytes([n])
def text(t): return number(len(t)) + t
def entry(name, kind=0, size=0, content=None, link=b''):
    first = kind | (64 if content is not None else 0)
    body = bytes([first]) + number(0) + text(name) + number(size) + number(2) + number(0) + number(0) + number(0) + number(0o644)
    if kind == 2: body += text(link)
    return body + (text(content) if content is not None else b'')
def directory(n, parent=0, name=b'', path=b''):
    return number(n) + number(parent) + bytes([1]) + text(name) + text(path) + text(b'src') + entry(b'd', 1)
def entries(dir, chunk, *of): return number(dir) + number(chunk) + b''.join(of)
";

/// A remote shell in a directory of its own: drops the options of ssh and the host, and runs the command with the program
/// under test in its PATH. `before`: a line of the script that runs first.
pub fn shell(area: &Area, before: &str) -> PathBuf {
    shell_of(area, "/bin/sh", before)
}

/// As [`shell`], with a login shell there.
pub fn shell_of(area: &Area, login: &str, before: &str) -> PathBuf {
    let path = area.join("shell.sh");
    let folder = program().parent().map(Path::to_owned).unwrap_or_default();
    let text = format!(
        "#!/bin/sh\n\
         while :; do case $1 in -l|-p) shift 2;; -*) shift;; *) break;; esac; done\n\
         shift\n\
         PATH={}:$PATH; export PATH\n\
         {before}\n\
         exec {login} -c \"$*\"\n",
        folder.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

//! Further lanes of one login: another agent that ssh has started on the same machine hands its standard input and output to
//! the agent that does the work, over a socket in a folder of the user, and stays until the lane is closed.

use crate::message::{LANES_MAX, TOKEN_BYTES};
use hakobu_sys::{AsFd, BorrowedFd, host, process, socket};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Digits of a token that name the socket; the others are a secret.
const NAME_DIGITS: usize = 16;
/// Most bytes of the path of a socket. ssh appends up to 17 to that of its own, of 108 (unix(7)).
const PATH_BYTES_MAX: usize = 90;
/// Age of a socket without a process from which on it is a leftover, and not one that is just being made.
const LEFTOVER_AGE: Duration = Duration::from_secs(60);
/// Time for the message of a process that has connected.
const MESSAGE: Duration = Duration::from_secs(2);

/// Folders for sockets, the best one first.
fn socket_folders() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
    let own = PathBuf::from(format!("/tmp/hakobu-{}", process::euid()));
    runtime.map(|path| path.join("hakobu")).into_iter().chain([own])
}

/// Makes a folder for sockets, which only this user can enter, and removes leftovers of killed processes in it.
///
/// # Errors
/// It cannot be made, or it is another one's.
fn prepare(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let meta = fs::symlink_metadata(folder)?;
    if !meta.is_dir() || meta.uid() != process::euid() || meta.mode() & 0o077 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    for entry in fs::read_dir(folder)?.flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified()).map(|time| time.elapsed());
        let is_old = age.is_ok_and(|age| age.is_ok_and(|age| age >= LEFTOVER_AGE));
        let is_dead = || {
            let connected = UnixStream::connect(entry.path());
            connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if is_old && is_dead() {
            // Another process may have been faster.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Returns the path of a socket: in `$XDG_RUNTIME_DIR/hakobu`, or where that cannot be used or is too long for a socket, in
/// `/tmp/hakobu-UID`. Processes of one login agree on it.
///
/// # Errors
/// Neither folder can be used.
pub fn socket_path(name: &str) -> io::Result<PathBuf> {
    let mut failed = io::ErrorKind::InvalidFilename.into();
    for folder in socket_folders() {
        let path = folder.join(name);
        if path.as_os_str().len() > PATH_BYTES_MAX {
            continue;
        }
        match prepare(&folder) {
            Ok(()) => return Ok(path),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Returns random hexadecimal digits.
///
/// # Errors
/// The system has no random numbers.
pub fn random_digits() -> io::Result<String> {
    let bytes = host::random::<{ TOKEN_BYTES / 2 }>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Takes lanes from other agents.
pub struct LaneListener {
    socket: UnixListener,
    path: PathBuf,
    token: String,
}

/// A lane that another agent has handed over.
pub struct JoinedLane {
    pub number: u8,
    pub from: File,
    pub to: File,
    /// The other agent stays until this is closed.
    pub agent: UnixStream,
}

impl LaneListener {
    /// # Errors
    /// There can be no socket.
    pub fn open() -> io::Result<LaneListener> {
        let token = random_digits()?;
        let path = socket_path(token.get(..NAME_DIGITS).unwrap_or_default())?;
        let socket = UnixListener::bind(&path)?;
        Ok(LaneListener { socket, path, token })
    }

    /// Returns the name under which lanes are handed over.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Waits for the next lane; `None` after [`LaneListener::end`]. What is no lane is left out.
    pub fn next(&self) -> Option<JoinedLane> {
        loop {
            let (agent, _) = match self.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if let Ok(lane) = self.receive(agent) {
                return Some(lane);
            }
        }
    }

    fn receive(&self, agent: UnixStream) -> io::Result<JoinedLane> {
        let mut message = [0; 1 + TOKEN_BYTES];
        agent.set_read_timeout(Some(MESSAGE))?;
        let (length, [from, to]) = socket::receive_with_descriptors(&agent, &mut message)?;
        let [number, token @ ..] = message;
        let is_lane = (1..=LANES_MAX).contains(&number) && length == message.len();
        let is_own = socket::peer_uid(&agent)? == process::euid();
        match is_lane && is_own && token == self.token.as_bytes() {
            true => Ok(JoinedLane { number, from: from.into(), to: to.into(), agent }),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// No more lanes are taken.
    pub fn end(&self) {
        // A listener that is gone takes none.
        let _ = socket::stop_listening(&self.socket);
    }
}

impl Drop for LaneListener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Hands a lane over to the agent of a token, and waits until it is closed.
///
/// # Errors
/// There is no such agent.
pub fn hand_over(number: u8, token: &[u8], lane: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let name = token.get(..NAME_DIGITS).and_then(|name| std::str::from_utf8(name).ok());
    let is_name = name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let (true, Some(name)) = (is_name && token.len() == TOKEN_BYTES, name) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut agent = connect(&socket_path(name)?)?;
    let message: Vec<u8> = std::iter::once(number).chain(token.iter().copied()).collect();
    socket::send_with_descriptors(agent.as_fd(), &message, lane)?;
    let mut nothing = [0];
    // The other agent sends nothing; its end, however it comes, closes the socket.
    while agent.read(&mut nothing).is_ok_and(|got| got > 0) {}
    Ok(())
}

/// Connects to a socket of a process of this user.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let agent = UnixStream::connect(path)?;
    match socket::peer_uid(&agent)? == process::euid() {
        true => Ok(agent),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lanes_are_handed_over_by_those_who_know_the_token() {
        let listener = LaneListener::open().unwrap();
        let token = listener.token().to_owned();
        let wrong = format!("{}{}", &token[..NAME_DIGITS], "0".repeat(TOKEN_BYTES - NAME_DIGITS));
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| (listener.next(), listener.next().is_none()));
            let (near, far) = UnixStream::pair().unwrap();
            let lane = [far.as_fd(), far.as_fd()];
            // Each of these is closed at once.
            hand_over(1, wrong.as_bytes(), lane).unwrap();
            hand_over(LANES_MAX + 1, token.as_bytes(), lane).unwrap();
            assert!(hand_over(1, b"../../../../some/other/socket/..", lane).is_err());
            assert!(hand_over(1, b"", lane).is_err());
            scope.spawn({
                let token = token.clone();
                let far = far.try_clone().unwrap();
                move || hand_over(3, token.as_bytes(), [far.as_fd(), far.as_fd()]).unwrap()
            });
            (&near).write_all(b"x").unwrap();
            std::thread::sleep(Duration::from_millis(50));
            listener.end();
            let (first, is_over) = taken.join().unwrap();
            let mut first = first.unwrap();
            let mut read = [0];
            first.from.read_exact(&mut read).unwrap();
            assert_eq!((first.number, &read, is_over), (3, b"x", true));
            drop(first);
        });
        let path = listener.path.clone();
        assert!(path.exists());
        drop(listener);
        assert!(!path.exists());
    }
}

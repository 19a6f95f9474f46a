//! What a command writes, kept in bounds: the beginning and the end of it.

use std::io::Read;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that are kept of the beginning.
const HEAD_MAX: usize = 8 << 20;
/// Bytes that are kept of the end, where there is more.
const TAIL_MAX: usize = 1 << 20;
/// How long the end of an output is waited for after the command has ended: somebody it left behind
/// may hold the pipe open.
const GRACE: Duration = Duration::from_millis(500);

/// Bytes in bounds.
#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Seldom, so that each byte is moved once at most.
        if self.tail.len() > 2 * TAIL_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.len().saturating_sub(TAIL_MAX);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    /// All of it; where something is missing, a line says so.
    fn take(&mut self) -> Vec<u8> {
        self.cut();
        let mut out = std::mem::take(&mut self.head);
        if self.dropped > 0 {
            out.extend_from_slice(format!("\n[{} bytes left out]\n", self.dropped).as_bytes());
        }
        out.append(&mut self.tail);
        out
    }
}

/// A pipe that is read by a thread of its own.
#[derive(Debug)]
pub(super) struct Capture {
    kept: Arc<Mutex<Kept>>,
    ended: Receiver<()>,
}

impl Capture {
    /// Reads a pipe to its end.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(mut pipe: impl Read + Send + 'static) -> std::io::Result<Capture> {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (tell, ended) = mpsc::channel();
        let shared = Arc::clone(&kept);
        let read = move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(got) => {
                        let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.add(&buffer[..got]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = tell.send(());
        };
        std::thread::Builder::new().name("output".into()).spawn(read)?;
        Ok(Capture { kept, ended })
    }

    /// What came, once the pipe has ended or a little later.
    pub fn finish(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(GRACE);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut kept = Kept::default();
        kept.add(b"abc");
        assert_eq!(kept.take(), b"abc");
        let mut kept = Kept::default();
        for number in 0..3_000_000u32 {
            kept.add(&number.to_le_bytes());
        }
        let all = kept.take();
        assert!(all.len() < HEAD_MAX + TAIL_MAX + 100, "{}", all.len());
        assert_eq!(all[..4], 0u32.to_le_bytes());
        assert_eq!(all[all.len() - 4..], 2_999_999u32.to_le_bytes());
        let said = String::from_utf8_lossy(&all);
        assert!(said.contains("[2562816 bytes left out]"));
    }

    #[test]
    fn a_pipe_that_stays_open_is_not_waited_for() {
        use std::io::Write;
        let (reader, mut writer) = std::io::pipe().unwrap();
        let capture = Capture::start(reader).unwrap();
        writer.write_all(b"so far").unwrap();
        assert_eq!(capture.finish(), b"so far");
        drop(writer);
    }
}

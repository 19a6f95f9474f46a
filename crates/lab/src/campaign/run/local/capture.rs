//! Bounded capture of a command's output: its beginning and its end.

use crate::campaign::run::bench::LEFT_OUT;
use parking_lot::Mutex;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Bytes kept from the beginning.
const HEAD_MAX: usize = 8 << 20;
/// Bytes kept from the end, if there is more.
const TAIL_MAX: usize = 1 << 20;
/// Time to wait for end of file after the command has ended: a process left behind may hold the pipe open.
const GRACE: Duration = Duration::from_millis(500);

/// Bounded buffer.
#[derive(Debug, Default)]
struct CaptureBuffer {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: u64,
}

impl CaptureBuffer {
    fn add(&mut self, bytes: &[u8]) {
        let room = HEAD_MAX - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Cut rarely, so that each byte is moved at most once.
        if self.tail.len() > 2 * TAIL_MAX {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.len().saturating_sub(TAIL_MAX);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    /// All kept bytes; a line in the middle states how many were dropped.
    fn take(&mut self) -> Vec<u8> {
        self.cut();
        let mut out = std::mem::take(&mut self.head);
        if self.dropped > 0 {
            out.extend_from_slice(format!("\n[{}{LEFT_OUT}\n", self.dropped).as_bytes());
        }
        out.append(&mut self.tail);
        out
    }
}

/// A pipe that is read by its own thread.
#[derive(Debug)]
pub(super) struct OutputCapture {
    kept: Arc<Mutex<CaptureBuffer>>,
    ended: Receiver<()>,
}

impl OutputCapture {
    /// Starts to read a pipe to its end.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut pipe: impl Read + Send + 'static) -> std::io::Result<OutputCapture> {
        let kept = Arc::new(Mutex::new(CaptureBuffer::default()));
        let (sender, ended) = mpsc::channel();
        let shared = Arc::clone(&kept);
        let read = move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(got) => {
                        let mut kept = shared.lock();
                        kept.add(&buffer[..got]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            let _ = sender.send(());
        };
        std::thread::Builder::new().name("output".into()).spawn(read)?;
        Ok(OutputCapture { kept, ended })
    }

    /// Returns the output once the pipe has ended, or after a short wait.
    pub fn finish(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(GRACE);
        self.kept.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut kept = CaptureBuffer::default();
        kept.add(b"abc");
        assert_eq!(kept.take(), b"abc");
        let mut kept = CaptureBuffer::default();
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
        let capture = OutputCapture::start(reader).unwrap();
        writer.write_all(b"so far").unwrap();
        assert_eq!(capture.finish(), b"so far");
        drop(writer);
    }
}

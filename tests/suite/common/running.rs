//! Programs at work in the background, to be disturbed at a chosen moment.

use super::case::Run;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A program at work. Dropped, it is killed.
pub struct Running {
    line: String,
    child: Option<Child>,
}

impl Running {
    /// Starts the command of a line, without input.
    pub fn start(line: &str, mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
        Running { line: line.to_owned(), child: Some(child) }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        // Gone already is fine: the moment is random. Nobody has waited for it, so that the number is still its own.
        let _ = kill_process(self.pid(), signal);
    }

    /// Sends a signal and waits for the end, which must come soon.
    #[track_caller]
    pub fn end(self, signal: Signal) -> Run {
        self.signal(signal);
        self.wait_at_most(Duration::from_secs(10))
    }

    /// Waits for the end, for five minutes at most: what takes half a minute alone takes two beside others.
    #[track_caller]
    pub fn wait(self) -> Run {
        self.wait_at_most(Duration::from_secs(300))
    }

    #[track_caller]
    fn wait_at_most(mut self, time: Duration) -> Run {
        let pid = self.pid();
        let child = self.child.take().unwrap();
        // Both outputs are read meanwhile: a full pipe would stall it.
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
        match ended.recv_timeout(time) {
            Ok(output) => Run::new(std::mem::take(&mut self.line), output),
            Err(_) => {
                let waits = threads_of(pid);
                let _ = kill_process(pid, Signal::KILL);
                let output = ended.recv().unwrap();
                panic!(
                    "{} takes more than {time:?}: {waits}\n{}",
                    self.line,
                    Run::new(String::new(), output)
                );
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What each thread of a process waits for: its name, state, system call and the kernel's stack.
fn threads_of(process: Pid) -> String {
    let mut text = String::new();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    for task in tasks.into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let status = read("status");
        let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
        let [name, call, stack] = ["comm", "syscall", "stack"].map(read);
        text += &format!("{} {state}, {}\n{stack}\n", name.trim(), call.trim());
    }
    text
}

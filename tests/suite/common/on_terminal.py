"""A command on a terminal of its own, with the keys of a user."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT_S = 60


class Terminal:
    """A command that leads the session of a terminal, of so many columns if they are given."""

    def __init__(self, *words, columns=None, **names):
        self.columns, self.said, self.status = columns, "", None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", PS1="$ ", LC_ALL="C.UTF-8", **names)
            if columns:
                # The size is set before the command looks at it.
                time.sleep(0.2)
            os.execvp(words[0], words)
        if columns:
            fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def look(self, seconds=0.02):
        """Reads what is there within the time; returns whether there was something."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            self.said += os.read(self.fd, 65536).decode(errors="replace")
        except OSError:
            # Nobody holds the terminal any longer, or not yet.
            time.sleep(seconds)
            return False
        return True

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, what, is_there):
        until = time.monotonic() + LIMIT_S
        while not is_there():
            if time.monotonic() > until:
                self.fail(f"{what}: waited for {LIMIT_S} s")
            self.look()

    def pause(self, seconds):
        until = time.monotonic() + seconds
        self.wait("a while", lambda: time.monotonic() > until)

    def has_ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status is not None

    def code(self):
        self.wait("the end", self.has_ended)
        # The kernel hands over what was written in pieces, of at most 4 KiB, and later than a process ends.
        while self.look(0.1):
            pass
        return os.waitstatus_to_exitcode(self.status)

    def text(self):
        return self.said

    def expect(self, code, *words):
        found, text = self.code(), self.text()
        if found != code or not all(word in text for word in words):
            self.fail(f"code {found}, not {code} with {words}")
        return self

    def fail(self, why):
        for pid in [self.pid, *numbers("pids")]:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        sys.exit(f"{why} ({self.columns} columns)\n{self.said!r}\n{self.text()}")


def numbers(name):
    """Numbers in a file; none if it does not exist."""
    try:
        with open(name) as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []

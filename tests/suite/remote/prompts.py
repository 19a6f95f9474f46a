"""Questions of ssh on a terminal."""

import os
import sys

from on_terminal import Terminal

PROGRAM = sys.argv[2]


def host_key():
    os.makedirs("src")
    for number in range(8):
        with open(f"src/{number}", "wb") as file:
            file.write(bytes(1 << 20))
    shell = f"ssh -F {os.environ['SSH_CONFIG']}"
    target = f"127.0.0.1:{os.getcwd()}/dst"
    terminal = Terminal(PROGRAM, "sync", "-a", "--progress", "-e", shell, "src/", target, columns=90)
    question = "(yes/no/[fingerprint])? "
    terminal.wait("the question", lambda: question in terminal.said)
    before, _, after = terminal.said.partition(question)
    # Longer than it takes until a progress line appears.
    terminal.pause(2)
    if not terminal.said.endswith(question):
        terminal.fail("something was printed after the question")
    if "\x1b[" in before or "files" in before:
        terminal.fail("something was printed before the question")
    terminal.type("yes\n")
    terminal.expect(0, "8 files")
    if not terminal.said.startswith(before + question):
        terminal.fail("the question was overwritten")
    if sorted(os.listdir("dst")) != sorted(os.listdir("src")):
        terminal.fail("files are missing")


globals()[sys.argv[1]]()

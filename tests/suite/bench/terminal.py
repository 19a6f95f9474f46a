"""Commands on a terminal of their own, with the keys of a user: terminal.py SCENARIO HAKOBU, in an empty folder."""

import itertools
import json
import os
import shutil
import sys

from on_terminal import Terminal, numbers

HAKOBU = sys.argv[2]
# Job control in a script: sh takes the terminal for it, or waits in the background until it has it.
JOBS = "set -m; true & wait; sleep 0.1"


def state(pid):
    """State of a process as in proc_pid_stat(5); a zombie is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0].replace("Z", "-")
    except OSError:
        return "-"


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def bench(*words):
    return Terminal(HAKOBU, "bench", "--no-control", "-o", "out", *words)


def job_control():
    around = ["-s", JOBS, "-p", JOBS, "-C", JOBS, "-c", JOBS]
    bench("-r", "2", *around, JOBS).expect(0)
    # The same where its output is the terminal, and for another shell.
    for more in (["--show-output"], ["-S", "bash"]):
        Terminal(HAKOBU, "bench", "--no-control", "-r", "1", *more, JOBS).expect(0)


def reading():
    for words in (["read x </dev/tty"], ["-p", "read x </dev/tty", "true"]):
        Terminal(HAKOBU, "bench", "--no-control", "-r", "1", *words).expect(1)


LONG = "set -m; echo $$ >pids; sleep 100 & echo $! >>pids; wait"


def interrupted():
    """Ctrl-C and Ctrl-\\ end all that the command started, also what has a process group of its own."""
    cases = (([], "\x03", 130), (["-p", LONG], "\x03", 130), ([], "\x1c", -3))
    # Not every sh has job control without a terminal: what it runs in the background ignores both keys then.
    for shell, (options, key, code) in itertools.product(("bash", "sh"), cases):
        terminal = bench("-r", "1", "-S", shell, *options, LONG if not options else "true")
        terminal.wait("the command", lambda: len(numbers("pids")) == 2)
        pids = numbers("pids")
        terminal.type(key)
        terminal.expect(code)
        terminal.wait("the end of all", lambda: all(state(pid) == "-" for pid in pids))
        os.remove("pids")
        shutil.rmtree("out")


def stopped():
    """Ctrl-Z stops the command as well, and fg continues both; the time between does not count."""
    work = "echo $$ >pids; i=0; while [ $i -lt 15 ]; do sleep 0.1; i=$((i+1)); done"
    with open("line", "w") as file:
        file.write(f"{HAKOBU} bench --no-control -r 1 -o out '{work}'\n")
    terminal = Terminal("bash", "--norc", "-i")
    terminal.type(". ./line\n")
    terminal.wait("the command", lambda: numbers("pids"))
    pids = numbers("pids")
    ours = parent(pids[0])
    terminal.type("\x1a")
    terminal.wait("the stop", lambda: [state(pid) for pid in (ours, *pids)] == ["T", "T"])
    terminal.pause(3)
    if [state(pid) for pid in (ours, *pids)] != ["T", "T"]:
        terminal.fail("they did not stay stopped")
    terminal.type("fg\n")
    terminal.wait("the end of the command", lambda: state(ours) == "-")
    terminal.type("exit\n")
    terminal.code()
    with open("out/results.jsonl") as file:
        runs = [line for line in map(json.loads, file) if line["line"] == "run"]
    if len(runs) != 1 or not runs[0]["ok"] or not 1.2 < runs[0]["wall_s"] < 2.9:
        terminal.fail(f"{runs}")


def status():
    bench("-r", "1", "sleep 2.6").expect(0, "run 1 of at most 1 | 1 s | sleep 2.6", "| 2 s |")
    Terminal(HAKOBU, "bench", "-r", "1", "-s", "sleep 1.4", "true").expect(0, "setup: sleep 1.4 | 1 s")


def watch():
    """A command that is watched stays with the terminal, as it would without."""
    Terminal(HAKOBU, "watch", "--", "sh", "-c", JOBS).expect(0)
    terminal = Terminal(HAKOBU, "watch", "--", "sh", "-c", "echo $$ >pids; read x; exit 3")
    terminal.wait("the command", lambda: numbers("pids"))
    terminal.type("y\n")
    terminal.expect(3)
    os.remove("pids")
    terminal = Terminal(HAKOBU, "watch", "--", "sh", "-c", "echo $$ >pids; exec sleep 100")
    terminal.wait("the command", lambda: numbers("pids"))
    terminal.type("\x03")
    terminal.expect(130)


def lines():
    """A line of a run file that reads standard input reads it from the terminal, too."""
    with open("file", "w") as file:
        file.write("pipe s3://b/k\n")
    terminal = Terminal(HAKOBU, "--endpoint-url", "http://127.0.0.1:1", "--no-sign-request", "run", "file")
    terminal.type("text\n\x04")
    if terminal.code() == 0:
        terminal.fail("there is no such server")


globals()[sys.argv[1]]()
print("as it should be")

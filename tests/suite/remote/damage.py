#!/usr/bin/env python3
"""A remote shell that stays on this machine, and damages one message: EDIT, DIRECTION (0: to the agent), KIND, NTH of that
kind, and a number AT. Without an edit it notes what passes. NOTES gets JSON: what ended how, memory of both ends, messages."""

import collections
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

EDIT, DIRECTION, KIND, NTH, AT, NOTES, FOLDER = "", 0, 0, 0, 0, "", ""
# What an agent says of its machine comes whatever it waits for.
GREETING, SAID, ALIVE, FLOOD_BYTES, SILENCE_S = 16, 9, 23, 128 << 20, 2.5
HUGE, OVER = b"\xff" * 9 + b"\x01", b"\xff" * 10 + b"\x01"

words = sys.argv[1:]
while words[0].startswith("-"):
    del words[: 2 if words[0] in ("-l", "-p") else 1]
os.environ["PATH"] = FOLDER + ":" + os.environ["PATH"]
command = "exec " + " ".join(words[1:])
agent = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
near = os.getppid()
links = [stream.fileno() for stream in (sys.stdin, sys.stdout, agent.stdin, agent.stdout)]
seen, heard = collections.defaultdict(list), time.monotonic()
stalled, done, ending = False, False, threading.Lock()


def frame(kind, body):
    return len(body).to_bytes(4, "little") + bytes([kind]) + body


def number_end(body, at):
    """Where the number that begins at a position ends."""
    while at < len(body) and body[at] > 0x7F:
        at += 1
    return min(at + 1, len(body))


def edited(kind, body):
    rest = body[number_end(body, AT) :]
    noise = random.Random(AT).randbytes(64)
    return {
        "kind": lambda: frame(AT & 255, body),
        "zero": lambda: frame(kind, body[:AT] + b"\0" + rest),
        "byte": lambda: frame(kind, body[:AT] + b"\xff" + body[AT + 1 :]),
        "bit": lambda: frame(kind, body[:AT] + bytes([body[AT] ^ 1 << AT % 8]) + body[AT + 1 :] if AT < len(body) else body),
        "most": lambda: frame(kind, body[:AT] + b"\x7f" + rest),
        "huge": lambda: frame(kind, body[:AT] + HUGE + rest),
        "over": lambda: frame(kind, body[:AT] + OVER + rest),
        "cut": lambda: frame(kind, body[:AT]),
        "longer": lambda: frame(kind, body + noise),
        "noise": lambda: frame(kind, noise[:AT]),
        "twice": lambda: frame(kind, body) * 2,
        "again": lambda: frame(kind, body) + frame(kind, body[:AT] + bytes([body[AT] + 1 & 127]) + body[AT + 1 :] if AT < len(body) else b""),
        "none": lambda: b"",
        "length": lambda: b"\xff\xff\xff\xff" + bytes([kind]) + body,
        "end": lambda: frame(kind, body)[: 5 + AT],
        "nothing": lambda: frame(kind, body),
    }[EDIT]()


def flood(kind, body, to):
    """The message again and again; the number at AT rises if it is one."""
    sent, count = 0, 0
    while sent < FLOOD_BYTES:
        many = bytearray()
        while len(many) < 1 << 18:
            count += 1
            low, high = count & 127 | 128, count >> 7 & 127 | 128
            rising = bytes([low, high, count >> 14 & 127])
            many += frame(kind, body[:AT] + rising + body[number_end(body, AT) :] if EDIT == "flood" else body)
        to.write(many)
        to.flush()
        sent += len(many)


def pass_on(source, to, first, direction):
    global heard
    try:
        to.write(source.read(first))
        to.flush()
        while head := source.read(5):
            kind, body = head[4], source.read(int.from_bytes(head[:4], "little"))
            if kind not in (SAID, ALIVE):
                heard = time.monotonic()
            lengths = seen[f"{direction} {kind}"]
            lengths.append(len(body))
            if EDIT and (direction, kind, len(lengths)) == (DIRECTION, KIND, NTH):
                if EDIT in ("flood", "repeat"):
                    flood(kind, body, to)
                to.write(edited(kind, body) if EDIT not in ("flood", "repeat") else head + body)
                if EDIT == "end":
                    break
            else:
                to.write(head + body)
            to.flush()
        to.close()
    except OSError:
        pass


def watch():
    """Two ends that wait for what was damaged are ended as a lost link is."""
    global stalled
    while not done:
        time.sleep(0.05)
        if time.monotonic() - heard > SILENCE_S and EDIT not in ("flood", "repeat"):
            stalled = True
            finish()


def finish():
    global done
    # Whoever comes second waits for the end of the process.
    ending.acquire()
    done = True
    # Both ends see the end of the link, also where a thread still uses it.
    null = os.open("/dev/null", os.O_RDWR)
    for stream in links:
        os.dup2(null, stream)
    begun, status, used = time.monotonic(), None, None
    while time.monotonic() - begun < 20 and not status:
        pid, state, usage = os.wait4(agent.pid, os.WNOHANG)
        if pid:
            status, used = [state], usage.ru_maxrss
        else:
            time.sleep(0.01)
    if not status:
        agent.kill()
    peak = 0
    try:
        with open(f"/proc/{near}/status") as file:
            peak = next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        pass
    with open(NOTES, "w") as file:
        state = status[0] if status else None
        json.dump({"agent": state, "agent_kib": used, "near_kib": peak, "stalled": stalled, "seen": seen}, file)
    os._exit(os.waitstatus_to_exitcode(state) & 127 if status else 9)


# The near end asks a remote shell to end that breaks the protocol.
signal.signal(signal.SIGTERM, lambda number, at: done or finish())
there = threading.Thread(target=pass_on, args=(sys.stdin.buffer, agent.stdin, 0, 0), daemon=True)
there.start()
threading.Thread(target=watch, daemon=True).start()
pass_on(agent.stdout, sys.stdout.buffer, GREETING, 1)
finish()

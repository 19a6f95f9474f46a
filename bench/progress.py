"""The runs of bench/progress.sh: bytes and times that progress shows against those that are true."""

import argparse
import json
import os
import pty
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from measure import spread

MOMENTS = 10
SHARE, SECONDS = 0.10, 1.0
LEFT_SHARE, LEFT_SECONDS = 0.25, 0.5
COST = 1.01
UNITS = {"byte": 1, "bytes": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BUCKET = "s3://bkt"


def files(folder, count, size):
    """A folder with files, in folders of a thousand."""
    if os.path.exists(folder):
        return folder
    data = os.urandom(min(size, 1 << 20))
    for number in range(count):
        below = os.path.join(folder, f"{number // 1000:04}")
        if number % 1000 == 0:
            os.makedirs(below)
        with open(os.path.join(below, f"{number:07}"), "wb") as file:
            for start in range(0, size, len(data)):
                file.write(data[: size - start])
    return folder


def written(pid):
    """Bytes that a process has written, by its own calls."""
    with open(f"/proc/{pid}/io") as file:
        return int(re.search(r"^wchar: (\d+)", file.read(), re.M)[1])


def passed(_pid):
    """Bytes over the loopback of this network namespace."""
    with open("/proc/net/dev") as file:
        return int(re.search(r"^ *lo: *(\d+)", file.read(), re.M)[1])


def taken(_pid):
    """Stands for both: what a download has written, and what has come over the loopback and may be unread."""


class Server:
    """A server that keeps nothing, while a block runs."""

    def __init__(self, args, options):
        self.words = [args.hakobu, "serve", "null", *options]

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        return self.process.stdout.readline().split()[-1]

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def environment(work, url=None):
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env["XDG_STATE_HOME"] = os.path.join(work, "state")
    if url:
        env.update(AWS_ENDPOINT_URL=url, AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true")
        env.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
    return env


def shown_bytes(line):
    """Bytes moved, of a line of progress: `33%, 33.28 MB of 100.00 MB, 0:03 left, …`."""
    found = re.search(r"(?:^|: |, )([\d.,]+) (bytes?|[KMGT]B)(?: of|,)", line)
    return float(found[1].replace(",", "")) * UNITS[found[2]] if found else 0.0


def known(truth, pid, base):
    """The least and the most that has moved now; `base`: what had passed the loopback before."""
    if truth is written:
        return written(pid), written(pid)
    over = passed(pid) - base
    return (written(pid) if truth is taken else over), over


def run(words, env, truth, moments):
    """Runs a transfer. Returns its seconds, its progress events, and for each moment what was true before and after
    the line, and the line."""
    looks = []
    out = tempfile.TemporaryFile("w+")
    began = time.monotonic()
    base = passed(None)
    process = subprocess.Popen(words, env=env, stdout=out, stderr=subprocess.PIPE, text=True, bufsize=1)
    for moment in moments:
        time.sleep(max(0.0, began + moment - time.monotonic()))
        try:
            before = known(truth, process.pid, base)[0]
            process.send_signal(signal.SIGUSR1)
            line = process.stderr.readline().strip()
            after = known(truth, process.pid, base)[1]
        except (OSError, TypeError):
            break
        if "files" not in line:
            break
        looks.append((time.monotonic() - began, before, after, line))
    errors = process.stderr.read()
    code = process.wait()
    took = time.monotonic() - began
    if code:
        sys.exit(f"{' '.join(words)}: exit code {code}: {errors}")
    out.seek(0)
    events = [json.loads(line) for line in out]
    return took, [event for event in events if event["event"] == "progress"], looks


def cases(args, work):
    """(name, server options or None, source, target, options, truth)"""
    many = lambda name, count, size: files(os.path.join(work, name), max(1, int(count * args.scale)), size)
    size = int(3_000_000_000 * args.scale)
    target = os.path.join(work, "target")
    null = ["--keys", str(max(1, int(300 * args.scale))), "--object-size", "10000000"]
    one = ["--keys", "1", "--object-size", str(size)]
    slow = ["--bwlimit=40MB"]
    yield "local, small files", None, lambda: many("small", 150_000, 4096), target, [], written
    yield "local, one large file", None, lambda: many("large", 1 / args.scale, size), target, [], written
    yield "local, limited", None, lambda: many("some", 400, 1_000_000), target, slow, written
    yield "local, one large file, limited", None, lambda: many("one", 1 / args.scale, 400_000_000), target, slow, written
    yield "up", [], lambda: many("some10", 300, 10_000_000), BUCKET, [], passed
    yield "up, one large file", [], lambda: many("large", 1 / args.scale, size), BUCKET, [], passed
    yield "up, limited", [], lambda: many("some", 400, 1_000_000), BUCKET, slow, passed
    yield "down", null, lambda: BUCKET, target, [], taken
    yield "down, one large file", one, lambda: BUCKET, target, [], taken
    yield "down, limited", ["--keys", "400", "--object-size", "1000000"], lambda: BUCKET, target, slow, taken


def truths(args, work, raw):
    """Rows of the table of cases."""
    rows = []
    for name, server, source, target, options, truth in cases(args, work):
        if args.only not in name:
            continue
        source = source()
        words = [args.hakobu, "sync", "-r", "--json", *options, source + "/", target + "/"]

        def measure(env):
            took, looks, events = 0.0, [], []
            for moments in (False, True):
                shutil.rmtree(os.path.join(work, "target"), ignore_errors=True)
                steps = [took * (at + 0.5) / MOMENTS for at in range(MOMENTS)] if moments else []
                took, events, looks = run(words, env, truth, steps)
            return took, events, looks

        if server is None:
            took, events, looks = measure(environment(work))
        else:
            with Server(args, server) as url:
                took, events, looks = measure(environment(work, url))
        total = max(look[2] for look in looks) if looks else 0
        worst, within = (0.0, 0.0), 0
        for at, before, after, line in looks:
            shown = shown_bytes(line)
            off = max(0.0, before - shown, shown - after)
            share, seconds = off / max(after, 1), off / max(total / took, 1)
            raw.write(f"{name}\t{at:.3f}\t{before}\t{after}\t{shown:.0f}\t{line}\n")
            within += share <= SHARE or seconds <= SECONDS
            worst = max(worst, (share, seconds), key=lambda one: min(one[0] / SHARE, one[1] / SECONDS))
        left, good = [], 0
        for event in events:
            if event["left_s"] is None or event["elapsed_s"] < took / 3:
                continue
            right = took - event["elapsed_s"]
            off = abs(event["left_s"] - right)
            raw.write(f"{name}\t{event['elapsed_s']:.3f}\tleft_s\t{right:.3f}\t{event['left_s']:.3f}\t\n")
            left.append(off / right)
            good += off <= max(LEFT_SHARE * right, LEFT_SECONDS)
        met = within == len(looks) and len(looks) >= 5 and good == len(left)
        rows.append(
            f"| {name} | {took:.1f} s | {within} of {len(looks)} | {worst[0]:.1%}, {worst[1]:.2f} s "
            f"| {good} of {len(left)} | {'yes' if met else 'no'} |"
        )
        print(rows[-1], flush=True)
    return rows


def cpu(words, env, terminal):
    """CPU seconds of a command on a terminal (where `--progress` prints no names), or on nothing."""
    out = subprocess.DEVNULL
    if terminal:
        end, inner = pty.openpty()
        out = inner
    process = subprocess.Popen(words, env=env, stdout=out, stderr=out)
    if terminal:
        os.close(inner)

        def drain():
            try:
                while os.read(end, 65536):
                    pass
            except OSError:
                pass  # the other end is closed

        reader = threading.Thread(target=drain)
        reader.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if terminal:
        reader.join()
        os.close(end)
    if process.returncode:
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def cost(args, work, raw):
    """Rows of the table of costs."""
    source = files(os.path.join(work, "cost"), 20_000, 4096)
    target = os.path.join(work, "target")
    forms = {"none": ["--no-progress"], "a bar": ["--progress"], "events": ["--json"]}
    env = {**environment(work), "TERM": "xterm"}
    found = {form: [] for form in forms}
    for number in range(-1, args.rounds):
        order = list(forms)[number % 3 :] + list(forms)[: number % 3]
        for form in order:
            shutil.rmtree(target, ignore_errors=True)
            words = [args.hakobu, "sync", "-a", *forms[form], source + "/", target + "/"]
            seconds = cpu(words, env, form != "events")
            raw.write(f"cost\t{number}\t{form}\t{seconds:.6f}\n")
            if number >= 0:
                found[form].append(seconds)
    rows = []
    for form in list(forms)[1:]:
        ratios = [one / none for one, none in zip(found[form], found["none"])]
        middle, low, high = spread(ratios)
        rows.append(
            f"| {form} | {statistics.median(found['none']):.3f} s | {statistics.median(found[form]):.3f} s "
            f"| **{middle:.3f} ×** ({low:.3f} … {high:.3f}) | {'yes' if middle <= COST else 'no'} |"
        )
        print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hakobu", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("results")
    args = parser.parse_args()
    args.hakobu = os.path.abspath(args.hakobu)
    os.makedirs(args.results, exist_ok=True)
    work = tempfile.mkdtemp(prefix="hakobu-progress-", dir=args.dir)
    lines = []
    try:
        with open(os.path.join(args.results, "progress.tsv"), "a") as raw:
            if args.only != "cost":
                head = "| case | took | moments within 10 % or 1 s | worst moment | time left within 25 % | met |"
                lines += [head, "|---|---|---|---|---|---|", *truths(args, work, raw), ""]
            if args.only in ("", "cost"):
                head = f"| 20,000 files of 4 KiB, CPU time | without | with | ratio, wanted ≤ {COST} | met |"
                lines += [head, "|---|---|---|---|---|", *cost(args, work, raw)]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    with open(os.path.join(args.results, "progress.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""The runs of bench/memory.sh: alternating conditions, with a shared memory and with an empty one."""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time

WANTED = 0.97
CONDITIONS = {
    "plain": ([], []),
    "one CPU": (["taskset", "-c", "0"], []),
    "nice 10": (["nice", "-n", "10"], []),
    "200 MB/s": ([], ["--bwlimit=200MB"]),
}


def files(folder, count):
    """Files of 4 KiB in folders of a hundred."""
    for number in range(count):
        below = os.path.join(folder, f"{number // 100:05}")
        if number % 100 == 0:
            os.makedirs(below)
        with open(os.path.join(below, f"{number:07}"), "wb") as file:
            file.write(os.urandom(4096))


def copy(args, work, source, condition, state):
    """Seconds of one copy under a condition, with a folder for what is remembered."""
    before, options = CONDITIONS[condition]
    target = os.path.join(work, "target")
    shutil.rmtree(target, ignore_errors=True)
    words = [*before, args.hakobu, "sync", "-a", *options, source + "/", target + "/"]
    began = time.monotonic()
    subprocess.run(words, check=True, env={**os.environ, "XDG_STATE_HOME": state})
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hakobu", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("results")
    args = parser.parse_args()
    args.hakobu = os.path.abspath(args.hakobu)
    os.makedirs(args.results, exist_ok=True)
    work = tempfile.mkdtemp(prefix="hakobu-memory-", dir=args.dir)
    try:
        ratios = measure(args, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    lines = ["| condition | speed with the shared memory ÷ with an empty one | wanted | met |", "|---|---|---|---|"]
    for condition, found in ratios.items():
        middle = statistics.median(found)
        span = f"{min(found):.2f} … {max(found):.2f}"
        met = "yes" if middle >= WANTED else "NO"
        lines.append(f"| {condition} | **{middle:.2f}** ({span}) | ≥ {WANTED} | {met} |")
    with open(os.path.join(args.results, "memory.md"), "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))


def measure(args, work):
    short, long = os.path.join(work, "short"), os.path.join(work, "long")
    files(short, args.files)
    files(long, 4 * args.files)
    shared = os.path.join(work, "shared")
    ratios = {condition: [] for condition in CONDITIONS}
    with open(os.path.join(args.results, "memory.tsv"), "a", buffering=1) as raw:
        for number in range(args.rounds):
            order = random.sample(list(CONDITIONS), len(CONDITIONS))
            copy(args, work, long, order[0], shared)
            for condition in order:
                took = {}
                for memory in random.sample(["shared", "empty"], 2):
                    state = shared if memory == "shared" else tempfile.mkdtemp(dir=work)
                    took[memory] = copy(args, work, short, condition, state)
                    raw.write(f"{number}\t{condition}\t{memory}\t{took[memory]:.4f}\n")
                ratios[condition].append(took["empty"] / took["shared"])
    return ratios


if __name__ == "__main__":
    main()

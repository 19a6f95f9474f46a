"""The rows of bench/auto.sh: fixed numbers of jobs in a sweep, then the best of them against `-j auto`."""

import json
import os
import random
import statistics
import subprocess
import tempfile

import cells
from cells import Cold, Flat, Get, Local, Nested, Put
from measure import open_table, read_arguments

LOCAL = [1, 2, 4, 8]
READS = [1, 2, 4, 8, 16, 32, 64]
STORE = [1, 2, 4, 8, 16, 32, 64, 128, 256]
FIVE, FIFTY = ["--latency", "5ms"], ["--latency", "50ms"]

ROWS = {
    "flat-tmpfs": lambda b: Local(b, Flat, "tmpfs", LOCAL, 1_200_000),
    "flat-ext4": lambda b: Local(b, Flat, "ext4", LOCAL, 1_000_000),
    "flat-xfs": lambda b: Local(b, Flat, "xfs", LOCAL, 1_000_000),
    "nested-tmpfs": lambda b: Local(b, Nested, "tmpfs", LOCAL, 600_000),
    "nested-ext4": lambda b: Local(b, Nested, "ext4", LOCAL, 400_000),
    "nested-xfs": lambda b: Local(b, Nested, "xfs", LOCAL, 400_000),
    "cold-reads": lambda b: Local(b, Cold, "tmpfs", READS, 500_000, cold=True),
    "put-5ms": lambda b: Put(b, FIVE, STORE),
    "put-50ms": lambda b: Put(b, FIFTY, STORE),
    "get-5ms": lambda b: Get(b, FIVE, STORE),
    "get-50ms": lambda b: Get(b, FIFTY, STORE),
    "put-cap-16": lambda b: Put(b, [*FIVE, "--max-in-flight", "16"], STORE),
    "put-503": lambda b: Put(b, [*FIVE, "--slow-down-above", "1000"], STORE),
}
# Name, seconds, least of the best cold, and with a memory.
LENGTHS = [("long", 11.0, 0.90, 0.90), ("short", 2.0, 0.65, 0.85)]
COLD, SEEDED = ("auto cold", ["-j", "auto", "--no-memory"]), ("auto seeded", ["-j", "auto"])


def fixed(jobs):
    return f"-j {jobs}", ["-j", str(jobs)]


class Bench:
    """Where to work, and where raw numbers go."""

    def __init__(self, args):
        self.work, self.hakobu = args.work, os.path.abspath(args.hakobu)
        self.results, self.rounds, self.scale = args.results, args.rounds, args.scale
        self.sweeps = 1 if args.quick else 3
        self.disk_parent = args.disk or args.results
        head = "row length series round contender files code wall_s user_s sys_s rss_kib jobs_end"
        self.raw = open_table(args.results, "auto.tsv", head)

    def disk(self):
        """A folder on the disk; auto.sh removes it."""
        path = tempfile.mkdtemp(prefix="hakobu-auto-", dir=self.disk_parent)
        with open(os.path.join(self.work, "disk"), "w") as file:
            file.write(path)
        return path

    def run(self, cell, place, contender, count):
        """Runs once and writes it down; files a second, or None where it failed."""
        name, options = contender
        files = cell.prepare(count)
        report, said = os.path.join(self.work, "report"), os.path.join(self.work, "said")
        with open(said, "w") as out, open(os.path.join(self.results, "stderr.log"), "a") as err:
            words = cell.words(options)
            subprocess.run([os.path.join(self.work, "timed"), report, *words], check=True, stdout=out, stderr=err)
        code, wall, _, user, system, rss = open(report).read().split()
        try:
            summary = json.loads(open(said).read().splitlines()[-1])
        except (IndexError, ValueError):
            summary = {}
        path = summary.get("jobs_path") or []
        jobs = path[-1]["jobs"] if path else summary.get("jobs", "")
        row = [*place, name, files, code, wall, user, system, rss, jobs]
        self.raw.write("\t".join(map(str, row)) + "\n")
        if code != "0" or summary.get("files") != files:
            print(f"{place}: {name}: exit code {code}, {summary.get('files')} of {files} files", flush=True)
            return None
        return files / float(wall)

    def rounds_of(self, cell, place, contenders, counts, rounds):
        """All contenders in each round, in random order; rates by name, one for each round."""
        rates = {name: [] for name, _ in contenders}
        rng = random.Random(repr(place))
        for number in range(rounds):
            for contender in rng.sample(contenders, len(contenders)):
                rate = self.run(cell, [*place, number], contender, counts[contender[0]])
                rates[contender[0]].append(rate)
        return rates


def middle(rates):
    """The median rate; 0 where a run failed: what loses files is not a setting to be compared with."""
    return statistics.median(rates) if all(rates) else 0.0


def estimate(bench, cell, name):
    """How fast each number of jobs is, roughly: ever more files until it takes long enough to tell."""
    rates = {}
    for jobs in cell.jobs:
        count = cell.first
        while True:
            rate = bench.run(cell, [name, "-", "estimate", 0], fixed(jobs), count)
            # A number of jobs with which files are lost is out.
            if rate is None:
                rates.pop(jobs, None)
                break
            rates[jobs] = rate
            if count / rate > 0.7 or count >= cell.most:
                break
            count = min(cell.most, count * 4)
    return rates


def measure(bench, cell, name, length, rates, lines):
    title, seconds, least_cold, least_seeded = length
    seconds *= bench.scale
    whole = min(cell.most, int(max(rates.values()) * seconds))
    # What takes far longer than the best moves fewer files, for the same time: rates are compared.
    tried = list(rates)
    comparable = {jobs for jobs in tried if whole / rates[jobs] <= 2.5 * seconds}
    counts = {fixed(j)[0]: whole if j in comparable else max(cell.first, int(rates[j] * seconds)) for j in tried}
    points = [fixed(j) for j in tried]
    sweep = bench.rounds_of(cell, [name, title, "sweep"], points, counts, bench.sweeps)
    sweep = {jobs: middle(sweep[fixed(jobs)[0]]) for jobs in tried}
    best = max(sweep, key=sweep.get)
    knee = min(jobs for jobs in tried if sweep[jobs] >= 0.97 * sweep[best])
    points = ", ".join(f"{jobs}: {rate:,.0f}" for jobs, rate in sweep.items())
    lines.append(f"\n{name}, {title} ({whole:,} files); files/s by jobs: {points}; best {best}, knee {knee}\n")
    if not sweep[best]:
        return
    contenders = {fixed(best)[0]: fixed(best), COLD[0]: COLD, SEEDED[0]: SEEDED}
    if 1 in comparable:
        contenders.setdefault(fixed(1)[0], fixed(1))
    counts = dict.fromkeys(contenders, whole)
    # What is remembered comes from whole runs before; longer ones where there were some.
    for number in range(2):
        bench.run(cell, [name, title, "memory", number], SEEDED, whole)
    final = bench.rounds_of(cell, [name, title, "final"], list(contenders.values()), counts, bench.rounds)
    champion = final[fixed(best)[0]]
    single = final.get(fixed(1)[0]) or [sweep[1]] * bench.rounds
    for own, against, other, least in [
        (COLD[0], f"-j {best}", champion, least_cold),
        (SEEDED[0], f"-j {best}", champion, least_seeded),
        *([(own, "-j 1", single, 0.90) for own in (COLD[0], SEEDED[0])] if best > 1 else []),
    ]:
        lines.append(goal(f"{name}, {title}: {own}", against, least, final[own], other))


def goal(what, against, least, own, other):
    pairs = [a / b for a, b in zip(own, other) if a and b]
    failed = sum(not a or not b for a, b in zip(own, other))
    if not pairs:
        return f"| {what} | {against} | ≥ {least:g} × | failed | NO |"
    ratio = statistics.median(pairs)
    note = f", {failed} runs failed" if failed else ""
    met = "yes" if ratio >= least and not failed else "NO"
    return f"| {what} | {against} | ≥ {least:g} × | **{ratio:.2f} ×** ({min(pairs):.2f} … {max(pairs):.2f}){note} | {met} |"


HEAD = "| what | against | goal | rate against it, median (least … most) | met |\n|---|---|---|---|---|"


def main():
    args = read_arguments(ROWS, rounds=int, scale=1.0, disk=str)
    args.rounds = args.rounds or (3 if args.quick else 7)
    bench = Bench(args)
    goals, points = [], []
    for name in args.rows:
        print(f"row {name}", flush=True)
        cell = ROWS[name](bench)
        try:
            rates = estimate(bench, cell, name)
            for length in LENGTHS:
                lines = []
                measure(bench, cell, name, length, rates, lines)
                print("\n".join(lines), flush=True)
                goals += [line for line in lines if line.startswith("|")]
                points += [line.strip() for line in lines if not line.startswith("|")]
                with open(os.path.join(args.results, "auto.md"), "w") as file:
                    file.write("\n".join([HEAD, *goals, "", *(f"- {point}" for point in points), ""]))
        finally:
            cell.close()
        cells.sh("sync")
    print("\n".join([HEAD, *goals]))


if __name__ == "__main__":
    main()

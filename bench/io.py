"""The rows of bench/io.sh: the same options to fio and to `hakobu io`, interleaved, and what has to come out.

What is compared is what both say of themselves: blocks a second, and the percentiles of completion latency,
which the JSON of both has under the same names. Ratios are taken inside each round.
"""

import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import time

from measure import GOALS_HEAD, Contender, open_table, ratio, read_arguments, verdict

MIB = 1 << 20
FIELDS = ["iops", "p50_ns", "p99_ns", "user_s", "system_s", "rss_kib"]


class Run:
    """One run: blocks a second of both sides, percentiles of the side that was used more, CPU and memory."""

    def __init__(self, iops, p50_ns=0, p99_ns=0, user_s=0.0, system_s=0.0, rss_kib=0):
        self.iops, self.p50_ns, self.p99_ns = iops, p50_ns, p99_ns
        self.user_s, self.system_s, self.rss_kib = user_s, system_s, rss_kib


class Io:
    """Where to work, and how long."""

    def __init__(self, args):
        self.work, self.hakobu, self.disk, self.pin = args.work, os.path.abspath(args.hakobu), args.disk, args.pin
        self.rounds = args.rounds or (3 if args.quick else 7)
        self.seconds = args.seconds or (1 if args.quick else 3)
        self.errors = os.path.join(args.results, "stderr.log")
        self.raw = open_table(args.results, "io.tsv", " ".join(["row round place contender", *FIELDS]))
        self.lines = []
        self.written = os.path.join(args.results, "io.md")

    def say(self, *lines):
        for line in lines:
            self.lines.append(line)
            print(line, flush=True)
        with open(self.written, "w") as out:
            out.write("\n".join([GOALS_HEAD, *self.lines, ""]))

    # Runs

    def pair(self, options, ours=(), pinned=False):
        """fio and hakobu with the same options. `ours` are those that only hakobu has."""
        options = [f"--{option}" for option in ["name=bench", *options, "output-format=json"]]
        if pinned and self.pin is not None:
            options.append(f"--cpus_allowed={self.pin}")
        ours = [f"--{option}" for option in ours]
        return (
            Contender("fio", ["fio", *options]),
            Contender("hakobu", [self.hakobu, "io", *options, *ours]),
        )

    def timed(self, words):
        """Runs a command: what it printed, its CPU seconds and peak memory."""
        report, output = os.path.join(self.work, "report"), os.path.join(self.work, "output")
        with open(output, "w") as out, open(self.errors, "a") as errors:
            command = [os.path.join(self.work, "timed"), report, *words]
            subprocess.run(command, check=True, stdout=out, stderr=errors)
        fields = open(report).read().split()
        if int(fields[0]) != 0:
            raise RuntimeError(f"{' '.join(words)}: exit code {fields[0]}, see {self.errors}")
        return open(output).read(), float(fields[3]), float(fields[4]), int(fields[5])

    def run(self, contender):
        text, user, system, rss = self.timed(contender.words)
        if contender.name == "pread":
            return Run(float(text), user_s=user, system_s=system, rss_kib=rss)
        # fio may say something before the JSON.
        jobs = json.loads(text[text.index("{") :])["jobs"]
        if any(job["error"] for job in jobs):
            raise RuntimeError(f"{' '.join(contender.words)}: error {jobs[0]['error']}")
        iops = sum(job[side]["iops"] for job in jobs for side in ("read", "write"))
        side = max((job[side] for job in jobs for side in ("read", "write")), key=lambda one: one["iops"])
        percentile = side.get("clat_ns", {}).get("percentile", {})
        return Run(iops, percentile.get("50.000000", 0), percentile.get("99.000000", 0), user, system, rss)

    def interleave(self, row, contenders, prepare=lambda: None):
        """All of them in turn, after a round -1 that only warms up."""
        for number in range(-1, self.rounds):
            turn = number % len(contenders)
            for place, contender in enumerate(contenders[turn:] + contenders[:turn]):
                prepare()
                run = self.run(contender)
                values = [row, number, place, contender.name, *(getattr(run, field) for field in FIELDS)]
                self.raw.write("\t".join(map(str, values)) + "\n")
                if number >= 0:
                    contender.runs.append(run)
        return contenders

    # Verdicts

    def faster(self, row, contenders, goal, against="fio"):
        """Our blocks a second against somebody's."""
        by = {contender.name: contender for contender in contenders}
        ours, other = by["hakobu"], by[against]
        middle, low, high = ratio(ours, other, "iops")
        what = f"{row}: {ours.median('iops') / 1e3:.0f}k IOPS"
        self.say(verdict(what, f"{against} {other.median('iops') / 1e3:.0f}k", goal, middle, low, high))

    def alike(self, row, fio, again, ours):
        """Blocks a second within 2 %, p50 and p99 within 5 %, or within what fio differs from itself."""
        for field, apart in [("iops", 0.02), ("p50_ns", 0.05), ("p99_ns", 0.05)]:
            middle, low, high = ratio(ours, fio, field)
            own = [a / b for a, b in (sorted([getattr(x, field), getattr(y, field)]) for x, y in zip(fio.runs, again.runs)) if b]
            itself = 1 - min(own, default=1.0)
            met = abs(middle - 1) <= max(apart, itself)
            goal = f"within {100 * apart:g} %, or as fio from itself ({100 * itself:.1f} %)"
            what = f"{row}: {field} {ours.median(field):.0f}"
            measured = f"**{middle:.3f} ×** ({low:.3f} … {high:.3f})"
            self.say(f"| {what} | fio {fio.median(field):.0f} | {goal} | {measured} | {'yes' if met else 'NO'} |")

    # Places

    def file(self, mib=256):
        """A file of random bytes in memory."""
        path = os.path.join(self.work, "file")
        if not os.path.exists(path):
            block = random.Random(3).randbytes(MIB)
            with open(path, "wb") as out:
                for _ in range(mib):
                    out.write(block)
        return path

    @contextlib.contextmanager
    def loop(self, mib=512):
        """A loop device over a file in memory."""
        image = os.path.join(self.work, "image")
        with open(image, "wb") as out:
            block = random.Random(5).randbytes(MIB)
            for _ in range(mib):
                out.write(block)
        device = subprocess.run(["losetup", "-f", "--show", image], check=True, text=True, capture_output=True)
        device = device.stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "-d", device], check=True)
            os.unlink(image)

    @contextlib.contextmanager
    def throttled(self, device, iops):
        """So many reads and writes a second, by the control groups of either version."""
        number = os.stat(device).st_rdev
        number = f"{os.major(number)}:{os.minor(number)}"
        first = "/sys/fs/cgroup/blkio"
        if os.path.exists(f"{first}/blkio.throttle.read_iops_device"):
            # What goes to the device is charged to the topmost group.
            def limit(value):
                for way in ("read", "write"):
                    with open(f"{first}/blkio.throttle.{way}_iops_device", "w") as out:
                        out.write(f"{number} {value}")

            limit(iops)
            try:
                yield
            finally:
                limit(0)
            return
        group = "/sys/fs/cgroup/hakobu-bench"
        with open("/sys/fs/cgroup/cgroup.subtree_control", "w") as out:
            out.write("+io")
        os.makedirs(group, exist_ok=True)

        def join(folder):
            with open(f"{folder}/cgroup.procs", "w") as out:
                out.write(str(os.getpid()))

        with open(f"{group}/io.max", "w") as out:
            out.write(f"{number} riops={iops} wiops={iops}")
        join(group)
        try:
            yield
        finally:
            join("/sys/fs/cgroup")
            os.rmdir(group)

    def by_time(self, *more, further_ms=0):
        return ["bs=4k", f"runtime={1000 * self.seconds + further_ms}ms", "time_based", *more]

    # Rows

    def psync(self, row, *more):
        file = f"filename={self.file()}"
        options = self.by_time(file, "rw=randread", "ioengine=psync", *more)
        self.faster(row, self.interleave(row, list(self.pair(options, pinned=True))), 1.15)

    def floor(self, row):
        options = self.by_time(f"filename={self.file()}", "rw=randread", "ioengine=psync", "gtod_reduce=1")
        _, ours = self.pair(options, pinned=True)
        words = [os.path.join(self.work, "pread"), self.file(), str(self.seconds)]
        pin = ["taskset", "-c", str(self.pin)] if self.pin is not None else []
        floor = Contender("pread", [*pin, *words])
        self.faster(row, self.interleave(row, [floor, ours]), 0.93, "pread")

    def uring(self, row, *more):
        options = self.by_time(f"filename={self.file()}", "rw=randread", "ioengine=io_uring", "iodepth=32", *more)
        self.faster(row, self.interleave(row, list(self.pair(options, pinned=True))), 1.15)

    def uring_loop(self, row, *more):
        with self.loop() as device:
            options = self.by_time(f"filename={device}", "rw=randread", "direct=1", "ioengine=io_uring", "iodepth=32", *more)
            self.faster(row, self.interleave(row, list(self.pair(options))), 1.0)

    def null(self, row, *more):
        options = self.by_time("rw=randread", "ioengine=null", "size=1g", *more)
        self.faster(row, self.interleave(row, list(self.pair(options, pinned=True))), 1.5)

    def device_bound(self, row, options, prepare=lambda: None):
        ours = ["allow-overwrite", "keep"]
        fio, hakobu = self.pair(options, ours)
        again = Contender("fio again", fio.words)
        self.interleave(row, [fio, hakobu, again], prepare)
        self.alike(row, fio, again, hakobu)

    def on_disk(self, row, rw, jobs):
        if not self.disk:
            print(f"{row}: no --disk, left out", flush=True)
            return
        folder = os.path.join(self.disk, f"hakobu-io-{os.getpid()}")
        os.makedirs(folder)
        try:
            options = self.by_time(
                f"directory={folder}", f"rw={rw}", "direct=1", "ioengine=psync", f"numjobs={jobs}",
                f"size={max(8, 512 // jobs)}m", "group_reporting",
            )
            # Both find the files that fio has made.
            self.timed(["fio", "--name=bench", *(f"--{one}" for one in [*options, "create_only=1"])])
            self.device_bound(row, options, lambda: subprocess.run(["sync", "-f", folder], check=True))
        finally:
            shutil.rmtree(folder)

    def throttle(self, row, rw, jobs):
        with self.loop() as device, self.throttled(device, 4000):
            # The kernel hands out operations for 100 ms at once, from the first one after a pause of so
            # long: a run that began sooner after another would begin with the rest of what that one had,
            # and one that ended at such a moment would get all, some or none of the last ones.
            options = self.by_time(
                f"filename={device}", f"rw={rw}", "direct=1", "ioengine=psync", f"numjobs={jobs}",
                "size=512m", "group_reporting", further_ms=50,
            )
            self.device_bound(row, options, lambda: time.sleep(0.3))

    def memory(self, row):
        """What 128 jobs take, and 64 MiB apart what their buffers are."""
        options = self.by_time(f"filename={self.file()}", "rw=randread", "ioengine=psync", "numjobs=128", "group_reporting")
        fio, ours = self.pair(options)
        self.interleave(row, [fio, ours])
        buffers = 128 * 4096 / MIB
        peak = max(run.rss_kib for run in ours.runs) / 1024 - buffers
        theirs = statistics.median(run.rss_kib for run in fio.runs) / 1024
        self.say(verdict(f"{row}: 128 jobs", f"fio's first process {theirs:.0f} MiB", 64, peak, at_most=True, unit="MiB"))


TUNED = ("fixedbufs", "registerfiles", "iodepth_batch_submit=16", "iodepth_batch_complete_min=1", "iodepth_batch_complete_max=32")


def rows():
    table = {
        "psync-tmpfs": lambda io, row: io.psync(row),
        "psync-tmpfs-gtod": lambda io, row: io.psync(row, "gtod_reduce=1"),
        "pread-floor": lambda io, row: io.floor(row),
        "uring-tmpfs": lambda io, row: io.uring(row),
        "uring-tmpfs-tuned": lambda io, row: io.uring(row, *TUNED),
        "uring-loop": lambda io, row: io.uring_loop(row),
        "uring-loop-tuned": lambda io, row: io.uring_loop(row, *TUNED),
        "null": lambda io, row: io.null(row),
        "null-gtod": lambda io, row: io.null(row, "gtod_reduce=1"),
        "memory": lambda io, row: io.memory(row),
    }
    for place, run in [("disk", Io.on_disk), ("throttled", Io.throttle)]:
        for rw in ("read", "write", "randread", "randwrite"):
            for jobs in (1, 8, 64):
                table[f"{place}-{rw}-{jobs}"] = lambda io, row, run=run, rw=rw, jobs=jobs: run(io, row, rw, jobs)
    return table


def main():
    args = read_arguments(rows(), begin=True, rounds=int, seconds=int, disk=str, pin=int)
    io = Io(args)
    print(GOALS_HEAD, flush=True)
    for name, row in rows().items():
        # A whole name means that row alone: "null" is not "null-gtod".
        if any(name == want or want not in rows() and name.startswith(want) for want in args.rows):
            row(io, name)


if __name__ == "__main__":
    main()

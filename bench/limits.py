"""The rows of bench/limits.sh: transfers under `--bwlimit` whose progress is sampled from outside: what the
kernel says that the process has written (room on the target would not do, it is reserved beforehand), or the
bytes that passed the loopback (of a network namespace that limits.sh makes, where nobody else is)."""

import os
import subprocess
import time

from cells import Parts, Server, Target
from measure import open_table, read_arguments
from trees import write

HEAD = (
    "| what | mean, % of the limit | best second | worst second | CPU s a GB | unlimited: rate, CPU s a GB | met |\n"
    "|---|---|---|---|---|---|---|"
)
STEP_S = 0.01


class Files(Parts):
    """Files of one size, each one name of a few files."""

    piece = 1

    def __init__(self, work, size):
        super().__init__(work)
        self.size = size

    def make(self, path, number):
        one = os.path.join(self.pool, f"f{number // 1000:06}")
        if not os.path.exists(one):
            write(one, os.urandom(self.size), 1_600_000_000_000_000_000)
        os.link(one, path)


def written(pid):
    """Bytes that a process has written, by whatever call (proc_pid_io(5), wchar)."""
    with open(f"/proc/{pid}/io") as file:
        return int(next(line for line in file if line.startswith("wchar")).split()[1])


def on_loopback(_):
    """Bytes received (proc_pid_net(5); /sys would tell of another namespace)."""
    with open("/proc/self/net/dev") as file:
        return int(next(line for line in file if line.split()[0] == "lo:").split()[1])


def watch(words, count_bytes):
    """Runs a command: seconds, CPU seconds, and (seconds, bytes so far) all the time."""
    begun, points = time.monotonic(), []
    process = subprocess.Popen(words)
    zero = count_bytes(process.pid)
    while True:
        # A process that ended but was not waited for has its counters still, or none.
        now, total = time.monotonic() - begun, count_bytes(process.pid)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        points.append((now, total - zero))
        time.sleep(STEP_S)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words}: exit code {process.returncode}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, points


class Row:
    """`size` bytes a file, `rate` bytes a second; to a server if `store`."""

    def __init__(self, size, rate, store=False, jobs="auto"):
        self.size, self.rate, self.store, self.jobs = size, rate, store, jobs

    def run(self, args, limit, seconds):
        """One run: bytes moved, seconds, CPU seconds, and (seconds, bytes so far) all the time."""
        count = max(1, int(self.rate * seconds / self.size))
        source, target = Files(args.work, self.size), Target(args.work, "tmpfs")
        server = Server(args.hakobu, []) if self.store else None
        try:
            moved = source.fill(count) * self.size
            target.renew()
            words = [args.hakobu]
            if server:
                server.start()
                words += ["cp", "--endpoint-url", server.url, "-r"]
                places = [source.path + "/.", "s3://bench/up/"]
            else:
                words += ["sync", "-rt"]
                places = [source.path + "/", target.path + "/out/"]
            words += ["--no-memory", "-j", self.jobs, *([f"--bwlimit={limit}"] if limit else []), *places]
            return moved, *watch(words, on_loopback if server else written)
        finally:
            if server:
                server.stop()
            target.close()
            for path in (source.path, source.pool):
                subprocess.run(["rm", "-rf", path], check=True)


def seconds_of(points, moved):
    """The most and the least that moved in any second, in content bytes. What stands around content on its
    way (a page of a small file, headers) is taken out by the total; the last second is not a whole one."""
    share = moved / points[-1][1]
    rates, at = [], 0
    end_s = next(t for t, done in points if done >= points[-1][1])
    for t, done in points:
        while points[at][0] < t - 1.0:
            at += 1
        # The first tenth of a second is the program's start.
        if at > 0 and points[at - 1][0] > 0.1 and t <= end_s:
            (t0, done0), (t1, done1) = points[at - 1], points[at]
            then = done0 + (done1 - done0) * (t - 1.0 - t0) / (t1 - t0)
            rates.append((done - then) * share)
    return (max(rates), min(rates)) if rates else (0.0, 0.0)


ROWS = {
    "large-10MB": Row(20_000_000, 10_000_000),
    "large-200MB": Row(20_000_000, 200_000_000),
    "small-2MB": Row(4096, 2_000_000),
    "small-40MB": Row(4096, 40_000_000),
    "many-jobs-50MB": Row(500_000, 50_000_000, jobs="32"),
    "put-small-2MB": Row(4096, 2_000_000, store=True),
    "put-500KB-50MB": Row(500_000, 50_000_000, store=True),
    "put-large-100MB": Row(100_000_000, 100_000_000, store=True),
}


def main():
    args = read_arguments(ROWS, scale=1.0)
    args.hakobu = os.path.abspath(args.hakobu)
    raw = open_table(args.results, "limits.tsv", "row round limit bytes wall_s cpu_s best_second worst_second")
    lines = []
    for name in args.rows:
        row = ROWS[name]
        runs = []
        for number in range(1 if args.quick else 3):
            for limit in (0, f"{row.rate // 1_000_000}MB"):
                moved, wall, cpu, points = row.run(args, limit, 10.0 * args.scale)
                best, worst = seconds_of(points, moved) if limit else (0.0, 0.0)
                values = [name, number, limit, moved, wall, f"{cpu:.3f}", f"{best:.0f}", f"{worst:.0f}"]
                raw.write("\t".join(map(str, values)) + "\n")
                runs.append((bool(limit), moved, wall, cpu, best / row.rate, worst / row.rate))
        limited, free = [r for r in runs if r[0]], [r for r in runs if not r[0]]
        means = [moved / wall / row.rate for _, moved, wall, *_ in limited]
        mean = max(means, key=lambda value: abs(value - 1))
        best, worst = max(r[4] for r in limited), min(r[5] for r in limited)

        def cost(some):
            return sum(r[3] for r in some) / sum(r[1] for r in some) * 1e9

        speed = sum(r[1] for r in free) / sum(r[2] for r in free) / 1e6
        met = abs(mean - 1) <= 0.02 and best <= 1.10 and worst >= 0.90
        lines.append(
            f"| {name} | **{100 * mean:.1f}** | {100 * best:.1f} | {100 * worst:.1f} | {cost(limited):.2f} "
            f"| {speed:.0f} MB/s, {cost(free):.2f} | {'yes' if met else 'NO'} |"
        )
        print(lines[-1], flush=True)
        with open(os.path.join(args.results, "limits.md"), "w") as file:
            file.write("\n".join([HEAD, *lines, ""]))
    print("\n".join([HEAD, *lines]))


if __name__ == "__main__":
    main()

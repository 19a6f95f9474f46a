"""Measures many machines on one: what planning costs, what a run costs against one sync, how soon the first object of two
long prefixes moves, how many requests a second run sends (also of one machine), how workers scale against a server and a
file system that answer late, how even their ends are, how fast claims and status are, what killing workers costs.

    bench/cluster.sh [--rounds N] [--scale X] RESULTS [PART]...

PART: plan, plan10, small, first, again, known, server, slowfs, even, claims, status, kill; all of them where none is
named. RESULTS is a folder for raw numbers (cluster.tsv) and the table of goals (cluster.md). HAKOBU names the program
(default: target/release/hakobu). Needs a quiet machine, root for mounts, gcc, and 8 GB of memory (plan10). Rounds are
interleaved; ratios are taken inside each round. `--scale 0.05` shows in some minutes that everything works."""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from measure import GOALS_HEAD, spread, verdict

PARTS = ["plan", "plan10", "small", "first", "again", "known", "server", "slowfs", "even", "claims", "status", "kill"]
OLD = 1704067200


class Cluster:
    def __init__(self, binary, results, rounds, scale):
        self.binary, self.rounds, self.scale = binary, rounds, scale
        self.work = tempfile.mkdtemp(prefix="hakobu-cluster.", dir="/dev/shm")
        self.run_folder, self.dst = self.path("run"), self.path("dst")
        os.makedirs(results, exist_ok=True)
        self.raw = open(os.path.join(results, "cluster.tsv"), "a", buffering=1)
        self.table = os.path.join(results, "cluster.md")
        self.errors = open(os.path.join(results, "stderr.log"), "ab")
        self.rows = []
        self.env = dict(os.environ)
        self.env.update(
            XDG_STATE_HOME=self.path("state"),
            AWS_ACCESS_KEY_ID="bench",
            AWS_SECRET_ACCESS_KEY="bench",
            AWS_REGION="us-east-1",
            AWS_EC2_METADATA_DISABLED="true",
        )
        self.env.pop("AWS_ENDPOINT_URL", None)
        self.servers, self.mounts = [], []

    def path(self, name):
        return os.path.join(self.work, name)

    def count(self, full):
        return max(8, int(full * self.scale))

    def close(self):
        for server in self.servers:
            server.kill()
            server.wait()
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.work, ignore_errors=True)

    # What is run.

    def start(self, *words):
        return subprocess.Popen(
            [self.binary, *words], env=self.env, stdout=subprocess.DEVNULL, stderr=self.errors
        )

    def timed(self, *words):
        """Seconds and peak KiB of a command that must succeed."""
        begun = time.monotonic()
        child = self.start(*words)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - begun
        if child.returncode:
            sys.exit(f"bench/cluster.sh: exit code {child.returncode}: hakobu {' '.join(words)}")
        return took, usage.ru_maxrss

    def workers(self, count, *options):
        """Runs so many workers to their end; seconds."""
        begun = time.monotonic()
        running = [
            self.start("cluster", "work", "--workers", str(count), *options, self.run_folder)
            for _ in range(count)
        ]
        codes = [worker.wait() for worker in running]
        if any(codes):
            sys.exit(f"bench/cluster.sh: workers ended with {codes}")
        return time.monotonic() - begun

    def plan(self, *words):
        self.forget(self.run_folder)
        self.timed("cluster", "plan", *words, "--run", self.run_folder)
        return json.load(open(os.path.join(self.run_folder, "plan.json")))

    def results(self, folder=None):
        """What the workers say of each shard, in the lines of their segments."""
        folder = os.path.join(folder or self.run_folder, "done")
        lines = [line for name in os.listdir(folder) for line in open(os.path.join(folder, name))]
        return [json.loads(line) for line in lines]

    def forget(self, *folders):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def files(self, name, count, size, per_folder=1000):
        root = self.path(name)
        body = os.urandom(size)
        for number in range(count):
            folder = f"{root}/d{number // per_folder}"
            if number % per_folder == 0:
                os.makedirs(folder)
            path = f"{folder}/f{number}"
            with open(path, "wb") as out:
                out.write(body)
            os.utime(path, (OLD, OLD))
        return root

    def serve(self, *words):
        said = self.path(f"server{len(self.servers)}")
        server = subprocess.Popen(
            [self.binary, "serve", *words, "--listen", "127.0.0.1:0"],
            env=self.env, stdout=open(said, "wb"), stderr=self.errors,
        )
        self.servers.append(server)
        for _ in range(600):
            text = open(said).read()
            if text.endswith("\n"):
                return text.strip().removeprefix("listening on ")
            time.sleep(0.05)
        sys.exit("bench/cluster.sh: the server does not start")

    # What is told.

    def note(self, part, name, number, **values):
        text = "\t".join(f"{key}={value}" for key, value in values.items())
        self.raw.write(f"{part}\t{name}\t{number}\t{text}\n")
        print(f"{part} {name} round {number}: {text}", flush=True)

    def goal(self, name, against, goal, values, at_most=False, unit="×"):
        """A row: the median of rounds, and the interval of medians."""
        middle, low, high = spread(values)
        row = verdict(name, against, goal, middle, low, high, at_most, unit)
        self.rows.append(row)
        with open(self.table, "w") as out:
            out.write("\n".join([GOALS_HEAD, *self.rows]) + "\n")
        print(row, flush=True)

    # The parts.

    def part_plan(self):
        count = self.count(1_000_000)
        # With -H a plan lists both ends itself.
        source = self.files("many", count, 0)
        rates, peaks = [], []
        for number in range(-1, self.rounds):
            dry, _ = self.timed("sync", "-an", "-q", source + "/", self.dst)
            self.forget(self.run_folder)
            plan = ["cluster", "plan", "-aHq", "--run", self.run_folder, source + "/", self.dst]
            took, peak = self.timed(*plan)
            self.note("plan", f"{count} files", number, dry_s=dry, plan_s=took, peak_kib=peak)
            if number >= 0:
                rates.append(dry / took)
                peaks.append(peak / 1024)
        self.forget(source, self.run_folder)
        name = f"plan of {count:,} local files"
        self.goal(name + ", rate", "sync -n", 0.9, rates)
        self.goal(name + ", memory", "", 64, peaks, at_most=True, unit="MiB")

    def part_plan10(self):
        """Names are hard links of one file a folder: ten million files would fill the memory."""
        count = self.count(10_000_000)
        volume = self.path("volume")
        os.mkdir(volume)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=0,size=80%", "none", volume], check=True)
        self.mounts.append(volume)
        for number in range(count):
            folder = f"{volume}/d{number // 1000}"
            if number % 1000 == 0:
                os.mkdir(folder)
                first = f"{folder}/f{number}"
                open(first, "wb").close()
            else:
                os.link(first, f"{folder}/f{number}")
        peaks = []
        for number in range(min(3, self.rounds)):
            self.forget(self.run_folder)
            plan = ["cluster", "plan", "-aHq", "--run", self.run_folder, volume + "/", self.dst]
            took, peak = self.timed(*plan)
            self.note("plan10", f"{count} names", number, plan_s=took, peak_kib=peak)
            peaks.append(peak / 1024)
        subprocess.run(["umount", "-l", volume], check=True)
        self.mounts.remove(volume)
        self.goal(f"plan of {count:,} local names, memory", "", 256, peaks, at_most=True, unit="MiB")

    def part_small(self):
        count = self.count(20_000)
        source = self.files("small", count, 4096)
        ratios = []
        for number in range(-1, self.rounds):
            self.forget(self.dst)
            one, _ = self.timed("sync", "-aq", source + "/", self.dst)
            self.forget(self.dst, self.run_folder)
            steps = {}
            for name, words in [
                ("plan_s", ["plan", "-aq", "--run", self.run_folder, source + "/", self.dst]),
                ("work_s", ["work", self.run_folder]),
                ("collect_s", ["collect", self.run_folder]),
            ]:
                steps[name], _ = self.timed("cluster", *words)
            self.note("small", f"{count} files", number, sync_s=one, **steps)
            if number >= 0:
                ratios.append(sum(steps.values()) / one)
        self.forget(source, self.dst, self.run_folder)
        name = f"plan, one worker and collect, {count:,} files of 4 KiB"
        self.goal(name, "sync", 1.6, ratios, at_most=True, unit="times as long")

    def scaled(self, part, what, goal, plan, clean):
        """Workers with four jobs each; how much of the rate of as many single ones they have."""
        shares = {2: [], 4: [], 8: []}
        for number in range(min(5, self.rounds)):
            took = {}
            order = [1, 2, 4, 8]
            for count in order[number % 4:] + order[: number % 4]:
                clean()
                self.plan(*plan)
                took[count] = self.workers(count)
            self.note(part, "workers", number, **{f"s{count}": took[count] for count in order})
            for count in shares:
                shares[count].append(took[1] / (count * took[count]))
        for count, of in shares.items():
            self.goal(f"{what}, {count} workers", f"{count} × one worker", goal, of, unit="of linear")

    def stop(self, server):
        server.send_signal(signal.SIGTERM)
        server.wait()
        self.servers.remove(server)

    def part_first(self):
        """A server with so many keys in every bucket: the time from the beginning of plan to the first copy that a worker
        asks for. Times count (-t) and are the same: -I makes each object one to copy."""
        count, times = self.count(2_000_000), []
        for number in range(self.rounds):
            log = self.path("log")
            self.env["AWS_ENDPOINT_URL"] = self.serve(
                "null", "--keys", str(count), "--latency", "20ms", "--log", log)
            server = self.servers[-1]
            self.forget(self.run_folder)
            begun = time.time()
            self.timed("cluster", "plan", "-rqI", "--workers=8", "--run", self.run_folder, "s3://bench-a/", "s3://bench-b/")
            planned = time.time() - begun
            running = [self.start("cluster", "work", self.run_folder) for _ in range(8)]
            first = None
            while first is None and time.time() < begun + 600:
                time.sleep(0.1)
                said = subprocess.run(["grep", "-m1", "CopyObject", log], stdout=subprocess.PIPE, check=False).stdout
                first = time.time() - begun if said.strip() else None
            for worker in running:
                worker.kill()
                worker.wait()
            self.stop(server)
            os.unlink(log)
            self.note("first", f"{count} keys", number, plan_s=planned, first_s=first)
            times.append(first)
        self.env.pop("AWS_ENDPOINT_URL")
        name = f"two buckets of {count:,} objects at 20 ms, 8 workers: first object after"
        self.goal(name, "", 5, times, at_most=True, unit="s")

    def part_again(self):
        """Nothing has changed since the first run, which asked for the headers of all objects."""
        count, counts = self.count(2_000_000), []
        log = self.path("log")
        self.env["AWS_ENDPOINT_URL"] = self.serve(
            "null", "--keys", str(count), "--latency", "20ms", "--log", log)
        for number in range(-1, 1):
            self.run_folder = self.path(f"run{number + 1}")
            before = sum(1 for _ in open(log))
            begun = time.monotonic()
            plan, _ = self.timed(
                "cluster", "plan", "-aq", "--workers=8", "--run", self.run_folder, "s3://bench-a/", "s3://bench-b/")
            work = self.workers(8)
            collect, _ = self.timed("cluster", "collect", self.run_folder)
            took = time.monotonic() - begun
            requests = sum(1 for _ in open(log)) - before
            self.note("again", f"{count} keys", number, requests=requests, plan_s=plan, work_s=work,
                      collect_s=collect, seconds=took)
            counts.append(requests)
        self.run_folder = self.path("run")
        self.stop(self.servers[-1])
        self.env.pop("AWS_ENDPOINT_URL")
        os.unlink(log)
        name = f"two buckets of {count:,} unchanged objects, -a, second run: requests of plan, workers and collect"
        self.goal(name, "", 10_000, counts[1:], at_most=True, unit="requests")

    def part_known(self):
        """A second `sync -a` on one machine, with what the first one has kept about objects, and without."""
        count = self.count(20_000)
        source, store, log = self.files("tiny", count, 1), self.path("store"), self.path("log")
        os.makedirs(store + "/bench")
        self.env["AWS_ENDPOINT_URL"] = self.serve("s3", store, "--latency", "20ms", "--log", log)
        line = ["sync", "-aq", source + "/", "s3://bench/p/"]
        self.timed(*line)
        counts, ratios = [], []
        for number in range(self.rounds):
            before = sum(1 for _ in open(log))
            known, _ = self.timed(*line)
            requests = sum(1 for _ in open(log)) - before
            asked, _ = self.timed(*line, "--no-memory")
            self.note("known", f"{count} files", number, requests=requests, known_s=known, asked_s=asked)
            counts.append(requests)
            ratios.append(asked / known)
        self.stop(self.servers[-1])
        self.env.pop("AWS_ENDPOINT_URL")
        os.unlink(log)
        self.forget(source, store)
        name = f"second sync -a of {count:,} unchanged files at 20 ms, one machine"
        self.goal(name + ", requests", "", 60, counts, at_most=True, unit="requests")
        self.goal(name, "--no-memory", 4, ratios, unit="× shorter")

    def part_server(self):
        """All of a run: plan, workers with four jobs each, and collect."""
        source = self.files("small", self.count(12_600), 4096)
        store = self.path("store")
        os.makedirs(store + "/bench")
        url = self.serve("s3", store, "--latency", "50ms")
        self.env["AWS_ENDPOINT_URL"] = url
        ratios = {2: [], 4: [], 8: []}
        for number in range(min(3, self.rounds)):
            took = {}
            for count in [1, 8] if number else [1, 2, 4, 8]:
                self.forget(self.run_folder, store + "/bench/p")
                busy = sum(os.times()[2:4])
                begun = time.monotonic()
                plan, _ = self.timed("cluster", "plan", "-rq", "-j4", "--workers=8", "--run", self.run_folder,
                                     source + "/", "s3://bench/p/")
                work = self.workers(count)
                collect, _ = self.timed("cluster", "collect", self.run_folder)
                took[count] = time.monotonic() - begun
                self.note("server", f"{count} workers", number, plan_s=plan, work_s=work, collect_s=collect,
                          seconds=took[count], cpu_s=sum(os.times()[2:4]) - busy)
                if count > 1:
                    ratios[count].append(took[1] / (count * took[count]))
        self.stop(self.servers[-1])
        self.env.pop("AWS_ENDPOINT_URL")
        self.forget(source, store)
        for count, of in ratios.items():
            goal = 0.9 if count == 8 else 0.93
            name = f"server with 50 ms, plan, {count} workers and collect"
            self.goal(name, f"{count} × one worker", goal, of, unit="of linear")

    def part_status(self):
        """A run with so many finished shards, its folder in S3."""
        count, times = self.count(10_000), []
        source = self.files("empty", count, 0)
        store = self.path("store")
        os.makedirs(store + "/bench")
        self.env["AWS_ENDPOINT_URL"] = self.serve("s3", store)
        self.run_folder = "s3://bench/run"
        # Of so many workers, every entry is a shard.
        words = ["-aq", "--shard-size=1", "--workers=1000000", source + "/", self.dst]
        self.timed("cluster", "plan", *words, "--run", self.run_folder)
        self.workers(8)
        shards = len(self.results(store + "/bench/run"))
        self.stop(self.servers[-1])
        self.env["AWS_ENDPOINT_URL"] = self.serve("s3", store, "--latency", "20ms")
        for number in range(self.rounds):
            took, _ = self.timed("cluster", "status", "--once", self.run_folder)
            self.note("status", f"{shards} shards", number, seconds=took)
            times.append(took)
        self.run_folder = self.path("run")
        self.stop(self.servers[-1])
        self.env.pop("AWS_ENDPOINT_URL")
        self.forget(source, self.dst, store)
        self.goal(f"status of {shards:,} finished shards at 20 ms", "", 2, times, at_most=True, unit="s")

    def part_slowfs(self):
        """Workers read from it: one mount is one machine, and the kernel makes the names of a folder one by one."""
        far, program = self.path("far"), self.path("slowfs")
        os.mkdir(far)
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run(["gcc", "-O2", f"{here}/slowfs.c", "-o", program], check=True)
        self.servers.append(subprocess.Popen([program, far, "1000", "300"]))
        self.mounts.append(far)
        for _ in range(200):
            if os.path.ismount(far):
                break
            time.sleep(0.05)
        for number in range(self.count(3000)):
            path = f"{far}/f{number}"
            with open(path, "wb") as out:
                out.write(b"x" * 4096)
            os.utime(path, (OLD, OLD))
        plan = ["-aq", "-j4", "--workers=8", "--shard-size=1M", far + "/", self.dst]

        def clean():
            self.forget(self.dst)
            # What the kernel keeps of attributes and names.
            time.sleep(4)

        self.scaled("slowfs", "file system with 1 ms an operation", 0.9, plan, clean)
        subprocess.run(["umount", "-l", far], check=True)
        self.mounts.remove(far)
        self.forget(self.dst)

    def part_even(self):
        source = self.path("lognormal")
        os.mkdir(source)
        rng, block = random.Random(1), os.urandom(1 << 20)
        for number in range(self.count(3000)):
            size = min(int(rng.lognormvariate(10.5, 2)), 200 << 20)
            path = f"{source}/f{number}"
            # Holes would cost nothing.
            with open(path, "wb") as out:
                for at in range(0, size, 1 << 20):
                    out.write(block[: min(size - at, 1 << 20)])
            os.utime(path, (OLD, OLD))
        gaps = []
        for number in range(min(5, self.rounds)):
            self.forget(self.dst)
            options = ["-aq", "--bwlimit=40M", "--workers=4", "--shard-size=4M"]
            self.plan(*options, source + "/", self.dst)
            took = self.workers(4)
            ends = {}
            for done in self.results():
                ends[done["worker"]] = max(ends.get(done["worker"], 0), done["to_s"])
            gap = 100 * (max(ends.values()) - min(ends.values())) / max(ends.values())
            self.note("even", "4 workers", number, run_s=took, workers=len(ends), gap_percent=gap)
            gaps.append(gap)
        self.forget(source, self.dst)
        self.goal("last worker after the first, sizes lognormal", "", 10, gaps, at_most=True, unit="% of the run")

    def part_claims(self):
        count = self.count(10_000)
        source = self.files("empty", count, 0)
        store = self.path("store")
        os.makedirs(store + "/bench")
        self.env["AWS_ENDPOINT_URL"] = self.serve("s3", store)
        for where in ["local", "S3"]:
            times = []
            for number in range(min(3, self.rounds)):
                self.forget(self.dst, self.path("run"), store + "/bench/run")
                self.run_folder = self.path("run") if where == "local" else "s3://bench/run"
                # Shards grow with the part of each worker: of so many, every entry is one of its own.
                words = ["-aHq", "--shard-size=1", "--workers=1000000", source + "/", self.dst]
                self.timed("cluster", "plan", *words, "--run", self.run_folder)
                folder = self.path("run") if where == "local" else store + "/bench/run"
                shards = len(json.load(open(folder + "/plan.json"))["shards"])
                took = self.workers(64)
                claims, done = os.listdir(folder + "/claims"), self.results(folder)
                again = [name for name in claims if not name.endswith(".0")]
                if len(claims) != shards or len(done) != shards or again:
                    sys.exit(f"claims: {len(claims)} claims, {len(done)} results, {len(again)} again")
                self.note("claims", where, number, seconds=took, claims=len(claims), again=len(again))
                times.append(took)
            name = f"64 workers take {count:,} shards, folder {where}, none twice"
            self.goal(name, "", 30, times, at_most=True, unit="s")
        self.run_folder = self.path("run")
        self.env.pop("AWS_ENDPOINT_URL")
        self.forget(source, self.dst, store)

    def part_kill(self):
        """A run that takes two minutes where nothing happens; then a worker is killed every two seconds."""
        source = self.files("medium", self.count(2400), 100_000)
        rng = random.Random(2)
        ratios = []
        for number in range(min(3, self.rounds)):
            plan = ["-aq", "--bwlimit=2M", "--shard-size=1M", source + "/", self.dst]
            self.forget(self.dst)
            shards = len(self.plan(*plan)["shards"])
            calm = self.workers(4, "--stale-after=5s")
            self.forget(self.dst)
            self.plan(*plan)
            work = ["cluster", "work", "--workers=4", "--stale-after=5s", self.run_folder]
            begun, killed = time.monotonic(), 0
            running = [self.start(*work) for _ in range(4)]
            next_kill = begun + 2
            while any(worker.poll() is None for worker in running):
                time.sleep(0.05)
                if time.monotonic() < next_kill:
                    continue
                next_kill += 2
                at = rng.randrange(4)
                if running[at].poll() is None:
                    running[at].send_signal(signal.SIGKILL)
                    running[at].wait()
                    killed += 1
                    running[at] = self.start(*work)
            took = time.monotonic() - begun
            done = len(self.results())
            self.timed("cluster", "collect", "--stale-after=5s", self.run_folder)
            self.timed("verify", source + "/", self.dst)
            if done != shards:
                sys.exit(f"kill: {done} of {shards} shards are done")
            self.note("kill", "4 workers", number, calm_s=calm, killed_s=took, killed=killed)
            ratios.append(took / calm)
        self.forget(source, self.dst)
        name = "a worker killed every 2 s, then verify: 0 differences"
        self.goal(name, "nobody killed", 1.3, ratios, at_most=True, unit="times as long")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("results")
    parser.add_argument("parts", nargs="*", metavar="PART")
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    here = os.path.dirname(os.path.abspath(__file__))
    binary = os.environ.get("HAKOBU", os.path.join(here, "../target/release/hakobu"))
    # What was mounted and started goes when this is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cluster = Cluster(os.path.abspath(binary), given.results, given.rounds, given.scale)
    try:
        for part in given.parts or PARTS:
            getattr(cluster, f"part_{part}")()
    finally:
        cluster.close()
    print(open(cluster.table).read(), end="")


if __name__ == "__main__":
    main()

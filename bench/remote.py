"""The runs of bench/remote.sh: copies between two ends of an ssh on the loopback."""

import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import time

import trees
from measure import Bench, Contender, Run, read_arguments, spread

# Round trips in ms, each with the port of its proxy; 0: the server itself.
PORTS = {0: 2200, 20: 2220, 100: 2300}
CIPHER = "aes128-gcm@openssh.com"
BLOCK = 4096
CPU_MIN = 0.1


class Row:
    """What is copied, how far, and with whom. `kind` is one of trees.KINDS with a scale, `before` how the target looks
    before each run: nothing (new), the same (unchanged), or an older version (changed, front)."""

    def __init__(self, what, kind, scale, before, contenders, rtt=0, cipher=None):
        self.what, self.kind, self.scale, self.before = what, kind, scale, before
        self.contenders, self.rtt, self.cipher = contenders, rtt, cipher
        self.is_file = kind == "large"

    def host(self):
        return f"rtt{self.rtt}" + ("-same" if self.cipher else "")


NEW = ["hakobu", "rsync", "tar", "scp"]
FILE = ["hakobu", "rsync", "cat", "scp"]
ROWS = {
    "flat-new": Row("20,000 × 4 KiB, new", "flat", 1, "new", NEW),
    "flat-unchanged": Row("20,000 × 4 KiB, unchanged", "flat", 1, "unchanged", NEW[:2]),
    "nested-new": Row("nested tree of 20,702, new", "nested", 1, "new", NEW),
    "empty-new": Row("200,000 empty files, new", "empty-nested", 0.2, "new", NEW[:3]),
    "empty-unchanged": Row("200,000 empty files, unchanged", "empty-nested", 0.2, "unchanged", NEW[:2]),
    "large-new": Row("1 GB new, default ciphers", "large", 1, "new", FILE),
    "large-same": Row(f"1 GB new, {CIPHER} for all", "large", 1, "new", FILE, cipher=CIPHER),
    "large-changed": Row("1 GB, 1 % of 4 KiB blocks changed", "large", 1, "changed", FILE[:2]),
    "large-front": Row("1 GB, one byte inserted at the front", "large", 1, "front", FILE[:2]),
    "far-100": Row("200 MB new at 100 ms", "large", 0.2, "new", FILE, rtt=100),
    "far-20": Row("200 MB new at 20 ms", "large", 0.2, "new", FILE, rtt=20),
    "trips-new": Row("2,000 × 4 KiB new at 100 ms", "flat", 0.1, "new", NEW[:3], rtt=100),
    "trips-unchanged": Row("2,000 × 4 KiB unchanged at 100 ms", "flat", 0.1, "unchanged", NEW[:2], rtt=100),
}
NAMES = {"tar": "tar \\| ssh", "cat": "cat \\| ssh"}


class Group:
    """A cgroup that counts CPU time of an end: of version 1 (cpuacct) or 2."""

    def __init__(self, name):
        first = "/sys/fs/cgroup/cpuacct"
        root = first if os.path.isdir(first) else "/sys/fs/cgroup"
        self.is_first = root == first
        self.path = os.path.join(root, f"hakobu-remote-{os.getpid()}-{name}")
        os.mkdir(self.path)

    def enter(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w") as file:
            file.write("0")

    def processes(self):
        with open(os.path.join(self.path, "cgroup.procs")) as file:
            return [int(line) for line in file]

    def seconds(self):
        """User and system seconds so far."""
        if self.is_first:
            read = lambda part: int(open(os.path.join(self.path, f"cpuacct.usage_{part}")).read()) / 1e9
            return read("user"), read("sys")
        stat = dict(line.split() for line in open(os.path.join(self.path, "cpu.stat")))
        return int(stat["user_usec"]) / 1e6, int(stat["system_usec"]) / 1e6

    def end(self):
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for _ in range(100):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.05)


class Machine:
    """The private sshd, its proxies, and the clients' configuration."""

    def __init__(self, work, far):
        self.work = work
        for name in ("ssh", "bin", "far", "run", "reports"):
            os.mkdir(f"{work}/{name}")
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", f"{work}/ssh/{key}"], check=True)
        os.rename(f"{work}/ssh/user.pub", f"{work}/ssh/authorized_keys")
        with open(f"{work}/ssh/host.pub") as public, open(f"{work}/ssh/known_hosts", "w") as known:
            known.write("bench " + public.read())
        sftp = next(path for path in ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
                                      "/usr/lib/ssh/sftp-server") if os.path.exists(path))
        path = f"{work}/far:/usr/local/bin:/usr/bin:/bin"
        self.write("ssh/sshd_config", f"""
            Port {PORTS[0]}
            ListenAddress 127.0.0.1
            HostKey {work}/ssh/host
            AuthorizedKeysFile {work}/ssh/authorized_keys
            PidFile none
            StrictModes no
            UsePAM no
            PasswordAuthentication no
            PermitRootLogin prohibit-password
            MaxStartups 100
            MaxSessions 100
            LogLevel ERROR
            SetEnv PATH={path} XDG_STATE_HOME={work}/far-state XDG_RUNTIME_DIR={work}/run
            Subsystem sftp {work}/timed {work}/reports/sftp {sftp}
            """)
        hosts = [(f"rtt{rtt}{same}", port, cipher) for rtt, port in PORTS.items()
                 for same, cipher in (("", ""), ("-same", f"Ciphers {CIPHER}"))]
        self.write("ssh/config", "".join(f"""
            Host {name}
            Port {port}
            {cipher}
            """ for name, port, cipher in hosts) + f"""
            Host *
            HostName 127.0.0.1
            HostKeyAlias bench
            IdentityFile {work}/ssh/user
            IdentitiesOnly yes
            UserKnownHostsFile {work}/ssh/known_hosts
            StrictHostKeyChecking yes
            BatchMode yes
            LogLevel ERROR
            """)
        # ssh takes its configuration from the home directory of the password file. Every contender finds this one.
        ssh = shutil.which("ssh")
        self.script("bin/ssh", f'exec {ssh} -F {work}/ssh/config "$@"')
        os.environ["PATH"] = f"{work}/bin:{os.environ['PATH']}"
        os.environ["XDG_STATE_HOME"] = f"{work}/state"
        # The far programs, each with a report of its peak of memory.
        for name, program in far.items():
            self.script(f"far/{name}", f'exec {work}/timed {work}/reports/$$ {program} "$@"')
        self.near, self.far = Group("near"), Group("far")
        made = not os.path.isdir("/run/sshd")
        os.makedirs("/run/sshd", exist_ok=True)
        self.made = made
        # sshd starts itself again for each connection, and needs its full path for it.
        words = [shutil.which("sshd"), "-D", "-E", f"{work}/ssh/log", "-f", f"{work}/ssh/sshd_config"]
        self.children = [subprocess.Popen(words, preexec_fn=self.far.enter, stdin=subprocess.DEVNULL)]
        for rtt, port in PORTS.items():
            if rtt:
                words = [f"{work}/delay", str(port), str(PORTS[0]), str(rtt)]
                self.children.append(subprocess.Popen(words))
        for port in PORTS.values():
            self.wait_for(port)

    def write(self, name, text):
        with open(f"{self.work}/{name}", "w") as file:
            file.write("\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n")

    def script(self, name, command):
        self.write(name, f"#!/bin/sh\n{command}")
        os.chmod(f"{self.work}/{name}", 0o755)

    def wait_for(self, port):
        for _ in range(200):
            try:
                return socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"nothing listens on port {port}")

    def settle(self):
        """Waits until nothing of a run is left but the server. A contender may leave a connection for a while."""
        for _ in range(1200):
            if not self.near.processes() and self.far.processes() == [self.children[0].pid]:
                return
            time.sleep(0.01)

    def end(self):
        for child in self.children:
            child.terminate()
        for child in self.children:
            child.wait()
        for group in (self.near, self.far):
            group.end()
        if self.made:
            shutil.rmtree("/run/sshd", ignore_errors=True)


def carried():
    """Bytes over the loopback of this network namespace."""
    for line in open("/proc/net/dev"):
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])
    return 0


class Remote(Bench):
    """Runs of which both ends are counted."""

    HEAD = "row round place contender code wall_s near_cpu_s far_cpu_s near_kib far_kib link_bytes"
    TABLE = "remote.tsv"

    def __init__(self, machine, *rest):
        super().__init__(machine.work, *rest)
        self.machine, self.rtt = machine, 0

    def run(self, words, flush=None):
        machine, reports = self.machine, os.path.join(self.work, "reports")
        shutil.rmtree(reports)
        os.mkdir(reports)
        machine.settle()
        before = [sum(group.seconds()) for group in (machine.near, machine.far)]
        bytes_before = carried()
        report = os.path.join(self.work, "report")
        subprocess.run(
            [os.path.join(self.work, "timed"), report] + words,
            check=True,
            preexec_fn=machine.near.enter,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(self.results, "stderr.log"), "a"),
        )
        machine.settle()
        near, far = [sum(group.seconds()) - was for group, was in zip((machine.near, machine.far), before)]
        fields = open(report).read().split()
        run = Run(int(fields[0]), float(fields[1]), 0, 0, 0, int(fields[5]))
        run.near, run.far, run.cpu = near, far, near + far
        # A proxy's bytes pass twice.
        run.carried = (carried() - bytes_before) // (2 if self.rtt else 1)
        run.far_kib = 0
        for name in os.listdir(reports):
            fields = open(os.path.join(reports, name)).read().split()
            run.far_kib = max([run.far_kib, *map(int, fields[5:6])])
        return run

    def cells(self, run):
        return [f"{run.wall:.6f}", f"{run.near:.6f}", f"{run.far:.6f}", run.rss_kib, run.far_kib, run.carried]


def commands(args, row, host, source, target):
    """The words of each contender. A tree's folders end with '/'."""
    is_push = args.way == "push"
    there = lambda path: f"{host}:{path}"
    ends = [source, there(target)] if is_push else [there(source), target]
    shell = lambda script: ["sh", "-c", script]
    words = {"hakobu": [args.hakobu, "sync", "-a", *ends], "rsync": ["rsync", "-a", *ends]}
    # scp copies a folder into one that exists.
    copies = ends if row.is_file else [ends[0].rstrip("/") + "/.", ends[1]]
    words["scp"] = ["scp", "-q", "-S", f"{args.work}/bin/ssh", *([] if row.is_file else ["-r"]), "-p", *copies]
    pack, unpack = f"tar -C {source} -cf - .", f"tar -C {target} -xf -"
    if row.is_file:
        pack, unpack = f"cat {source}", f"cat > {target}"
    script = f"{pack} | ssh {host} '{unpack}'" if is_push else f"ssh {host} '{pack}' | {unpack}"
    words["cat" if row.is_file else "tar"] = shell(script)
    return {name: words[name] for name in row.contenders if name not in args.left_out}


def unlike(path, size):
    """Makes a file of which no part is like another: a delta finds a block at its own place only."""
    rng = random.Random(1)
    with open(path, "wb") as file:
        for at in range(0, size, 1 << 20):
            file.write(rng.randbytes(min(size - at, 1 << 20)))


def change(row, source, target):
    """Makes an older version of the file at `source`: other bytes in 1 % of the blocks, or no first byte."""
    if row.before == "front":
        with open(source, "rb") as old, open(target, "wb") as new:
            old.read(1)
            shutil.copyfileobj(old, new, 1 << 20)
    else:
        shutil.copyfile(source, target)
        blocks = os.path.getsize(source) // BLOCK
        with open(target, "r+b") as file:
            for number in range(0, blocks, 100):
                file.seek((number + number // 100 * 37 % 100) % blocks * BLOCK)
                file.write(os.urandom(BLOCK))
    os.utime(target, (1_500_000_000, 1_500_000_000))


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)


def measure(args, bench, name, row):
    """Runs a row. Returns what its lines need: the median login and the contenders."""
    work = args.work
    base, out, old = f"{work}/source", f"{work}/target", f"{work}/old"
    shutil.rmtree(base, ignore_errors=True)
    if row.is_file:
        os.mkdir(base)
        unlike(f"{base}/f000000", int(1_000_000_000 * row.scale * args.scale))
    else:
        trees.make(row.kind, base, row.scale * args.scale)
    host = row.host()
    source, target = f"{base}/", f"{out}/"
    if row.is_file:
        source, target = f"{base}/f000000", f"{out}/f000000"
        if row.before != "new":
            change(row, source, old)
    contenders = [Contender("login", ["ssh", host, "true"])]
    contenders += [Contender(*one) for one in commands(args, row, host, source, target).items()]
    if row.before == "unchanged":
        empty(out)
        subprocess.run(["cp", "-a", source + ".", target], check=True)

    def prepare(contender):
        if contender.name == "login" or row.before == "unchanged":
            return
        empty(out)
        if row.before != "new":
            shutil.copy2(old, target)

    def check(contender):
        if contender.name == "login":
            return None
        same = subprocess.run(["diff", "-rq", source, target], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return "the target differs" if same.returncode else None

    bench.rtt = row.rtt
    done = bench.interleave(name, contenders, prepare, check)
    for path in (base, out):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.exists(old):
        os.unlink(old)
    return done


HEAD = (
    "| work | contender | s (median) | beyond login | ÷ hakobu (95 % interval) | CPU s near + far | hakobu's CPU ÷ it "
    "| MB on the link | peak MiB near, far |\n|---|---|---|---|---|---|---|---|---|"
)


def lines(row, done):
    """The table's lines of a row."""
    runs = {contender.name: contender for contender in done}
    login, own = runs.pop("login", None), runs.get("hakobu")
    if not login or not login.runs:
        return [f"| {row.what} | no login | | | | | | | |"]
    start, start_cpu = login.median(), login.median("cpu")
    beyond = lambda run: max(run.wall - start, 1e-4)
    spent = lambda contender: contender.median("cpu") - start_cpu
    found = []
    for name, contender in runs.items():
        if not contender.runs:
            continue
        seconds = statistics.median(map(beyond, contender.runs))
        trips = f", {seconds * 1000 / row.rtt:.1f} round trips" if row.rtt else ""
        ratio = cpu = ""
        if own and own.runs and name != "hakobu":
            pairs = list(zip(contender.runs, own.runs))
            middle, low, high = spread([beyond(other) / beyond(mine) for other, mine in pairs])
            ratio = f"**{middle:.2f}** ({low:.2f} … {high:.2f})"
            # Less than that is the login's own spread.
            if min(spent(own), spent(contender)) > CPU_MIN:
                cpu = f"{spent(own) / spent(contender):.2f}"
        found.append(
            f"| {row.what} | {NAMES.get(name, name)} | {contender.median():.3f} | {seconds:.3f}{trips} | {ratio} "
            f"| {contender.median('near'):.2f} + {contender.median('far'):.2f} | {cpu} "
            f"| {contender.median('carried') / 1e6:.2f} "
            f"| {contender.median('rss_kib') / 1024:.0f}, {contender.median('far_kib') / 1024:.0f} |"
        )
    found.append(f"| {row.what} | login alone | {start:.3f} | | | {login.median('near'):.2f} + {login.median('far'):.2f} | | | |")
    return found


def main():
    args = read_arguments(ROWS, begin=True, rounds=7, scale=1.0, way="push", without="")
    if args.way not in ("push", "pull"):
        raise SystemExit(f"--way {args.way}: neither push nor pull")
    args.hakobu = os.path.abspath(args.hakobu)
    args.left_out = args.without.split(",")
    far = {name: shutil.which(name) for name in ("rsync",) if shutil.which(name)}
    machine = Machine(args.work, {"hakobu": args.hakobu, **far})
    table = [f"--scale {args.scale:g}, --way {args.way}, {args.rounds} rounds", "", HEAD]
    try:
        bench = Remote(machine, args.results, args.rounds, args.scale)
        for name, row in ROWS.items():
            if any(name.startswith(want) for want in args.rows):
                found = lines(row, measure(args, bench, name, row))
                print("\n".join(found), flush=True)
                table += found
    finally:
        machine.end()
    with open(os.path.join(args.results, "remote.md"), "w") as file:
        file.write("\n".join(table) + "\n")


if __name__ == "__main__":
    main()

"""The rows of bench/s3.sh: what is moved, against which server, by whom, and what has to come out."""

import os
import shutil
import signal
import socket
import subprocess
import time

import measure
import trees
from measure import Bench, Contender, ratio, read_arguments, runs_table, verdict

KEY, SECRET = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")
BUCKET = "bench"


class Server:
    """A server on this machine with an empty bucket (or as many keys as it is told to have)."""

    def __init__(self, bench, kind, *options):
        self.kind, self.folder = kind, os.path.join(bench.work, "store")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, BUCKET))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"{'https' if kind == 'https' else 'http'}://127.0.0.1:{port}"
        gateway = ["versitygw", "--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET]
        words = {
            "null": [bench.hakobu, "serve", "null", "--listen", f"127.0.0.1:{port}", *options],
            "versitygw": [*gateway, "posix", self.folder],
            "https": [*gateway, *options, "posix", self.folder],
            "s3s-fs": ["s3s-fs", "--access-key", KEY, "--secret-key", SECRET, "--host", "127.0.0.1",
                       "--port", str(port), self.folder],
        }[kind]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)

    def clear(self):
        """Empties the bucket; the null server keeps nothing."""
        if self.kind != "null":
            shutil.rmtree(os.path.join(self.folder, BUCKET))
            os.mkdir(os.path.join(self.folder, BUCKET))

    def objects(self):
        count = 0
        for folder, _, files in os.walk(os.path.join(self.folder, BUCKET)):
            count += sum(not name.startswith(".") for name in files) if "/.sgwtmp" not in folder else 0
        return count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def data(bench, count, size):
    """A folder of `count` incompressible files of `size` bytes, made once."""
    folder = os.path.join(bench.work, f"data-{count}-{size}")
    if not os.path.isdir(folder):
        os.makedirs(folder)
        trees.incompressible(folder, count, size)
    return folder


def files(folder):
    return sum(len(names) for _, _, names in os.walk(folder))


def own(bench, server, *words):
    command, *rest = words
    return [bench.hakobu, command, "--endpoint-url", server.url, *rest]


def s5(server, *words):
    return ["s5cmd", "--endpoint-url", server.url, *words]


def line(name, against, goal, other, ours, field="wall"):
    middle, low, high = ratio(other, ours, field)
    return verdict(name, against, goal, middle, low, high)


class Report:
    def __init__(self):
        self.goals, self.tables = [], []

    def table(self, title, contenders):
        self.tables.append(f"### {title}\n\n{runs_table(contenders)}\n")


def put(bench, report, title, server, source, goals, variants=(), others=None, rounds=None):
    """Uploads a folder; `goals` are (wall, CPU) ratios against s5cmd."""
    count = files(source)
    target = f"s3://{BUCKET}/up/"
    ours = [Contender("hakobu cp -r", own(bench, server, "cp", "-r", source + "/.", target))]
    for option in variants:
        ours.append(Contender(f"hakobu cp -r {option}", own(bench, server, "cp", option, "-r", source + "/.", target)))
    contenders = ours + [Contender("s5cmd cp", s5(server, "cp", source + "/", target))] + (others or [])

    def check(_):
        found = count if server.kind == "null" else server.objects()
        return None if found == count else f"{found} objects instead of {count}"

    done = bench.interleave(title, contenders, lambda _: server.clear(), check, rounds=rounds)
    report.table(title, contenders)
    judge(report, title, done, goals, variants)
    return done


def get(bench, report, title, server, prefix, count, goals):
    """Downloads all keys below a prefix to tmpfs."""
    out = os.path.join(bench.work, "out")
    source = f"s3://{BUCKET}/{prefix}*"
    contenders = [
        Contender("hakobu cp", own(bench, server, "cp", source, out + "/")),
        Contender("s5cmd cp", s5(server, "cp", source, out + "/")),
    ]

    def prepare(_):
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)

    def check(_):
        return None if files(out) == count else f"{files(out)} files instead of {count}"

    done = bench.interleave(title, contenders, prepare, check)
    prepare(None)
    report.table(title, contenders)
    judge(report, title, done, goals)


def judge(report, title, done, goals, variants=()):
    by = {c.name: c for c in done}
    s5cmd = by.get("s5cmd cp")
    ours = by.get("hakobu cp -r") or by.get("hakobu cp")
    if not (s5cmd and ours):
        return
    wall, cpu = goals
    report.goals.append(line(f"{title}: wall", "s5cmd", wall, s5cmd, ours))
    if cpu:
        report.goals.append(line(f"{title}: client CPU", "s5cmd", cpu, s5cmd, ours, "cpu"))
    for option, goal in zip(variants, (4,)):
        if f"hakobu cp -r {option}" in by and cpu:
            report.goals.append(line(f"{title} {option}: client CPU", "s5cmd", goal, s5cmd, by[f"hakobu cp -r {option}"], "cpu"))


def small(bench, report):
    count = bench.sized(10_000)
    with Server(bench, "null", "--keys", str(count), "--object-size", "4096") as server:
        put(bench, report, f"PUT {count} × 4 KiB, null server", server, data(bench, count, 4096), (8, 8))
        get(bench, report, f"GET {count} × 4 KiB, null server", server, "", count, (8, 8))


def medium(bench, report):
    count = bench.sized(2_000)
    with Server(bench, "null", "--keys", str(count), "--object-size", "500000") as server:
        source = data(bench, count, 500_000)
        put(bench, report, f"PUT {count} × 500 KB, null server", server, source, (2, 2), ("--unsigned-payload",))
        get(bench, report, f"GET {count} × 500 KB, null server", server, "", count, (1.5, 2))


def large(bench, report, kind="null"):
    size = bench.sized(2_000_000_000)
    with Server(bench, kind, *(("--keys", "1", "--object-size", str(size)) if kind == "null" else ())) as server:
        source = data(bench, 1, size)
        put(bench, report, f"PUT one {size / 1e9:g} GB, {kind}", server, source, (1, 2) if kind == "null" else (1, None))
        if kind != "null":
            subprocess.run(own(bench, server, "cp", "-r", source + "/.", f"s3://{BUCKET}/up/"), check=True)
        prefix = "" if kind == "null" else "up/"
        get(bench, report, f"GET one {size / 1e9:g} GB, {kind}", server, prefix, 1, (1, 2) if kind == "null" else (1, None))
        shutil.rmtree(source)


def real(bench, report, kind):
    """The same against a server that stores, with both sizes."""
    if shutil.which(kind) is None:
        print(f"{kind} is not installed and left out", flush=True)
        return
    for count, size, name in [(bench.sized(10_000), 4096, "4 KiB"), (bench.sized(2_000), 500_000, "500 KB")]:
        with Server(bench, kind) as server:
            source = data(bench, count, size)
            put(bench, report, f"PUT {count} × {name}, {kind}", server, source, (1, None))
            server.clear()
            subprocess.run(own(bench, server, "cp", "-r", source + "/.", f"s3://{BUCKET}/up/"), check=True)
            get(bench, report, f"GET {count} × {name}, {kind}", server, "up/", count, (1, None))


def https(bench, report):
    """As `real`, over TLS with a certificate that both clients verify."""
    if shutil.which("versitygw") is None:
        print("versitygw is not installed and left out", flush=True)
        return
    certificate, key = (os.path.join(bench.work, name) for name in ("certificate.pem", "key.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    os.environ["AWS_CA_BUNDLE"] = certificate
    for count, size, name, goals in [(bench.sized(10_000), 4096, "4 KiB", (1, 1)), (bench.sized(2_000), 500_000, "500 KB", (1.5, 1.6))]:
        with Server(bench, "https", "--cert", certificate, "--key", key) as server:
            source = data(bench, count, size)
            put(bench, report, f"PUT {count} × {name}, HTTPS", server, source, goals)
            server.clear()
            subprocess.run(own(bench, server, "cp", "-r", source + "/.", f"s3://{BUCKET}/up/"), check=True)
            get(bench, report, f"GET {count} × {name}, HTTPS", server, "up/", count, goals)
    del os.environ["AWS_CA_BUNDLE"]


def s3cmd(bench, report):
    source = data(bench, 30, bench.sized(10_000_000))
    with Server(bench, "versitygw") as server:
        host = server.url.removeprefix("http://")
        script = os.path.join(bench.work, "s3cmd.sh")
        with open(script, "w") as file:
            file.write(
                "#!/bin/sh\n"
                f"ls {source} | parallel -j 400% s3cmd -q --no-ssl --host={host} --host-bucket={host} "
                f"--access_key={KEY} --secret_key={SECRET} put {source}/{{}} s3://{BUCKET}/up/{{}}\n"
            )
        os.chmod(script, 0o755)
        others = [Contender("parallel -j 400% s3cmd put", [script])]
        if not (shutil.which("s3cmd") and shutil.which("parallel")):
            print("s3cmd or parallel is not installed and left out", flush=True)
            others = []
        title = "PUT 30 × 10 MB, versitygw"
        done = put(bench, report, title, server, source, (1, None), others=others)
        by = {c.name: c for c in done}
        if others and others[0].name in by and "hakobu cp -r" in by:
            report.goals.append(line(title, others[0].name, 3, by[others[0].name], by["hakobu cp -r"]))


def many(bench, report):
    count = bench.sized(10_000)
    source = data(bench, count, 500_000)
    config = os.path.join(bench.work, "aws.conf")
    with open(config, "w") as file:
        file.write("[default]\ns3 =\n  max_concurrent_requests = 32\n")
    os.environ["AWS_CONFIG_FILE"] = config
    for kind, aws_goal, s5_goal in [("null", 4, 2), ("versitygw", 2.5, 1)]:
        with Server(bench, kind) as server:
            title = f"PUT {count} × 500 KB, {kind}"
            aws = Contender("aws s3 cp (32 requests)", ["aws", "--endpoint-url", server.url, "s3", "cp", "--recursive",
                                          "--only-show-errors", source, f"s3://{BUCKET}/up/"])
            done = put(bench, report, title, server, source, (s5_goal, None), others=[aws], rounds=min(3, bench.rounds))
            by = {c.name: c for c in done}
            if aws.name in by and "hakobu cp -r" in by:
                report.goals.append(line(title, aws.name, aws_goal, by[aws.name], by["hakobu cp -r"]))
    del os.environ["AWS_CONFIG_FILE"]
    shutil.rmtree(source)


def listing(bench, report):
    count = bench.sized(1_000_000)
    title = f"ls of {count} keys, null server"
    with Server(bench, "null", "--keys", str(count)) as server:
        contenders = [
            Contender("hakobu ls -R", own(bench, server, "ls", "-R", f"s3://{BUCKET}/")),
            Contender("s5cmd ls", s5(server, "ls", f"s3://{BUCKET}/*")),
        ]
        done = bench.interleave(title, contenders, lambda _: None)
        report.table(title, contenders)
        if len(done) == 2:
            report.goals.append(line(f"{title}: wall", "s5cmd", 5, done[1], done[0]))
            report.goals.append(line(f"{title}: client CPU", "s5cmd", 8, done[1], done[0], "cpu"))


def unchanged(bench, report):
    count = bench.sized(1_000_000)
    title = f"sync -r of {count} unchanged keys, null server to null server"
    with Server(bench, "null", "--keys", str(count)) as server:
        words = own(bench, server, "sync", "-r", f"s3://{BUCKET}/", "s3://bench2/")
        ours = Contender("hakobu sync -r", words)
        bench.interleave(title, [ours], lambda _: None, rounds=3)
        report.table(title, [ours])
        if ours.runs:
            peak = max(run.rss_kib for run in ours.runs) / 1024
            report.goals.append(verdict(f"{title}: peak memory", "", 96, peak, at_most=True, unit="MiB"))


def latency(bench, report):
    count, jobs, wait_s = bench.sized(10_000), 256, 0.05
    title = f"PUT {count} × 4 KiB, null server with 50 ms, -j {jobs}"
    with Server(bench, "null", "--latency", "50ms") as server:
        source = data(bench, count, 4096)
        ours = Contender("hakobu cp -r", own(bench, server, "cp", "-j", str(jobs), "-r", source + "/.", f"s3://{BUCKET}/up/"))
        theirs = Contender("s5cmd cp", s5(server, "cp", source + "/", f"s3://{BUCKET}/up/"))
        bench.interleave(title, [ours, theirs], lambda _: None)
        report.table(title, [ours, theirs])
        if ours.runs:
            ideal = count * wait_s / jobs
            over = ours.median() / ideal
            report.goals.append(verdict(title, f"requests × latency ÷ {jobs} = {ideal:.2f} s", 1.12, over, at_most=True))


ROWS = {
    "small": small,
    "medium": medium,
    "large": large,
    "list": listing,
    "unchanged": unchanged,
    "latency": latency,
    "versitygw": lambda bench, report: real(bench, report, "versitygw"),
    "https": https,
    "s3s-fs": lambda bench, report: real(bench, report, "s3s-fs"),
    "large-versitygw": lambda bench, report: large(bench, report, "versitygw"),
    "s3cmd": s3cmd,
    "many": many,
}


def main():
    options = read_arguments(ROWS, rounds=int, scale=1.0)
    rounds = options.rounds or (3 if options.quick else 7)
    bench = Bench(options.work, options.results, rounds, options.scale)
    bench.hakobu = os.path.abspath(options.hakobu)
    bench.sized = lambda number: max(1, round(number * options.scale))
    report = Report()
    for name in options.rows:
        print(f"row {name}", flush=True)
        ROWS[name](bench, report)
        with open(os.path.join(options.results, "report.md"), "w") as file:
            file.write(f"{measure.GOALS_HEAD}\n" + "\n".join(report.goals) + "\n\n" + "\n".join(report.tables))
    print("\n".join(report.goals))


if __name__ == "__main__":
    main()

"""The rows of bench/lab.sh: whether the lab claims differences where there are none, what it costs the
programs that it measures, and how long a page of 500 runs takes."""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import time

from measure import open_table, spread

# The same command under two names, and the campaign's own control: three twins of each.
CAMPAIGN = """
name = "twins"
title = "The same twice"
question = "Is it the same as itself?"
{data}
{place}
{tools}
[run]
cache = "warm"

[repeat]
min = {runs}
max = {runs}
seed = {seed}

[check]
what = "exit"
"""
DATA = '[data.files]\ncount = 500\nsize = "4KiB"\n'
WORK = {
    "cp": ("{place}", "cp -a {{src}}/. {{dst}}"),
    "rsync": ("{place}", "rsync -a {{src}}/ {{dst}}/"),
    "hakobu": ("{place}", "{{own}} sync -a --no-memory {{src}}/ {{dst}}/"),
    "sha256sum": ("{place}", "sha256sum {large}"),
    "hakobu to a server": ('[place.store]\nserve = "folder"\nlatency = "5ms"\n', "{{own}} sync -a --no-memory --endpoint-url {{endpoint}} {{src}}/ {{dst}}/"),
}


class Lab:
    def __init__(self, options):
        self.work, self.hakobu = options.work, options.hakobu
        self.raw = open_table(options.results, "lab.tsv", "row name seed what value low high claim")
        self.options = options

    def note(self, *fields):
        self.raw.write("\t".join(str(field) for field in fields) + "\n")

    def call(self, *words):
        return subprocess.run([self.hakobu, *words], check=True, capture_output=True, text=True).stdout

    def twins(self, name, seed):
        """One campaign; what its analysis says of pairs that are the same, and its overhead."""
        place, command = WORK[name]
        target = f'[place.target]\npath = "{self.work}/target"\n'
        os.makedirs(f"{self.work}/target", exist_ok=True)
        text = command.format(large=f"{self.work}/large")
        tools = "".join(f"[[tool]]\nname = \"{tool}\"\ncommand = '{text}'\n\n" for tool in ("one", "two"))
        campaign = CAMPAIGN.format(
            data=DATA, place=place.format(place=target), tools=tools, runs=self.options.runs, seed=seed
        )
        path = os.path.join(self.work, "twins.toml")
        with open(path, "w") as file:
            file.write(campaign)
        folder = os.path.join(self.work, f"twins-{name.replace(' ', '-')}-{seed}")
        self.call("bench", path, "--quiet", "--results", folder)
        result = json.loads(self.call("report", folder, "--format", "json"))["results"][0]
        analysis = result["analysis"]
        pairs = analysis["controls"] + analysis["comparisons"]
        failed = sum(cell["failed"] for cell in analysis["cells"])
        assert not failed, analysis["caveats"]
        for pair in pairs:
            ratio = pair["ratio"]["ratio"]
            fields = (f"{ratio[key]:.4f}" for key in ("mid", "low", "high"))
            self.note("twins", name, seed, f"{pair['a']} / {pair['b']}", *fields, pair["ratio"]["claim"])
        self.note("twins", name, seed, "overhead", f"{result['end']['overhead']:.5f}", "", "", "")
        return [pair["ratio"]["claim"] for pair in pairs], result["end"]["overhead"]


def twins(lab):
    """Claims among pairs that are the same."""
    claims, overheads, wrong = [], [], []
    names = list(WORK)
    for number in range(lab.options.campaigns):
        name, seed = names[number % len(names)], 1 + number
        said, overhead = lab.twins(name, seed)
        claims += said
        overheads.append(overhead)
        wrong += [f"{name}, seed {seed}: {claim}" for claim in said if claim in ("faster", "slower")]
    share = 100 * len(wrong) / len(claims)
    return [
        f"| {lab.options.campaigns} campaigns of {lab.options.runs} runs, the same against the same: "
        f"differences claimed | ≤ 5 % | {len(wrong)} of {len(claims)} ({share:.1f} %) | {'yes' if share <= 5 else 'NO'} |",
        f"| CPU time of the lab in these campaigns, of the runs' time: median, greatest | < 1 % "
        f"| {100 * statistics.median(overheads):.2f} %, {100 * max(overheads):.2f} % | {'yes' if max(overheads) < 0.01 else 'NO'} |",
    ], wrong


def outside(lab):
    """A program alone and under the lab, in turn: what its own clock says of it."""
    large = f"{lab.work}/large"
    # It times itself, so that the start of the lab is not counted.
    program = "import hashlib,time,sys;b=time.perf_counter();d=open(sys.argv[1],'rb').read()\n" \
        "for _ in range(3): hashlib.sha256(d).digest()\n" \
        "open(sys.argv[2],'a').write(f'{time.perf_counter()-b}\\n')"
    script, times = f"{lab.work}/itself.py", {}
    with open(script, "w") as file:
        file.write(program)
    for number in range(lab.options.rounds):
        order = ["alone", "under the lab"]
        for name in order if number % 2 == 0 else order[::-1]:
            out = f"{lab.work}/{name.replace(' ', '-')}"
            words = ["python3", script, large, out]
            if name == "alone":
                subprocess.run(words, check=True)
            else:
                folder = f"{lab.work}/outside-{number}"
                lab.call("bench", "-N", "-r", "1", "--quiet", "--results", folder, " ".join(words))
            times.setdefault(name, []).append(float(open(out).read().split()[-1]))
            lab.note("outside", name, number, "seconds", f"{times[name][-1]:.5f}", "", "", "")
    middle, low, high = spread([b / a for a, b in zip(times["alone"], times["under the lab"])])
    return [
        f"| a program that computes {statistics.median(times['alone']):.2f} s, by its own clock: under the lab against alone "
        f"| ≤ 1.01 × | {middle:.3f} × ({low:.3f} … {high:.3f}) | {'yes' if middle <= 1.01 else 'NO'} |"
    ], []


def grow(source, target, runs, points):
    """Results of `runs` runs of `points` samples each, made from those of a few short ones."""
    lines = [json.loads(line) for line in open(os.path.join(source, "results.jsonl"))]
    curves = [json.loads(line) for line in open(os.path.join(source, "samples.jsonl"))]
    header = next(line for line in lines if line["line"] == "header")
    first = [line for line in lines if line["line"] == "run"]
    cell = header["cells"][0]
    cells = runs // 20
    header["cells"] = [{**cell, "id": n, "x": n + 1, "series": f"tool {n % 5}", "control_of": None} for n in range(cells)]
    header["x_name"] = "jobs"
    os.makedirs(target)
    rng = random.Random(1)
    with open(os.path.join(target, "results.jsonl"), "w") as out, open(os.path.join(target, "samples.jsonl"), "w") as samples:
        out.write(json.dumps(header) + "\n")
        for number in range(runs):
            run = dict(first[number % len(first)])
            run.update(cell=number % cells, block=number // cells, wall_s=points / 10 * rng.uniform(0.95, 1.05))
            run["at_s"] = number * points / 10
            out.write(json.dumps(run) + "\n")
            values = {
                name: [rng.choice(old) * rng.uniform(0.9, 1.1) for _ in range(points)]
                for name, old in curves[number % len(curves)]["values"].items()
            }
            times = [round(0.1 * (n + 1), 3) for n in range(points)]
            samples.write(json.dumps({"cell": run["cell"], "block": run["block"], "t_s": times, "values": values}) + "\n")
        end = next(line for line in lines if line["line"] == "end")
        out.write(json.dumps(end) + "\n")


def report(lab):
    """The page of 500 runs of ten seconds, ten samples a second."""
    source, folder = os.path.join(lab.work, "few"), os.path.join(lab.work, "many")
    lab.call("bench", "-N", "-r", "3", "--quiet", "--results", source, "sleep 0.5", "sleep 0.6")
    grow(source, folder, 500, 100)
    page, took = os.path.join(lab.work, "page.html"), []
    for number in range(lab.options.rounds):
        begun = time.perf_counter()
        lab.call("report", folder, "-o", page)
        took.append(time.perf_counter() - begun)
        lab.note("report", "500 runs", number, "seconds", f"{took[-1]:.4f}", "", "", "")
    size = os.path.getsize(page)
    lab.note("report", "500 runs", "", "bytes", size, "", "", "")
    middle = statistics.median(took)
    return [
        f"| a page of 500 runs of 10 s, 10 samples a second | < 1 s | {middle:.2f} s ({min(took):.2f} … {max(took):.2f}) | {'yes' if middle < 1 else 'NO'} |",
        f"| its size | < 1 MB | {size / 1e6:.2f} MB | {'yes' if size < 1e6 else 'NO'} |",
    ], []


ROWS = {"twins": twins, "outside": outside, "report": report}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--hakobu", required=True)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("results")
    options = parser.parse_args()
    os.makedirs(options.results, exist_ok=True)
    os.environ.update(XDG_STATE_HOME=f"{options.work}/state", XDG_CACHE_HOME=f"{options.work}/cache")
    with open(f"{options.work}/large", "wb") as file:
        file.write(os.urandom(128 << 20))
    lab = Lab(options)
    lines, told = ["| what | goal | measured | met |", "|---|---|---|---|"], []
    for row in options.rows.split(","):
        more, wrong = ROWS[row](lab)
        lines += more
        told += wrong
        print("\n".join(more + wrong), flush=True)
    with open(os.path.join(options.results, "lab.md"), "w") as file:
        file.write("\n".join(lines + [""] + [f"- {one}" for one in told]) + "\n")
    shutil.rmtree(f"{options.work}/state", ignore_errors=True)


main()

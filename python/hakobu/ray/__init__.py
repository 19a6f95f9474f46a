"""hakobu on Ray: one transfer by tasks on several nodes, each of which runs the program.

    import hakobu.ray
    hakobu.ray.sync("/data/a/", "s3://bucket/a/", nodes=8, run="/shared/run1")

The nodes share the run folder (a path that all of them see, or ``s3://BUCKET/PREFIX``), and both
ends under the same paths. Tasks are ordinary Ray tasks; Ray places one on each node and starts one
again whose node is gone.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

__all__ = ["sync", "work"]

#: `hakobu cluster work`: another try may succeed.
AGAIN = 75


class Failed(Exception):
    """A worker ended with an exit code other than 0."""

    def __init__(self, code, message):
        super().__init__(f"hakobu ended with exit code {code}: {message}")
        self.code = code
        self.message = message

    def __reduce__(self):
        return (Failed, (self.code, self.message))


def program():
    """Path of the program: HAKOBU, the one beside this Python, or the one in PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "hakobu")
    named = os.environ.get("HAKOBU")
    if named:
        return named
    return beside if os.path.exists(beside) else shutil.which("hakobu") or "hakobu"


def _die_with_parent():
    """Has the kernel end the program when the task's process ends, however it ends."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_worker(command):
    """Runs a worker to its end on this machine; returns its standard error."""
    worker = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=_die_with_parent,
    )
    try:
        said = worker.communicate()[1].decode(errors="replace").strip()
    except BaseException:
        # The task is cancelled: the worker gives its shard back.
        worker.terminate()
        worker.wait()
        raise
    if worker.returncode:
        raise Failed(worker.returncode, said)
    return said


def _status(run):
    """What `hakobu cluster status --json` says; nothing where it fails."""
    asked = subprocess.run(
        [program(), "cluster", "status", "--json", run], capture_output=True, check=False
    )
    return json.loads(asked.stdout) if asked.returncode == 0 else None


def work(command, nodes, address="auto", resources=None, retries=5, progress=None):
    """Runs a worker on each of so many nodes, and waits for all of them.

    command: the words of `hakobu cluster work … RUN`. resources: what each task asks for of Ray
    (`{"mover": 1}`); without it tasks are spread over nodes, one a node. progress: called with
    what `hakobu cluster status --json` says, every few seconds. Returns the list of failures, which
    is empty where all went well; what failed workers left is done by others, or by collect.
    """
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    group = None
    try:
        options = {"max_retries": retries, "retry_exceptions": [_Again]}
        if resources:
            options.update(num_cpus=0, resources=resources)
        else:
            group = placement_group([{"CPU": 1}] * nodes, strategy="STRICT_SPREAD")
            if not group.wait(timeout_seconds=120):
                raise RuntimeError(f"Ray has no {nodes} nodes with a free CPU each")
            options.update(num_cpus=1)
            placed = [
                PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
                for index in range(nodes)
            ]
        task = ray.remote(_task)
        left = []
        for index in range(nodes):
            mine = dict(options)
            if group is not None:
                mine["scheduling_strategy"] = placed[index]
            left.append(task.options(**mine).remote(list(command)))
        failures = []
        while left:
            done, left = ray.wait(left, num_returns=1, timeout=5)
            for one in done:
                try:
                    ray.get(one)
                except Exception as error:  # what a worker left is not lost
                    failures.append(str(error).strip().splitlines()[-1])
            if progress:
                status = _status(command[-1])
                if status:
                    progress(status)
            if left and shard_done(_status(command[-1])):
                # A task whose node is gone waits for another one; nothing is left for it to do.
                for one in left:
                    ray.cancel(one, force=True)
                break
        return failures
    finally:
        if group is not None:
            remove_placement_group(group)
        if started:
            ray.shutdown()


def shard_done(status):
    """Whether every shard of a run is done."""
    return bool(status) and status["done"]["shards"] >= status["shards"]


class _Again(Exception):
    """The worker asked for another try."""


def _task(command):
    try:
        return run_worker(command)
    except Failed as failed:
        if failed.code == AGAIN:
            raise _Again(str(failed)) from failed
        raise


def sync(src, dst, nodes, run=None, options=("-a",), address="auto", resources=None, progress=None):
    """Makes dst like src with so many nodes: `hakobu sync OPTIONS SRC DST` on a Ray cluster.

    run: the run folder; without it one is made in the working directory, which all nodes have to
    share then. Returns the exit code of the whole, which is that of `hakobu sync`.
    """
    made = run is None
    if made:
        run = tempfile.mkdtemp(prefix="hakobu-run-", dir=os.getcwd())
    sources = [src] if isinstance(src, str) else list(src)
    plan = [program(), "cluster", "plan", *options, "--run", run, "--workers", str(nodes)]
    planned = subprocess.run([*plan, *sources, dst], check=False).returncode
    # 23 and 24: some sources could not be listed; the plan is whole for all others.
    if planned not in (0, 23, 24):
        return planned
    command = [program(), "cluster", "work", f"--workers={nodes}", run]
    for failure in work(command, nodes, address, resources, progress=progress):
        print(failure, file=sys.stderr)
    collected = subprocess.run([program(), "cluster", "collect", "--wait", run], check=False)
    if made and collected.returncode == 0:
        shutil.rmtree(run)
    return collected.returncode

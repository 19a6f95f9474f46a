"""hakobu on Ray: one transfer by tasks on several nodes, each of which runs the program.

    import hakobu.ray
    hakobu.ray.sync("/data/a/", "s3://bucket/a/", nodes=8, run="/shared/run1")

The nodes share the run folder (a path that all of them see, or ``s3://BUCKET/PREFIX``), and both
ends under the same paths. Each node has the program: by ``pip install 'hakobu[ray]'``, in its PATH,
or where its HAKOBU says. Tasks are ordinary Ray tasks; Ray places one on each node and starts one
again whose node is gone.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

__all__ = ["Failed", "Status", "sync", "work"]

#: What ``hakobu cluster status --json`` says.
Status = Dict[str, Any]

#: `hakobu cluster work`: another try may succeed.
AGAIN = 75
#: Exit code of a shell for a program that is not there.
NOT_FOUND = 127

#: Options of the store of a run folder in S3 with a value, and those without; see
#: `hakobu cluster work --help`.
STORE_VALUES = (
    "endpoint-url",
    "profile",
    "region",
    "credentials-file",
    "retry-count",
    "ca-bundle",
    "addressing-style",
    "cli-read-timeout",
    "cli-connect-timeout",
)
STORE_FLAGS = ("no-sign-request", "request-payer", "use-list-objects-v1", "no-verify-ssl")
#: Other spellings of them.
STORE_ALIASES = {
    "read-timeout": "cli-read-timeout",
    "connect-timeout": "cli-connect-timeout",
    "list-objects-v1": "use-list-objects-v1",
}
#: Those of the target alone, where the run folder is.
TARGET_PREFIX = "destination-"


class Failed(Exception):
    """A worker ended with an exit code other than 0.

    code: that of the program, or the negative number of the signal that ended it. message: its
    standard error.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"hakobu ended with exit code {code}: {message}")
        self.code = code
        self.message = message

    def __reduce__(self) -> Tuple[type, Tuple[int, str]]:
        return (Failed, (self.code, self.message))


def program(known: Optional[str] = None) -> str:
    """Path of the program on this machine: HAKOBU, the one beside this Python, or the one in PATH.

    known: a path of another machine, which is taken where nothing else is found and it exists here.
    """
    named = os.environ.get("HAKOBU")
    if named:
        return named
    beside = os.path.join(os.path.dirname(sys.executable), "hakobu")
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("hakobu")
    if found is None and known is not None and os.access(known, os.X_OK):
        found = known
    return found or "hakobu"


def _die_with_parent() -> None:
    """Has the kernel end the program when the task's process ends, however it ends."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_worker(command: Sequence[str], job: Optional[str] = None) -> str:
    """Runs a worker to its end on this machine; returns its standard error.

    job: what the worker calls its job in the run folder. Raises Failed.
    """
    environment = dict(os.environ)
    if job is not None:
        environment["HAKOBU_JOB"] = job
    try:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            preexec_fn=_die_with_parent,
        )
    except OSError as error:
        why = f"cannot run {command[0]!r} on {os.uname().nodename}: {error.strerror}"
        raise Failed(NOT_FOUND, why) from error
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


def _absolute(run: str) -> str:
    """A run folder as processes in other directories see it."""
    return run if run.startswith("s3://") else os.path.abspath(run)


def _store_options(options: Sequence[str], run: str) -> List[str]:
    """Options of `sync` that concern the store of a run folder in S3: those of the target.

    What `hakobu sync --cluster` passes on to workers and collect. Paths become absolute.
    """
    if not run.startswith("s3://"):
        return []
    found: Dict[str, Optional[str]] = {}
    words = iter(options)
    for word in words:
        if word == "--":
            break
        name, equals, text = word.partition("=")
        if not name.startswith("--"):
            continue
        name = name[2:]
        own = name.startswith(TARGET_PREFIX)
        name = name[len(TARGET_PREFIX) :] if own else name
        name = STORE_ALIASES.get(name, name)
        if name in STORE_VALUES:
            value = text if equals else next(words, "")
            if name in ("ca-bundle", "credentials-file"):
                value = os.path.abspath(value)
            # That of the target counts, wherever the general one is.
            if own or TARGET_PREFIX + name not in found:
                found[TARGET_PREFIX + name if own else name] = value
        elif name in STORE_FLAGS:
            found[name] = None
    for name in [name for name in found if name.startswith(TARGET_PREFIX)]:
        found[name[len(TARGET_PREFIX) :]] = found.pop(name)
    return [f"--{name}" if value is None else f"--{name}={value}" for name, value in found.items()]


def _status(run: str, store: Sequence[str] = ()) -> Optional[Status]:
    """What `hakobu cluster status --json` says; nothing where it fails."""
    asked = subprocess.run(
        [program(), "cluster", "status", "--json", *store, run], capture_output=True, check=False
    )
    if asked.returncode != 0:
        return None
    status = json.loads(asked.stdout)
    return status if isinstance(status, dict) else None


def work(
    command: Sequence[str],
    nodes: int,
    address: str = "auto",
    resources: Optional[Dict[str, float]] = None,
    retries: int = 5,
    progress: Optional[Callable[[Status], None]] = None,
) -> List[str]:
    """Runs a worker on each of so many nodes, and waits for all of them.

    command: the words of `hakobu cluster work … RUN`; each node runs its own program. resources:
    what each task asks for of Ray (`{"mover": 1}`); without it tasks are spread over nodes, one a
    node. retries: how often a worker is started again that asked for it, was killed, or whose node
    is gone. progress: called with what `hakobu cluster status --json` says, every few seconds.
    Returns the list of failures, which is empty where all went well; what failed workers left is
    done by others, or by collect.
    """
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    command = [*command[:-1], _absolute(command[-1])]
    run = command[-1]
    store = [
        word
        for word in command[1:-1]
        if word[2:].partition("=")[0] in (*STORE_VALUES, *STORE_FLAGS)
    ]
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False, logging_level="warning")
    group = None
    try:
        options: Dict[str, Any] = {"max_retries": retries, "retry_exceptions": [_Again]}
        placed: List[Any] = []
        if resources:
            options.update(num_cpus=0, resources=resources)
        else:
            group = placement_group([{"CPU": 1.0}] * nodes, strategy="STRICT_SPREAD")
            if not group.wait(timeout_seconds=120):
                raise RuntimeError(f"Ray has no {nodes} nodes with a free CPU each")
            options.update(num_cpus=1)
            placed = [
                PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
                for index in range(nodes)
            ]
        task: Any = ray.remote(_task)
        left: List[Any] = []
        for index in range(nodes):
            mine = dict(options)
            if placed:
                mine["scheduling_strategy"] = placed[index]
            left.append(task.options(**mine).remote(list(command)))
        failures: List[str] = []
        while left:
            done, left = ray.wait(left, num_returns=1, timeout=5)
            for one in done:
                try:
                    ray.get(one)
                except Exception as error:  # what a worker left is not lost
                    failures.append(_last_line(error))
            status = _status(run, store)
            if progress and status:
                progress(status)
            if left and shard_done(status):
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


def _last_line(error: Exception) -> str:
    """The line of an error that names its cause: Ray puts the traceback of the task before it."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def shard_done(status: Optional[Status]) -> bool:
    """Whether every range of a run was listed, and every shard is done: shards are announced while ranges are listed."""
    if not status or status["ranges_listed"] < status["ranges"]:
        return False
    return bool(status["done"]["shards"] >= status["shards"])


class _Again(Exception):
    """The worker asked for another try, or was killed."""


def _is_again(code: int) -> bool:
    """Whether a worker is started again: it asked for that, or a signal ended it (out of memory)."""
    return code == AGAIN or code < 0


def _job() -> str:
    """This task, as the run folder names it."""
    import ray

    context = ray.get_runtime_context()
    return f"Ray {context.get_job_id()} task {context.get_task_id()}"


def _task(command: List[str]) -> str:
    try:
        return run_worker([program(command[0]), *command[1:]], _job())
    except Failed as failed:
        if _is_again(failed.code):
            raise _Again(str(failed)) from failed
        raise


def sync(
    src: Union[str, Sequence[str]],
    dst: str,
    nodes: int,
    run: Optional[str] = None,
    options: Sequence[str] = ("-a",),
    address: str = "auto",
    resources: Optional[Dict[str, float]] = None,
    progress: Optional[Callable[[Status], None]] = None,
) -> int:
    """Makes dst like src with so many nodes: `hakobu sync OPTIONS SRC DST` on a Ray cluster.

    run: the run folder; without it one is made in the working directory, which all nodes have to
    share then. Returns the exit code of the whole, which is that of `hakobu sync`, or 75 where no
    worker could open the run; nothing is transferred then.
    """
    made = run is None
    if run is None:
        run = tempfile.mkdtemp(prefix="hakobu-run-", dir=os.getcwd())
    run = _absolute(run)
    store = _store_options(options, run)
    sources = [src] if isinstance(src, str) else list(src)
    plan = [program(), "cluster", "plan", *options, "--run", run, "--workers", str(nodes)]
    planned = subprocess.run([*plan, *sources, dst], check=False).returncode
    # 23 and 24: some sources could not be listed; the plan is whole for all others.
    if planned not in (0, 23, 24):
        return planned
    command = [program(), "cluster", "work", f"--workers={nodes}", *store, run]
    failures = work(command, nodes, address, resources, progress=progress)
    for failure in failures:
        print(failure, file=sys.stderr)
    if len(failures) >= nodes and not _has_workers(_status(run, store)):
        print("no worker could open the run, and nothing was transferred", file=sys.stderr)
        return AGAIN
    collect = [program(), "cluster", "collect", "--wait", *store, run]
    collected = subprocess.run(collect, check=False).returncode
    if made and collected == 0:
        shutil.rmtree(run)
    return collected


def _has_workers(status: Optional[Status]) -> bool:
    """Whether a worker wrote anything into the run folder, or that is unknown; collect reads it."""
    # A plan without shards has no work, unless workers are to list its ranges.
    return status is None or bool(status["workers"]) or status["shards"] == status["ranges"] == 0

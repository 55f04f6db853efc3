"""Training runs: each is a process of the program `lockstep`, as on the command line.

A run has threads, signal handlers and, with several ranks, processes of its own, and it must stop and
resume cleanly whatever happens to the interpreter; so it does not share the interpreter's process.
"""

import collections
import json
import os
import shutil
import signal
import subprocess
import time
from typing import Any, Mapping

from ._installed import PROGRAM

# Exit statuses of the program (launcher/exit_code.h).
_USAGE = 2
_OUT_OF_MEMORY = 6
_STOPPED = 75


class TrainError(RuntimeError):
    """A run that failed; `status` is the program's exit status, whose meanings docs/runs.md lists."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def _program() -> str:
    found = os.environ.get("LOCKSTEP_PROGRAM") or PROGRAM
    if shutil.which(found):
        return found
    raise FileNotFoundError(
        f"[train] there is no program {found}: expected lockstep of an installed tree. "
        "Install it, or name it in LOCKSTEP_PROGRAM."
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _new_run_dir(config_path: str) -> str:
    stem = os.path.splitext(os.path.basename(config_path))[0]
    base = os.path.join("runs", f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}")
    for i in range(1, 1000):
        path = base if i == 1 else f"{base}-{i}"
        try:
            os.makedirs(path)
            return path
        except FileExistsError:
            continue
    raise FileExistsError(f"[train] {base} and its successors exist. Pass run_dir.")


def _command(
    config_path: str, overrides: Mapping[str, object], run_dir: str, ranks: int
) -> list[str]:
    command = [_program()]
    command += ["train"] if ranks == 1 else ["launch", "-np", str(ranks)]
    command += [config_path, "--run-dir", run_dir]
    for name, value in overrides.items():
        command += ["--set", f"{name}={_value(value)}"]
    return command


def _run(command: list[str], show: bool) -> tuple[int, str]:
    """Runs the program; returns its exit status and the end of what it said."""
    end: collections.deque[str] = collections.deque(maxlen=50)
    # In a session of its own, so that Ctrl-C reaches it once: from here.
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                end.append(line)
                if show:
                    print(line, end="", flush=True)
            return process.wait(), "".join(end)
        except BaseException:
            # The run saves itself and stops.
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            process.wait()
            raise


def train(
    config_path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    *,
    run_dir: str | os.PathLike[str] | None = None,
    ranks: int = 1,
    show: bool = True,
) -> str:
    """Trains what a config describes, and returns the run's directory.

    `overrides` are the config's fields by their paths: {"optimizer.learning_rate": 1e-3}. A `run_dir`
    that holds checkpoints is gone on with; without one the run gets a new directory under runs/. An
    interrupt saves and stops the run. Raises ValueError for a config that is refused, MemoryError,
    and TrainError otherwise. `show` prints what the program says.
    """
    config_path = os.fspath(config_path)
    if not os.path.exists(config_path):
        raise FileNotFoundError(f"[train] there is no config {config_path}.")
    directory = _new_run_dir(config_path) if run_dir is None else os.fspath(run_dir)
    status, text = _run(_command(config_path, overrides or {}, directory, ranks), show)
    if status == 0:
        return directory
    if run_dir is None and not os.listdir(directory):
        os.rmdir(directory)
    if status == _USAGE:
        raise ValueError(text.strip())
    if status == _OUT_OF_MEMORY:
        raise MemoryError(text.strip())
    reason = "was stopped and can be gone on with" if status == _STOPPED else "failed"
    raise TrainError(f"[train] the run {reason} (exit status {status}):\n{text.strip()}", status)


_NOT_JSON = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def _numbers(members: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _NOT_JSON.get(value, value) if isinstance(value, str) else value
        for name, value in members.items()
    }


def read_metrics(run_dir: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl, a dict for each step, also while the run goes on."""
    path = os.path.join(run_dir, "metrics.jsonl")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    # A last line without an end is still being written.
    lines = text[: text.rfind("\n") + 1].splitlines()
    metrics = []
    for number, line in enumerate(lines, 1):
        try:
            metrics.append(json.loads(line, object_hook=_numbers))
        except json.JSONDecodeError as error:
            raise ValueError(f"[read_metrics] {path}:{number} is no JSON: {error}.") from None
    return metrics

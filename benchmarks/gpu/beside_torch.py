#!/usr/bin/env python3
"""Runs Lockstep and PyTorch alternately on one machine: the training step of GPT-2, or the tables of
`lockstep bench`. Ratios are Lockstep's speed over PyTorch's: above 1 Lockstep is faster. The last line is
JSON.

usage: beside_torch.py --lockstep PROGRAM [--rounds N] [--device D] [--torch-device D] WHAT [...]
WHAT: step --config FILE --precision P --batch N [...], or kernels, matmul, calls [OPTION OF BOTH ...]"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROW_NAMES = ["operator", "m", "k", "n", "layout", "dtype", "call"]


def lines_of(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class TorchSteps:
    """A process that times PyTorch's steps on request."""

    def __init__(self, words):
        self.process = subprocess.Popen([sys.executable, HERE / "torch_step.py", *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, mode):
        print(mode, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"torch_step.py ended with {self.process.wait()} in mode {mode}")
        return json.loads(line)


def step(options, rest):
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--precision", default="BF16_MIXED")
    sizes = {"batch": 8, "steps": 10, "vocabulary": 50304, "context": 1024, "layers": 12,
             "heads": 12, "width": 768}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    wanted = parser.parse_args(rest)
    torch_words = [f"--{name}={getattr(wanted, name)}" for name in ["precision", *sizes]]
    ours = [options.lockstep, "bench", "step", wanted.config, "--json", "--steps", wanted.steps,
            "--precision", wanted.precision]
    for field, value in [("device", options.device), ("model.gpt2.layers", wanted.layers),
                         ("model.gpt2.vocab_size", wanted.vocabulary),
                         ("model.gpt2.context_length", wanted.context),
                         ("model.gpt2.heads", wanted.heads), ("model.gpt2.width", wanted.width),
                         ("train.batch_size", wanted.batch),
                         ("train.micro_batch_size", wanted.batch)]:
        ours += ["--set", f"{field}={value}"]
    torch_step = TorchSteps(["--device", options.torch_device, *torch_words])
    rounds = []
    for _ in range(options.rounds):
        found = {mode: torch_step(mode) for mode in ["eager", "compile"]}
        found["lockstep"] = lines_of(ours)[-1]
        rounds.append(found)
        print("  ".join(f"{side} {figures['tokens_per_s']:.0f} tokens/s"
                        for side, figures in found.items()), flush=True)
    result = {"precision": wanted.precision, "batch": wanted.batch, "context": wanted.context,
              "torch": rounds[0]["eager"]["torch"]}
    for side in rounds[0]:
        result[f"{side}_tokens_per_s"] = statistics.median(
            each[side]["tokens_per_s"] for each in rounds)
        result[f"{side}_peak_memory_bytes"] = rounds[-1][side].get("peak_memory_bytes")
    for peer in ["eager", "compile"]:
        result[f"over_{peer}"] = statistics.median(
            each["lockstep"]["tokens_per_s"] / each[peer]["tokens_per_s"] for each in rounds)
    print(f"{result['over_eager']:.3f} x eager, {result['over_compile']:.3f} x compile")
    print(json.dumps(result))


def times_of(lines, best):
    """Microseconds by what a row names besides its measurements; of several the shortest."""
    for line in lines:
        row = tuple((name, line[name]) for name in ROW_NAMES if name in line)
        found = {row: line["us"]} if "us" in line else {
            (("call", name.removesuffix("_ns")),): value * 1e-3
            for name, value in line.items() if name.endswith("_ns")}
        for key, time in found.items():
            best[key] = min(best.get(key, time), time)


def table(options, rest):
    ours, peers = {}, {}
    for _ in range(options.rounds):
        times_of(lines_of([options.lockstep, "bench", options.what, "--json", "--device",
                           options.device, *rest]), ours)
        times_of(lines_of([sys.executable, HERE / "torch_operators.py", options.what, "--device",
                           options.torch_device, *rest]), peers)
    rows = [{**dict(key), "us": time, "torch_us": peers[key], "over": peers[key] / time}
            for key, time in ours.items() if key in peers]
    if not rows:
        raise SystemExit("no row is in both tables")
    for row in rows:
        name = " ".join(str(row[part]) for part in ROW_NAMES if part in row)
        print(f"{name:36} {row['us']:10.2f} us {row['torch_us']:10.2f} us {row['over']:7.3f}")
    over = [row["over"] for row in rows]
    print(f"median {statistics.median(over):.3f}, least {min(over):.3f}")
    print(json.dumps({"table": options.what, "rows": rows}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--lockstep", required=True, help="the program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda:0", help="of Lockstep's side")
    parser.add_argument("--torch-device", default="cuda:0", help="of PyTorch's side")
    parser.add_argument("what", choices=["step", "kernels", "matmul", "calls"])
    options, rest = parser.parse_known_args()
    (step if options.what == "step" else table)(options, rest)


if __name__ == "__main__":
    main()

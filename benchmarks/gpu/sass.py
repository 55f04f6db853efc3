#!/usr/bin/env python3
"""What nvcc made of the kernels: registers, local memory, shared memory, parameters, blocks an SM.

Called by `./dev sass` after a build with CUDA. Reads the fatbins of the build with NVIDIA's cuobjdump, and
compares the worst of each file's kernels with the table in benchmarks/gpu/SASS.md. `--update` writes the
table anew, `--kernels FILE` prints every kernel of the files whose name contains FILE.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path.cwd()
FATBINS = ROOT / "build/release/generated"
TABLE = ROOT / "benchmarks/gpu/SASS.md"
# An SM of compute capability 9.0 (CUDA programming guide, "Technical Specifications per Compute Capability").
REGISTERS, WARPS, BLOCKS, SHARED = 65536, 64, 32, 228 * 1024
SHARED_OF_SYSTEM = 1024  # bytes of each block
WARP_REGISTERS = 256     # a warp's registers are allocated in units of this
# The most bytes of shared memory that launches ask for besides what the kernels of a file declare, for files whose
# kernels use `dynamic_shared`.
DYNAMIC = {
    "kernels/cuda/loss/linear_cross_entropy": SHARED // 2 - 2304,  # holds_rows in its .cc file
}


def fail(text):
    sys.exit(f"sass: {text}")


def cuobjdump(option, fatbin):
    return subprocess.run(["cuobjdump", option, fatbin], check=True, capture_output=True, text=True).stdout


def blocks_per_sm(registers, threads, shared):
    warps = (threads + 31) // 32
    of_warp = -(-registers * 32 // WARP_REGISTERS) * WARP_REGISTERS
    return min(BLOCKS, WARPS // warps, REGISTERS // of_warp // warps, SHARED // (shared + SHARED_OF_SYSTEM))


def dynamic_bytes_of(name):
    source = ROOT / f"{name}.cu"
    if name not in DYNAMIC and source.is_file() and "dynamic_shared<" in source.read_text():
        fail(f"{name} uses dynamic shared memory: expected its most bytes in DYNAMIC of benchmarks/gpu/sass.py")
    return DYNAMIC.get(name, 0)


def kernels_of(name, fatbin):
    """Each kernel's name with what it takes."""
    kernels = {}
    dynamic = dynamic_bytes_of(name)
    usage = cuobjdump("-res-usage", fatbin)
    for name, text in re.findall(r"Function (\S+):\n(.*)", usage):
        field = {key: int(value) for key, value in re.findall(r"([\w\[\]]+):(\d+)", text)}
        kernels[name] = {"registers": field["REG"], "stack": field["STACK"], "shared": field["SHARED"],
                         "dynamic": dynamic, "local": 0, "parameters": 0, "threads": 0}
    name = None
    for line in cuobjdump("-elf", fatbin).splitlines():
        if line.startswith(".nv.info."):
            name = line.removeprefix(".nv.info.")
        elif "Attribute:" in line:
            attribute = line.split()[-1]
        elif "Value:" in line and name in kernels:
            values = [int(value, 16) for value in re.findall(r"0x[0-9a-f]+", line)]
            if attribute == "EIATTR_MAX_THREADS":
                kernels[name]["threads"] = values[0] * values[1] * values[2]
            elif attribute == "EIATTR_CBANK_PARAM_SIZE":
                kernels[name]["parameters"] = values[0] if values else 0
    name = None
    for line in cuobjdump("-sass", fatbin).splitlines():
        if "Function :" in line:
            name = line.split()[-1]
        elif name in kernels and re.search(r"\b(STL|LDL)\b", line):
            kernels[name]["local"] += 1
    for kernel in kernels.values():
        shared = kernel["shared"] + kernel["dynamic"]
        kernel["blocks"] = blocks_per_sm(kernel["registers"], kernel["threads"] or 1024, shared)
    return kernels


COLUMNS = ["kernels", "registers", "local", "stack", "shared", "dynamic", "parameters", "blocks"]


def row_of(kernels):
    """The worst of a file's kernels."""
    row = {key: max(kernel[key] for kernel in kernels.values()) for key in COLUMNS[1:-1]}
    row["local"] = sum(kernel["local"] > 0 for kernel in kernels.values())
    return row | {"kernels": len(kernels), "blocks": min(kernel["blocks"] for kernel in kernels.values())}


HEAD = """# What nvcc made of the kernels

Written by `./dev sass --update` from the fatbins of a release build for compute capability 9.0 (an H100). Each line is about the kernels
of one file: how many there are, the most registers a thread, how many kernels access local memory (spilled registers, arrays that are
indexed at run time), the most bytes of stack, of shared memory that the kernel declares, of shared memory that a launch adds to it,
and of parameters, and the least number of blocks that fit on an SM, by registers, threads and shared memory. `./dev sass` compares a
build with this table; `./dev sass --kernels softmax` shows every kernel of a file.

| file | kernels | registers | with local accesses | stack | shared | dynamic | parameters | blocks an SM |
|---|---|---|---|---|---|---|---|---|
"""


def written_rows():
    if not TABLE.is_file():
        return {}
    lines = [line.strip("| \n").split(" | ") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return {name: dict(zip(COLUMNS, map(int, numbers))) for name, *numbers in lines[1:]}


def is_worse(now, before):
    return now["blocks"] < before["blocks"] or any(now[key] > before[key] for key in ("local", "stack"))


def main():
    parser = argparse.ArgumentParser(prog="./dev sass", description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the table")
    parser.add_argument("--kernels", metavar="FILE", help="print each kernel of these files")
    options = parser.parse_args()

    fatbins = sorted(FATBINS.rglob("*.fatbin"))
    if not fatbins:
        fail(f"no fatbins in {FATBINS}: expected a build with nvcc. Install CUDA's compiler and run `./dev build`")
    names = {fatbin: str(fatbin.relative_to(FATBINS).with_suffix("")) for fatbin in fatbins}
    if options.kernels:
        chosen = [fatbin for fatbin in fatbins if options.kernels in names[fatbin]]
        if not chosen:
            fail(f"no file of kernels is named like {options.kernels}")
        for fatbin in chosen:
            for name, kernel in sorted(kernels_of(names[fatbin], fatbin).items()):
                print(f"{name:48}", *(f"{key} {value:<6}" for key, value in kernel.items()))
        return
    rows = {names[fatbin]: row_of(kernels) for fatbin in fatbins if (kernels := kernels_of(names[fatbin], fatbin))}
    if options.update:
        lines = (" | ".join([name, *(str(row[key]) for key in COLUMNS)]) for name, row in rows.items())
        TABLE.write_text(HEAD + "".join(f"| {line} |\n" for line in lines))
        return
    before = written_rows()
    worse = 0
    for name in sorted(before.keys() | rows.keys()):
        now, then = rows.get(name), before.get(name)
        if now == then:
            continue
        if now is None or then is None:
            print(f"{name}: {'gone' if now is None else 'new'}")
            continue
        worse += is_worse(now, then)
        print(f"{name}:", ", ".join(f"{key} {then[key]} -> {now[key]}" for key in COLUMNS if now[key] != then[key]),
              "WORSE" if is_worse(now, then) else "")
    if worse:
        fail(f"{worse} files have kernels that fit fewer times on an SM, or access more local memory. Mend them, or "
             "say why and write the table with `./dev sass --update`")
    print(f"sass: {sum(row['kernels'] for row in rows.values())} kernels, none worse than in {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Plants errors in the sources of a folder, one at a time, and counts how many its tests catch.

Called by `./dev mutate`, in the root of the repository, with universalmutator's `mutate` on PATH. The
sources are copied to build/mutate/source first and built in build/mutate/tree, so that no error is ever
planted in the tree that is worked on.
"""

import argparse
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path("build/mutate/source")
TREE = Path("build/mutate/tree")
# A test that hangs has caught the error: it is stopped when it takes this much longer than without.
SLOWER, SECONDS_MORE = 3, 60


def fail(text):
    sys.exit(f"mutate: {text}")


def copy_sources():
    """Makes SOURCE the working tree's files. Unchanged files keep their times, so Ninja keeps objects."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    names = {name for name in listed.split("\0") if name and os.path.isfile(name)}
    for name in names:
        copy = SOURCE / name
        if not copy.is_file() or copy.read_bytes() != Path(name).read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, copy)
    for path in [path for path in SOURCE.rglob("*") if path.is_file()]:
        if str(path.relative_to(SOURCE)) not in names:
            path.unlink()


def suites_of(folder):
    """The test suites that the sources in tests/FOLDER define."""
    suites = set()
    for path in (SOURCE / "tests" / folder).rglob("*.cc"):
        suites |= set(re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)", path.read_text(), re.M))
        suites |= set(re.findall(r"^RC_GTEST_(?:FIXTURE_)?PROP\(\s*(\w+)", path.read_text(), re.M))
    return sorted(suites)


def build(target, jobs):
    """Whether the tests and the library that they use compile."""
    return subprocess.run(["cmake", "--build", TREE, "-j", str(jobs), "--target", target],
                          capture_output=True).returncode == 0


def run_tests(target, suites, shards, limit=None):
    """Returns the first test that fails, and the seconds that it all took; None if all pass."""
    start = time.monotonic()
    patterns = ":".join(f"{suite}.*:*/{suite}.*:{suite}/*" for suite in suites)
    command = [str((TREE / "bin" / target).resolve()), "--gtest_fail_fast", "--gtest_brief=1",
               f"--gtest_filter={patterns}"]
    running = []
    for shard in range(shards):
        output = tempfile.TemporaryFile(mode="w+", errors="replace")
        running.append((subprocess.Popen(
            command, cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}),
            output))
    caught = None
    waiting = list(running)
    while waiting and not caught:
        if limit and time.monotonic() - start > limit:
            caught = "a test that does not end"
        for process, output in list(waiting):
            if process.poll() is None:
                continue
            waiting.remove((process, output))
            if process.returncode != 0:
                output.seek(0)
                named = re.search(r"^\[  FAILED  \] ([\w./]+)", output.read(), re.M)
                caught = named.group(1) if named else f"exit status {process.returncode}"
        time.sleep(0.05)
    for process, output in running:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
        output.close()
    return caught, time.monotonic() - start


def mutants_of(name, folder):
    """All changed texts of a source that universalmutator makes."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mutate", SOURCE / name, "cpp", "--noCheck", "--mutantDir", folder],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return sorted(folder.iterdir())


def difference(before, after):
    """The changed lines, and the number of the first."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    number = re.match(r"@@ -(\d+)", lines[0]).group(1) if lines else "0"
    return number, [line for line in lines if not line.startswith("@@")]


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="dist", help="folder or .cc file (dist)")
    parser.add_argument("-n", type=int, default=10, metavar="N", help="errors to plant (10)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of errors (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help=argparse.SUPPRESS)
    options = parser.parse_args()

    path = os.path.normpath(options.path)
    folder = os.path.dirname(path) if path.endswith(".cc") else path
    copy_sources()
    sources = [path] if path.endswith(".cc") else sorted(
        str(file.relative_to(SOURCE)) for file in (SOURCE / path).rglob("*.cc"))
    if not sources or not (SOURCE / sources[0]).is_file():
        fail(f'"{options.path}" holds no .cc file')
    suites = suites_of(folder)
    own = re.search(r"^set\(own_binaries ([^)]*)\)", (SOURCE / "tests/CMakeLists.txt").read_text(), re.M)
    room = folder if folder in own.group(1).split() else folder.split("/")[0]
    target = "test_" + room.replace("/", "_")
    if not suites:
        fail(f"tests/{folder} holds no test")

    # The sources that change are compiled alone, all others in units.
    subprocess.run(["cmake", "-S", SOURCE, "-B", TREE, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    f"-DLOCKSTEP_UNITY_EXCEPT=^{folder}/", "-DLOCKSTEP_WITH_EMULATION=OFF",
                    f"-DLOCKSTEP_WITH_CUDA={'ON' if 'cuda' in folder else 'OFF'}",
                    f"-DLOCKSTEP_TEST_FOLDERS={room}"],
                   check=True, stdout=subprocess.DEVNULL)
    print(f"mutate: building {target} without an error first", flush=True)
    if not build(target, options.jobs):
        fail(f"the tree does not build: cmake --build {TREE} --target {target}")
    broken, seconds = run_tests(target, suites, options.jobs)
    if broken:
        fail(f"{broken} fails without an error planted")
    print(f"mutate: {len(suites)} suites of {target} take {seconds:.0f} s", flush=True)

    choice = random.Random(options.seed)
    texts = {name: (SOURCE / name).read_text() for name in sources}
    weights = [text.count("\n") for text in texts.values()]
    made, tried = {}, set()
    caught = planted = refused = 0
    passed = []
    with tempfile.TemporaryDirectory() as temporary:
        while planted < options.n:
            name = choice.choices(sources, weights)[0]
            if name not in made:
                made[name] = mutants_of(name, Path(temporary) / name)
            left = [mutant for mutant in made[name] if mutant not in tried]
            if not left:
                if all(mutant in tried for mutants in made.values() for mutant in mutants) \
                        and len(made) == len(sources):
                    break
                continue
            mutant = choice.choice(left)
            tried.add(mutant)
            text = mutant.read_text()
            number, changed = difference(texts[name], text)
            try:
                (SOURCE / name).write_text(text)
                if not build(target, options.jobs):
                    refused += 1
                    continue
                test, _ = run_tests(target, suites, options.jobs, SLOWER * seconds + SECONDS_MORE)
            finally:
                (SOURCE / name).write_text(texts[name])
            planted += 1
            if test:
                caught += 1
                print(f"caught  {name}:{number} by {test}", flush=True)
            else:
                passed.append((name, number, changed))
                print(f"PASSED  {name}:{number}", *changed, sep="\n        ", flush=True)
    if planted == 0:
        fail("no error could be planted")
    print(f"mutate: {caught} of {planted} errors in {path} were caught "
          f"({100 * caught / planted:.0f} %), seed {options.seed}; "
          f"the compiler refused {refused} more")


if __name__ == "__main__":
    main()

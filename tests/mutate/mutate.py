#!/usr/bin/env python3
"""Plants errors in the sources of a folder, one at a time, and counts how many its tests catch.

Called by `./dev mutate`, in the root of the repository, after `./dev build` of the same preset, with
universalmutator's `mutate` on PATH. Sources and build tree are copied to build/mutate/source, so that no
error is ever planted in the tree that is worked on. A build tree contains absolute paths: builds and tests
run in a mount namespace where the copy appears at the repository's own path, so that objects of the copied
tree stay valid and only the changed file is compiled.
"""

import argparse
import difflib
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path.cwd()
SOURCE = ROOT / "build/mutate/source"
TREE = SOURCE / "build/release"
# A test that hangs has caught the error: it is stopped when it takes this much longer than without.
SLOWER, SECONDS_MORE = 3, 20
# Bytes of memory for the files of tests, which there wait for no disk and end with the test; so has caught the
# error a test that writes more.
MOST_WRITTEN = 8 << 30
# Runs "$@" where the copy appears as the repository. Processes, files and shared memory that it leaves behind
# end with it.
INSIDE = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
          f'mount --bind "$0" "$1" && mount -t tmpfs -o size={MOST_WRITTEN} tmpfs /dev/shm && '
          'mkdir /dev/shm/tmp && cd "$1" && shift && exec "$@"', str(SOURCE), str(ROOT)]


def fail(text):
    sys.exit(f"mutate: {text}")


def copy_tree():
    """Makes SOURCE the working tree's files, with the build tree if the copy has none yet."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout
    names = {name for name in listed.split("\0") if name and os.path.isfile(name)}
    is_first = not (TREE / "build.ninja").is_file()
    for name in names:
        copy = SOURCE / name
        if not copy.is_file() or copy.read_bytes() != Path(name).read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            # The build tree that is copied with them was built from files of these times.
            (shutil.copy2 if is_first else shutil.copy)(name, copy)
    for folder, folders, files in os.walk(SOURCE):
        if folder == str(SOURCE) and "build" in folders:
            folders.remove("build")
        for path in (Path(folder) / file for file in files):
            if str(path.relative_to(SOURCE)) not in names:
                path.unlink()
    if is_first:
        shutil.rmtree(TREE, ignore_errors=True)
        TREE.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", "build/release", TREE], check=True)
    # A run that was interrupted may have left a library with an error.
    for library in TREE.glob("**/liblockstep.*"):
        library.unlink()


def suites_in(paths):
    """The test suites that these sources define."""
    suites = set()
    for path in paths:
        text = path.read_text()
        suites |= set(re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)", text, re.M))
        suites |= set(re.findall(r"^RC_GTEST_(?:FIXTURE_)?PROP\(\s*(\w+)", text, re.M))
    return suites


def suites_near(source, suites):
    """Those of `suites` that are about the source first of all: its own test's, or else its folder's."""
    folder = SOURCE / "tests" / os.path.dirname(source)
    own = folder / f"{Path(source).stem}_test.cc"
    return suites_in([own] if own.is_file() else folder.glob("*_test.cc")) & suites


def build(jobs, *targets):
    """Whether the targets compile."""
    return subprocess.run([*INSIDE, "ninja", "-C", "build/release", "-j", str(jobs), *targets],
                          capture_output=True).returncode == 0


def patterns_of(suites):
    return ":".join(f"{suite}.*:*/{suite}.*:{suite}/*" for suite in sorted(suites))


def run_tests(target, patterns, shards, limit=None):
    """Returns the first test that fails, None if all pass, and the seconds that each suite took."""
    start = time.monotonic()
    command = [*INSIDE, f"build/release/bin/{target}", "--gtest_fail_fast", f"--gtest_filter={patterns}"]
    running = []
    for shard in range(shards):
        output = tempfile.TemporaryFile(mode="w+", errors="replace")
        running.append((subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard),
                              "TMPDIR": "/dev/shm/tmp"}), output))
    caught, seconds = None, {}
    waiting = list(running)
    while waiting and not caught:
        if limit and time.monotonic() - start > limit:
            caught = "a test that does not end"
        for process, output in list(waiting):
            if process.poll() is None:
                continue
            waiting.remove((process, output))
            output.seek(0)
            text = output.read()
            if process.returncode != 0:
                named = re.search(r"^\[  FAILED  \] ([\w./]+)", text, re.M)
                caught = named.group(1) if named else f"exit status {process.returncode}"
            for suite, ms in re.findall(r"^\[       OK \] (\S+)\.\S+.* \((\d+) ms\)$", text, re.M):
                for part in suite.split("/"):
                    seconds[part] = seconds.get(part, 0) + int(ms) / 1000
        time.sleep(0.02)
    for process, output in running:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
        output.close()
    return caught, seconds


def difference(before, after):
    """The changed lines, and the number of the first."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    number = re.match(r"@@ -(\d+)", lines[0]).group(1) if lines else "0"
    return number, [line for line in lines if not line.startswith("@@")]


def with_lines_kept(before, after):
    """The changed text with an inserted line put in front of the next one, so that the numbers of lines,
    which messages of errors hold, do not make an object differ."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(new) != len(old) + 1:
        return after
    at = next((i for i, (left, right) in enumerate(zip(old, new)) if left != right), len(old))
    return after if at >= len(old) else "".join([*new[:at], new[at].rstrip("\n") + " ", *new[at + 1:]])


# Parts of the code of which an error can change nothing that a test may ask for. The arguments of min and
# max give the same number in either order, unless one is NaN, which code must not leave to their order.
EXTREME = re.compile(r"\b(std::(?:min|max)(?:<[\w:]+>)?)\(([^(),{}]+),([^(),{}]+)\)")
# A loop that counts up from 0 ends at the number that it is compared with, whether by < or by !=.
FROM_ZERO = re.compile(r"(\bfor\(\w*?(\w+)=0;\2)!=(?=[^;]*;\+\+\2\))")


def meaning(text):
    """The text without what no test can notice: comments, #include lines, spaces, assertions (LS_ASSERT states
    what no caller can violate), the order of the arguments of std::min and std::max, the length of a sleep, how
    much memory is reserved ahead, and locks, without which `./dev lint` refuses the members that they guard."""
    text = re.sub(r"//.*|/\*.*?\*/", "", text)
    text = re.sub(r"\b(static_assert|LS_ASSERT)\(.*?\);", "", text, flags=re.S)
    lines = [re.sub(r"\s+", "", line) for line in text.splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith("#include"))
    text = re.sub(r">nullptr", "!=nullptr", text)
    text = FROM_ZERO.sub(r"\1<", text)
    text = EXTREME.sub(lambda found: f"{found[1]}({','.join(sorted(found.groups()[1:]))})", text)
    text = re.sub(r"\bsleep_for\(std::chrono::\w+\([^;]*?\)\);", "sleep_for();", text)
    text = re.sub(r"\bconstMutexLock\w+\([^;]*?\);\n?", "", text)
    return re.sub(r"\.reserve\([^;]*?\);", ".reserve();", text)


STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'')
# Opens a block that `continue` may end, and one that only chooses what is done.
LOOP, CHOICE = re.compile(r"^(?:for|while|do)\b"), re.compile(r"^(?:if|else|\}\s*else)\b")


def inserted(before, after):
    """The line that was inserted and the number of those before it; None for another change."""
    old, new = before.splitlines(), after.splitlines()
    at = next((i for i, (left, right) in enumerate(zip(old, new)) if left != right), len(old))
    if len(new) != len(old) + 1 or new[at + 1:] != old[at:]:
        return None
    return new[at].strip(), at


def blocks_around(lines):
    """What opens the blocks that these lines leave open, from the outside in. Blocks are told by the lines that
    open and close them, as clang-format writes them."""
    opened, statement = [], ""
    for line in lines:
        code = re.sub(r"//.*", "", STRING.sub('""', line)).strip()
        # What opens a block may take several lines.
        statement = f"{statement} {code}".strip() if statement.count("(") > statement.count(")") else code
        if code.startswith("}") and opened:
            opened.pop()
        if code.endswith("{"):
            opened.append(statement)
            statement = ""
    return opened


def ends_a_loop(before, after):
    """Whether the change inserts a `continue` behind the last statement of a loop's body."""
    line, at = inserted(before, after) or ("", 0)
    if line != "continue;":
        return False
    old = before.splitlines()
    opened = blocks_around(old[:at])
    # No line is left for a bracket that is closed within one.
    below = itertools.chain((line.strip() for line in old[at:]), itertools.repeat("}"))
    while opened:
        closing, header = next(below), opened.pop()
        if not closing.startswith("}"):
            return False
        if LOOP.match(header):
            return True
        if not CHOICE.match(header):
            return False
        while closing.endswith("{"):  # the other choice, which is not taken
            depth, closing = 1, next(below)
            while depth > 1 or not closing.startswith("}"):
                depth += closing.endswith("{") - closing.startswith("}")
                closing = next(below)
    return False


def changes_code(before, after):
    """Whether the texts differ in more than `meaning` leaves out."""
    return meaning(before) != meaning(after) and not ends_a_loop(before, after)


# What no code that compiles contains, though universalmutator writes it: operators that stand together, unary
# ones that are none, operators in place of a reference or a bracket, numbers in names, and a condition behind an
# operand.
NO_CODE = [re.compile(pattern) for pattern in (
    r"[=!<>]==", r"(?:return|[(,=]) ?[/%]", r"\w[-+|/%] \w", r"_cast *(?:[^< ]|<=)",
    r"[A-Za-z]-?\d*\(\d+[-+]1\)", r"[A-Za-z]-\d",
    r"[\w)](?<!\breturn)(?<!\bif)(?<!\bwhile) \(1==1\)")]
# Words that it writes in place of others.
SWAPPED = {"begin", "end", "min", "max", "rbegin", "rend", "cbegin", "cend", "any_of", "all_of",
           "none_of", "min_element", "max_element", "front_inserter", "back_inserter", "inner_product",
           "accumulate", "break", "continue", "if", "while"}
WORD = re.compile(r"[A-Za-z_]\w*")


def words_of(text):
    return set(WORD.findall(text))


def may_compile(before, after, words):
    """Whether the compiler may take the changed text, as far as the changed lines tell: their brackets are as
    many as before, each word is one of `words`, and what ends a loop is in one."""
    line, at = inserted(before, after) or ("", 0)
    if line in ("break;", "continue;"):
        blocks = [re.sub(r"^\}\s*", "", block) for block in blocks_around(before.splitlines()[:at])]
        return any(LOOP.match(block) or line == "break;" and block.startswith("switch") for block in blocks)
    _, lines = difference(before, after)
    old, new = ("\n".join(re.sub(r"//.*|/\*.*?\*/", "", STRING.sub('""', line[1:]))
                          for line in lines if line[0] == sign) for sign in "-+")
    return (all(old.count(left) - old.count(right) == new.count(left) - new.count(right)
                for left, right in ("()", "[]", "{}"))
            and not any(pattern.search(new) and not pattern.search(old) for pattern in NO_CODE)
            and words_of(new) - words_of(old) <= words)


def mutants_of(name, text, folder, words):
    """The changed texts of a source that universalmutator makes, those of one meaning once, without those that
    the compiler refuses for certain. It writes to its working folder, too."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mutate", SOURCE / name, "cpp", "--noCheck", "--mutantDir", folder],
                   cwd=folder.parent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    texts = {path: path.read_text() for path in sorted(folder.iterdir())}
    first = {meaning(changed): path for path, changed in reversed(texts.items())}
    return sorted(path for path in first.values()
                  if changes_code(text, texts[path]) and may_compile(text, texts[path], words))


class Planted:
    """A source with an error; at the end, source and objects are as they were, with their times."""

    def __init__(self, name, text):
        self.path, self.text = SOURCE / name, text
        self.objects = list(TREE.glob(f"CMakeFiles/*.dir/{name}.o"))
        if not self.objects:
            fail(f"{name} is not compiled alone in {TREE}")

    def __enter__(self):
        self.kept = [(path, path.read_bytes(), path.stat()) for path in [*self.objects, self.path]]
        self.path.write_text(self.text)
        return self

    def targets(self):
        return [str(path.relative_to(TREE)) for path in self.objects]

    def changes_objects(self):
        return any(path.read_bytes() != content for path, content, _ in self.kept[:-1])

    def __exit__(self, *_):
        for path, content, status in self.kept:
            path.write_bytes(content)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def main():
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="dist", help="folder or .cc file (dist)")
    parser.add_argument("-n", type=int, default=10, metavar="N", help="errors to plant (10)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of errors (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help=argparse.SUPPRESS)
    options = parser.parse_args()

    path = os.path.normpath(options.path)
    folder = os.path.dirname(path) if path.endswith(".cc") else path
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True).returncode:
        fail("the system allows no mount namespace: expected that `unshare --map-root-user --mount` works")
    copy_tree()
    sources = [path] if path.endswith(".cc") else sorted(
        str(file.relative_to(SOURCE)) for file in (SOURCE / path).rglob("*.cc"))
    if not sources or not (SOURCE / sources[0]).is_file():
        fail(f'"{options.path}" holds no .cc file')
    suites = suites_in((SOURCE / "tests" / folder).rglob("*.cc"))
    own = re.search(r"^set\(own_binaries ([^)]*)\)", (SOURCE / "tests/CMakeLists.txt").read_text(), re.M)
    room = folder if folder in own.group(1).split() else folder.split("/")[0]
    target = "test_" + room.replace("/", "_")
    if not suites:
        fail(f"tests/{folder} holds no test")

    # The sources that change are compiled alone.
    subprocess.run([*INSIDE, "cmake", "-B", "build/release", f"-DLOCKSTEP_UNITY_EXCEPT=^{folder}/"],
                   check=True, stdout=subprocess.DEVNULL)
    print(f"mutate: building {target} without an error first", flush=True)
    if not build(options.jobs, target):
        fail(f"the copy in {SOURCE} does not build {target}: expected that `./dev build {target}` works")
    start = time.monotonic()
    broken, usual = run_tests(target, patterns_of(suites), options.jobs)
    if broken:
        fail(f"{broken} fails without an error planted")
    print(f"mutate: {len(suites)} suites of {target} take {time.monotonic() - start:.0f} s", flush=True)

    def fails_again(test, limit):
        """Whether the test fails once more in three runs alone: a pause of the machine catches no error."""
        return any(run_tests(target, test, 1, limit)[0] for _ in range(3))

    def failing_test(name):
        """The first test that fails, those about the source before all others."""
        near = suites_near(name, suites)
        for group in (near, suites - near):
            limit = SLOWER * sum(usual.get(suite, 0) for suite in group) + SECONDS_MORE
            for _ in range(2 if group else 0):
                test = run_tests(target, patterns_of(group), options.jobs, limit)[0]
                if not test:
                    break
                if "." not in test or fails_again(test, limit):
                    return test
        return None

    choice = random.Random(options.seed)
    texts = {name: (SOURCE / name).read_text() for name in sources}
    # Sources of what this build does without are in no library.
    sources = [name for name in sources if any(TREE.glob(f"CMakeFiles/*.dir/{name}.o"))]
    weights = [texts[name].count("\n") for name in sources]
    words = set().union(*(words_of((SOURCE / name).read_text()) for name in subprocess.run(
        ["git", "ls-files", "*.h"], check=True, capture_output=True, text=True).stdout.split()))
    made, tried = {}, set()
    caught = planted = refused = equivalent = 0
    with tempfile.TemporaryDirectory() as temporary:
        while planted < options.n:
            name = choice.choices(sources, weights)[0]
            if name not in made:
                made[name] = mutants_of(name, texts[name], Path(temporary) / name,
                                        words | words_of(texts[name]) | SWAPPED)
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
            with Planted(name, with_lines_kept(texts[name], text)) as error:
                if not build(options.jobs, *error.targets()):
                    refused += 1
                    continue
                if not error.changes_objects():
                    equivalent += 1
                    continue
                test = failing_test(name) if build(options.jobs, target) else "the linker"
            planted += 1
            if test:
                caught += 1
                print(f"caught  {name}:{number} by {test}", flush=True)
            else:
                print(f"PASSED  {name}:{number}", *changed, sep="\n        ", flush=True)
    if planted == 0:
        fail("no error could be planted")
    print(f"mutate: {caught} of {planted} errors in {path} were caught "
          f"({100 * caught / planted:.0f} %), seed {options.seed}; the compiler refused {refused} more, "
          f"{equivalent} changed no object")


if __name__ == "__main__":
    main()

"""The last release's public headers and symbols, cmake/abi/released-VERSION.tar.xz."""

import io
import lzma
import pathlib
import re
import tarfile

SYMBOLS = "cmake/abi/public_symbols.txt"
_COMMENT = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')|[ \t]*//[^\n]*|/\*.*?\*/""", re.DOTALL)


def version_of(root):
    """The project's version, as CMakeLists.txt has it."""
    return re.search(r"project\(Lockstep VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]


def last(root):
    """The file of the last release; there is one."""
    return max((root / "cmake/abi").glob("released-*.tar.xz"))


def binds(root):
    """Whether this version has to keep the last release's ABI: before 1.0 each minor version has one of its own."""
    released = last(root).name.removeprefix("released-").split(".")[:2]
    return version_of(root).split(".")[:2] == released


def unpack(archive, folder):
    with tarfile.open(archive) as files:
        files.extractall(folder)


def symbols(archive):
    """The public symbols of a release."""
    with tarfile.open(archive) as files:
        return listed(files.extractfile(SYMBOLS).read().decode())


def listed(text):
    return {line for line in text.splitlines() if line.startswith("_Z")}


def write(root):
    """Writes the file of the version that CMakeLists.txt names, instead of earlier ones, and returns its path."""
    lines = (root / "include/headers.txt").read_text().splitlines()
    names = [line for line in lines if re.match(r"[a-z].*\.(h|inc)$", line)]
    names += ["include/headers.txt", "include/lockstep/lockstep.h", SYMBOLS]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as files:
        for name in sorted(names):
            # Comments would be half of the file.
            text = (root / name).read_text()
            if not name.endswith(".txt"):
                text = re.sub(r"\n{2,}", "\n", _COMMENT.sub(lambda match: match[1] or "", text))
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            files.addfile(member, io.BytesIO(text.encode()))
    for earlier in (root / "cmake/abi").glob("released-*.tar.xz"):
        earlier.unlink()
    path = root / f"cmake/abi/released-{version_of(root)}.tar.xz"
    path.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    return path

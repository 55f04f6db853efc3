"""A library without code that stands for the public headers of one tree, for abidiff to compare with another's.

Each symbol that a program may need is a variable of that name, a pointer to what the headers declare, and each
class and enumeration has a pointer to it. So abidiff sees arguments, results, members, their places and tables of
virtual functions. Both trees are compiled by the same compiler: what differs is in the headers.
"""

import pathlib
import subprocess

import declared

# Private members have types, too, and a class is described in full although its table is in another file.
FLAGS = ["-std=c++20", "-march=x86-64-v3", "-g", "-O0", "-fPIC", "-shared", "-w", "-fvisibility=hidden",
         "-fno-access-control", "-femit-class-debug-always"]


def source(tree):
    """The library's text, in C++."""
    found = declared.read(tree)
    lines = ["#pragma GCC visibility push(default)", "namespace witness {"]
    for index, symbol in enumerate(found.symbols):
        pointer = symbol.pointer.format(f"symbol_{index}")
        lines += [f'extern {pointer} __asm__("{symbol.name}");', f"{pointer} = nullptr;"]
    lines += [f"{name}* pointer_to_{name.replace('::', '_')} = nullptr;" for name in found.types]
    return declared.text_of_headers(tree) + "\n".join(lines + ["}", ""])


def build(tree, out):
    """Compiles the library of the headers under `tree` to the file `out`."""
    tree = pathlib.Path(tree)
    text = pathlib.Path(f"{out}.cc")
    text.write_text(source(tree))
    includes = [f"-I{tree}", f"-I{tree}/include"]
    subprocess.run(["g++", *FLAGS, *includes, str(text), "-o", str(out)], check=True)

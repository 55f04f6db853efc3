"""Symbols of ELF files with their versions, as readelf shows them."""

import re
import subprocess
import sys


def _symbols(file):
    """(name, version, whether the file defines it) of each dynamic symbol; version is "" where there is none."""
    shown = subprocess.run(["readelf", "--wide", "--dyn-syms", file], stdout=subprocess.PIPE, text=True)
    if shown.returncode != 0:
        sys.exit(1)  # readelf said why
    for line in shown.stdout.splitlines():
        # The binding may be of two words, and the number of a version that is needed follows its name.
        row = re.match(r" *\d+: .* (\w+) ([^ @]+)(?:@@?(\S+))?(?: \(\d+\))?$", line)
        if row:
            yield row[2], row[3] or "", row[1] != "UND"


def defined(file):
    """Version of each symbol that the file defines."""
    return {name: version for name, version, here in _symbols(file) if here}


def needed(file):
    """Version of each symbol that the file needs of others."""
    return {name: version for name, version, here in _symbols(file) if not here}


def readable(names):
    """Each name as it is written in C++."""
    names = list(names)
    shown = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
    return dict(zip(names, shown.splitlines()))

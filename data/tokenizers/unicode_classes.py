"""Prints data/tokenizers/unicode_ranges.h: python3 data/tokenizers/unicode_classes.py > data/tokenizers/unicode_ranges.h

Needs unicodedata2 16.0.0, which carries the Unicode 16.0 character database.
"""

import unicodedata2

assert unicodedata2.unidata_version == "16.0.0", unicodedata2.unidata_version


def ranges(category):
    found = []
    for code_point in range(0x110000):
        if unicodedata2.category(chr(code_point))[0] != category:
            continue
        if found and found[-1][1] == code_point - 1:
            found[-1][1] = code_point
        else:
            found.append([code_point, code_point])
    return found


def table(name, category):
    found = ranges(category)
    lines = [f"inline constexpr CodePointRange {name}[{len(found)}] = {{"]
    line = "   "
    for first, last in found:
        item = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    return "\n".join(lines + [line, "};\n"])


print(f"""#pragma once

// Made by data/tokenizers/unicode_classes.py from Unicode {unicodedata2.unidata_version}.

#include <cstdint>

namespace lockstep::train {{

/// The code points first, ..., last.
struct CodePointRange {{
  uint32_t first;
  uint32_t last;
}};

// clang-format off

/// General category L*, in order.
{table("kLetters", "L")}
/// General category N*, in order.
{table("kNumbers", "N")}
// clang-format on

}}  // namespace lockstep::train""")

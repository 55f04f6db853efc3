"""Training data from Python.

A run with ``data { program { command: "python3 my_data.py" } }`` starts the script on every rank and asks it for sequences.
The script defines a source and calls ``serve(source)``. This file needs nothing but Python, so that it may also lie beside the
script, without the package.

A source has

- ``identity``, a text that names the data: ranks compare it, and a resumed run expects the same one;
- ``sequence(step, index, length)``: sequence ``index`` of ``step``, from 0 and from 1;
- optionally ``held_out_windows(length)``, how many held-out sequences there are, and ``held_out(index, length)``;
- optionally ``begin(info)``, called once before all with an object that has ``vocabulary``, ``seed``, ``sequences_per_step``
  and ``length``.

A sequence is ``length + 1`` tokens, each the target of the one before it, or a pair (inputs, targets) of ``length`` each, in
which the target -100 does not count. It must depend on the arguments alone: ranks, resumed runs and audits ask for the same
sequence again.
"""

import array
import json
import os
import sys
import traceback
import types

IGNORED = -100


def _numbers(sequence, length):
    """The bytes of a sequence: inputs, then targets, 32 bits each."""
    if isinstance(sequence, tuple):
        inputs, targets = sequence
    else:
        inputs, targets = sequence[:-1], sequence[1:]
    if len(inputs) != length or len(targets) != length:
        raise ValueError(f"expected {length + 1} tokens, or {length} inputs and as many targets, got {len(inputs)} inputs "
                         f"and {len(targets)} targets")
    lists = [part.tolist() if hasattr(part, "tolist") else part for part in (inputs, targets)]
    return array.array("i", [*lists[0], *lists[1]])


def _answer(source, request):
    (kind, arguments), = request.items()
    if kind == "begin":
        if arguments["protocol"] != 1:
            raise ValueError(f"protocol {arguments['protocol']}: expected 1. Use the data.py of this version of Lockstep")
        if hasattr(source, "begin"):
            source.begin(types.SimpleNamespace(**arguments))
        return {"identity": str(source.identity)}, None
    if kind == "held_out_windows":
        count = source.held_out_windows(arguments["length"]) if hasattr(source, "held_out_windows") else 0
        return {"windows": int(count)}, None
    if kind == "sequence":
        sequence = source.sequence(arguments["step"], arguments["index"], arguments["length"])
    elif kind == "held_out":
        sequence = source.held_out(arguments["index"], arguments["length"])
    else:
        raise ValueError(f"the request {kind} is not known")
    numbers = _numbers(sequence, arguments["length"])
    return {"values": len(numbers)}, numbers


def _told(error):
    """An error as one line, with the place where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({os.path.basename(frame.filename)}:{frame.lineno})"


def serve(source):
    """Answers requests until there are no more. What the source prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        try:
            header, numbers = _answer(source, json.loads(line))
        except Exception as error:  # the run ends with it
            traceback.print_exc()
            header, numbers = {"error": _told(error)}, None
        answers.write(json.dumps(header).encode() + b"\n")
        if numbers is not None:
            answers.write(numbers.tobytes())
        answers.flush()

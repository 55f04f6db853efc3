"""Training data from Python.

A run with ``data { program { command: "python3 my_data.py" } }`` starts the script on every rank and asks it for sequences.
The script defines a source and calls ``serve(source)``. This file needs nothing but Python, so that it may also lie beside the
script, without the package.

A source has

- ``identity``, a text that names the data: ranks compare it, and a resumed run expects the same one;
- ``sequence(step, index, length)``: sequence ``index`` of ``step``, both counted from 0;
- optionally ``held_out_windows(length)``, how many held-out sequences there are, and ``held_out(index, length)``;
- optionally ``begin(info)``, called once before all with an object that has ``vocabulary``, ``seed``, ``sequences_per_step``
  and ``length``.

A sequence is ``length + 1`` tokens, each the target of the one before it, or a pair (inputs, targets) of ``length`` each, in
which the target -100 does not count. It must depend on the arguments alone: ranks, resumed runs and audits ask for the same
sequence again. ``Stream`` makes such a source of documents that can only be read one after the other.
"""

import array
import itertools
import json
import os
import random
import sys
import traceback
import types

IGNORED = -100


def shuffled(items, buffer, chance):
    """The items in an order that ``chance``, a ``random.Random``, draws: each leaves a buffer of this many at random."""
    held = []
    for item in items:
        if len(held) < buffer:
            held.append(item)
        else:
            place = chance.randrange(buffer)
            yield held[place]
            held[place] = item
    chance.shuffle(held)
    yield from held


class Stream:
    """A source of documents that are read one after the other, such as those of a web service or a pipe.

    ``documents(epoch)`` gives the documents of an epoch, 0, 1, ..., lists of tokens: the same ones in the same order
    whenever it is called. They leave a buffer of ``shuffle_buffer`` documents in random order, another one in each epoch,
    and are cut into sequences with ``end_of_text`` before each. The first ``held_out`` of epoch 0 are held out, and left
    out of every epoch.

    Every rank reads all documents, and takes its own sequences. A run that goes on reads again from the beginning up to
    where it was: the sequences are functions of the seed and the step, as those of any source.
    """

    def __init__(self, documents, *, identity, end_of_text, shuffle_buffer=1, held_out=0):
        if shuffle_buffer < 1 or held_out < 0:
            raise ValueError(f"expected shuffle_buffer of 1 or more and held_out of 0 or more, got {shuffle_buffer} and "
                             f"{held_out}")
        self.identity = f"{identity}, end_of_text {end_of_text}, shuffle_buffer {shuffle_buffer}, held_out {held_out}"
        self._documents, self._end, self._buffer, self._held_out = documents, end_of_text, shuffle_buffer, held_out
        self._validation = None

    def begin(self, info):
        self._seed, self._per_step = info.seed, info.sequences_per_step
        self._restart(info.length)

    def sequence(self, step, index, length):
        number = step * self._per_step + index
        if length != self._length or (number < self._next and number not in self._recent):
            self._restart(length)
        while self._next <= number:
            self._recent[self._next] = next(self._windows)
            # Ranks ask a few steps ahead, and an audit asks for a step again.
            self._recent.pop(self._next - 8 * self._per_step, None)
            self._next += 1
        return self._recent[number]

    def held_out_windows(self, length):
        return -(-max(0, len(self._held_out_tokens()) - 1) // length)

    def held_out(self, index, length):
        tokens = self._held_out_tokens()[index * length : (index + 1) * length + 1]
        missing = length + 1 - len(tokens)
        return tokens[:-1] + [0] * missing, tokens[1:] + [IGNORED] * missing

    def _restart(self, length):
        self._length, self._next, self._recent = length, 0, {}
        self._windows = self._cut(length)

    def _tokens(self, documents):
        for document in documents:
            yield self._end
            yield from document.tolist() if hasattr(document, "tolist") else document

    def _held_out_tokens(self):
        if self._validation is None:
            held_out = itertools.islice(self._documents(0), self._held_out)
            self._validation = list(self._tokens(held_out))
        return self._validation

    def _epochs(self):
        for epoch in itertools.count():
            documents = itertools.islice(self._documents(epoch), self._held_out, None)
            none = True
            for document in shuffled(documents, self._buffer, random.Random(f"{self._seed} {epoch}")):
                none = False
                yield document
            if none:
                raise ValueError(f"documents({epoch}) gave no more than the {self._held_out} that are held out: expected "
                                 "others to train on")

    def _cut(self, length):
        """Windows of length + 1 tokens, of which the last is the first of the next."""
        tokens = self._tokens(self._epochs())
        window = [next(tokens)]
        while True:
            window += itertools.islice(tokens, length)
            yield window
            window = window[-1:]


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

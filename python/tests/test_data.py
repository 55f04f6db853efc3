"""Sources of documents that are read in order, as a process is asked for them."""

import random
import types

import numpy as np
import pytest
from lockstep import data


def begun(documents, per_step=4, length=5, seed=1, **options):
    source = data.Stream(documents, identity="documents", end_of_text=0, **options)
    source.begin(types.SimpleNamespace(seed=seed, sequences_per_step=per_step, length=length))
    return source


def twenty(epoch):
    return ([100 + i] * 3 for i in range(20))


def rows(source, steps=15, per_step=4, length=5):
    return [source.sequence(step, index, length) for step in range(steps) for index in range(per_step)]


def test_items_leave_a_buffer_in_another_order_and_none_is_lost():
    taken = list(data.shuffled(range(1000), 100, random.Random(1)))
    assert sorted(taken) == list(range(1000)) and taken != sorted(taken)
    # An item waits at least until the buffer is full, and cannot come before those far behind it.
    assert all(item <= place + 100 for place, item in enumerate(taken))
    assert list(data.shuffled(range(10), 1, random.Random(1))) == list(range(10))


def test_the_order_depends_on_seed_and_epoch_alone():
    assert rows(begun(twenty, shuffle_buffer=8)) == rows(begun(twenty, shuffle_buffer=8))
    assert rows(begun(twenty, shuffle_buffer=8)) != rows(begun(twenty, shuffle_buffer=8, seed=2))
    assert rows(begun(twenty, shuffle_buffer=8)) != rows(begun(twenty))


def test_a_window_begins_with_the_last_token_of_the_one_before():
    windows = rows(begun(twenty))
    assert windows[0] == [0, 100, 100, 100, 0, 101]
    assert all(a[-1] == b[0] for a, b in zip(windows, windows[1:]))


def test_arrays_are_documents():
    arrays = begun(lambda epoch: (np.full(3, 100 + i) for i in range(20)))
    assert rows(arrays) == rows(begun(twenty))


def test_a_step_is_asked_for_again_without_reading_all_anew():
    reads = []

    def counted(epoch):
        reads.append(epoch)
        return twenty(epoch)

    source = begun(counted)
    first = rows(source, steps=3)
    assert rows(source, steps=3) == first
    assert reads == [0]
    later = source.sequence(40, 0, 5)
    assert source.sequence(0, 0, 5) == first[0]
    assert source.sequence(40, 0, 5) == later


def test_no_document_to_train_on_is_an_error():
    with pytest.raises(ValueError, match=r"documents\(0\) gave no more than the 20"):
        rows(begun(twenty, held_out=20))
    with pytest.raises(ValueError, match="shuffle_buffer"):
        begun(twenty, shuffle_buffer=0)

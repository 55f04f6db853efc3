"""Files of tensors, and training runs."""

import json
import math
import os
import pathlib
import signal
import threading
import time

import lockstep
import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "configs" / "examples"


def test_saved_tensors_come_back(tmp_path):
    path = str(tmp_path / "w.safetensors")
    lockstep.save(path, {"a": np.arange(6.0).reshape(2, 3), "b": lockstep.ops.ones([2], dtype="bfloat16")})
    tensors = lockstep.load(path)
    assert list(sorted(tensors)) == ["a", "b"]
    assert tensors["b"].dtype == "bfloat16"
    np.testing.assert_array_equal(tensors["a"].numpy(), np.arange(6.0).reshape(2, 3))


def test_files_of_safetensors_are_read_and_read_ours(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    library.save_file({"x": np.arange(3, dtype="int16")}, tmp_path / "theirs")
    assert lockstep.load(str(tmp_path / "theirs"))["x"].numpy().tolist() == [0, 1, 2]
    lockstep.save(str(tmp_path / "ours"), {"y": np.arange(4.0)})
    assert library.load_file(tmp_path / "ours")["y"].tolist() == [0, 1, 2, 3]


def test_damaged_and_absent_files_are_errors(tmp_path):
    (tmp_path / "bad").write_bytes(b"\xff" * 20)
    with pytest.raises(RuntimeError, match="bad"):
        lockstep.load(str(tmp_path / "bad"))
    with pytest.raises(RuntimeError, match="absent"):
        lockstep.load(str(tmp_path / "absent"))


def test_metrics_are_read_as_numbers_without_an_unfinished_line(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step":1,"loss":2.5}\n{"step":2,"loss":"NaN"}\n{"step":3,"lo')
    metrics = lockstep.read_metrics(tmp_path)
    assert [line["step"] for line in metrics] == [1, 2]
    assert metrics[0]["loss"] == 2.5 and math.isnan(metrics[1]["loss"])
    (tmp_path / "metrics.jsonl").write_text("no\n")
    with pytest.raises(ValueError, match="metrics.jsonl:1"):
        lockstep.read_metrics(tmp_path)


def test_a_run_trains_and_its_files_are_read(tmp_path, capsys):
    config = EXAMPLES / "bench_baby.txtpb"
    run = lockstep.train(config, {"train.steps": 3}, run_dir=tmp_path / "run")
    assert "step" in capsys.readouterr().out
    metrics = lockstep.read_metrics(run)
    assert [line["step"] for line in metrics] == [1, 2, 3]
    assert all(math.isfinite(line["loss"]) for line in metrics)
    assert json.load(open(os.path.join(run, "environment.json")))
    weights = lockstep.load(os.path.join(run, "model.safetensors"))
    assert all(np.isfinite(np.asarray(tensor)).all() for tensor in weights.values())


def test_an_interrupted_run_saves_itself_and_is_gone_on_with(tmp_path):
    config, run = EXAMPLES / "bench_baby.txtpb", tmp_path / "run"
    finished = threading.Event()

    def interrupt_after_the_first_step():
        while not finished.is_set():
            if (run / "metrics.jsonl").exists() and lockstep.read_metrics(run):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                return
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt_after_the_first_step)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            lockstep.train(config, {"train.steps": 100000}, run_dir=run, show=False)
    finally:
        finished.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    saved = len(lockstep.read_metrics(run))
    assert os.listdir(run / "checkpoints") == [f"step-{saved:08d}"]
    lockstep.train(config, {"train.steps": saved + 2}, run_dir=run, show=False)
    assert len(lockstep.read_metrics(run)) == saved + 2


def test_a_refused_config_is_a_value_error_and_leaves_no_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="learning_rat.*Did you mean"):
        lockstep.train(EXAMPLES / "bench_baby.txtpb", {"optimizer.learning_rat": 1}, show=False)
    assert os.listdir("runs") == []
    with pytest.raises(FileNotFoundError, match="absent.txtpb"):
        lockstep.train("absent.txtpb")

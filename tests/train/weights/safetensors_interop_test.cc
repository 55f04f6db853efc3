// Interoperates with Python's safetensors package, where it is installed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/generator.h"
#include "tests/train/python.h"
#include "tests/train/tiny_models.h"
#include "train/weights.h"
#include "train/weights/hugging_face_folder.h"

namespace lockstep::train {
namespace {

class SafetensorsInterop : public testing::Test {
 protected:
  void SetUp() override {
    const std::string lacking = python_lacks("safetensors.numpy", "safetensors numpy");
    if (!lacking.empty()) GTEST_SKIP() << lacking;
  }
  std::string run(const std::string& script) const { return run_python(folder_, script); }

  TemporaryDirectory folder_;
};

TEST_F(SafetensorsInterop, PythonReadsWhatIsWritten) {
  OwnedTensors tensors{nn::Gpt2(tiny_gpt2(1))};
  tensors.add("floats", tensor_from<float>({1.5F, -2, 0.25F, 3, 4, 5}, {2, 3}));
  tensors.add("doubles", tensor_from<double>({0.1, 1e300}, {2}));
  tensors.add("integers", tensor_from<int64_t>({-1, int64_t{1} << 40}, {2, 1}));
  tensors.add("halves", tensor_from<float>({0.5F, 65504}, {2}).to(DType::kF16));
  tensors.add("flags", tensor_from<bool>({true, false, true}, {3}));
  tensors.add("scalar", scalar_tensor(7));
  tensors.add("empty", empty_tensor(std::vector<int64_t>{0, 3}, DType::kI32));
  write_safetensors(folder_ / "w.safetensors", tensors.records(), {{"step", "12"}});
  EXPECT_EQ(run(R"(
from safetensors import safe_open
from safetensors.numpy import load_file
tensors = load_file("w.safetensors")
for name in ("floats", "doubles", "integers", "halves", "flags", "scalar", "empty"):
    print(name, tensors[name].dtype, tensors[name].shape, tensors[name].tolist())
print(len(tensors), tensors["h.0.attn.c_attn.weight"].shape)
with safe_open("w.safetensors", "numpy") as f:
    print(sorted(f.metadata().items()))
)"),
            "floats float32 (2, 3) [[1.5, -2.0, 0.25], [3.0, 4.0, 5.0]]\n"
            "doubles float64 (2,) [0.1, 1e+300]\n"
            "integers int64 (2, 1) [[-1], [1099511627776]]\n"
            "halves float16 (2,) [0.5, 65504.0]\n"
            "flags bool (3,) [True, False, True]\n"
            "scalar float32 () 7.0\n"
            "empty int32 (0, 3) []\n"
            "23 (6, 18)\n"
            "[('format', 'pt'), ('step', '12')]\n");
}

TEST_F(SafetensorsInterop, PythonReadsEveryShardAndTheIndex) {
  manual_seed(1);
  const nn::Llama model(tiny_llama());
  save_hugging_face(model, folder_ / "sharded", 900);
  save_hugging_face(model, folder_ / "whole");
  EXPECT_EQ(run(R"(
import json, os
from safetensors.numpy import load_file
index = json.load(open("sharded/model.safetensors.index.json"))
files = {f: load_file("sharded/" + f) for f in set(index["weight_map"].values())}
assert len(files) > 2
assert set(os.listdir("sharded")) == set(files) | {"config.json", "model.safetensors.index.json"}
whole = load_file("whole/model.safetensors")
assert set(index["weight_map"]) == set(whole)
assert sum(len(f) for f in files.values()) == len(whole)
for name, file in index["weight_map"].items():
    assert files[file][name].tobytes() == whole[name].tobytes(), name
print(index["metadata"]["total_size"] == sum(t.nbytes for t in whole.values()))
)"),
            "True\n");
}

TEST_F(SafetensorsInterop, WhatPythonWritesIsRead) {
  manual_seed(1);
  const nn::Llama model(tiny_llama());
  save_hugging_face(model, folder_ / "ours");
  run(R"(
import json, os, shutil
from safetensors.numpy import load_file, save_file
tensors = load_file("ours/model.safetensors")
os.mkdir("theirs")
shutil.copy("ours/config.json", "theirs")
names = sorted(tensors)
weight_map = {}
for i, part in enumerate((names[:3], names[3:4], names[4:])):
    file = "model-%05d-of-00003.safetensors" % (i + 1)
    save_file({n: tensors[n] for n in part}, "theirs/" + file, metadata={"format": "pt"})
    weight_map.update({n: file for n in part})
total = sum(t.nbytes for t in tensors.values())
json.dump({"metadata": {"total_size": total}, "weight_map": weight_map},
          open("theirs/model.safetensors.index.json", "w"), indent=2)
save_file({n.removeprefix("model."): t.astype("float64") for n, t in tensors.items()}, "f64")
)");
  EXPECT_TRUE(same_parameters(*load_model(folder_ / "theirs"), model));
  manual_seed(2);
  nn::Llama again(tiny_llama());
  load_weights(again, folder_ / "f64");
  EXPECT_TRUE(same_parameters(again, model));
}

}  // namespace
}  // namespace lockstep::train

#include "train/weights/tensor_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "dist/group/thread_group.h"
#include "nn/adapters/lora.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"
#include "tests/dist/group/on_ranks.h"
#include "tests/train/tiny_models.h"
#include "train/weights.h"
#include "train/weights/file_digests.h"
#include "train/weights/hugging_face_folder.h"
#include "train/weights/rank_reading.h"

namespace lockstep::train {
namespace {

std::vector<float> floats(const Tensor& tensor) {
  const Tensor flat = tensor.detach().contiguous();
  return {flat.data<float>(), flat.data<float>() + flat.numel()};
}

/// Expects that every range of every tensor holds what `model` has.
void expect_ranges_of(const TensorRanges& ranges, const nn::Module& model) {
  const std::vector<nn::StoredParameter> stored = model.stored_parameters();
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::vector<float> whole = floats(stored[i].tensor);
    const int64_t count = std::ssize(whole);
    for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, count},
                                     {1, count},
                                     {count / 3, count / 2},
                                     {count - 1, count},
                                     {count / 2, count}}) {
      const Tensor into = empty({end - first});
      ranges.read(i, first, end, into);
      EXPECT_EQ(floats(into), std::vector<float>(whole.begin() + first, whole.begin() + end))
          << stored[i].name << " " << first << " " << end;
    }
  }
}

TEST(TensorRanges, ReadPartsOfStoredAndTransposedTensors) {
  const TemporaryDirectory folder;
  manual_seed(1);
  const nn::Gpt2 gpt2(tiny_gpt2());
  save_weights(gpt2, folder / "model.safetensors");
  expect_ranges_of(TensorRanges::of_weights(folder.path(), gpt2.stored_parameters()), gpt2);
  const nn::Llama llama(tiny_llama());
  save_hugging_face(llama, folder / "shards", 512);
  expect_ranges_of(TensorRanges::of_weights(folder / "shards", llama.stored_parameters()), llama);
}

TEST(TensorRanges, ConvertFloatingTypes) {
  const TemporaryDirectory folder;
  manual_seed(1);
  nn::Gpt2 model(tiny_gpt2());
  save_hugging_face(model, folder / "bf16", kMaxShardBytes, DType::kBF16);
  const TensorRanges ranges = TensorRanges::of_weights(folder / "bf16", model.stored_parameters());
  load_weights(model, folder / "bf16");
  expect_ranges_of(ranges, model);
}

TEST(TensorRanges, RefuseWhatLoadWeightsRefuses) {
  const TemporaryDirectory folder;
  const nn::Gpt2 saved(tiny_gpt2());
  save_weights(saved, folder / "model.safetensors");
  const nn::Gpt2 other(tiny_gpt2(3));
  expect_error<CheckpointError>(
      [&] { TensorRanges::of_weights(folder.path(), other.stored_parameters()); },
      "missing h.2.attn.c_attn.weight");

  OwnedTensors tensors(saved, [](const std::string& name) { return name; });
  tensors.add("lm_head.weight", saved.wte.weight.detach());
  write_safetensors(folder / "tied", tensors.records());
  expect_ranges_of(TensorRanges::of_weights(folder / "tied", saved.stored_parameters()), saved);
  OwnedTensors differing(saved, [](const std::string& name) { return name; });
  differing.add("lm_head.weight", mul(saved.wte.weight.detach(), 2.0));
  write_safetensors(folder / "differs", differing.records());
  expect_error<CheckpointError>(
      [&] { TensorRanges::of_weights(folder / "differs", saved.stored_parameters()); },
      "lm_head.weight", "differs from");
}

TEST(TensorRanges, VerifyReadsEveryByteAgainstTheManifest) {
  const TemporaryDirectory folder;
  const nn::Gpt2 model(tiny_gpt2());
  const std::filesystem::path path = folder / "model.safetensors";
  const FileDigest digest = save_weights(model, path);
  write_model_manifest(folder.path(), 1, {{"model.safetensors", digest}});
  TensorRanges::of_weights(path, model.stored_parameters()).verify();
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-2, std::ios::end);
  file.put('x');
  file.close();
  const TensorRanges damaged = TensorRanges::of_weights(path, model.stored_parameters());
  expect_error<CheckpointError>([&] { damaged.verify(); }, "is not what was written");
}

TEST(TensorRanges, RankZeroReadsForRanksThatDoNotSeeTheFiles) {
  const TemporaryDirectory folder;
  manual_seed(1);
  const nn::Gpt2 model(tiny_gpt2());
  save_weights(model, folder / "model.safetensors");
  const std::vector<nn::StoredParameter> stored = model.stored_parameters();
  std::vector<int64_t> elements;
  for (const nn::StoredParameter& each : stored) elements.push_back(each.tensor.numel());
  dist::all_ranks(3, [&](dist::ProcessGroup& group) {
    std::vector<Tensor> values;
    const auto runs = [&](int rank) {
      std::vector<KeptRun> kept;
      for (size_t i = 0; i < stored.size(); ++i) {
        const int64_t first = elements[i] * rank / 3, end = elements[i] * (rank + 1) / 3;
        kept.push_back({i, first, end, {}});
        if (rank == group.rank()) kept.back().values = values.emplace_back(empty({end - first}));
      }
      return kept;
    };
    const auto open = [&] {
      const bool sees = group.rank() != 1;
      return TensorRanges::of_weights(sees ? folder.path() : folder / "elsewhere", stored);
    };
    EXPECT_EQ(read_on_ranks(group, open, runs).has_value(), group.rank() == 0);
    for (size_t i = 0; i < stored.size(); ++i) {
      const std::vector<float> whole = floats(stored[i].tensor);
      const int64_t first = elements[i] * group.rank() / 3;
      EXPECT_EQ(floats(values[i]), std::vector<float>(whole.begin() + first,
                                                      whole.begin() + first + values[i].numel()));
    }
  });
}

TEST(TensorRanges, AdaptersThatFilesLackKeepTheirValuesAlsoWhereRankZeroReads) {
  const TemporaryDirectory folder;
  manual_seed(1);
  save_weights(nn::Gpt2(tiny_gpt2()), folder / "model.safetensors");
  dist::all_ranks(2, [&](dist::ProcessGroup& group) {
    nn::Gpt2 model(tiny_gpt2());
    nn::add_lora(model, [](std::string_view) { return true; }, {.rank = 2});
    const std::vector<nn::StoredParameter> stored = model.stored_parameters();
    const NoGradGuard no_grad;
    for (const nn::StoredParameter& each : stored) each.tensor.fill_(7);
    const auto runs = [&](int rank) {
      std::vector<KeptRun> kept;
      for (size_t i = 0; i < stored.size(); ++i) {
        kept.push_back({i, 0, stored[i].tensor.numel(), {}});
        if (rank == group.rank()) kept.back().values = stored[i].tensor.view({-1});
      }
      return kept;
    };
    (void)read_on_ranks(
        group,
        [&] {
          const bool sees = group.rank() == 0;
          return TensorRanges::of_weights(sees ? folder.path() : folder / "elsewhere", stored);
        },
        runs);
    for (const nn::StoredParameter& each : stored) {
      const std::vector<float> values = floats(each.tensor);
      const bool kept = std::ranges::count(values, 7.0F) == std::ssize(values);
      EXPECT_EQ(kept, nn::is_lora_parameter(each.name)) << each.name << group.rank();
    }
  });
}

}  // namespace
}  // namespace lockstep::train

#include "train/weights.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "nn/adapters/lora.h"
#include "nn/models/hugging_face.h"
#include "train/weights/adapter_files.h"
#include "train/weights/file_digests.h"
#include "train/weights/multiplier_files.h"
#include "train/weights/read_errors.h"
#include "train/weights/tensor_file.h"
#include "train/weights/tensor_ranges.h"
#include "train/weights/weight_files.h"
#include "train/weights/weight_matching.h"

namespace lockstep::train {

namespace {

using Stored = std::vector<nn::StoredParameter>;

std::string read_text(const std::filesystem::path& path) {
  try {
    return read_whole_file(path, kMostJsonBytes);
  } catch (const FileError& error) {
    throw CheckpointError(
        fmt::format("[weights] cannot read {}: {}. A model's folder holds it beside the weights; a "
                    "run writes it at its end.",
                    path.string(), error.reason()));
  }
}

void load(nn::Module& model, const WeightFiles& files, const std::filesystem::path& path) {
  const NoGradGuard no_grad;
  const Stored stored = model.stored_parameters();
  const std::vector<const TensorRecord*> records =
      match_weights(files.tensors(), stored, path, [](const WeightEntry& a, const WeightEntry& b) {
        return std::ranges::equal(a.tensor.bytes, b.tensor.bytes);
      });
  for (size_t i = 0; i < stored.size(); ++i) {
    if (records[i] == nullptr) continue;  // an adapter
    const TensorRecord& record = *records[i];
    const Tensor tensor = empty_tensor(record.shape, record.dtype);
    std::ranges::copy(record.bytes, static_cast<std::byte*>(tensor.data()));
    stored[i].tensor.copy_(stored[i].transposed ? tensor.t() : tensor);
  }
}

/// Loads the weights of a checkpoint in shards.
void load_shards(nn::Module& model, const std::filesystem::path& path) {
  const Stored stored = model.stored_parameters();
  const TensorRanges files = TensorRanges::of_weights(path, stored);
  files.verify();
  for (size_t i = 0; i < stored.size(); ++i) files.read_whole(i, stored[i].tensor);
}

nn::WeightsSize size_of_weights(const ShardIndex& shards) {
  nn::WeightsSize size;
  for (const auto& [name, tensor] : shards.weights) {
    ++size.tensors;
    if (!tensor.pieces.empty()) size.elements += tensor.pieces.back().end;
  }
  return size;
}

nn::WeightsSize size_of_weights(const WeightFiles& files) {
  nn::WeightsSize size;
  for (const auto& [name, entry] : files.tensors()) {
    ++size.tensors;
    size.elements += static_cast<int64_t>(entry.tensor.bytes.size() / size_of(entry.tensor.dtype));
  }
  return size;
}

/// Changes weights that were read from `path` into ones for the multipliers of `model`.
void convert_multipliers(nn::Module& model, const std::filesystem::path& path) {
  auto* const language = dynamic_cast<nn::LanguageModel*>(&model);
  if (language == nullptr) return;
  const nn::Mup own = language->mup();
  const nn::Mup from = multipliers_of(path);
  if (from.computes_as(own)) return;
  language->use_multipliers(from);
  nn::change_multipliers(*language, own);
}

/// Makes the model that config.json describes. Its errors name the file, of which nn knows the text
/// alone.
std::unique_ptr<nn::LanguageModel> model_of(const std::filesystem::path& path,
                                            const std::string& text, nn::WeightsSize weights) {
  try {
    return nn::model_from_hugging_face(text, weights);
  } catch (const ConfigError& error) {
    constexpr std::string_view kPrefix = "[config.json] ";
    std::string_view what = error.what();
    if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
    throw ConfigError(fmt::format("[config.json] {}: {}", path.string(), what));
  }
}

}  // namespace

FileDigest save_weights(const nn::Module& model, const std::filesystem::path& path,
                        const std::function<Tensor(size_t)>& values) {
  return save_tensors(path, model.stored_parameters(), {}, values);
}

void load_weights(nn::Module& model, const std::filesystem::path& path,
                  const FileDigests* written) {
  if (shards_in(path)) {
    load_shards(model, path);
  } else {
    load(model, WeightFiles(path, written), path);
  }
  convert_multipliers(model, path);
}

std::unique_ptr<nn::LanguageModel> load_model(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  const auto [config, mup] = unmarked(read_text(path));
  check_file(path);
  std::unique_ptr<nn::LanguageModel> model;
  if (const std::optional<ShardIndex> shards = shards_in(folder)) {
    model = model_of(path, config, size_of_weights(*shards));
    add_described_adapters(*model, folder);
    load_shards(*model, folder);
  } else {
    const WeightFiles files(folder);
    model = model_of(path, config, size_of_weights(files));
    add_described_adapters(*model, folder);
    load(*model, files, folder);
  }
  nn::merge_lora(*model);
  if (!mup.is_plain()) model->use_multipliers(mup);
  model->eval();
  return model;
}

}  // namespace lockstep::train

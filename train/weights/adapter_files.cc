#include "train/weights/adapter_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "nn/adapters/lora.h"
#include "nn/language_model.h"
#include "nn/models/gpt2.h"
#include "train/weights/file_digests.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kTensors = "adapter_model.safetensors";

bool is_gpt2(const nn::Module& model) { return dynamic_cast<const nn::Gpt2*>(&model) != nullptr; }

std::string config_text(const nn::Module& model, const std::vector<const nn::Linear*>& layers) {
  const nn::LoraOptions& options = layers.front()->lora()->options;
  std::vector<std::string> targets;
  for (const nn::Linear* each : layers) targets.push_back(each->path());
  const bool is_language_model = dynamic_cast<const nn::LanguageModel*>(&model) != nullptr;
  nlohmann::ordered_json config = {{"peft_type", "LORA"},
                                   {"r", options.rank},
                                   {"lora_alpha", options.alpha},
                                   {"lora_dropout", options.dropout},
                                   {"target_modules", targets},
                                   {"bias", "none"},
                                   // GPT-2's layers are stored [in, out] there.
                                   {"fan_in_fan_out", is_gpt2(model)},
                                   {"inference_mode", true}};
  config["base_model_name_or_path"] = nullptr;
  config["task_type"] = nullptr;
  if (is_language_model) config["task_type"] = "CAUSAL_LM";
  return config.dump(2) + "\n";
}

/// PEFT's name of an adapter's matrix: that of the module in Hugging Face's whole model, which PEFT
/// wraps twice.
std::string peft_name(const nn::Module& model, const std::string& name) {
  return std::string("base_model.model.") + (is_gpt2(model) ? "transformer." : "") + name;
}

}  // namespace

void write_adapter_config(const nn::Module& model, const fs::path& folder) {
  const std::vector<const nn::Linear*> layers = nn::adapted_layers(model);
  if (!layers.empty()) write_text(folder / kConfig, config_text(model, layers));
}

void save_adapters(const nn::Module& model, const fs::path& folder,
                   const std::function<Tensor(size_t)>& values) {
  const std::vector<nn::StoredParameter> all = model.stored_parameters();
  std::vector<nn::StoredParameter> adapters;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!nn::is_lora_parameter(all[i].name)) continue;
    adapters.push_back({peft_name(model, all[i].name), all[i].tensor});
    numbers.push_back(i);
  }
  create_folders(folder, "adapters");
  std::function<Tensor(size_t)> collected;
  if (values) collected = [&](size_t i) { return values(numbers[i]); };
  save_tensors(folder / kTensors, adapters, {{"format", "pt"}}, collected);
  write_adapter_config(model, folder);
}

void add_described_adapters(nn::Module& model, const fs::path& folder) {
  const fs::path path = folder / kConfig;
  if (!name_exists(path)) return;
  check_file(path);
  nn::LoraOptions options;
  std::set<std::string, std::less<>> targets;
  try {
    const nlohmann::json config = parse_json(read_whole_file(path, kMostJsonBytes));
    options = {.rank = config.at("r").get<int64_t>(),
               .alpha = config.at("lora_alpha").get<double>()};
    for (const auto& each : config.at("target_modules")) targets.insert(each.get<std::string>());
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(fmt::format(
        "[weights] {} describes no adapters as Lockstep writes them: expected r, lora_alpha and a "
        "list target_modules of layers ({}).",
        path.string(), error.what()));
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("[weights] {}: {}", path.string(), error.what()));
  }
  constexpr int64_t kMostRank = 65536;  // as in a config
  LS_CHECK(options.rank > 0 && options.rank <= kMostRank, CheckpointError,
           "[weights] {}: expected r from 1 to {}, got {}.", path.string(), kMostRank,
           options.rank);
  const int64_t count = nn::add_lora(
      model, [&](std::string_view name) { return targets.contains(name); }, options);
  LS_CHECK(count == static_cast<int64_t>(targets.size()), CheckpointError,
           "[weights] {}: the model has {} of the {} layers in target_modules. The file belongs to "
           "another model.",
           path.string(), count, targets.size());
}

MergedWeights merged_weights(const nn::Module& model, const std::function<Tensor(size_t)>& values) {
  const std::vector<nn::StoredParameter> all = model.stored_parameters();
  const std::vector<const nn::Linear*> layers = nn::adapted_layers(model);
  if (layers.empty()) return {all, values};
  std::unordered_map<const TensorImpl*, size_t> number_of;
  for (size_t i = 0; i < all.size(); ++i) number_of.emplace(all[i].tensor.impl(), i);
  struct Adapter {
    size_t a = 0, b = 0;
    double scale = 0;
  };
  std::unordered_map<const TensorImpl*, Adapter> adapter_of;
  for (const nn::Linear* each : layers) {
    const nn::LoraAdapter& lora = *each->lora();
    adapter_of[each->weight.impl()] = {number_of.at(lora.a.weight.impl()),
                                       number_of.at(lora.b.weight.impl()), lora.scale};
  }
  std::function<Tensor(size_t)> whole = values;
  if (!whole) whole = [all](size_t number) { return all[number].tensor; };
  MergedWeights merged;
  struct Source {
    size_t number;
    std::optional<Adapter> adapter;
  };
  std::vector<Source> sources;
  for (size_t i = 0; i < all.size(); ++i) {
    if (nn::is_lora_parameter(all[i].name)) continue;
    merged.stored.push_back(all[i]);
    const auto found = adapter_of.find(all[i].tensor.impl());
    sources.push_back({i, found == adapter_of.end() ? std::nullopt : std::optional(found->second)});
  }
  merged.values = [sources, whole](size_t i) {
    const NoGradGuard no_grad;
    const Source& source = sources[i];
    const Tensor weight = whole(source.number);
    if (!source.adapter) return weight;
    const Tensor a = whole(source.adapter->a), b = whole(source.adapter->b);
    return nn::merged_weight(weight, a, b, source.adapter->scale);
  };
  return merged;
}

}  // namespace lockstep::train

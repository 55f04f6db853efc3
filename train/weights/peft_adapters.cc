#include "train/weights/peft_adapters.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/parse_json.h"
#include "nn/adapters/lora.h"
#include "nn/models/gpt2.h"
#include "train/weights/file_digests.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What PEFT puts before the names of a model that it wraps.
constexpr std::string_view kWrapped = "base_model.model.";

nlohmann::json read_description(const fs::path& path) {
  try {
    json config = parse_json(read_whole_file(path, kMostJsonBytes));
    LS_CHECK(config.is_object(), CheckpointError, "[adapter] {}: expected a JSON object.",
             path.string());
    return config;
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("[adapter] {}: {}", path.string(), error.what()));
  }
}

bool is_empty(const json& value) {
  return value.is_null() || value == false ||
         ((value.is_object() || value.is_array()) && value.empty());
}

/// Settings that change what an adapter computes, beside rank and alpha, with the values that do
/// not.
void check_kind(const json& config, const fs::path& path) {
  const auto refuse = [&](const char* name, const char* expected) {
    throw CheckpointError(fmt::format(
        "[adapter] {}: \"{}\" is {}, which is not supported: expected {}. Merge the adapters with "
        "PEFT (merge_and_unload), and begin with the whole model.",
        path.string(), name, config.at(name).dump(), expected));
  };
  if (config.value("peft_type", json("LORA")) != "LORA") refuse("peft_type", "\"LORA\"");
  if (config.value("bias", json("none")) != "none") refuse("bias", "\"none\"");
  for (const char* name : {"use_dora", "lora_bias", "modules_to_save", "rank_pattern",
                           "alpha_pattern", "layer_replication", "trainable_token_indices"}) {
    if (!is_empty(config.value(name, json()))) refuse(name, "none");
  }
  // Other ways to begin subtract what they put into the adapters from the weights under them.
  const json begin = config.value("init_lora_weights", json(true));
  if (!begin.is_boolean() && begin != "gaussian")
    refuse("init_lora_weights", "true or \"gaussian\"");
}

/// The path in `model` as PEFT has it in its files.
std::string file_name_of(const nn::Module& model, std::string_view path) {
  const bool is_gpt2 = dynamic_cast<const nn::Gpt2*>(&model) != nullptr;
  return (is_gpt2 ? "transformer." : "") + std::string(path);
}

Tensor tensor_of(const TensorRecord& record) {
  Tensor tensor = empty_tensor(record.shape, record.dtype);
  std::ranges::copy(record.bytes, static_cast<std::byte*>(tensor.data()));
  return tensor;
}

}  // namespace

PeftAdapters::PeftAdapters(const fs::path& folder) : path_(folder.string()) {
  const fs::path described = folder / "adapter_config.json";
  check_file(described);
  const json config = read_description(described);
  check_kind(config, described);
  try {
    rank_ = config.at("r").get<int64_t>();
    alpha_ = config.at("lora_alpha").get<double>();
  } catch (const json::exception& error) {
    throw CheckpointError(fmt::format("[adapter] {}: expected the numbers r and lora_alpha ({}).",
                                      described.string(), error.what()));
  }
  constexpr int64_t kMostRank = 65536;  // as in a config
  LS_CHECK(rank_ > 0 && rank_ <= kMostRank && std::isfinite(alpha_) && alpha_ > 0, CheckpointError,
           "[adapter] {}: expected r from 1 to {} and lora_alpha above 0, got {} and {}.",
           described.string(), kMostRank, rank_, alpha_);
  // Stabilised by rank (Kalajdzievski 2023): alpha / sqrt(rank) instead of alpha / rank.
  if (config.value("use_rslora", json(false)) == true)
    alpha_ *= std::sqrt(static_cast<double>(rank_));

  const fs::path tensors = folder / "adapter_model.safetensors";
  check_file(tensors);
  file_ = std::make_shared<const SafetensorsFile>(tensors);
  for (const TensorRecord& each : file_->tensors()) {
    std::string_view name = each.name;
    LS_CHECK(name.starts_with(kWrapped) && nn::is_lora_parameter(name), CheckpointError,
             "[adapter] {} holds \"{}\": expected {}LAYER.lora_A.weight and .lora_B.weight alone.",
             tensors.string(), name, kWrapped);
    const bool is_a = name.ends_with(".lora_A.weight");
    name.remove_prefix(kWrapped.size());
    name.remove_suffix(std::string_view(".lora_A.weight").size());
    Matrices& matrices = layers_[std::string(name)];
    (is_a ? matrices.a : matrices.b) = &each;
  }
  LS_CHECK(!layers_.empty(), CheckpointError, "[adapter] {} holds no tensor.", tensors.string());
  for (const auto& [name, matrices] : layers_) {
    LS_CHECK(matrices.a != nullptr && matrices.b != nullptr, CheckpointError,
             "[adapter] {}: of {} only lora_{} is there: expected lora_A and lora_B.",
             tensors.string(), name, matrices.a != nullptr ? "A" : "B");
  }
}

bool PeftAdapters::contains(const nn::Module& model, std::string_view path) const {
  return layers_.contains(file_name_of(model, path));
}

void PeftAdapters::load_into(nn::Module& model) const {
  const std::vector<const nn::Linear*> layers = nn::adapted_layers(model);
  std::vector<std::pair<Tensor, const TensorRecord*>> values;
  for (const nn::Linear* each : layers) {
    const auto found = layers_.find(file_name_of(model, each->path()));
    LS_CHECK(found != layers_.end(), CheckpointError, "[adapter] {} has no adapter of {}.", path_,
             each->path());
    values.emplace_back(each->lora()->a.weight, found->second.a);
    values.emplace_back(each->lora()->b.weight, found->second.b);
  }
  LS_CHECK(
      layers.size() == layers_.size(), CheckpointError,
      "[adapter] {}: the model has {} of the {} layers with an adapter, such as {}. The adapter "
      "belongs to another model.",
      path_, layers.size(), layers_.size(), layers_.begin()->first);
  for (const auto& [tensor, record] : values) {
    LS_CHECK(
        std::ranges::equal(tensor.sizes(), record->shape), CheckpointError,
        "[adapter] {}: {} has the shape {}: expected {}. The adapter belongs to another model.",
        path_, record->name, fmt::format("[{}]", fmt::join(record->shape, ", ")), tensor.shape());
  }
  const NoGradGuard no_grad;
  for (const auto& [tensor, record] : values) {
    const auto fill = [file = file_, from = record](const Tensor& into) {
      into.copy_(tensor_of(*from));
    };
    if (!model.fill_later(tensor, fill)) fill(tensor);
  }
}

}  // namespace lockstep::train

#include "nn/adapters/lora.h"

namespace lockstep::nn {

namespace {

/// Linear layers of `model`; the matrices of adapters are none.
std::vector<Linear*> linear_layers(Module& model) {
  std::vector<Linear*> layers;
  model.for_each([&](Module& each) {
    auto* const layer = dynamic_cast<Linear*>(&each);
    if (layer != nullptr && !is_lora_parameter(layer->path() + ".weight")) layers.push_back(layer);
  });
  return layers;
}

}  // namespace

int64_t add_lora(Module& model, const std::function<bool(std::string_view path)>& is_target,
                 const LoraOptions& options) {
  int64_t count = 0;
  for (Linear* const layer : linear_layers(model)) {
    if (!is_target(layer->path())) continue;
    layer->add_lora(options);
    ++count;
  }
  return count;
}

std::vector<const Linear*> adapted_layers(const Module& model) {
  std::vector<const Linear*> layers;
  model.for_each([&](const Module& each) {
    const auto* const layer = dynamic_cast<const Linear*>(&each);
    if (layer != nullptr && layer->lora() != nullptr) layers.push_back(layer);
  });
  return layers;
}

void merge_lora(Module& model) {
  for (Linear* const layer : linear_layers(model)) layer->merge_lora();
}

bool is_lora_parameter(std::string_view name) {
  return name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight");
}

}  // namespace lockstep::nn

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/layers.h"

/// Low-rank adapters of a whole model (LoRA, Hu et al. 2021): small matrices that are trained
/// beside the frozen weights of a model.
///
///     model.freeze();
///     add_lora(model, [](std::string_view path) { return path.ends_with("_proj"); }, {.rank = 8});
///     ...                    // train the parameters that require grad
///     merge_lora(model);     // an ordinary model again
namespace lockstep::nn {

/// Adds an adapter to every linear layer of `model` whose path `is_target` selects, in the order of
/// registration, with values drawn from the default generator. Returns their number. An adapter
/// acts in the layer's forward passes: where a model reads a layer's weight by itself, as Llama
/// that of its output layer, it has no effect.
int64_t add_lora(Module& model, const std::function<bool(std::string_view path)>& is_target,
                 const LoraOptions& options = {});

/// The layers with an adapter, in the order of registration.
std::vector<const Linear*> adapted_layers(const Module& model);

/// Adds what all adapters have learnt to the weights of their layers, and removes them. The model's
/// results stay, but for rounding.
void merge_lora(Module& model);

/// Whether `name` is that of an adapter's matrix: "h.0.mlp.c_fc.lora_A.weight".
bool is_lora_parameter(std::string_view name);

}  // namespace lockstep::nn

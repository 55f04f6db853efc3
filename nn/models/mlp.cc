#include "nn/models/mlp.h"

#include "core/check.h"
#include "core/ops/pointwise.h"

namespace lockstep::nn {

Mlp::Mlp(const MlpOptions& options) : options_(options) {
  std::vector<int64_t> widths = options.hidden_widths;
  widths.push_back(options.classes);
  int64_t in = options.inputs;
  for (const int64_t out : widths) {
    layers.push_back(std::make_unique<Linear>(in, out, true, Init{.uniform = true}));
    register_module(fmt::format("layers.{}", layers.size() - 1), *layers.back());
    in = out;
  }
}

Tensor Mlp::forward(const Tensor& inputs) {
  LS_CHECK(inputs.dim() == 2 && inputs.size(1) == options_.inputs, ShapeError,
           "[mlp] expected samples [batch, {}], got {}.", options_.inputs, inputs.shape());
  Tensor x = inputs;
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    x = layers[i]->forward(x);
    x = options_.activation == Activation::kRelu ? relu(x) : gelu(x);
  }
  return layers.back()->forward(x);
}

double Mlp::forward_flops() const {
  double flops = 0;
  for (const auto& layer : layers) flops += 2.0 * static_cast<double>(layer->weight.numel());
  return flops;
}

}  // namespace lockstep::nn

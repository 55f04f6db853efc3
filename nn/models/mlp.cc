#include "nn/models/mlp.h"

#include "core/base/check.h"
#include "core/dispatch/call_op.h"
#include "core/ops/pointwise/pointwise.h"
#include "nn/run_blocks.h"

namespace lockstep::nn {

Mlp::Mlp(const MlpOptions& options) : options_(options) {
  if (!options.activation_operator.empty()) dispatcher().find(options.activation_operator);
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
  return run_forward([this](const Tensor& samples) { return run(samples); }, inputs);
}

Tensor Mlp::run(const Tensor& inputs) {
  LS_CHECK(inputs.dim() == 2 && inputs.size(1) == options_.inputs, ShapeError,
           "[mlp] expected samples [batch, {}], got {}.", options_.inputs, inputs.shape());
  const Tensor x = run_blocks(
      layers.size() - 1, recompute(), inputs,
      [this](size_t i, const Tensor& input) { return activate(layers[i]->forward(input)); });
  return layers.back()->forward(x);
}

Tensor Mlp::activate(const Tensor& x) const {
  if (options_.activation_operator.empty()) {
    return options_.activation == Activation::kRelu ? relu(x) : gelu(x);
  }
  const Tensor y = call_op(options_.activation_operator, {x});
  LS_CHECK(same(y.sizes(), x.sizes()), ShapeError,
           "[mlp] the operator {} cannot be an activation: expected a result of its argument's "
           "shape {}, got {}.",
           options_.activation_operator, x.shape(), y.shape());
  return y;
}

double Mlp::forward_flops() const {
  double flops = 0;
  for (const auto& layer : layers) flops += 2.0 * static_cast<double>(layer->weight.numel());
  return flops;
}

}  // namespace lockstep::nn

#include "nn/layers.h"

#include <cmath>

#include "autograd/autocast.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/random/random.h"

namespace lockstep::nn {

namespace {

Tensor normal(IntList sizes, Init init) {
  return initial_values(sizes, [init](const Tensor& into) { normal_(into, 0.0, init.deviation); });
}

/// A parameter of a linear layer with `in` inputs, uniform within +-1 / sqrt(in).
Tensor uniform(IntList sizes, int64_t in) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  return initial_values(sizes, [bound](const Tensor& into) { uniform_(into, -bound, bound); });
}

/// The dtype in which products read what is computed of x.
DType dtype_of_readers(const Tensor& x) {
  const DeviceType device = x.device().type;
  const bool cast = is_autocast_enabled(device) && x.dtype() != DType::kF64;
  return cast ? autocast_dtype(device) : x.dtype();
}

}  // namespace

Init Init::branch_end(int64_t layers) {
  return {0.02 / std::sqrt(2.0 * static_cast<double>(layers))};
}

Linear::Linear(int64_t in, int64_t out, bool with_bias, Init init)
    : weight(register_parameter("weight",
                                init.uniform ? uniform({out, in}, in) : normal({out, in}, init))) {
  if (!with_bias) return;
  bias = register_parameter(
      "bias", init.uniform ? uniform({out}, in) : initial_values({out}, fill_with(0)));
}

Tensor Linear::forward(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return linear(input, weight, bias); }, x);
}

Tensor Linear::forward_onto(const Tensor& residual, const Tensor& x) const {
  return run_forward([this](const Tensor& onto,
                            const Tensor& input) { return linear_add(onto, input, weight, bias); },
                     residual, x);
}

Gelu Linear::forward_gelu(const Tensor& x) const {
  return run_forward([this](const Tensor& input) { return linear_gelu(input, weight, bias); }, x);
}

Tensor Linear::forward_of_gelu(const Gelu& x, OptionalTensor residual) const {
  return run_forward(
      [&](const Tensor& value, const Tensor& of) {
        return linear_of_gelu({value, of}, weight, bias, residual);
      },
      x.value, x.of);
}

Embedding::Embedding(int64_t count, int64_t width, Init init)
    : weight(register_parameter("weight", normal({count, width}, init))) {}

Tensor Embedding::forward(const Tensor& ids) const {
  return run_forward([this](const Tensor& input) { return embedding(weight, input); }, ids);
}

LayerNorm::LayerNorm(int64_t width, double epsilon)
    : weight(register_parameter("weight", initial_values({width}, fill_with(1)))),
      bias(register_parameter("bias", initial_values({width}, fill_with(0)))),
      epsilon_(epsilon) {}

Tensor LayerNorm::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        return layer_norm_of_stream(input, weight.sizes(), weight, bias, epsilon_,
                                    dtype_of_readers(input));
      },
      x);
}

NormedSum LayerNorm::forward_onto(const Tensor& residual, const Tensor& branch) const {
  return run_forward(
      [this](const Tensor& stream, const Tensor& added) {
        return layer_norm_of_sum(stream, added, weight.sizes(), weight, bias, epsilon_,
                                 dtype_of_readers(stream));
      },
      residual, branch);
}

RMSNorm::RMSNorm(int64_t width, double epsilon)
    : weight(register_parameter("weight", initial_values({width}, fill_with(1)))),
      epsilon_(epsilon) {}

Tensor RMSNorm::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        return rms_norm_of_stream(input, weight.sizes(), weight, epsilon_, dtype_of_readers(input));
      },
      x);
}

NormedSum RMSNorm::forward_onto(const Tensor& residual, const Tensor& branch) const {
  return run_forward(
      [this](const Tensor& stream, const Tensor& added) {
        return rms_norm_of_sum(stream, added, weight.sizes(), weight, epsilon_,
                               dtype_of_readers(stream));
      },
      residual, branch);
}

}  // namespace lockstep::nn

#include "nn/layers.h"

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/embedding_bag.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/linalg.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"

namespace lockstep::nn {

namespace {

/// Bound of PyTorch's default for a parameter of a linear layer with `in` inputs.
double linear_bound(int64_t in) { return in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0; }

FillValues values_of(const Init& init, int64_t in) {
  if (init.zeros) return fill_with(0);
  return init.uniform ? fill_uniform(linear_bound(in)) : fill_normal(init.deviation);
}

/// Normal with variance 1, and zeros in the row of the padding, if any (not -1).
FillValues embedding_values(int64_t padding_idx) {
  return [padding_idx](const Tensor& into) {
    normal_(into, 0.0, 1.0);
    // Of deferred values, random numbers are counted with a tensor of another shape.
    if (padding_idx >= 0 && into.dim() == 2) into.select(0, padding_idx).zero_();
  };
}

/// The row of the padding, -1 if there is none.
int64_t padding_row(std::optional<int64_t> padding_idx, int64_t count) {
  if (!padding_idx) return -1;
  LS_CHECK(*padding_idx >= -count && *padding_idx < count, IndexError,
           "[embedding] padding_idx is out of range: expected a row of {}, got {}.", count,
           *padding_idx);
  return *padding_idx < 0 ? *padding_idx + count : *padding_idx;
}

/// The dtype in which products read what is computed of x.
DType dtype_of_readers(const Tensor& x) {
  const DeviceType device = x.device().type;
  const bool cast = is_autocast_enabled(device) && x.dtype() != DType::kF64;
  return cast ? autocast_dtype(device) : x.dtype();
}

double machine_epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace

Init Init::branch_end(int64_t layers) {
  return {0.02 / std::sqrt(2.0 * static_cast<double>(layers))};
}

Linear::Linear(int64_t in, int64_t out, LinearOptions options)
    : weight(
          register_parameter("weight", initial_values({out, in}, fill_uniform(linear_bound(in))))) {
  if (!options.bias) return;
  bias = register_parameter(
      "bias",
      initial_values({out}, options.zero_bias ? fill_with(0) : fill_uniform(linear_bound(in))));
}

Linear::Linear(int64_t in, int64_t out, bool with_bias, Init init)
    : weight(register_parameter("weight", initial_values({out, in}, values_of(init, in)))) {
  if (!with_bias) return;
  bias = register_parameter(
      "bias", initial_values({out}, init.uniform ? fill_uniform(linear_bound(in)) : fill_with(0)));
}

Linear::Linear(Linear&&) noexcept = default;
Linear::~Linear() = default;

Tensor Linear::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        return lora_ ? linear_add(lora_->forward(input), input, weight, bias)
                     : linear(input, weight, bias);
      },
      x);
}

Tensor Linear::forward_onto(const Tensor& residual, const Tensor& x) const {
  return run_forward(
      [this](const Tensor& onto, const Tensor& input) {
        return linear_add(lora_ ? onto + lora_->forward(input) : onto, input, weight, bias);
      },
      residual, x);
}

Gelu Linear::forward_gelu(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        if (!lora_) return linear_gelu(input, weight, bias);
        const Tensor of = linear_add(lora_->forward(input), input, weight, bias);
        return Gelu{gelu(of, "tanh"), of};
      },
      x);
}

Tensor Linear::forward_of_gelu(const Gelu& x, OptionalTensor residual) const {
  return run_forward(
      [&](const Tensor& value, const Tensor& of) {
        if (!lora_) return linear_of_gelu({value, of}, weight, bias, residual);
        const Tensor change = lora_->forward(value);
        return linear_of_gelu({value, of}, weight, bias, residual ? *residual + change : change);
      },
      x.value, x.of);
}

void Linear::add_lora(const LoraOptions& options) {
  LS_CHECK(!lora_, Error, "[lora] layer \"{}\" has an adapter already: expected one without.",
           path());
  LS_CHECK(options.rank > 0 && options.dropout >= 0 && options.dropout < 1, Error,
           "[lora] layer \"{}\": expected a rank above 0 and a dropout in [0, 1), got {} and {}.",
           path(), options.rank, options.dropout);
  const DefaultDeviceGuard with_the_weight(weight.device());
  lora_ = std::make_unique<LoraAdapter>(weight.size(1), weight.size(0), options);
  for (Linear* const each : {&lora_->a, &lora_->b}) {
    if (weight.dtype() != DType::kF32) each->to(weight.dtype());
    each->train(is_training());
  }
  register_module("lora_A", lora_->a);
  register_module("lora_B", lora_->b);
}

void Linear::merge_lora() {
  if (!lora_) return;
  const NoGradGuard no_grad;
  weight.copy_(merged_weight(weight, lora_->a.weight, lora_->b.weight, lora_->scale));
  lora_.reset();
}

Tensor merged_weight(const Tensor& weight, const Tensor& a, const Tensor& b, double scale) {
  return weight + mm(b, a) * scale;
}

LoraAdapter::LoraAdapter(int64_t in, int64_t out, const LoraOptions& options)
    : options(options),
      scale(options.alpha / static_cast<double>(options.rank)),
      a(in, options.rank, false, Init{.uniform = true}),
      b(options.rank, out, false, Init{.zeros = true}) {}

Tensor LoraAdapter::forward(const Tensor& x) const {
  const bool drops = options.dropout > 0 && a.is_training();
  return b.forward(a.forward(drops ? dropout(x, options.dropout, true) : x) * scale);
}

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, LinearOptions options)
    : weight(register_parameter("weight",
                                initial_values({out, in1, in2}, fill_uniform(linear_bound(in1))))) {
  if (!options.bias) return;
  bias = register_parameter("bias", initial_values({out}, fill_uniform(linear_bound(in1))));
}

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) const {
  return run_forward(
      [this](const Tensor& left, const Tensor& right) {
        const Tensor product = einsum("...i,oij,...j->...o", {left, weight, right});
        return bias.defined() ? product + bias : product;
      },
      x1, x2);
}

Embedding::Embedding(int64_t count, int64_t width, Init init)
    : weight(register_parameter("weight",
                                initial_values({count, width}, fill_normal(init.deviation)))) {}

Embedding::Embedding(int64_t count, int64_t width, EmbeddingOptions options)
    : Embedding(
          initial_values({count, width}, embedding_values(padding_row(options.padding_idx, count))),
          options) {}

Embedding::Embedding(Tensor values, EmbeddingOptions options)
    : weight(register_parameter("weight", std::move(values))),
      padding_idx_(padding_row(options.padding_idx, weight.size(0))),
      scale_grad_by_freq_(options.scale_grad_by_freq) {}

Embedding Embedding::from_pretrained(Tensor weight, bool freeze, EmbeddingOptions options) {
  LS_CHECK(weight.dim() == 2, ShapeError, "[embedding] expected a matrix, got {}.", weight.shape());
  Embedding made(std::move(weight), options);
  if (freeze) made.freeze();
  return made;
}

Tensor Embedding::forward(const Tensor& ids) const {
  return run_forward(
      [this](const Tensor& input) {
        return embedding(weight, input, padding_idx_, scale_grad_by_freq_);
      },
      ids);
}

EmbeddingBag::EmbeddingBag(int64_t count, int64_t width, EmbeddingBagOptions options)
    : weight(register_parameter(
          "weight", initial_values({count, width},
                                   embedding_values(padding_row(options.padding_idx, count))))),
      options_(options) {
  if (options.padding_idx) options_.padding_idx = padding_row(options.padding_idx, count);
}

Tensor EmbeddingBag::forward(const Tensor& ids, OptionalTensor offsets,
                             OptionalTensor per_sample_weights) const {
  LS_CHECK(offsets ? ids.dim() == 1 : ids.dim() == 2, ShapeError,
           "[embedding_bag] expected ids of two dimensions, or of one with offsets, got {} {} "
           "offsets.",
           ids.shape(), offsets ? "with" : "without");
  return run_forward(
      [&](const Tensor& input) {
        const Tensor starts = offsets
                                  ? *offsets
                                  : arange(0, input.numel(), std::max<int64_t>(input.size(1), 1),
                                           {DType::kI64, input.device()});
        const Tensor scales = per_sample_weights ? per_sample_weights->flatten() : Tensor();
        return std::get<0>(embedding_bag(
            weight, input.flatten(), starts, options_.scale_grad_by_freq,
            static_cast<int64_t>(options_.mode), false, scales,
            options_.include_last_offset && offsets, options_.padding_idx.value_or(-1)));
      },
      ids);
}

LayerNorm::LayerNorm(int64_t width, double epsilon)
    : LayerNorm(width, LayerNormOptions{.eps = epsilon}) {}
LayerNorm::LayerNorm(int64_t width, LayerNormOptions options)
    : LayerNorm(IntList({width}), options) {}
LayerNorm::LayerNorm(std::initializer_list<int64_t> shape, LayerNormOptions options)
    : LayerNorm(IntList(shape), options) {}

LayerNorm::LayerNorm(IntList shape, LayerNormOptions options)
    : shape_(to_dims(shape)), epsilon_(options.eps) {
  if (!options.elementwise_affine) return;
  weight = register_parameter("weight", initial_values(shape, fill_with(1)));
  if (options.bias) bias = register_parameter("bias", initial_values(shape, fill_with(0)));
}

Tensor LayerNorm::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        return layer_norm_of_stream(input, shape_, weight, bias, epsilon_, dtype_of_readers(input));
      },
      x);
}

NormedSum LayerNorm::forward_onto(const Tensor& residual, const Tensor& branch) const {
  return run_forward(
      [this](const Tensor& stream, const Tensor& added) {
        return layer_norm_of_sum(stream, added, shape_, weight, bias, epsilon_,
                                 dtype_of_readers(stream));
      },
      residual, branch);
}

RMSNorm::RMSNorm(int64_t width, double epsilon) : RMSNorm(width, RMSNormOptions{.eps = epsilon}) {}
RMSNorm::RMSNorm(int64_t width, RMSNormOptions options) : RMSNorm(IntList({width}), options) {}
RMSNorm::RMSNorm(std::initializer_list<int64_t> shape, RMSNormOptions options)
    : RMSNorm(IntList(shape), options) {}

RMSNorm::RMSNorm(IntList shape, RMSNormOptions options)
    : shape_(to_dims(shape)), epsilon_(options.eps) {
  if (!options.elementwise_affine) return;
  weight = register_parameter("weight", initial_values(shape, fill_with(1)));
}

Tensor RMSNorm::forward(const Tensor& x) const {
  return run_forward(
      [this](const Tensor& input) {
        return rms_norm_of_stream(input, shape_, weight,
                                  epsilon_.value_or(machine_epsilon(input.dtype())),
                                  dtype_of_readers(input));
      },
      x);
}

NormedSum RMSNorm::forward_onto(const Tensor& residual, const Tensor& branch) const {
  return run_forward(
      [this](const Tensor& stream, const Tensor& added) {
        return rms_norm_of_sum(stream, added, shape_, weight,
                               epsilon_.value_or(machine_epsilon(stream.dtype())),
                               dtype_of_readers(stream));
      },
      residual, branch);
}

}  // namespace lockstep::nn

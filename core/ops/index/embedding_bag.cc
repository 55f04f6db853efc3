#include "core/ops/index/embedding_bag.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/embedding_bag_rules.h"
#include "core/ops/index/index.h"
#include "core/ops/index/index_checks.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"

namespace lockstep {

namespace rules {

Outputs embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                      int64_t mode, bool, OptionalTensor weights, bool include_last_offset,
                      int64_t padding_idx) {
  constexpr std::string_view kOp = "_embedding_bag";
  check_index(kOp, indices);
  check_index(kOp, offsets);
  LS_CHECK(weight.dim() == 2 && is_floating(weight.dtype()), ShapeError,
           "[{}] the weight must be a floating matrix [rows, width], got {}.", kOp,
           to_string(weight));
  LS_CHECK(indices.dim() == 1 && offsets.dim() == 1, ShapeError,
           "[{}] expected indices and offsets of one dimension, got shapes {} and {}.", kOp,
           indices.shape(), offsets.shape());
  LS_CHECK(mode >= 0 && mode <= 2, Error, "[{}] mode is 0 sum, 1 mean or 2 max, got {}.", kOp,
           mode);
  const BagMode bag_mode = static_cast<BagMode>(mode);
  if (weights) {
    LS_CHECK(bag_mode == BagMode::kSum, Error,
             "[{}] per_sample_weights are for mode 0 (sum), got mode {}.", kOp, mode);
    check_same_dtype(kOp, weight, *weights);
    LS_CHECK(same(weights->sizes(), indices.sizes()), ShapeError,
             "[{}] expected a weight for each index: shape {}, got {}.", kOp, indices.shape(),
             weights->shape());
  }
  const int64_t rows = weight.size(0), width = weight.size(1);
  LS_CHECK(padding_idx < rows, IndexError,
           "[{}] padding_idx must be a row of the weight's {}, or negative for none, got {}.", kOp,
           rows, padding_idx);
  const int64_t bags = offsets.numel() - (include_last_offset ? 1 : 0);
  LS_CHECK(bags >= 0, ShapeError, "[{}] include_last_offset needs at least one offset, got none.",
           kOp);
  Outputs outputs = one({bags, width}, weight.dtype());
  const DType index_type = promote(indices.dtype(), offsets.dtype());
  const auto add = [&](Dims sizes) {
    OutputSpec& spec = outputs.specs.emplace_back();
    spec.sizes = std::move(sizes);
    spec.dtype = index_type;
  };
  add(to_dims(indices.sizes()));
  add({bags});
  add(bag_mode == BagMode::kMax ? Dims{bags, width} : Dims{bags});
  return outputs;
}

}  // namespace rules

namespace {

/// Computes one derivative of _embedding_bag.
struct BagBackward {
  const VjpContext& ctx;
  const Tensor& weight = ctx.saved(0);
  const Tensor& indices = ctx.saved(1);
  const Tensor& sample_weights = ctx.saved(2);
  const Tensor& bags = ctx.saved(3);
  const Tensor& bag_sizes = ctx.saved(4);
  const Tensor& chosen = ctx.saved(5);
  int64_t padding_idx = std::max<int64_t>(ctx.argument<int64_t>(8), -1);

  Tensor of_weight(const Tensor& grad) const {
    const auto mode = static_cast<BagMode>(ctx.argument<int64_t>(4));
    const int64_t rows = ctx.sizes(0)[0];
    if (mode == BagMode::kMax) {
      LS_CHECK(
          !ctx.argument<bool>(3), AutogradError,
          "[_embedding_bag] the gradient of max cannot be scaled by frequency. Use sum or mean.");
      const Tensor used = masked_fill(grad, eq(bag_sizes, 0).unsqueeze(-1), 0);
      return scatter_add(zeros(ctx.sizes(0), grad.options()), 0, chosen, used);
    }
    Tensor each = index_select(grad, 0, bags);
    if (mode == BagMode::kMean) {
      const Tensor size = index_select(bag_sizes, 0, bags).unsqueeze(-1).to(grad.dtype());
      each = each / masked_fill(size, eq(size, 0), 1);
    }
    if (sample_weights.defined()) each = each * sample_weights.unsqueeze(-1);
    return embedding_gradient(each, indices, rows, padding_idx, ctx.argument<bool>(3));
  }

  Tensor of_sample_weights(const Tensor& grad) const {
    const Tensor each = index_select(grad, 0, bags) * index_select(weight, 0, indices);
    const Tensor sums = each.sum({1});
    return padding_idx < 0 ? sums : masked_fill(sums, eq(indices, padding_idx), 0);
  }
};

}  // namespace

using FourTensors = std::tuple<Tensor, Tensor, Tensor, Tensor>;
LS_OP(
    embedding_bag,
    FourTensors(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool, OptionalTensor,
                bool, int64_t),
    "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
    "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
    "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)")
    .doc("Sums, means or maxima of the rows of each bag.")
    .structured(rules::embedding_bag)
    .saves({"weight for per_sample_weights", "indices", "per_sample_weights for weight", "output1",
            "output2", "output3"})
    .differentiable_outputs(1)
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      LS_CHECK(!ctx.argument<bool>(5), AutogradError,
               "[_embedding_bag] sparse gradients are not supported. Pass sparse=false.");
      const BagBackward backward{ctx};
      return ctx.gradients([&] { return backward.of_weight(grad); }, [] { return Tensor(); },
                           [] { return Tensor(); },
                           [&] { return backward.of_sample_weights(grad); });
    });
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, OptionalTensor per_sample_weights, bool include_last_offset,
    int64_t padding_idx) {
  return op_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                          per_sample_weights, include_last_offset, padding_idx);
}

LS_OP(embedding_bag_out,
      FourTensors(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool, OptionalTensor,
                  bool, int64_t, const Tensor&, const Tensor&, const Tensor&, const Tensor&),
      "_embedding_bag.out(Tensor weight, Tensor indices, Tensor offsets, bool "
      "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
      "bool include_last_offset=False, int padding_idx=-1, *, Tensor(a!) out0, Tensor(b!) out1, "
      "Tensor(c!) out2, Tensor(d!) out3) -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!))")
    .doc("_embedding_bag, written into four tensors.")
    .composite([](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                  bool scale_grad_by_freq, int64_t mode, bool sparse,
                  OptionalTensor per_sample_weights, bool include_last_offset, int64_t padding_idx,
                  const Tensor& out0, const Tensor& out1, const Tensor& out2, const Tensor& out3) {
      const auto [result, bags, bag_sizes, chosen] =
          embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                        per_sample_weights, include_last_offset, padding_idx);
      return FourTensors(clone_out(out0, result), clone_out(out1, bags), clone_out(out2, bag_sizes),
                         clone_out(out3, chosen));
    });

LS_OP(embedding_bag_public,
      FourTensors(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool, OptionalTensor,
                  bool),
      "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
      "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
      "include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)")
    .doc("_embedding_bag without padding.")
    .composite([](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                  bool scale_grad_by_freq, int64_t mode, bool sparse,
                  OptionalTensor per_sample_weights, bool include_last_offset) {
      return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                           per_sample_weights, include_last_offset, -1);
    });
LS_OP(embedding_bag_padded,
      FourTensors(const Tensor&, const Tensor&, const Tensor&, bool, int64_t, bool, OptionalTensor,
                  bool, std::optional<int64_t>),
      "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
      "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
      "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)")
    .doc("_embedding_bag; a negative padding_idx counts from the last row.")
    .composite([](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                  bool scale_grad_by_freq, int64_t mode, bool sparse,
                  OptionalTensor per_sample_weights, bool include_last_offset,
                  std::optional<int64_t> padding_idx) {
      int64_t padding = -1;
      if (padding_idx) {
        const int64_t rows = weight.size(0);
        LS_CHECK(*padding_idx >= -rows && *padding_idx < rows, IndexError,
                 "[embedding_bag] padding_idx out of range: expected one in [{}, {}), got {}.",
                 -rows, rows, *padding_idx);
        padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
      }
      return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                           per_sample_weights, include_last_offset, padding);
    });

}  // namespace lockstep

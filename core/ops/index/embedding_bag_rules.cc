#include "core/ops/index/embedding_bag_rules.h"

#include "core/base/check.h"
#include "core/ops/index/index_checks.h"

namespace lockstep::rules {

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

}  // namespace lockstep::rules

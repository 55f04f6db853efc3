#include "core/ops/image/pad_rules.h"

#include "core/base/check.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

namespace {

enum class Border { kReflect, kReplicate };

/// Sizes of self padded in its last `rank` dimensions.
Dims padded_sizes(std::string_view op, const Tensor& self, IntList padding, int rank,
                  Border border) {
  LS_CHECK(static_cast<int>(padding.size()) == 2 * rank, ShapeError,
           "[{}] expected two numbers for each of {} dimensions, got {}.", op, rank,
           to_string(padding));
  LS_CHECK(self.dtype() != DType::kBool, DTypeError,
           "[{}] bools have no borders to continue. Cast them with to(dtype).", op);
  bool fits = self.dim() == rank + 1 || self.dim() == rank + 2;
  // Only the batch may have size 0.
  for (int64_t i = 1; fits && i <= self.dim() && i <= rank + 1; ++i) fits = self.size(-i) > 0;
  LS_CHECK(fits, ShapeError,
           "[{}] expected channels and {} more dimensions, none of them of size 0, with or without "
           "a batch in front; got shape {}.",
           op, rank, self.shape());
  Dims sizes = to_dims(self.sizes());
  for (int i = 0; i < rank; ++i) {
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    int64_t& size = sizes[sizes.size() - 1 - static_cast<size_t>(i)];
    LS_CHECK(border != Border::kReflect || (before < size && after < size), ShapeError,
             "[{}] a mirrored border is smaller than its dimension: expected less than {} for {}, "
             "got {}.",
             op, size, self.shape(), to_string(padding));
    LS_CHECK(size + before + after >= 1, ShapeError,
             "[{}] nothing is left of shape {} after padding by {}.", op, self.shape(),
             to_string(padding));
    size += before + after;
  }
  return sizes;
}

Outputs padded(std::string_view op, const Tensor& self, IntList padding, int rank, Border border) {
  Outputs outputs = one(padded_sizes(op, self, padding, rank, border), self.dtype());
  keep_format(outputs.specs[0], self);
  return outputs;
}

Outputs unpadded(std::string_view op, const Tensor& grad, const Tensor& self, IntList padding,
                 int rank, Border border) {
  const Dims sizes = padded_sizes(op, self, padding, rank, border);
  LS_CHECK(same(grad.sizes(), sizes), ShapeError,
           "[{}] the gradient does not fit: expected shape {}, got {}.", op, to_string(sizes),
           grad.shape());
  LS_CHECK(is_floating(grad.dtype()), DTypeError, "[{}] expected a floating gradient, got {}.", op,
           to_string(grad.dtype()));
  Outputs outputs = one(self.sizes(), grad.dtype());
  keep_format(outputs.specs[0], self);
  return outputs;
}

std::string named(std::string_view name, int rank, std::string_view suffix = "") {
  return fmt::format("{}{}d{}", name, rank, suffix);
}

}  // namespace

Outputs constant_pad_nd(const Tensor& self, IntList pad, Scalar) {
  LS_CHECK(pad.size() % 2 == 0, ShapeError, "[constant_pad_nd] expected pairs of numbers, got {}.",
           to_string(pad));
  LS_CHECK(static_cast<int64_t>(pad.size()) <= 2 * self.dim(), ShapeError,
           "[constant_pad_nd] expected at most one pair for each dimension of {}, got {}.",
           self.shape(), to_string(pad));
  Dims sizes = to_dims(self.sizes());
  bool cuts_only = true;  // crops only: a slice, which ATen clones
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    cuts_only = cuts_only && pad[2 * i] <= 0 && pad[2 * i + 1] <= 0;
    int64_t& size = sizes[sizes.size() - 1 - i];
    size += pad[2 * i] + pad[2 * i + 1];
    LS_CHECK(size >= 0, ShapeError,
             "[constant_pad_nd] padding shape {} by {} leaves a negative size.", self.shape(),
             to_string(pad));
  }
  Outputs outputs = one(std::move(sizes), self.dtype());
  if (cuts_only && !self.is_contiguous()) {
    outputs.specs[0].strides =
        strides_in_format("", MemoryFormat::kPreserve, outputs.specs[0].sizes, self.strides());
  } else {
    keep_format(outputs.specs[0], self);
  }
  return outputs;
}

template <int kRank>
Outputs reflection_pad(const Tensor& self, IntList padding) {
  return padded(named("reflection_pad", kRank), self, padding, kRank, Border::kReflect);
}
template <int kRank>
Outputs reflection_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return unpadded(named("reflection_pad", kRank, "_backward"), grad_output, self, padding, kRank,
                  Border::kReflect);
}
template <int kRank>
Outputs replication_pad(const Tensor& self, IntList padding) {
  return padded(named("replication_pad", kRank), self, padding, kRank, Border::kReplicate);
}
template <int kRank>
Outputs replication_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  return unpadded(named("replication_pad", kRank, "_backward"), grad_output, self, padding, kRank,
                  Border::kReplicate);
}

template Outputs reflection_pad<1>(const Tensor&, IntList);
template Outputs reflection_pad<2>(const Tensor&, IntList);
template Outputs reflection_pad<3>(const Tensor&, IntList);
template Outputs reflection_pad_backward<1>(const Tensor&, const Tensor&, IntList);
template Outputs reflection_pad_backward<2>(const Tensor&, const Tensor&, IntList);
template Outputs reflection_pad_backward<3>(const Tensor&, const Tensor&, IntList);
template Outputs replication_pad<1>(const Tensor&, IntList);
template Outputs replication_pad<2>(const Tensor&, IntList);
template Outputs replication_pad<3>(const Tensor&, IntList);
template Outputs replication_pad_backward<1>(const Tensor&, const Tensor&, IntList);
template Outputs replication_pad_backward<2>(const Tensor&, const Tensor&, IntList);
template Outputs replication_pad_backward<3>(const Tensor&, const Tensor&, IntList);

}  // namespace lockstep::rules

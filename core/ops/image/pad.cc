#include "core/ops/image/pad.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/dispatch/op.h"
#include "core/ops/batching.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/batching_indexing.h"
#include "core/ops/view/kept_layout.h"
#include "core/ops/view/shape.h"
#include "core/tensor/number_range.h"
#include "core/tensor/outputs.h"

namespace lockstep {

namespace rules {
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
    const int64_t padded = (CheckedInt(op, size) + before + after).value();
    LS_CHECK(padded >= 1 && before >= -size && after >= -size, ShapeError,
             "[{}] nothing is left of shape {} after padding by {}.", op, self.shape(),
             to_string(padding));
    size = padded;
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

Outputs constant_pad_nd(const Tensor& self, IntList pad, Scalar value) {
  check_holds("constant_pad_nd", "value", self.dtype(), value);
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
    size = (CheckedInt("constant_pad_nd", size) + pad[2 * i] + pad[2 * i + 1]).value();
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

}  // namespace
}  // namespace rules

namespace {

using PadBackward = Tensor (*)(const Tensor&, const Tensor&, IntList);
using Pad = Tensor (*)(const Tensor&, IntList);

template <PadBackward kBackward>
Gradients padding_vjp(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] { return kBackward(grad, ctx.saved(0), ctx.argument<IntList>(1)); });
}

/// Derivative of a padding's backward, which is linear in the gradient and reads only self's shape.
template <Pad kPad>
Gradients padding_backward_vjp(VjpContext& ctx, const Tensor& grad) {
  return ctx.gradients([&] { return kPad(grad, ctx.argument<IntList>(2)); },
                       [] { return Tensor(); });
}

[[noreturn]] void refuse(std::string_view op, IntList padding) {
  throw ShapeError(fmt::format("[{}] expected one, two or three pairs of numbers, got {}.", op,
                               to_string(padding)));
}

/// Circular padding: extends the last dimensions of self with elements from their other ends.
Tensor around(const Tensor& self, IntList padding) {
  Tensor result = self;
  for (size_t i = 0; i < padding.size() / 2; ++i) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(i);
    const int64_t size = result.size(dim);
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    // Neither may cut off more than there is.
    LS_CHECK(before <= size && after <= size && before >= -size && after >= -size &&
                 before + after + size >= 0,
             ShapeError,
             "[pad] circular padding goes around once at most: expected numbers up to {} for "
             "dimension {} of {}, got {} and {}.",
             size, dim, self.shape(), before, after);
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(result.slice(dim, size - before, size));
    parts.push_back(
        result.slice(dim, std::max<int64_t>(-before, 0), size + std::min<int64_t>(after, 0)));
    if (after > 0) parts.push_back(result.slice(dim, 0, after));
    result = cat(parts, dim);
  }
  return result;
}

}  // namespace

LS_OP(constant_pad_nd, Tensor(const Tensor&, IntList, Scalar),
      "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
    .doc("Pads self with a number, or crops it where pad is negative.")
    .structured(rules::constant_pad_nd)
    .batching(batching::constant_pad)
    .out()
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      return ctx.gradients([&] {
        Dims opposite = to_dims(ctx.argument<IntList>(1));
        for (int64_t& count : opposite) {
          count = (CheckedInt("constant_pad_nd", 0) - count).value();
        }
        return constant_pad_nd(grad, opposite);
      });
    });
Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value) {
  return op_constant_pad_nd(self, pad, value);
}

Tensor zero_extend(const Tensor& self, IntList sizes) {
  if (same(self.sizes(), sizes)) return self;
  if (self.numel() == 0) return zeros(sizes, self.options());
  // A 0-d tensor counts as one element along one dimension.
  if (sizes.empty()) return self.reshape({});
  if (self.dim() == 0) return zero_extend(self.reshape({1}), sizes);
  Dims pad;
  for (size_t i = sizes.size(); i-- > 0;) {
    pad.push_back(0);
    pad.push_back(sizes[i] - self.sizes()[i]);
  }
  return constant_pad_nd(self, pad);
}

LS_OP(reflection_pad1d, Tensor(const Tensor&, IntList),
      "reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
    .doc("Pads the last dimension with self mirrored at its borders.")
    .structured(rules::reflection_pad<1>)
    .batching(batching::images_1d)
    .out()
    .saves({"self"})
    .derivative(padding_vjp<reflection_pad_backward>);
LS_OP(reflection_pad1d_backward, Tensor(const Tensor&, const Tensor&, IntList),
      "reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor")
    .doc("The derivative of reflection_pad1d.")
    .structured(rules::reflection_pad_backward<1>)
    .batching(batching::images_1d)
    .out("grad_input")
    .derivative(padding_backward_vjp<reflection_pad>);

LS_OP(reflection_pad2d, Tensor(const Tensor&, IntList),
      "reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
    .doc("Pads the last two dimensions with self mirrored at its borders.")
    .structured(rules::reflection_pad<2>)
    .batching(batching::images_2d)
    .out()
    .saves({"self"})
    .derivative(padding_vjp<reflection_pad_backward>);
LS_OP(reflection_pad2d_backward, Tensor(const Tensor&, const Tensor&, IntList),
      "reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
    .doc("The derivative of reflection_pad2d.")
    .structured(rules::reflection_pad_backward<2>)
    .batching(batching::images_2d)
    .out("grad_input")
    .derivative(padding_backward_vjp<reflection_pad>);

LS_OP(reflection_pad3d, Tensor(const Tensor&, IntList),
      "reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
    .doc("Pads the last three dimensions with self mirrored at its borders.")
    .structured(rules::reflection_pad<3>)
    .batching(batching::images_3d)
    .out()
    .saves({"self"})
    .derivative(padding_vjp<reflection_pad_backward>);
LS_OP(reflection_pad3d_backward, Tensor(const Tensor&, const Tensor&, IntList),
      "reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor")
    .doc("The derivative of reflection_pad3d.")
    .structured(rules::reflection_pad_backward<3>)
    .batching(batching::images_3d)
    .out("grad_input")
    .derivative(padding_backward_vjp<reflection_pad>);

Tensor reflection_pad(const Tensor& self, IntList padding) {
  if (padding.size() == 2) return op_reflection_pad1d(self, padding);
  if (padding.size() == 4) return op_reflection_pad2d(self, padding);
  if (padding.size() == 6) return op_reflection_pad3d(self, padding);
  refuse("reflection_pad", padding);
}
Tensor reflection_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  if (padding.size() == 2) return op_reflection_pad1d_backward(grad_output, self, padding);
  if (padding.size() == 4) return op_reflection_pad2d_backward(grad_output, self, padding);
  if (padding.size() == 6) return op_reflection_pad3d_backward(grad_output, self, padding);
  refuse("reflection_pad_backward", padding);
}

LS_OP(replication_pad1d, Tensor(const Tensor&, IntList),
      "replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor")
    .doc("Pads the last dimension by repeating the border elements.")
    .structured(rules::replication_pad<1>)
    .batching(batching::images_1d)
    .out()
    .saves({"self"})
    .derivative(padding_vjp<replication_pad_backward>);
LS_OP(replication_pad1d_backward, Tensor(const Tensor&, const Tensor&, IntList),
      "replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor")
    .doc("The derivative of replication_pad1d.")
    .structured(rules::replication_pad_backward<1>)
    .batching(batching::images_1d)
    .out("grad_input")
    .derivative(padding_backward_vjp<replication_pad>);

LS_OP(replication_pad2d, Tensor(const Tensor&, IntList),
      "replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor")
    .doc("Pads the last two dimensions by repeating the border elements.")
    .structured(rules::replication_pad<2>)
    .batching(batching::images_2d)
    .out()
    .saves({"self"})
    .derivative(padding_vjp<replication_pad_backward>);
LS_OP(replication_pad2d_backward, Tensor(const Tensor&, const Tensor&, IntList),
      "replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor")
    .doc("The derivative of replication_pad2d.")
    .structured(rules::replication_pad_backward<2>)
    .batching(batching::images_2d)
    .out("grad_input")
    .derivative(padding_backward_vjp<replication_pad>);

LS_OP(replication_pad3d, Tensor(const Tensor&, IntList),
      "replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor")
    .doc("Pads the last three dimensions by repeating the border elements.")
    .structured(rules::replication_pad<3>)
    .batching(batching::images_3d)
    .out()
    .saves({"self"})
    .derivative(padding_vjp<replication_pad_backward>);
LS_OP(replication_pad3d_backward, Tensor(const Tensor&, const Tensor&, IntList),
      "replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor")
    .doc("The derivative of replication_pad3d.")
    .structured(rules::replication_pad_backward<3>)
    .batching(batching::images_3d)
    .out("grad_input")
    .derivative(padding_backward_vjp<replication_pad>);

Tensor replication_pad(const Tensor& self, IntList padding) {
  if (padding.size() == 2) return op_replication_pad1d(self, padding);
  if (padding.size() == 4) return op_replication_pad2d(self, padding);
  if (padding.size() == 6) return op_replication_pad3d(self, padding);
  refuse("replication_pad", padding);
}
Tensor replication_pad_backward(const Tensor& grad_output, const Tensor& self, IntList padding) {
  if (padding.size() == 2) return op_replication_pad1d_backward(grad_output, self, padding);
  if (padding.size() == 4) return op_replication_pad2d_backward(grad_output, self, padding);
  if (padding.size() == 6) return op_replication_pad3d_backward(grad_output, self, padding);
  refuse("replication_pad_backward", padding);
}

LS_OP(pad, Tensor(const Tensor&, IntList, std::string_view, std::optional<double>),
      "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor")
    .doc("Pads self in mode constant, reflect, replicate or circular.")
    .composite([](const Tensor& self, IntList pad, std::string_view mode,
                  std::optional<double> value) {
      LS_CHECK(pad.size() % 2 == 0 && pad.size() / 2 <= static_cast<size_t>(self.dim()), ShapeError,
               "[pad] expected a pair of numbers for some of the last dimensions of {}, got {}.",
               self.shape(), to_string(pad));
      if (mode == "constant") return constant_pad_nd(self, pad, value.value_or(0));
      LS_CHECK(!value, Error, "[pad] mode \"{}\" takes no value.", mode);
      const size_t rank = pad.size() / 2 + 1;  // including channels, but not the optional batch
      LS_CHECK(
          static_cast<size_t>(self.dim()) == rank || static_cast<size_t>(self.dim()) == rank + 1,
          ShapeError, "[pad] mode \"{}\" cannot pad shape {} by {}.", mode, self.shape(),
          to_string(pad));
      if (mode == "reflect") return reflection_pad(self, pad);
      if (mode == "replicate") return replication_pad(self, pad);
      LS_CHECK(mode == "circular", Error,
               "[pad] expected mode constant, reflect, replicate or circular, got \"{}\".", mode);
      return around(self, pad);
    });

}  // namespace lockstep

#include "core/ops/index/advanced_index.h"

#include <bit>

#include "core/base/check.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/advanced_index_rules.h"
#include "core/ops/index/batching_indexing.h"
#include "core/ops/index/index.h"
#include "core/ops/view/kept_layout.h"
#include "core/ops/view/view.h"

namespace lockstep {

namespace rules {

namespace {

IndexPlan plan_of(std::string_view op, const Tensor& self, OptionalTensorList indices) {
  LS_CHECK(static_cast<int64_t>(indices.size()) <= self.dim(), IndexError,
           "[{}] too many indices: expected at most {} for shape {}, got {}.", op, self.dim(),
           self.shape(), indices.size());
  SmallVector<IntList, 4> lists;
  for (const Tensor& index : indices) {
    LS_CHECK(
        !index.defined() || index.dtype() == DType::kI64 || index.dtype() == DType::kI32,
        DTypeError,
        "[{}] an index must be int64, int32 or a bool mask, got {}. Cast it with to(DType::kI64).",
        op, to_string(index.dtype()));
    lists.push_back(index.defined() ? index.sizes() : IntList());
  }
  SmallVector<const IntList*, 4> shapes;
  for (size_t i = 0; i < lists.size(); ++i) {
    shapes.push_back(indices[i].defined() ? &lists[i] : nullptr);
  }
  return plan_index(op, self.sizes(), {shapes.data(), shapes.size()});
}

}  // namespace

IndexPlan plan_index(std::string_view op, IntList sizes, std::span<const IntList* const> shapes) {
  IndexPlan plan;
  for (size_t d = 0; d < shapes.size(); ++d) {
    if (shapes[d] == nullptr) continue;
    plan.index_sizes =
        plan.indexed == 0 ? to_dims(*shapes[d]) : broadcast(op, plan.index_sizes, *shapes[d]);
    plan.indexed |= uint64_t{1} << d;
  }
  const int first = plan.indexed == 0 ? 0 : std::countr_zero(plan.indexed);
  // The indexed dimensions are adjacent if their bits are one run of ones.
  const uint64_t run = plan.indexed >> first;
  const bool neighbours = (run & (run + 1)) == 0;
  plan.index_front = neighbours ? first : 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (((plan.indexed >> d) & 1) == 0) plan.result_sizes.push_back(sizes[d]);
  }
  for (size_t i = 0; i < plan.index_sizes.size(); ++i) {
    plan.result_sizes.insert(plan.index_front + static_cast<int64_t>(i), plan.index_sizes[i]);
  }
  return plan;
}

Outputs index(const Tensor& self, OptionalTensorList indices) {
  return one(plan_of("index", self, indices).result_sizes, self.dtype());
}

Outputs index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values, bool) {
  const IndexPlan plan = plan_of("index_put", self, indices);
  LS_CHECK(values.dtype() == self.dtype(), DTypeError,
           "[index_put] dtypes differ: expected values of {}, got {}. Cast them with to(dtype).",
           to_string(self.dtype()), to_string(values.dtype()));
  bool fits = values.dim() <= static_cast<int64_t>(plan.result_sizes.size());
  for (int64_t i = 1; fits && i <= values.dim(); ++i) {
    const int64_t have = values.size(-i);
    fits =
        have == 1 || have == plan.result_sizes[plan.result_sizes.size() - static_cast<size_t>(i)];
  }
  LS_CHECK(fits, ShapeError,
           "[index_put] the values do not broadcast to what is indexed: expected shape {}, got {}.",
           to_string(plan.result_sizes), values.shape());
  Outputs outputs = one(self.sizes(), self.dtype());
  keep_layout(outputs.specs[0], self);
  return outputs;
}

}  // namespace rules

namespace {

bool is_mask(const Tensor& index) {
  return index.defined() && (index.dtype() == DType::kBool || index.dtype() == DType::kU8);
}

/// The indices with each mask replaced by the coordinates at which it is true.
std::vector<Tensor> without_masks(std::string_view op, const Tensor& self,
                                  OptionalTensorList indices) {
  std::vector<Tensor> integers;
  for (const Tensor& index : indices) {
    if (!is_mask(index)) {
      integers.push_back(index);
      continue;
    }
    const int64_t first = static_cast<int64_t>(integers.size());
    bool fits = first + index.dim() <= self.dim();
    for (int64_t i = 0; fits && i < index.dim(); ++i) {
      fits = index.size(i) == self.size(first + i);
    }
    LS_CHECK(fits, IndexError,
             "[{}] a mask has the sizes of the dimensions it covers: expected those of {} from "
             "dimension {} on, got {}.",
             op, self.shape(), first, index.shape());
    const Tensor places = nonzero(index);
    for (int64_t i = 0; i < index.dim(); ++i) integers.push_back(places.select(1, i));
  }
  bool any = false;
  for (const Tensor& index : integers) any = any || index.defined();
  LS_CHECK(any, IndexError, "[{}] expected at least one index, got none.", op);
  LS_CHECK(static_cast<int64_t>(integers.size()) <= self.dim(), IndexError,
           "[{}] too many indices: expected at most {} for shape {}, got {}.", op, self.dim(),
           self.shape(), integers.size());
  return integers;
}

/// Whether the call writes one value at all positions of one mask: that value may have any dtype.
bool is_masked_fill(OptionalTensorList indices, const Tensor& values, bool accumulate) {
  if (accumulate || values.numel() != 1) return false;
  int masks = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    if (!is_mask(index)) return false;
    ++masks;
  }
  return masks == 1;
}

/// Converted arguments that index_put and index_put_ pass to _unsafe_index_put.
struct PutArguments {
  std::vector<Tensor> indices;
  Tensor values;

  PutArguments(const Tensor& self, OptionalTensorList given, const Tensor& values_given,
               bool accumulate)
      : indices(without_masks("index_put", self, given)),
        values(is_masked_fill(given, values_given, accumulate)
                   ? to(values_given.reshape({}), self.dtype())
                   : values_given) {}
};

/// The first `count` saved tensors.
std::vector<Tensor> saved_indices(const VjpContext& ctx, size_t count) {
  std::vector<Tensor> indices;
  for (size_t i = 0; i < count; ++i) indices.push_back(ctx.saved(i));
  return indices;
}

OptionalTensorList as_list(const std::vector<Tensor>& indices) {
  return OptionalTensorList(indices.data(), indices.size());
}

}  // namespace

LS_OP(unsafe_index, Tensor(const Tensor&, OptionalTensorList),
      "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
    .doc("index.Tensor for integer indices. Unlike ATen's it checks their range.")
    .structured(rules::index)
    .batching(batching::index)
    .saves({"indices for self"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      Gradients gradients;
      const std::vector<Tensor> indices = saved_indices(ctx, ctx.input_count() - 1);
      const Tensor zero = zeros(ctx.sizes(0), grad.options());
      gradients.push_back(index_put(zero, as_list(indices), grad, true));
      for (size_t i = 0; i < indices.size(); ++i) gradients.emplace_back();
      return gradients;
    });

LS_OP(index, Tensor(const Tensor&, OptionalTensorList),
      "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
    .doc("The elements at integer indices or masks, one for each leading dimension.")
    .composite([](const Tensor& self, OptionalTensorList indices) {
      return op_unsafe_index(self, as_list(without_masks("index", self, indices)));
    });
Tensor index(const Tensor& self, OptionalTensorList indices) { return op_index(self, indices); }

LS_OP(index_out, const Tensor&(const Tensor&, OptionalTensorList, const Tensor&),
      "index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)")
    .doc("index.Tensor, written into out.")
    .composite([](const Tensor& self, OptionalTensorList indices,
                  const Tensor& out) -> const Tensor& {
      return clone_out(out, index(self, indices));
    });

LS_OP(unsafe_index_put, Tensor(const Tensor&, OptionalTensorList, const Tensor&, bool),
      "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
      "Tensor")
    .doc("index_put for integer indices. Unlike ATen's it checks their range.")
    .structured(rules::index_put)
    .batching(batching::index_put)
    .in_place()
    .saves({"indices"})
    .derivative([](VjpContext& ctx, const Tensor& grad) {
      const size_t last = ctx.input_count() - 1;
      const std::vector<Tensor> indices = saved_indices(ctx, last - 1);
      Gradients gradients(last + 1);
      if (ctx.needs(0)) {
        const bool accumulate = ctx.argument<bool>(3);
        gradients[0] = accumulate ? grad
                                  : op_unsafe_index_put(grad, as_list(indices),
                                                        zeros({}, grad.options()), false);
      }
      if (ctx.needs(last)) {
        gradients[last] = ctx.unbroadcast(op_unsafe_index(grad, as_list(indices)), last);
      }
      return gradients;
    });

LS_OP(index_put, Tensor(const Tensor&, OptionalTensorList, const Tensor&, bool),
      "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
    .doc("A copy of self with values written, or added, at integer indices or masks.")
    .autocast(Autocast::kPromote)
    .composite([](const Tensor& self, OptionalTensorList indices, const Tensor& values,
                  bool accumulate) {
      const PutArguments put(self, indices, values, accumulate);
      return op_unsafe_index_put(self, as_list(put.indices), put.values, accumulate);
    });
Tensor index_put(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                 bool accumulate) {
  return op_index_put(self, indices, values, accumulate);
}

LS_OP(index_put_out,
      const Tensor&(const Tensor&, OptionalTensorList, const Tensor&, bool, const Tensor&),
      "index_put.out(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, *, "
      "Tensor(a!) out) -> Tensor(a!)")
    .doc("index_put, written into out.")
    .composite([](const Tensor& self, OptionalTensorList indices, const Tensor& values,
                  bool accumulate, const Tensor& out) -> const Tensor& {
      return clone_out(out, index_put(self, indices, values, accumulate));
    });

LS_OP(index_put_, const Tensor&(const Tensor&, OptionalTensorList, const Tensor&, bool),
      "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
      "Tensor(a!)")
    .doc("Writes, or adds, values at integer indices or masks of self.")
    .composite([](const Tensor& self, OptionalTensorList indices, const Tensor& values,
                  bool accumulate) -> const Tensor& {
      const PutArguments put(self, indices, values, accumulate);
      return op_unsafe_index_put.in_place(self, as_list(put.indices), put.values, accumulate);
    });
const Tensor& index_put_(const Tensor& self, OptionalTensorList indices, const Tensor& values,
                         bool accumulate) {
  return op_index_put_(self, indices, values, accumulate);
}

}  // namespace lockstep

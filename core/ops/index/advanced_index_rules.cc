#include "core/ops/index/advanced_index_rules.h"

#include <bit>

#include "core/base/check.h"
#include "core/ops/view/kept_layout.h"

namespace lockstep::rules {

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

}  // namespace lockstep::rules

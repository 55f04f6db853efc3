#include "kernels/common/strided_plan.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep {

namespace {

/// Fills in the operand's byte strides for each dimension of the output, innermost first.
void read_strides(StridedPlan& plan, int operand, const TensorArg& tensor, IntList out_sizes) {
  const int64_t element = static_cast<int64_t>(size_of(tensor.dtype));
  const int rank = static_cast<int>(out_sizes.size());
  plan.address[operand] = static_cast<char*>(tensor.address);
  int64_t* strides = plan.strides[operand];
  for (int i = 0; i < rank; ++i) {
    const int dim = tensor.rank - 1 - i;
    const bool stretched = dim < 0 || (tensor.size_data[dim] == 1 && out_sizes[rank - 1 - i] != 1);
    strides[i] = stretched ? 0 : tensor.stride_data[dim] * element;
  }
}

void swap_dimensions(StridedPlan& plan, int a, int b) {
  std::swap(plan.sizes[a], plan.sizes[b]);
  for (int o = 0; o < plan.operands; ++o) std::swap(plan.strides[o][a], plan.strides[o][b]);
}

void move_dimension(StridedPlan& plan, int to, int from) {
  plan.sizes[to] = plan.sizes[from];
  for (int o = 0; o < plan.operands; ++o) plan.strides[o][to] = plan.strides[o][from];
}

void drop_ones(StridedPlan& plan) {
  int kept = 0;
  for (int i = 0; i < plan.rank; ++i) {
    if (plan.sizes[i] == 1) continue;
    if (kept != i) move_dimension(plan, kept, i);
    ++kept;
  }
  plan.rank = kept;
}

void order_by_output(StridedPlan& plan) {
  for (int i = 1; i < plan.rank; ++i) {
    for (int j = i; j > 0 && plan.strides[0][j] < plan.strides[0][j - 1]; --j) {
      swap_dimensions(plan, j, j - 1);
    }
  }
}

bool can_merge(const StridedPlan& plan, int inner, int outer) {
  for (int o = 0; o < plan.operands; ++o) {
    if (plan.strides[o][outer] != plan.strides[o][inner] * plan.sizes[inner]) return false;
  }
  return true;
}

void merge_neighbours(StridedPlan& plan) {
  int last = 0;
  for (int i = 1; i < plan.rank; ++i) {
    if (can_merge(plan, last, i)) {
      plan.sizes[last] *= plan.sizes[i];
    } else {
      ++last;
      if (last != i) move_dimension(plan, last, i);
    }
  }
  plan.rank = last + 1;
}

}  // namespace

void make_plan(StridedPlan& plan, const Out& out, std::span<const In* const> inputs) {
  LS_CHECK(out.rank <= StridedPlan::kMaxRank, ShapeError,
           "[kernel] too many dimensions: expected at most {}, got {}.", StridedPlan::kMaxRank,
           out.rank);
  plan.operands = static_cast<int>(inputs.size()) + 1;
  plan.rank = out.rank;
  plan.numel = out.numel;
  for (int i = 0; i < out.rank; ++i) plan.sizes[i] = out.size_data[out.rank - 1 - i];
  read_strides(plan, 0, out, out.sizes());
  for (int o = 1; o < plan.operands; ++o) read_strides(plan, o, *inputs[o - 1], out.sizes());
  drop_ones(plan);
  if (plan.rank == 0) {  // one element: let every operand look contiguous
    plan.rank = 1;
    plan.sizes[0] = 1;
    plan.strides[0][0] = static_cast<int64_t>(size_of(out.dtype));
    for (int o = 1; o < plan.operands; ++o) {
      plan.strides[o][0] = static_cast<int64_t>(size_of(inputs[o - 1]->dtype));
    }
    return;
  }
  order_by_output(plan);
  merge_neighbours(plan);
}

void lengthen_rows(StridedPlan& plan) {
  const int longest =
      static_cast<int>(std::max_element(plan.sizes, plan.sizes + plan.rank) - plan.sizes);
  if (longest != 0) swap_dimensions(plan, 0, longest);
}

RowWalker::RowWalker(const StridedPlan& plan, int64_t row) : plan_(plan) {
  std::copy_n(plan.address, plan.operands, address_);
  for (int i = 1; i < plan.rank; ++i) {
    index_[i] = row % plan.sizes[i];
    row /= plan.sizes[i];
    for (int o = 0; o < plan.operands; ++o) address_[o] += index_[i] * plan.strides[o][i];
  }
}

void RowWalker::next() {
  for (int i = 1; i < plan_.rank; ++i) {
    for (int o = 0; o < plan_.operands; ++o) address_[o] += plan_.strides[o][i];
    if (++index_[i] < plan_.sizes[i]) return;
    for (int o = 0; o < plan_.operands; ++o) {
      address_[o] -= plan_.sizes[i] * plan_.strides[o][i];
    }
    index_[i] = 0;
  }
}

}  // namespace lockstep

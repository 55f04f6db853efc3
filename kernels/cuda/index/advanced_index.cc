#include <algorithm>

#include "core/dispatch/kernel.h"
#include "core/ops/index/advanced_index_rules.h"
#include "kernels/cuda/index/grouped_write.h"
#include "kernels/cuda/index/indexed_tensor.h"
#include "kernels/cuda/walk_plan.h"

namespace lockstep::cuda {

namespace {

const FaultKind kOfIndex = index_fault("index");
const FaultKind kOfIndexPut = index_fault("index_put");

/// How a list of indices addresses elements of a contiguous tensor. Dimensions in front of the
/// first indexed one stay in front of the indexed places only if the indexed ones are adjacent.
struct IndexedDims {
  IndexPlan plan;
  IndexedTensor tensor;
  Dims before_sizes;
  Dims before_strides;
  Dims inner_sizes;
  Dims inner_strides;
  Dims strides;  ///< strides of the whole tensor
  int64_t num_places = 1;

  IndexedDims(const char* op, const TensorArg& whole, InList indices) {
    SmallVector<IntList, 4> lists;
    SmallVector<const IntList*, 4> shapes;
    for (const In& index : indices) lists.push_back(index.defined() ? index.sizes() : IntList());
    for (size_t d = 0; d < lists.size(); ++d) {
      shapes.push_back(indices[d].defined() ? &lists[d] : nullptr);
    }
    plan = rules::plan_index(op, whole.sizes(), {shapes.data(), shapes.size()});
    strides = contiguous_strides(whole.sizes());
    int last_indexed = -1;
    for (int d = 0; d < whole.rank; ++d) {
      if (is_indexed(d)) last_indexed = d;
    }
    tensor.places = count_elements(plan.index_sizes);
    for (int d = last_indexed + 1; d < whole.rank; ++d) tensor.inner *= whole.size(d);
    for (int d = 0; d < whole.rank; ++d) {
      const int64_t size = whole.size(d), stride = strides[static_cast<size_t>(d)];
      if (is_indexed(d)) {
        // The largest place is reached by the last index of every indexed dimension.
        num_places += (size > 0 ? size - 1 : 0) * (stride / std::max<int64_t>(tensor.inner, 1));
      } else if (d > last_indexed) {
        inner_sizes.push_back(size);
        inner_strides.push_back(stride);
      } else if (d < plan.index_front) {
        before_sizes.push_back(size);
        before_strides.push_back(stride);
        tensor.before *= size;
        tensor.before_stride = stride;
      } else {
        tensor.after_sizes.push_back(size);
        tensor.after_strides.push_back(stride);
        tensor.after *= size;
      }
    }
  }
  bool is_indexed(int d) const { return ((plan.indexed >> d) & 1) != 0; }

  /// Computes the place of each position into `places`.
  void find_places(const FaultKind& fault, const TensorArg& whole, InList indices,
                   uint32_t* places) const {
    bool is_first = true;
    for (int d = 0; d < whole.rank; ++d) {
      if (!is_indexed(d)) continue;
      const In& index = indices[static_cast<size_t>(d)];
      const Dims steps =
          broadcast_strides(index.sizes(), contiguous_strides(index.sizes()), plan.index_sizes);
      Dims nowhere;
      for (size_t i = 0; i < steps.size(); ++i) nowhere.push_back(0);
      add_index_places({.list = index_list(fault, index, whole.size(d), true),
                        .positions = plan_walk<2>(plan.index_sizes, {steps, nowhere}),
                        .count = tensor.places,
                        .stride = strides[static_cast<size_t>(d)] / tensor.inner,
                        .places = places,
                        .is_first = is_first});
      is_first = false;
    }
  }
};

void append(Dims& to, const Dims& from) {
  for (const int64_t value : from) to.push_back(value);
}

void index(const Out& out, const In& self, InList indices) {
  if (out.numel == 0) return;
  const IndexedDims dims("index", self, indices);
  const Grouping places("index", dims.tensor.places, dims.num_places);
  dims.find_places(kOfIndex, self, indices, places.places());
  IndexList list{};
  list.data = places.places();
  list.count = dims.tensor.places;
  list.kind = IndexList::Kind::kPlace;
  read_indexed(out, self, dims.tensor, list);
}

void index_put(const Out& out, const In& self, InList indices, const In& given, bool accumulate) {
  const IndexedDims dims("index_put", self, indices);
  const Source values(given, out);
  start_from(out, self);
  if (given.numel == 0 || count_elements(dims.plan.result_sizes) == 0) return;
  Grouping groups("index_put", dims.tensor.places, dims.num_places);
  dims.find_places(kOfIndexPut, self, indices, groups.places());
  groups.sort();

  // The index dimensions of the result are the positions, its other dimensions the columns.
  const Dims value_strides =
      broadcast_strides(given.sizes(), contiguous_strides(given.sizes()), dims.plan.result_sizes);
  GroupedColumns columns;
  columns.place_stride = dims.tensor.inner;
  columns.position_sizes = dims.plan.index_sizes;
  const size_t front = static_cast<size_t>(dims.plan.index_front);
  const size_t behind = front + dims.plan.index_sizes.size();
  for (size_t d = 0; d < value_strides.size(); ++d) {
    (d < front || d >= behind ? columns.value_strides : columns.position_strides)
        .push_back(value_strides[d]);
  }
  append(columns.sizes, dims.before_sizes);
  append(columns.sizes, dims.tensor.after_sizes);
  append(columns.sizes, dims.inner_sizes);
  append(columns.out_strides, dims.before_strides);
  append(columns.out_strides, dims.tensor.after_strides);
  append(columns.out_strides, dims.inner_strides);
  accumulate ? add_grouped(out, values.in(), groups, columns)
             : keep_last_grouped(out, values.in(), groups, columns);
}

}  // namespace

LS_KERNEL(CUDA, "_unsafe_index.Tensor", index, Strides::kContiguous);
LS_KERNEL(CUDA, "_unsafe_index_put", index_put, Strides::kContiguous);

}  // namespace lockstep::cuda

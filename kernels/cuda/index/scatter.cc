#include "kernels/cuda/index/scatter.h"

#include <cstring>
#include <optional>

#include "core/dispatch/kernel.h"
#include "core/ops/index/scatter_rules.h"
#include "kernels/common/at_least_1d.h"
#include "kernels/cuda/index/grouped_write.h"
#include "kernels/cuda/index/indexed_tensor.h"
#include "kernels/cuda/index/scatter.fatbin.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/walk_plan.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const DTypeKernels kAdd = kernels_of_lanes(kImage, "scatter_add");
const DTypeKernels kReduce = kernels_of_lanes(kImage, "scatter_reduce");
const UnitKernels kLast(kImage, "scatter_last");
const UnitKernels kFill(kImage, "scatter_fill");
const FaultKind kOfScatter = index_fault("scatter");
const FaultKind kOfScatterAdd = index_fault("scatter_add");
const FaultKind kOfScatterReduce = index_fault("scatter_reduce");
const FaultKind kOfIndexAdd = index_fault("index_add");
const FaultKind kOfIndexCopy = index_fault("index_copy");
const FaultKind kOfIndexFill = index_fault("index_fill");

template <class Params>
void launch_for(Kernel kernel, int64_t items, const Params& params) {
  launch(kernel, {.blocks = {blocks_for(items, kThreads), 1, 1}, .threads = kThreads}, params);
}

/// Makes the kernel's arguments, or nullopt if there is nothing to write.
std::optional<GroupedWrite> grouped_write(const Out& out, const In& values, const Grouping& groups,
                                          const GroupedColumns& columns) {
  const int64_t each = count_elements(columns.sizes);
  const int64_t items = groups.count() * each;
  if (items == 0) return std::nullopt;
  GroupedWrite write{};
  write.places = groups.sorted_places();
  write.positions = groups.sorted_positions();
  write.count = groups.count();
  write.items = items;
  write.columns = AnyDivider(each, items);
  write.place_stride = columns.place_stride;
  write.column_walk = plan_walk<2>(columns.sizes, {columns.out_strides, columns.value_strides});
  write.position_walk = plan_walk<1>(columns.position_sizes, {columns.position_strides});
  write.values = values.address;
  write.out = out.address;
  write.dtype = out.dtype;
  return write;
}

/// Positions of an index along one dimension, grouped by the element of `out` they name.
struct ScatterGroups {
  Grouping groups;
  GroupedColumns columns;

  ScatterGroups(const FaultKind& fault, const Out& out_any, int64_t dim, const In& index_any,
                const In& src_any)
      : groups(fault.op().c_str(), index_any.numel, out_any.numel) {
    const Out out = at_least_1d(out_any);
    const In index = at_least_1d(index_any);
    const int d = static_cast<int>(dim < 0 ? dim + out.rank : dim);
    Dims bases = to_dims(out.strides());
    bases[static_cast<size_t>(d)] = 0;
    add_index_places({.list = index_list(fault, index, out.size(d)),
                      .positions = plan_walk<2>(index.sizes(), {index.strides(), bases}),
                      .count = index.numel,
                      .stride = out.stride(d),
                      .places = groups.places(),
                      .is_first = true});
    groups.sort();
    columns.position_sizes = to_dims(index.sizes());
    columns.position_strides = to_dims(at_least_1d(src_any).strides());
  }
};

void scatter(const Out& out, const In& self, int64_t dim, const In& index, const In& src_any) {
  const Source src(src_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const ScatterGroups to(kOfScatter, out, dim, index, src.in());
  keep_last_grouped(out, src.in(), to.groups, to.columns);
}

void scatter_add(const Out& out, const In& self, int64_t dim, const In& index, const In& src_any) {
  const Source src(src_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const ScatterGroups to(kOfScatterAdd, out, dim, index, src.in());
  add_grouped(out, src.in(), to.groups, to.columns);
}

void scatter_reduce(const Out& out, const In& self, int64_t dim, const In& index, const In& src_any,
                    std::string_view reduce, bool include_self) {
  static_assert(static_cast<int>(ScatterReduction::kSum) == static_cast<int>(ScatterJoin::kSum) &&
                static_cast<int>(ScatterReduction::kAmin) == static_cast<int>(ScatterJoin::kAmin));
  const Source src(src_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const ScatterGroups to(kOfScatterReduce, out, dim, index, src.in());
  std::optional<GroupedWrite> write = grouped_write(out, src.in(), to.groups, to.columns);
  write->join = static_cast<ScatterJoin>(rules::scatter_reduction(reduce));
  write->include_self = include_self;
  launch_for(kReduce[out.dtype], write->items, *write);
}

/// Positions of an index of whole slices along `dim`, grouped by the index.
struct SliceGroups {
  Grouping groups;
  GroupedColumns columns;

  SliceGroups(const FaultKind& fault, const In& self, int64_t dim, const In& index)
      : groups(fault.op().c_str(), index.numel, size_along(self, dim)) {
    const IndexedTensor lines = indexed_along(self, dim, index.numel);
    read_places(groups.places(), index_list(fault, index, size_along(self, dim)));
    groups.sort();
    columns.place_stride = lines.inner;
    columns.sizes = {lines.before, lines.inner};
    columns.out_strides = {lines.before_stride, 1};
    columns.value_strides = {index.numel * lines.inner, 1};
    columns.position_sizes = {index.numel};
    columns.position_strides = {lines.inner};
  }
  static int64_t size_along(const In& self, int64_t dim) {
    return self.rank == 0 ? 1 : self.size(static_cast<int>(dim));
  }
};

void index_add(const Out& out, const In& self, int64_t dim, const In& index, const In& source_any,
               Scalar alpha) {
  const Source source(source_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const SliceGroups to(kOfIndexAdd, self, dim, index);
  add_grouped(out, source.in(), to.groups, to.columns, alpha);
}

void index_copy(const Out& out, const In& self, int64_t dim, const In& index,
                const In& source_any) {
  const Source source(source_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const SliceGroups to(kOfIndexCopy, self, dim, index);
  keep_last_grouped(out, source.in(), to.groups, to.columns);
}

/// Writes `value` as one element of `dtype`.
void write_number(unsigned char* to, DType dtype, const Scalar& value) {
  const auto put = [to](auto number) { std::memcpy(to, &number, sizeof(number)); };
  switch (dtype) {
    case DType::kBool:
      return put(value.to_bool());
    case DType::kF16:
      return put(value.to<Half>());
    case DType::kBF16:
      return put(value.to<BFloat16>());
    case DType::kF32:
      return put(value.to<float>());
    case DType::kF64:
      return put(value.to<double>());
    default:
      return put(value.to<int64_t>());  // little-endian: the low bytes come first
  }
}

void fill_places(const Out& out, ScatterFill fill, const Scalar& value) {
  if (fill.count == 0) return;
  fill.out = out.address;
  write_number(fill.number, out.dtype, value);
  launch_for(kFill[size_of(out.dtype)], fill.count, fill);
}

void scatter_value(const Out& out_any, const In& self, int64_t dim, const In& index_any,
                   Scalar value) {
  start_from(out_any, self);
  if (index_any.numel == 0) return;
  const Out out = at_least_1d(out_any);
  const In index = at_least_1d(index_any);
  const int d = static_cast<int>(dim < 0 ? dim + out.rank : dim);
  Dims bases = to_dims(out.strides());
  bases[static_cast<size_t>(d)] = 0;
  fill_places(out,
              ScatterFill{.list = index_list(kOfScatter, index, out.size(d)),
                          .count = index.numel,
                          .stride = out.stride(d),
                          .walk = plan_walk<2>(index.sizes(), {bases, index.strides()})},
              value);
}

void index_fill(const Out& out, const In& self, int64_t dim, const In& index, Scalar value) {
  start_from(out, self);
  const IndexedTensor lines = indexed_along(self, dim, index.numel);
  const Dims sizes{lines.before, index.numel, lines.inner};
  const Dims bases{lines.before_stride, 0, 1}, listed{0, 1, 0};
  fill_places(
      out,
      ScatterFill{.list = index_list(kOfIndexFill, index, SliceGroups::size_along(self, dim), true),
                  .count = count_elements(sizes),
                  .stride = lines.inner,
                  .walk = plan_walk<2>(sizes, {bases, listed})},
      value);
}

}  // namespace

void add_grouped(const Out& out, const In& values, const Grouping& groups,
                 const GroupedColumns& columns, const Scalar& factor) {
  std::optional<GroupedWrite> write = grouped_write(out, values, groups, columns);
  if (!write) return;
  write->real_factor = factor.to_double();
  write->integer_factor = out.dtype == DType::kBool ? factor.to_bool() : factor.to_int();
  launch_for(kAdd[out.dtype], write->items, *write);
}

void keep_last_grouped(const Out& out, const In& values, const Grouping& groups,
                       const GroupedColumns& columns) {
  const std::optional<GroupedWrite> write = grouped_write(out, values, groups, columns);
  if (!write) return;
  launch_for(kLast[size_of(out.dtype)], write->items, *write);
}

LS_KERNEL(CUDA, "scatter.src", scatter, Strides::kContiguous);
LS_KERNEL(CUDA, "scatter.value", scatter_value, Strides::kContiguous);
LS_KERNEL(CUDA, "scatter_add", scatter_add, Strides::kContiguous);
LS_KERNEL(CUDA, "scatter_reduce.two", scatter_reduce, Strides::kContiguous);
LS_KERNEL(CUDA, "index_add", index_add, Strides::kContiguous);
LS_KERNEL(CUDA, "index_copy", index_copy, Strides::kContiguous);
LS_KERNEL(CUDA, "index_fill.int_Scalar", index_fill, Strides::kContiguous);

}  // namespace lockstep::cuda

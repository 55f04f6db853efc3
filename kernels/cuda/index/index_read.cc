#include "kernels/cuda/index/index_read.h"

#include "core/device/device_runtime.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/at_least_1d.h"
#include "kernels/cuda/index/grouping.h"
#include "kernels/cuda/index/index_read.fatbin.h"
#include "kernels/cuda/index/indexed_tensor.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/walk_plan.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const UnitKernels kRead(kImage, "index_read", 16);
const UnitKernels kGather(kImage, "index_gather");
const UnitKernels kTriangle(kImage, "index_triangle");
const FaultKind kOfEmbedding = index_fault("embedding");
const FaultKind kOfIndexSelect = index_fault("index_select");
const FaultKind kOfGather = index_fault("gather");
const FaultKind kOfRows = index_fault("index");

template <class Params>
void launch_for(Kernel kernel, int64_t count, const Params& params) {
  launch(kernel, {.blocks = {blocks_for(count, kThreads * 4), 1, 1}, .threads = kThreads}, params);
}

int64_t size_of_element(const TensorArg& tensor) {
  return static_cast<int64_t>(size_of(tensor.dtype));
}

void copy_bytes(void* to, const void* from, int64_t bytes) {
  const Stream stream = kernel_stream();
  require_runtime(stream.device)
      .copy(stream, to, from, static_cast<size_t>(bytes), Transfer::kWithin);
}

void embedding(const Out& out, const In& weight, const In& indices, int64_t, bool, bool) {
  read_indexed(out, weight, indexed_along(weight, 0, indices.numel),
               index_list(kOfEmbedding, indices, weight.size(0)));
}

void index_select(const Out& out, const In& self, int64_t dim, const In& index) {
  const In from = at_least_1d(self);
  const int d = static_cast<int>(dim < 0 ? dim + from.rank : dim);
  read_indexed(out, from, indexed_along(from, dim, index.numel),
               index_list(kOfIndexSelect, index, from.size(d)));
}

void gather(const Out& out, const In& self_any, int64_t dim, const In& index_any, bool) {
  if (index_any.numel == 0) return;
  const In self = at_least_1d(self_any);
  const In index = at_least_1d(index_any);
  const int d = static_cast<int>(dim < 0 ? dim + self.rank : dim);
  Dims strides = to_dims(self.strides());
  strides[static_cast<size_t>(d)] = 0;
  launch_for(kGather[size_of(self.dtype)], index.numel,
             Gather{.list = index_list(kOfGather, index, self.size(d)),
                    .from = self.address,
                    .to = out.address,
                    .stride = self.stride(d),
                    .walk = plan_walk<1>(index.sizes(), {strides})});
}

void copy_triangle(const Out& out, const In& self, bool lower, int64_t diagonal) {
  if (self.numel == 0) return;
  launch_for(kTriangle[size_of(self.dtype)], self.numel,
             Triangle{.from = self.address,
                      .to = out.address,
                      .count = self.numel,
                      .columns = AnyDivider(self.size(-1), self.numel),
                      .rows = AnyDivider(self.size(-2), self.numel),
                      .diagonal = diagonal,
                      .lower = lower});
}
void tril(const Out& out, const In& self, int64_t diagonal) {
  copy_triangle(out, self, true, diagonal);
}
void triu(const Out& out, const In& self, int64_t diagonal) {
  copy_triangle(out, self, false, diagonal);
}

}  // namespace

IndexedTensor indexed_along(const TensorArg& tensor, int64_t dim, int64_t places) {
  IndexedTensor indexed;
  indexed.places = places;
  const int d = static_cast<int>(dim < 0 ? dim + tensor.rank : dim);
  for (int i = 0; i < d; ++i) indexed.before *= tensor.size(i);
  for (int i = d + 1; i < tensor.rank; ++i) indexed.inner *= tensor.size(i);
  indexed.before_stride = tensor.rank == 0 ? 0 : tensor.size(d) * indexed.inner;
  return indexed;
}

void read_indexed(const Out& to, const In& from, const IndexedTensor& indexed,
                  const IndexList& list) {
  const int64_t bytes = indexed.numel() * size_of_element(from);
  if (bytes == 0) return;
  // The largest unit of which runs and addresses are multiples.
  const int64_t run = indexed.inner * size_of_element(from);
  int64_t unit = 16;
  while (run % unit != 0 || reinterpret_cast<uintptr_t>(from.address) % unit != 0 ||
         reinterpret_cast<uintptr_t>(to.address) % unit != 0) {
    unit /= 2;
  }
  const auto units = [&](int64_t elements) { return elements * size_of_element(from) / unit; };
  Dims after_strides = indexed.after_strides;
  for (int64_t& stride : after_strides) stride = units(stride);
  launch_for(kRead[static_cast<size_t>(unit)], bytes / unit,
             IndexedRead{.list = list,
                         .from = from.address,
                         .to = to.address,
                         .count = bytes / unit,
                         .inner = AnyDivider(units(indexed.inner), bytes / unit),
                         .after = AnyDivider(indexed.after, bytes / unit),
                         .places = AnyDivider(indexed.places, bytes / unit),
                         .before_stride = units(indexed.before_stride),
                         .place_stride = units(indexed.inner),
                         .after_walk = plan_walk<1>(indexed.after_sizes, {after_strides})});
}

IndexList list_of_rows(std::string_view op, const In& numbers, int64_t rows, bool wraps) {
  const FaultKind& kind = op == "embedding"      ? kOfEmbedding
                          : op == "index_select" ? kOfIndexSelect
                                                 : kOfRows;
  return index_list(kind, numbers, rows, wraps);
}

void start_from(const Out& out, const In& self) {
  if (self.numel == 0 || out.address == self.address) return;
  copy_bytes(out.address, self.address, self.numel * size_of_element(self));
}

Source::Source(const In& source, const Out& out) : in_(source) {
  if (source.address != out.address || source.numel == 0) return;
  const int64_t bytes = source.numel * size_of_element(source);
  copy_.emplace(static_cast<size_t>(bytes));
  copy_bytes(copy_->data(), source.address, bytes);
  in_.address = copy_->data();
}

LS_KERNEL(CUDA, "embedding", embedding, Strides::kContiguous);
LS_KERNEL(CUDA, "index_select", index_select, Strides::kContiguous);
LS_KERNEL(CUDA, "gather", gather, Strides::kContiguous);
LS_KERNEL(CUDA, "tril", tril, Strides::kContiguous);
LS_KERNEL(CUDA, "triu", triu, Strides::kContiguous);

}  // namespace lockstep::cuda

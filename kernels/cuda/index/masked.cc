#include "kernels/cuda/index/masked.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/device/transfer.h"
#include "core/dispatch/kernel.h"
#include "core/ops/pointwise/promotion.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/factory/fill.h"
#include "kernels/cuda/index/indexed_tensor.h"
#include "kernels/cuda/index/masked.fatbin.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/walk_plan.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const Kernel kCount(kImage, "masked_count");
const Kernel kAddUp(kImage, "masked_add_up");
const Kernel kFind(kImage, "masked_find");
const Kernel kCoordinates(kImage, "masked_coordinates");
const UnitKernels kRead(kImage, "masked_read");
const UnitKernels kWrite(kImage, "masked_write");
const DTypeKernels kCompare = kernels_of_lanes(kImage, "masked_compare");
const FaultKind kTooShort("masked_scatter", "the source is too short to fill the mask");

template <class Params>
void launch_for(Kernel kernel, int64_t items, const Params& params) {
  if (items == 0) return;
  launch(kernel, {.blocks = {blocks_for(items, kThreads), 1, 1}, .threads = kThreads}, params);
}

int64_t chunks_of(int64_t count) { return (count + FindChosen::kChunk - 1) / FindChosen::kChunk; }

Walk<1> walk_as(const TensorArg& tensor, IntList sizes) {
  const Dims strides = broadcast_strides(tensor.sizes(), tensor.strides(), sizes);
  return plan_walk<1>(sizes, {strides});
}

/// The nonzero elements of a mask broadcast to `sizes`.
class Chosen {
 public:
  Chosen(const TensorArg& mask, IntList sizes)
      : count_(count_elements(sizes)),
        memory_(static_cast<size_t>(1 + chunks_of(count_) + count_) * sizeof(int64_t)) {
    zero_bytes(num_chosen(), sizeof(int64_t));
    if (count_ == 0) return;
    const int64_t chunks = chunks_of(count_);
    const FindChosen find{.mask = mask.address,
                          .dtype = mask.dtype,
                          .count = count_,
                          .chunks = chunks,
                          .walk = walk_as(mask, sizes),
                          .chunk_starts = num_chosen() + 1,
                          .chosen = num_chosen() + 1 + chunks,
                          .num_chosen = num_chosen()};
    launch_for(kCount, chunks * kThreads, find);
    launch_for(kAddUp, 1, find);
    launch_for(kFind, chunks * kThreads, find);
  }
  int64_t* num_chosen() const { return memory_.data<int64_t>(); }
  const int64_t* numbers() const { return num_chosen() + 1 + chunks_of(count_); }
  /// Reads the number of chosen elements back; synchronises with the stream.
  int64_t size(Device device) const {
    int64_t size = 0;
    transfer_bytes(&size, kCPU, num_chosen(), device, sizeof(size));
    return size;
  }

 private:
  int64_t count_;
  Workspace memory_;
};

Tensor nonzero(const Tensor& self) {
  const KernelScope scope(self.device());
  const In in(*self.impl());
  const Chosen chosen(in, self.sizes());
  const int64_t rank = self.dim();
  const Tensor result =
      empty_tensor({chosen.size(self.device()), rank}, DType::kI64, self.device());
  WriteCoordinates write{};
  LS_CHECK(rank <= WriteCoordinates::kMaxRank, ShapeError,
           "[nonzero] too many dimensions: expected at most {} on cuda, got {}.",
           WriteCoordinates::kMaxRank, rank);
  write.chosen = chosen.numbers();
  write.to = result.data<int64_t>();
  write.count = result.size(0);
  write.rank = static_cast<int32_t>(rank);
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    write.sizes[d] = AnyDivider(std::max<int64_t>(self.sizes()[d], 1), self.numel());
  }
  launch_for(kCoordinates, rank == 0 ? 0 : write.count, write);
  return result;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_select] expected a bool mask, got {}.", to_string(mask.dtype()));
  LS_CHECK(mask.device() == self.device(), DeviceError,
           "[masked_select] expected a mask on {}, got one on {}. Move it with to(device).",
           to_string(self.device()), to_string(mask.device()));
  const KernelScope scope(self.device());
  const Dims sizes = broadcast("masked_select", self.sizes(), mask.sizes());
  const Chosen chosen(In(*mask.impl()), sizes);
  const Tensor result = empty_tensor({chosen.size(self.device())}, self.dtype(), self.device());
  launch_for(kRead[size_of(self.dtype())], result.numel(),
             ReadChosen{.chosen = chosen.numbers(),
                        .from = self.data(),
                        .to = result.data(),
                        .count = result.numel(),
                        .walk = walk_as(In(*self.impl()), sizes)});
  return result;
}

void masked_scatter(const Out& out, const In& self, const In& mask, const In& given) {
  const Source unaliased(given, out);
  const In& source = unaliased.in();
  copy_elements(out, self);
  if (out.numel == 0) return;
  const Chosen chosen(mask, out.sizes());
  // At least one thread, even for an empty source: it checks whether the source is too short.
  launch_for(kWrite[size_of(out.dtype)], std::max<int64_t>(source.numel, 1),
             WriteChosen{.chosen = chosen.numbers(),
                         .num_chosen = chosen.num_chosen(),
                         .from = source.address,
                         .to = out.address,
                         .count = source.numel,
                         .fault = fault_place(kTooShort)});
}

bool equal(const Tensor& self, const Tensor& other) {
  if (!same(self.sizes(), other.sizes())) return false;
  LS_CHECK(self.device() == other.device(), DeviceError,
           "[equal] devices differ: expected {}, got {}. Move one with to(device).",
           to_string(self.device()), to_string(other.device()));
  if (self.dtype() != other.dtype()) {
    const DType common = result_type(self, other);
    return equal(self.to(common), other.to(common));
  }
  if (self.numel() == 0) return true;
  const KernelScope scope(self.device());
  const Workspace differs(sizeof(uint32_t));
  zero_bytes(differs.data(), sizeof(uint32_t));
  launch_for(kCompare[self.dtype()], self.numel(),
             Compare{.a = self.data(),
                     .b = other.data(),
                     .dtype = self.dtype(),
                     .count = self.numel(),
                     .walk = plan_walk<2>(self.sizes(), {self.strides(), other.strides()}),
                     .differs = differs.data<uint32_t>()});
  uint32_t found = 0;
  transfer_bytes(&found, kCPU, differs.data(), self.device(), sizeof(found));
  return found == 0;
}

}  // namespace

LS_KERNEL(CUDA, "nonzero", nonzero, Strides::kAny);
LS_KERNEL(CUDA, "masked_select", masked_select, Strides::kAny);
LS_KERNEL(CUDA, "masked_scatter", masked_scatter, Strides::kContiguous);
LS_KERNEL(CUDA, "equal", equal, Strides::kAny);

}  // namespace lockstep::cuda

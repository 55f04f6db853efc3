// bincount has no CUDA kernel: the size of its result depends on values, so it runs on the CPU.

#include "kernels/cuda/sort/search.h"

#include "core/dispatch/kernel.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/sort/search.fatbin.h"

namespace lockstep::cuda {

namespace {

const Kernel kSortedF64(kImage, "search_sorted_f64");
const Kernel kSortedI64(kImage, "search_sorted_i64");
const FaultKind kOfSorter("searchsorted", "index of the sorter out of range");

void searchsorted(const Out& out, const In& sequence, const In& self, bool out_int32, bool right,
                  std::optional<std::string_view> side, const In& sorter) {
  if (self.numel == 0) return;
  Search p{};
  p.sequence = sequence.address;
  p.sorter = sorter.defined() ? sorter.data<int64_t>() : nullptr;
  p.values = self.address;
  p.out = out.address;
  p.out_int32 = out_int32;
  p.dtype = sequence.dtype;
  p.numel = self.numel;
  p.n = sequence.size(-1);
  p.line = IndexSplitter(sequence.rank == 1 ? self.numel : self.size(-1), self.numel);
  p.right = right || side == "right";
  p.fault = fault_place(kOfSorter);
  launch(is_floating(p.dtype) ? kSortedF64 : kSortedI64,
         {.blocks = {blocks_for(p.numel, 256), 1, 1}, .threads = 256, .shared_bytes = 0}, p);
}

}  // namespace

LS_KERNEL(CUDA, "searchsorted.Tensor", searchsorted, Strides::kContiguous);

}  // namespace lockstep::cuda

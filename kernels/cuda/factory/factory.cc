#include "core/dispatch/kernel.h"
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/factory/fill.fatbin.h"
#include "kernels/cuda/factory/fill.h"
#include "kernels/cuda/launch.h"

namespace lockstep::cuda {

namespace {

using Type = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;

constexpr unsigned kThreads = 256;

const Kernel kZeros(kImage, "fill_zeros");
const Kernel kSequenceF64(kImage, "fill_sequence_f64");
const Kernel kSequenceI64(kImage, "fill_sequence_i64");

/// As on the CPU (kernels/cpu/factory/factory.cc): in f64, or in int64 if the result is an integer
/// or all three numbers are.
void arange(const Out& out, Scalar start, Scalar end, Scalar step, Type, LayoutOption, DeviceOption,
            Flag) {
  if (out.numel == 0) return;
  const bool integral =
      !is_floating(out.dtype) || !(start.is_floating() || end.is_floating() || step.is_floating());
  const auto run = [&]<class T>(Kernel kernel) {
    launch(kernel, {.blocks = {blocks_for(out.numel, kThreads * 4), 1, 1}, .threads = kThreads},
           Sequence<T>{.out = out.address,
                       .count = out.numel,
                       .first = start.to<T>(),
                       .step = step.to<T>(),
                       .dtype = out.dtype});
  };
  integral ? run.template operator()<int64_t>(kSequenceI64)
           : run.template operator()<double>(kSequenceF64);
}

LS_KERNEL(CUDA, "arange.start_step", arange, Strides::kContiguous);

}  // namespace

void zero_bytes(void* address, int64_t bytes) {
  if (bytes == 0) return;
  launch(kZeros, {.blocks = {blocks_for(bytes, kThreads * 64), 1, 1}, .threads = kThreads},
         ZeroBytes{static_cast<char*>(address), bytes});
}

}  // namespace lockstep::cuda

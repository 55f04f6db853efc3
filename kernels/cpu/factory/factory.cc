#include <algorithm>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/lanes.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/factory/copy.h"

namespace lockstep::cpu {

namespace {

using Type = std::optional<DType>;
using LayoutOption = std::optional<Layout>;
using DeviceOption = std::optional<Device>;
using Flag = std::optional<bool>;

/// Element i is start + i * step, computed in f64. Integer results are computed in int64 from start
/// and step truncated to integers, as in ATen; so are float results if start, end and step are all
/// integers.
void arange(const Out& out, Scalar start, Scalar end, Scalar step, Type, LayoutOption, DeviceOption,
            Flag) {
  constexpr int64_t kChunk = 512;
  const bool integral =
      !is_floating(out.dtype) || !(start.is_floating() || end.is_floating() || step.is_floating());
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  const auto run = [&]<class T>() {
    const T first = start.to<T>();
    const T stride = step.to<T>();
    const StoreFunction store = store_function(out.dtype, lane_of<T>);
    parallel_for(0, out.numel, 32768, [&](int64_t begin, int64_t last) {
      T values[kChunk];
      for (int64_t i = begin; i < last; i += kChunk) {
        const int64_t count = std::min(kChunk, last - i);
        for (int64_t j = 0; j < count; ++j) values[j] = first + static_cast<T>(i + j) * stride;
        store(count, out.data<char>() + i * element, element, values);
      }
    });
  };
  integral ? run.template operator()<int64_t>() : run.template operator()<double>();
}

LS_KERNEL(CPU, "arange.start_step", arange, Strides::kContiguous);

}  // namespace

}  // namespace lockstep::cpu

#include "kernels/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrainBytes = 65536;

/// Drops dimensions of size 1 and merges neighbours that both sides walk with one stride.
CopyAxes coalesced(const CopyAxes& axes) {
  CopyAxes joined;
  for (const CopyAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!joined.empty() && joined.back().to == axis.size * axis.to &&
        joined.back().from == axis.size * axis.from) {
      joined.back() = {joined.back().size * axis.size, axis.to, axis.from};
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

template <class T>
void copy_run(std::byte* to, const std::byte* from, const CopyAxis& axis) {
  T* y = reinterpret_cast<T*>(to);
  const T* x = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < axis.size; ++i) y[i * axis.to] = x[i * axis.from];
}

}  // namespace

void strided_copy(std::byte* to, const std::byte* from, size_t element, CopyAxes axes) {
  axes = coalesced(axes);
  if (axes.empty()) axes.push_back({1, 1, 1});
  const CopyAxis inner = axes.back();
  axes.pop_back();
  int64_t runs = 1;
  for (const CopyAxis& axis : axes) runs *= axis.size;
  const int64_t bytes = static_cast<int64_t>(element);
  if (runs == 0 || inner.size == 0) return;

  const auto copy = [&](int64_t to_offset, int64_t from_offset, int64_t n) {
    std::byte* y = to + to_offset * bytes;
    const std::byte* x = from + from_offset * bytes;
    const CopyAxis run{n, inner.to, inner.from};
    if (inner.to == 1 && inner.from == 1) {
      std::memcpy(y, x, static_cast<size_t>(n * bytes));
    } else if (element == 1) {
      copy_run<uint8_t>(y, x, run);
    } else if (element == 2) {
      copy_run<uint16_t>(y, x, run);
    } else if (element == 4) {
      copy_run<uint32_t>(y, x, run);
    } else {
      copy_run<uint64_t>(y, x, run);
    }
  };

  if (runs == 1) {
    parallel_for(0, inner.size, kGrainBytes / bytes, [&](int64_t first, int64_t last) {
      copy(first * inner.to, first * inner.from, last - first);
    });
    return;
  }
  parallel_for(0, runs, std::max<int64_t>(1, kGrainBytes / (inner.size * bytes)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   int64_t index = i, to_offset = 0, from_offset = 0;
                   for (size_t d = axes.size(); d-- > 0;) {
                     const int64_t place = index % axes[d].size;
                     index /= axes[d].size;
                     to_offset += place * axes[d].to;
                     from_offset += place * axes[d].from;
                   }
                   copy(to_offset, from_offset, inner.size);
                 }
               });
}

}  // namespace lockstep::cpu

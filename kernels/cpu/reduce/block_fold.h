#pragma once

#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

/// Reads n elements of `dtype`, spaced `stride` elements apart, as doubles.
inline void read_doubles(DType dtype, const void* at, int64_t stride, double* to, int64_t n) {
  with_type(dtype, [&]<class T>() {
    const T* from = static_cast<const T*>(at);
    for (int64_t i = 0; i < n; ++i) to[i] = convert<double>(from[i * stride]);
  });
}

/// A reduction in f64 whose state is more than one number. The elements of each result are split
/// into blocks of fixed size: `Fold::add(x, n)` accumulates the elements of a block into a copy of
/// `empty`, and `Fold::combine(later)` combines blocks in order, so that the bits do not depend on
/// the number of threads. `store(i, fold)` receives result i, on any thread.
template <class Fold, class Store>
void fold_each(const ReducePlan& plan, const In& self, const Fold& empty, const Store& store) {
  constexpr int64_t kBlock = 1024;  // elements of a block
  constexpr int64_t kGrain = 8192;  // minimum elements per task
  const Axis axis = plan.reduced.back();
  Axes outer = plan.reduced;
  outer.pop_back();
  const int64_t element = static_cast<int64_t>(size_of(self.dtype));

  const auto fold_block = [&](int64_t base, int64_t block) {
    double buffer[kBlock];
    const int64_t first = block * kBlock;
    const int64_t count = std::min(kBlock, plan.count - first);
    for (int64_t done = 0; done < count;) {
      const int64_t within = (first + done) % axis.size;
      const int64_t run = std::min(count - done, axis.size - within);
      const int64_t offset =
          base + offset_at((first + done) / axis.size, outer) + within * axis.stride;
      read_doubles(self.dtype, self.data<std::byte>() + offset * element, axis.stride,
                   buffer + done, run);
      done += run;
    }
    Fold fold = empty;
    fold.add(buffer, count);
    return fold;
  };

  const int64_t blocks = (plan.count + kBlock - 1) / kBlock;
  if (blocks <= 1 || plan.outputs >= 64) {
    parallel_for(0, plan.outputs, std::max<int64_t>(1, kGrain / std::max<int64_t>(plan.count, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t base = offset_at(i, plan.kept);
                     Fold total = empty;
                     for (int64_t block = 0; block < blocks; ++block) {
                       total.combine(fold_block(base, block));
                     }
                     store(i, total);
                   }
                 });
    return;
  }
  // Few long results: their blocks are distributed over the threads.
  std::vector<Fold> parts(static_cast<size_t>(plan.outputs * blocks), empty);
  parallel_for(0, plan.outputs * blocks, kGrain / kBlock, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      parts[static_cast<size_t>(i)] = fold_block(offset_at(i / blocks, plan.kept), i % blocks);
    }
  });
  for (int64_t i = 0; i < plan.outputs; ++i) {
    Fold total = empty;
    for (int64_t block = 0; block < blocks; ++block) {
      total.combine(parts[static_cast<size_t>(i * blocks + block)]);
    }
    store(i, total);
  }
}

}  // namespace lockstep::cpu

#pragma once

#include <cstdint>
#include <mutex>
#include <tuple>

#include "core/ops/factory/factory.h"
#include "core/tensor/tensor.h"

namespace lockstep::dist {

/// Numbers from -1 to 1 (a Weyl sequence), the same for a rank or leaf wherever it asks.
inline Tensor random_tensor(DType dtype, int rank, int64_t count) {
  const Tensor tensor = empty({count}, DType::kF32);
  auto* const data = tensor.data<float>();
  const auto start = static_cast<uint32_t>(rank) * 0x85EBCA6BU;
  for (int64_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>(start + static_cast<uint32_t>(i) * 0x9E3779B9U) * 0x1p-31F - 1;
  }
  return tensor.to(dtype);
}

/// Adds `from` to `into`, both dense f32 of one size.
inline void add_to(const Tensor& into, const Tensor& from) {
  auto* const sums = into.data<float>();
  const auto* const values = from.data<float>();
  for (int64_t i = 0; i < into.numel(); ++i) sums[i] += values[i];
}

/// Reference: sums leaves [first, end) by the tree, which halves recursively.
inline void sum_leaves(int64_t first, int64_t end, int64_t leaves, int64_t count,
                       const Tensor& out) {
  if (end - first == 1) {
    out.copy_(random_tensor(DType::kF32, static_cast<int>(first), count));
    return;
  }
  const int64_t middle = (first + end) / 2;
  sum_leaves(first, middle, leaves, count, out);
  if (middle >= leaves) return;
  const Tensor right = empty({count}, DType::kF32);
  sum_leaves(middle, end, leaves, count, right);
  add_to(out, right);
}

/// Reference: the sum over all leaves. The last one is kept, as ranks that are threads ask alike.
inline Tensor sum_of_leaves(int64_t leaves, int64_t count) {
  static std::mutex lock;
  static std::tuple<int64_t, int64_t, Tensor> kept;
  const std::lock_guard guard(lock);
  auto& [of_leaves, of_count, sum] = kept;
  if (!sum.defined() || of_leaves != leaves || of_count != count) {
    kept = {leaves, count, empty({count}, DType::kF32)};
    sum_leaves(0, leaves == 9 ? 16 : leaves, leaves, count, sum);
  }
  return sum;
}

}  // namespace lockstep::dist

#include <algorithm>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/ops/index/embedding_bag_rules.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index/index_reader.h"

namespace lockstep::cpu {

namespace {

/// Start offset of each bag, and the end of the last.
std::vector<int64_t> read_bounds(const In& offsets, int64_t bags, int64_t count) {
  std::vector<int64_t> bounds = read_indices("_embedding_bag", offsets, count + 1);
  LS_CHECK(bags == 0 || bounds[0] == 0, IndexError,
           "[_embedding_bag] the first offset must be 0, got {}.", bounds[0]);
  bounds.resize(static_cast<size_t>(bags));
  bounds.push_back(count);
  for (size_t b = 0; b + 1 < bounds.size(); ++b) {
    LS_CHECK(bounds[b] <= bounds[b + 1], IndexError,
             "[_embedding_bag] offsets must not decrease: got {} before {}.", bounds[b],
             bounds[b + 1]);
  }
  return bounds;
}

void set_index(const Out& out, int64_t place, int64_t value) {
  if (out.dtype == DType::kI32) {
    out.data<int32_t>()[place] = static_cast<int32_t>(value);
  } else {
    out.data<int64_t>()[place] = value;
  }
}

/// One bag: accumulates its rows in the order of the indices into `result`.
template <class T>
struct Bag {
  using C = ComputeType<T>;
  const T* weight;
  const T* sample_weights;  ///< may be null
  int64_t width;
  BagMode mode;

  void add(C* result, int64_t* chosen, int64_t row, int64_t sample, bool first) const {
    const T* from = weight + row * width;
    if (mode == BagMode::kMax) {
      for (int64_t k = 0; k < width; ++k) {
        const C value = static_cast<C>(from[k]);
        if (!first && !(value > result[k])) continue;
        result[k] = value;
        chosen[k] = row;
      }
      return;
    }
    const C factor = sample_weights != nullptr ? static_cast<C>(sample_weights[sample]) : C(1);
    for (int64_t k = 0; k < width; ++k) result[k] += factor * static_cast<C>(from[k]);
  }
};

void embedding_bag(const Out& out, const Out& bag_of, const Out& bag_sizes, const Out& chosen_rows,
                   const In& weight, const In& indices, const In& offsets, bool,
                   int64_t mode_number, bool, const In& sample_weights, bool, int64_t padding_idx) {
  const int64_t bags = out.size(0), width = out.size(1);
  const BagMode mode = static_cast<BagMode>(mode_number);
  const std::vector<int64_t> rows = read_indices("_embedding_bag", indices, weight.size(0));
  const std::vector<int64_t> bounds = read_bounds(offsets, bags, static_cast<int64_t>(rows.size()));
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const Bag<T> bag{weight.data<T>(),
                     sample_weights.defined() ? sample_weights.data<T>() : nullptr, width, mode};
    parallel_for(0, bags, 64, [&](int64_t first, int64_t last) {
      std::vector<C> result(static_cast<size_t>(width));
      std::vector<int64_t> chosen(static_cast<size_t>(width));
      for (int64_t b = first; b < last; ++b) {
        std::fill(result.begin(), result.end(), C(0));
        std::fill(chosen.begin(), chosen.end(), 0);
        int64_t used = 0;
        for (int64_t i = bounds[static_cast<size_t>(b)]; i < bounds[static_cast<size_t>(b) + 1];
             ++i) {
          set_index(bag_of, i, b);
          const int64_t row = rows[static_cast<size_t>(i)];
          if (row == padding_idx) continue;
          bag.add(result.data(), chosen.data(), row, i, used == 0);
          ++used;
        }
        const C divisor = mode == BagMode::kMean && used > 0 ? static_cast<C>(used) : C(1);
        for (int64_t k = 0; k < width; ++k) {
          out.data<T>()[b * width + k] = T(result[static_cast<size_t>(k)] / divisor);
        }
        // As in ATen, sum mode reports bag sizes of 0.
        const int64_t size = mode == BagMode::kSum ? 0 : used;
        set_index(bag_sizes, b, size);
        if (mode != BagMode::kMax) set_index(chosen_rows, b, size);
        for (int64_t k = 0; mode == BagMode::kMax && k < width; ++k) {
          set_index(chosen_rows, b * width + k, chosen[static_cast<size_t>(k)]);
        }
      }
    });
  });
}

}  // namespace

LS_KERNEL(CPU, "_embedding_bag", embedding_bag, Strides::kContiguous);

}  // namespace lockstep::cpu

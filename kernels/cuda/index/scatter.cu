#include "kernels/common/functors.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/index/index_list.cuh"
#include "kernels/cuda/index/scatter.h"

namespace lockstep::cuda {

namespace {

/// Calls visit(offset in out, first, end, function giving a position's offset in values) for each
/// place and column of this thread; [first, end) is the place's range of sorted positions.
template <class Visit>
__device__ void each_place(const GroupedWrite& p, const Visit& visit) {
  for (int64_t item = grid_thread(); item < p.items; item += grid_threads()) {
    const int64_t first = p.columns.quotient(item);
    const uint32_t place = p.places[first];
    if (place == IndexList::kNoPlace || (first > 0 && p.places[first - 1] == place)) continue;
    int64_t end = first + 1;
    while (end < p.count && p.places[end] == place) ++end;
    int64_t column[2];
    p.column_walk.offsets(item - first * p.columns.divisor, column);
    visit(place * p.place_stride + column[0], first, end, [&](int64_t i) {
      int64_t at[1];
      p.position_walk.offsets(p.positions[i], at);
      return at[0] + column[1];
    });
  }
}

__device__ const char* element_at(const void* data, int64_t i, DType dtype) {
  return static_cast<const char*>(data) + i * element_size(dtype);
}
__device__ char* element_at(void* data, int64_t i, DType dtype) {
  return static_cast<char*>(data) + i * element_size(dtype);
}

template <class C>
__device__ C factor_of(const GroupedWrite& p) {
  if constexpr (std::is_integral_v<C>) return p.integer_factor;
  return static_cast<C>(p.real_factor);
}

/// f16 and bf16 are summed in f32 and rounded once.
template <class C>
__device__ void add_values(const GroupedWrite& p) {
  const C factor = factor_of<C>(p);
  each_place(p, [&](int64_t to, int64_t first, int64_t end, const auto& value_place) {
    C sum = load_as<C>(p.dtype, element_at(p.out, to, p.dtype));
    for (int64_t i = first; i < end; ++i) {
      const C value = load_as<C>(p.dtype, element_at(p.values, value_place(i), p.dtype));
      sum = functors::Add()(sum, functors::Multiply()(factor, value));
    }
    store_as(p.dtype, element_at(p.out, to, p.dtype), sum);
  });
}

/// Writes the value of the last position.
template <class Unit>
__device__ void keep_last(const GroupedWrite& p) {
  each_place(p, [&](int64_t to, int64_t, int64_t end, const auto& value_place) {
    static_cast<Unit*>(p.out)[to] = static_cast<const Unit*>(p.values)[value_place(end - 1)];
  });
}

template <class C>
__device__ C joined(ScatterJoin join, C a, C b) {
  switch (join) {
    case ScatterJoin::kProd:
      return functors::Multiply()(a, b);
    case ScatterJoin::kAmax:
      return functors::Maximum()(a, b);
    case ScatterJoin::kAmin:
      return functors::Minimum()(a, b);
    default:
      return functors::Add()(a, b);
  }
}

/// The sum divided by the number of values; integers wrap around in their dtype and round down.
template <class C>
__device__ C mean_of(DType dtype, C sum, int64_t count) {
  if constexpr (std::is_integral_v<C>) {
    if (dtype == DType::kBool) return sum / count;
    int64_t total = 0;
    store_as(dtype, &total, sum);
    total = load_as<int64_t>(dtype, &total);
    return total / count - (total % count < 0 ? 1 : 0);
  } else {
    return sum / static_cast<C>(count);
  }
}

template <class C>
__device__ void reduce_values(const GroupedWrite& p) {
  each_place(p, [&](int64_t to, int64_t first, int64_t end, const auto& value_place) {
    const auto read = [&](int64_t i) {
      return load_as<C>(p.dtype, element_at(p.values, value_place(i), p.dtype));
    };
    char* const target = element_at(p.out, to, p.dtype);
    C value = p.include_self ? load_as<C>(p.dtype, target) : read(first);
    for (int64_t i = p.include_self ? first : first + 1; i < end; ++i) {
      value = joined(p.join, value, read(i));
    }
    const int64_t count = end - first + (p.include_self ? 1 : 0);
    if (p.join == ScatterJoin::kMean) value = mean_of(p.dtype, value, count);
    store_as(p.dtype, target, value);
  });
}

/// Stores a number where other threads may store the same one, in any order. Volatile, as the
/// memory model of a GPU has no race of such stores; ThreadSanitizer is told by this function's
/// name (tests/emulation/sound_races.supp).
template <class Unit>
__device__ void store_same(Unit* place, Unit number) {
  *static_cast<volatile Unit*>(place) = number;
}

template <class Unit>
__device__ void fill_places(const ScatterFill& p) {
  const Unit number = *reinterpret_cast<const Unit*>(p.number);
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t at[2];
    p.walk.offsets(i, at);
    const int64_t index = read_index(p.list, at[1]);
    if (index >= 0) store_same(static_cast<Unit*>(p.out) + at[0] + index * p.stride, number);
  }
}

}  // namespace

LS_CUDA_KERNEL(scatter_add_f32, GroupedWrite, 256) { add_values<float>(p); }
LS_CUDA_KERNEL(scatter_add_f64, GroupedWrite, 256) { add_values<double>(p); }
LS_CUDA_KERNEL(scatter_add_i64, GroupedWrite, 256) { add_values<int64_t>(p); }
LS_CUDA_KERNEL(scatter_reduce_f32, GroupedWrite, 256) { reduce_values<float>(p); }
LS_CUDA_KERNEL(scatter_reduce_f64, GroupedWrite, 256) { reduce_values<double>(p); }
LS_CUDA_KERNEL(scatter_reduce_i64, GroupedWrite, 256) { reduce_values<int64_t>(p); }
LS_CUDA_KERNEL(scatter_last_b1, GroupedWrite, 256) { keep_last<uint8_t>(p); }
LS_CUDA_KERNEL(scatter_last_b2, GroupedWrite, 256) { keep_last<uint16_t>(p); }
LS_CUDA_KERNEL(scatter_last_b4, GroupedWrite, 256) { keep_last<uint32_t>(p); }
LS_CUDA_KERNEL(scatter_last_b8, GroupedWrite, 256) { keep_last<uint64_t>(p); }
LS_CUDA_KERNEL(scatter_fill_b1, ScatterFill, 256) { fill_places<uint8_t>(p); }
LS_CUDA_KERNEL(scatter_fill_b2, ScatterFill, 256) { fill_places<uint16_t>(p); }
LS_CUDA_KERNEL(scatter_fill_b4, ScatterFill, 256) { fill_places<uint32_t>(p); }
LS_CUDA_KERNEL(scatter_fill_b8, ScatterFill, 256) { fill_places<uint64_t>(p); }

}  // namespace lockstep::cuda

#pragma once

#include <cstdint>

#include "kernels/cuda/divider.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/index/index_list.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/loop_elements.h"
#include "kernels/cuda/random/random_words.cuh"

namespace lockstep::cuda {

// How a kernel that is made at run time (loop_source.h) reads and writes elements. A thread
// computes kLoopPack adjacent ones at a time.

/// Elements [first, first + kLoopPack) of an array of `count`, zeros behind its end. `packed`:
/// whole packs may be read at once.
template <class T>
__device__ inline Pack<T, kLoopPack> load_pack(const char* array, int64_t first, int64_t count,
                                               bool packed) {
  if (packed && first + kLoopPack <= count) {
    return reinterpret_cast<const Pack<T, kLoopPack>*>(array)[first / kLoopPack];
  }
  Pack<T, kLoopPack> pack{};
#pragma unroll
  for (int k = 0; k < kLoopPack; ++k) {
    if (first + k < count) pack.at[k] = reinterpret_cast<const T*>(array)[first + k];
  }
  return pack;
}
template <class T>
__device__ inline void store_pack(char* array, int64_t first, int64_t count, bool packed,
                                  const Pack<T, kLoopPack>& pack) {
  if (packed && first + kLoopPack <= count) {
    reinterpret_cast<Pack<T, kLoopPack>*>(array)[first / kLoopPack] = pack;
    return;
  }
#pragma unroll
  for (int k = 0; k < kLoopPack; ++k) {
    if (first + k < count) reinterpret_cast<T*>(array)[first + k] = pack.at[k];
  }
}

/// Where an element lies in rows of `period` elements, from one to the next.
struct RowPlace {
  uint32_t row;
  uint32_t column;

  __device__ RowPlace(const Divider& period, int64_t at)
      : row(period.quotient(static_cast<uint32_t>(at))),
        column(static_cast<uint32_t>(at) - row * period.divisor) {}
  __device__ void next(const Divider& period) {
    if (++column < period.divisor) return;
    column = 0;
    ++row;
  }
};

/// The element of a table in the row that the list names; 0 if there is no such row, which is a
/// fault of the list, and where nothing `is_there`.
template <class T>
__device__ inline T gathered(const T* table, const IndexList& list, const RowPlace& place,
                             const Divider& length, bool is_there) {
  const int64_t row = is_there ? read_index(list, place.row) : -1;
  return row < 0 ? T{} : table[row * length.divisor + place.column];
}

/// What a thread computes first, and from there to what it computes next.
__device__ inline int64_t first_of_thread() { return grid_thread() * kLoopPack; }
__device__ inline int64_t to_next_of_thread() { return grid_threads() * kLoopPack; }

/// What a functor computed in its lane, as it is stored; truth values are bytes.
template <class Stored, class Lane>
__device__ inline Stored as_stored(Lane value) {
  return convert<Stored>(value);
}
template <class Lane>
__device__ inline uint8_t as_truth(Lane value) {
  return convert<bool>(value) ? 1 : 0;
}

/// A functor or number of the program.
template <class T>
__device__ inline T constant_at(const unsigned char* at) {
  return *reinterpret_cast<const T*>(at);
}

}  // namespace lockstep::cuda

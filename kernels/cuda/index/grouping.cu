#include "kernels/cuda/index/grouping_params.h"
#include "kernels/cuda/index/index_list.cuh"

namespace lockstep::cuda {

namespace {

constexpr int kDigits = 256;
constexpr int kWarps = 8;  // warps per block

__device__ uint32_t digit_of(const GroupPass& p, int64_t i) {
  const uint32_t place = p.places[i];
  return ((place == IndexList::kNoPlace ? p.none : place) >> p.shift) % kDigits;
}

/// Exclusive prefix sum over the lanes.
__device__ uint32_t sum_before(uint32_t value, int lane) {
  uint32_t sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(0xffffffffU, sum, step);
    if (lane >= step) sum += other;
  }
  return sum - value;
}

}  // namespace

LS_CUDA_KERNEL(grouping_places, IndexPlaces, 256) {
  for (int64_t i = grid_thread(); i < p.count; i += grid_threads()) {
    int64_t at[2];
    p.positions.offsets(i, at);
    const int64_t index = read_index(p.list, at[0]);
    const bool has_place = p.is_first || p.places[i] != IndexList::kNoPlace;
    const int64_t base = p.is_first ? at[1] : static_cast<int64_t>(p.places[i]);
    p.places[i] = index >= 0 && has_place ? static_cast<uint32_t>(base + index * p.stride)
                                          : IndexList::kNoPlace;
  }
}

// One pass of a stable radix sort: count, prefix sum, scatter.

LS_CUDA_KERNEL(grouping_count, GroupPass, kWarps * 32) {
  __shared__ uint32_t counts[kWarps][kDigits];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int d = lane; d < kDigits; d += 32) counts[warp][d] = 0;
  __syncwarp();
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + warp;
  const int64_t end =
      unit * p.per_unit + p.per_unit < p.count ? unit * p.per_unit + p.per_unit : p.count;
  for (int64_t i = unit * p.per_unit + lane; i < end; i += 32) {
    atomicAdd(&counts[warp][digit_of(p, i)], 1U);
  }
  __syncwarp();
  if (unit >= p.units) return;
  for (int d = lane; d < kDigits; d += 32) {
    p.table[static_cast<int64_t>(d) * p.units + unit] = counts[warp][d];
  }
}

/// One warp per digit computes where each unit's elements begin among those of the digit.
LS_CUDA_KERNEL(grouping_scan, GroupPass, kWarps * 32) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t digit = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  uint32_t* const row = p.table + digit * p.units;
  uint32_t total = 0;
  for (uint32_t first = 0; first < p.units; first += 32) {
    const uint32_t unit = first + static_cast<uint32_t>(lane);
    const uint32_t value = unit < p.units ? row[unit] : 0;
    const uint32_t before = sum_before(value, lane);
    if (unit < p.units) row[unit] = total + before;
    total += __shfl_sync(0xffffffffU, before + value, 31);
  }
  if (lane == 0) p.totals[digit] = total;
}

LS_CUDA_KERNEL(grouping_move, GroupPass, kWarps * 32) {
  static_assert(kWarps * 32 == kDigits, "a thread for each digit");
  __shared__ uint32_t places[kWarps][kDigits];
  __shared__ uint32_t starts[kDigits];
  __shared__ uint32_t warp_totals[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t total = p.totals[threadIdx.x];
  const uint32_t before = sum_before(total, lane);
  if (lane == 31) warp_totals[warp] = before + total;
  __syncthreads();
  uint32_t start = before;
  for (int w = 0; w < warp; ++w) start += warp_totals[w];
  starts[threadIdx.x] = start;
  __syncthreads();

  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kWarps + warp;
  if (unit >= p.units) return;
  for (int d = lane; d < kDigits; d += 32) {
    places[warp][d] = starts[d] + p.table[static_cast<int64_t>(d) * p.units + unit];
  }
  __syncwarp();
  const int64_t first = unit * p.per_unit;
  const int64_t end = first + p.per_unit < p.count ? first + p.per_unit : p.count;
  for (int64_t row = first; row < end; row += 32) {
    const int64_t i = row + lane;
    const bool is_there = i < end;
    const uint32_t digit = is_there ? digit_of(p, i) : 0;
    // Lanes with the same digit write to consecutive places.
    unsigned peers = __ballot_sync(0xffffffffU, is_there);
    for (int bit = 0; bit < 8; ++bit) {
      const unsigned ones = __ballot_sync(0xffffffffU, (digit >> bit) & 1U);
      peers &= ((digit >> bit) & 1U) != 0 ? ones : ~ones;
    }
    const int rank = __popc(peers & ((1U << lane) - 1U));
    if (is_there) {
      const uint32_t to = places[warp][digit] + static_cast<uint32_t>(rank);
      p.places_out[to] = p.places[i];
      p.positions_out[to] = p.positions == nullptr ? static_cast<uint32_t>(i) : p.positions[i];
    }
    __syncwarp();
    if (is_there && rank == 0) places[warp][digit] += static_cast<uint32_t>(__popc(peers));
    __syncwarp();
  }
}

}  // namespace lockstep::cuda

// Bitonic sort (Batcher 1968): in shared memory for strides that fit, larger strides in passes over
// all entries. Entries carry their index, so no two compare equal and the sort is stable.

#include <algorithm>

#include "kernels/common/select_rank.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/sort/sort.h"

namespace lockstep::cuda {

namespace {

__device__ bool is_behind(const SortEntry& a, const SortEntry& b) {
  return a.key > b.key || (a.key == b.key && a.index > b.index);
}

/// Compares and swaps pair number `pair` of the entries `stride` apart. Runs of `size` entries are
/// sorted in ascending and descending order alternately; `offset` is the chunk's position in its
/// line.
__device__ void compare(SortEntry* entries, int64_t offset, int64_t pair, int64_t size,
                        int64_t stride) {
  const int64_t low = (pair & ~(stride - 1)) * 2 + (pair & (stride - 1));
  SortEntry &a = entries[low], &b = entries[low + stride];
  const bool ascends = ((offset + low) & size) == 0;
  if (is_behind(a, b) != ascends) return;
  const SortEntry kept = a;
  a = b;
  b = kept;
}

__device__ SortEntry entry_of(const Sort& p, int64_t line, int64_t i) {
  // Padding past the line's end sorts last.
  if (i >= p.lines.n) return {kNanKey, INT64_MAX};
  const int64_t at = p.lines.start(line, p.lines.n) + i * p.lines.inner;
  const char* from = static_cast<const char*>(p.self) + at * element_size(p.dtype);
  const uint64_t key = is_floating(p.dtype) ? sort_key(load_as<double>(p.dtype, from))
                                            : sort_key(load_as<int64_t>(p.dtype, from));
  return {p.descending ? ~key : key, i};
}

/// Sorts one chunk of one line: with `begins`, from the input up to runs of the chunk's size; else
/// one merge step.
__device__ void sort_chunk(const Sort& p, bool begins) {
  __shared__ SortEntry shared[Sort::kChunk];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * p.chunk;
  const int64_t line = first / p.room, offset = first % p.room;
  for (int64_t i = threadIdx.x; i < p.chunk; i += blockDim.x) {
    shared[i] = begins ? entry_of(p, line, offset + i) : p.entries[first + i];
  }
  for (int64_t size = begins ? 2 : p.size; size <= (begins ? p.chunk : p.size); size *= 2) {
    const int64_t widest = size < p.chunk ? size : p.chunk;
    for (int64_t stride = widest / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int64_t pair = threadIdx.x; pair < p.chunk / 2; pair += blockDim.x) {
        compare(shared, offset, pair, size, stride);
      }
    }
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < p.chunk; i += blockDim.x) p.entries[first + i] = shared[i];
}

/// Moves the first `p.length` entries of a short line to the front; of equal entries those that the
/// CPU takes.
__device__ void choose_first(const Sort& p, SortEntry* entries) {
  const auto by_key = [](const SortEntry& a, const SortEntry& b) { return a.key < b.key; };
  SortEntry *const end = entries + p.length, *const last = entries + p.lines.n;
  if (p.length * 64 <= p.lines.n) {
    std::partial_sort(entries, end, last, by_key);
    return;
  }
  std::nth_element(entries, end - 1, last, by_key);
  if (!p.ranked) return;
  for (SortEntry* next = entries + 1; next < end - 1; ++next) {
    const SortEntry entry = *next;
    SortEntry* to = next;
    for (; to > entries && entry.key < to[-1].key; --to) *to = to[-1];
    *to = entry;
  }
}

/// One thread per short line: moves the entries to write to their positions.
template <class Choose>
__device__ void sort_short(const Sort& p, Choose choose) {
  for (int64_t line = grid_thread(); line < p.lines.count(); line += grid_threads()) {
    SortEntry* const entries = p.entries + line * p.room;
    for (int64_t i = 0; i < p.lines.n; ++i) entries[i] = entry_of(p, line, i);
    choose(entries);
  }
}

/// One thread per element to write.
template <class T>
__device__ void sort_write(const Sort& p) {
  for (int64_t i = grid_thread(); i < p.lines.count() * p.length; i += grid_threads()) {
    const int64_t line = i / p.length, k = i % p.length;
    const int64_t first = p.first_of == nullptr ? p.first : p.first_of[line];
    const int64_t index = p.entries[line * p.room + first + k].index;
    const int64_t to = p.lines.start(line, p.length) + k * p.lines.inner;
    const int64_t from = p.lines.start(line, p.lines.n) + index * p.lines.inner;
    static_cast<T*>(p.values)[to] = static_cast<const T*>(p.self)[from];
    if (p.indices != nullptr) p.indices[to] = index;
  }
}

/// Index of the median of the numbers, or of the first NaN unless NaN is skipped.
__device__ int64_t median_of(const Sort& p, const SortEntry* entries) {
  int64_t numbers = 0, end = p.lines.n;
  while (numbers < end) {
    const int64_t middle = numbers + (end - numbers) / 2;
    if (entries[middle].key == kNanKey) {
      end = middle;
    } else {
      numbers = middle + 1;
    }
  }
  if (numbers < p.lines.n && (!p.skip_nan || numbers == 0)) return numbers;
  return (numbers - 1) / 2;
}

/// Index of the last entry of the longest run of equal keys, the first such run in sorted order.
__device__ int64_t mode_of(const Sort& p, const SortEntry* entries) {
  int64_t found = 0, longest = 0, run = 0;
  for (int64_t i = 0; i < p.lines.n; ++i) {
    ++run;
    const uint64_t key = entries[i].key;
    if (i + 1 < p.lines.n && entries[i + 1].key == key && key != kNanKey) continue;
    if (run > longest) {
      longest = run;
      found = i;
    }
    run = 0;
  }
  return found;
}

}  // namespace

}  // namespace lockstep::cuda

using lockstep::cuda::Sort;

LS_CUDA_KERNEL(sort_begin, Sort, 256) { lockstep::cuda::sort_chunk(p, true); }
LS_CUDA_KERNEL(sort_finish, Sort, 256) { lockstep::cuda::sort_chunk(p, false); }
LS_CUDA_KERNEL(sort_short_first, lockstep::cuda::Sort, 256) {
  lockstep::cuda::sort_short(
      p, [&](lockstep::SortEntry* entries) { lockstep::cuda::choose_first(p, entries); });
}
LS_CUDA_KERNEL(sort_short_rank, lockstep::cuda::Sort, 256) {
  lockstep::cuda::sort_short(
      p, [&](lockstep::SortEntry* entries) { lockstep::select_rank(entries, p.lines.n, p.first); });
}
/// One thread per pair.
LS_CUDA_KERNEL(sort_step, Sort, 256) {
  using namespace lockstep::cuda;
  for (int64_t i = grid_thread(); i < p.lines.count() * p.room / 2; i += grid_threads()) {
    const int64_t line = i / (p.room / 2), pair = i % (p.room / 2);
    compare(p.entries + line * p.room, 0, pair, p.size, p.stride);
  }
}
/// One thread per line.
LS_CUDA_KERNEL(sort_median, Sort, 256) {
  using namespace lockstep::cuda;
  for (int64_t line = grid_thread(); line < p.lines.count(); line += grid_threads()) {
    p.first_of[line] = median_of(p, p.entries + line * p.room);
  }
}
LS_CUDA_KERNEL(sort_mode, Sort, 256) {
  using namespace lockstep::cuda;
  for (int64_t line = grid_thread(); line < p.lines.count(); line += grid_threads()) {
    p.first_of[line] = mode_of(p, p.entries + line * p.room);
  }
}

#define LS_SORT_WRITE(T, suffix) \
  LS_CUDA_KERNEL(sort_write_##suffix, Sort, 256) { lockstep::cuda::sort_write<T>(p); }
LS_SORT_WRITE(uint8_t, b1)
LS_SORT_WRITE(uint16_t, b2)
LS_SORT_WRITE(uint32_t, b4)
LS_SORT_WRITE(uint64_t, b8)

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cpu/elements.h"

namespace lockstep::cpu {

namespace {

/// Elements per block; a block is counted and then written by one task.
constexpr int64_t kBlock = int64_t{1} << 15;

/// Walks a tensor's elements in row-major order over `sizes`, in runs of constant stride.
class Walk {
 public:
  Walk(IntList from_sizes, IntList from_strides, IntList sizes) {
    const Dims strides = broadcast_strides(from_sizes, from_strides, sizes);
    int64_t dense = 1;
    bool contiguous = true;
    for (size_t i = sizes.size(); i-- > 0; dense *= sizes[i]) {
      contiguous = contiguous && (strides[i] == dense || sizes[i] == 1);
    }
    if (contiguous) {
      axes_.push_back({std::max<int64_t>(dense, 1), 1});
    } else {
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] != 1) axes_.push_back({sizes[i], strides[i]});
      }
    }
  }

  /// Number of elements from the `first` on that are one `stride` apart.
  int64_t run(int64_t first) const { return axes_.back().size - first % axes_.back().size; }
  int64_t stride() const { return axes_.back().stride; }
  int64_t offset(int64_t first) const { return offset_at(first, axes_); }

 private:
  Axes axes_;
};

/// Calls visit(first, count) on maximal ranges of [begin, end) that are runs of every walk.
template <class Visit, class... Walks>
void each_run(int64_t begin, int64_t end, Visit&& visit, const Walks&... walks) {
  while (begin < end) {
    const int64_t count = std::min({end - begin, walks.run(begin)...});
    visit(begin, count);
    begin += count;
  }
}

/// Calls body(first, last, block) on each block of [0, numel), in parallel.
template <class Body>
void each_block(int64_t numel, Body&& body) {
  parallel_for(0, (numel + kBlock - 1) / kBlock, 1, [&](int64_t from, int64_t to) {
    for (int64_t block = from; block < to; ++block) {
      body(block * kBlock, std::min(numel, (block + 1) * kBlock), static_cast<size_t>(block));
    }
  });
}

/// Number of nonzero elements before each block; the last entry is the total.
template <class T>
std::vector<int64_t> places_of_nonzero(const T* x, int64_t numel, const Walk& walk) {
  std::vector<int64_t> places(static_cast<size_t>((numel + kBlock - 1) / kBlock) + 1);
  each_block(numel, [&](int64_t first, int64_t last, size_t block) {
    int64_t count = 0;
    each_run(
        first, last,
        [&](int64_t begin, int64_t n) {
          const T* from = x + walk.offset(begin);
          const int64_t step = walk.stride();
          for (int64_t i = 0; i < n; ++i) count += convert<bool>(from[i * step]) ? 1 : 0;
        },
        walk);
    places[block + 1] = count;
  });
  for (size_t i = 1; i < places.size(); ++i) places[i] += places[i - 1];
  return places;
}

Tensor nonzero(const Tensor& self) {
  const auto rank = static_cast<size_t>(self.dim());
  const int64_t numel = self.numel();
  const Walk walk(self.sizes(), self.strides(), self.sizes());
  return with_type(self.dtype(), [&]<class T>() {
    const T* x = self.data<T>();
    const std::vector<int64_t> places = places_of_nonzero(x, numel, walk);
    const Tensor result = empty_tensor({places.back(), self.dim()}, DType::kI64);
    int64_t* const to = result.data<int64_t>();
    each_block(rank == 0 ? 0 : numel, [&](int64_t first, int64_t last, size_t block) {
      int64_t* next = to + places[block] * self.dim();
      each_run(
          first, last,
          [&](int64_t begin, int64_t n) {
            const T* from = x + walk.offset(begin);
            const int64_t step = walk.stride();
            for (int64_t i = 0; i < n; ++i) {
              if (!convert<bool>(from[i * step])) continue;
              int64_t rest = begin + i;
              for (size_t d = rank; d-- > 1; rest /= self.sizes()[d]) {
                next[d] = rest % self.sizes()[d];
              }
              next[0] = rest;
              next += rank;
            }
          },
          walk);
    });
    return result;
  });
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  LS_CHECK(mask.dtype() == DType::kBool, DTypeError,
           "[masked_select] expected a bool mask, got {}.", to_string(mask.dtype()));
  const Dims sizes = broadcast("masked_select", self.sizes(), mask.sizes());
  const int64_t numel = count_elements(sizes);
  const Walk from(self.sizes(), self.strides(), sizes);
  const Walk where(mask.sizes(), mask.strides(), sizes);
  const bool* const chosen = mask.data<bool>();
  const std::vector<int64_t> places = places_of_nonzero(chosen, numel, where);
  Tensor result = empty_tensor({places.back()}, self.dtype());
  with_bits(self.dtype(), [&]<class T>() {
    const T* const x = static_cast<const T*>(self.data());
    T* const y = static_cast<T*>(result.data());
    each_block(numel, [&](int64_t first, int64_t last, size_t block) {
      T* next = y + places[block];
      T* const end = y + places[block + 1];
      each_run(
          first, last,
          [&](int64_t begin, int64_t n) {
            const T* source = x + from.offset(begin);
            const bool* flag = chosen + where.offset(begin);
            const int64_t step = from.stride();
            const int64_t flag_step = where.stride();
            // Branch-free: an element that is not selected is overwritten by the next one.
            for (int64_t i = 0; i < n && next != end; ++i) {
              *next = source[i * step];
              next += flag[i * flag_step] ? 1 : 0;
            }
          },
          from, where);
    });
  });
  return result;
}

void masked_scatter(const Out& out, const In& self, const In& mask, const In& source) {
  const Walk from(self.sizes(), self.strides(), out.sizes());
  const Walk where(mask.sizes(), mask.strides(), out.sizes());
  const bool* const chosen = mask.data<bool>();
  const std::vector<int64_t> places = places_of_nonzero(chosen, out.numel, where);
  LS_CHECK(places.back() <= source.numel, ShapeError,
           "[masked_scatter] the source is too short: its {} elements do not fill the mask's {}.",
           source.numel, places.back());
  with_bits(out.dtype, [&]<class T>() {
    const T* const x = self.data<T>();
    const T* const values = source.data<T>();
    T* const y = out.data<T>();
    each_block(out.numel, [&](int64_t first, int64_t last, size_t block) {
      const T* next = values + places[block];
      each_run(
          first, last,
          [&](int64_t begin, int64_t n) {
            const T* kept = x + from.offset(begin);
            const bool* flag = chosen + where.offset(begin);
            const int64_t step = from.stride();
            const int64_t flag_step = where.stride();
            for (int64_t i = 0; i < n; ++i) {
              y[begin + i] = flag[i * flag_step] ? *next++ : kept[i * step];
            }
          },
          from, where);
    });
  });
}

}  // namespace

LS_KERNEL(CPU, "nonzero", nonzero, Strides::kAny);
LS_KERNEL(CPU, "masked_select", masked_select, Strides::kAny);
LS_KERNEL(CPU, "masked_scatter", masked_scatter, Strides::kContiguous);

}  // namespace lockstep::cpu

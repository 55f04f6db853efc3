#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/at_least_1d.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index/index_lines.h"
#include "kernels/cpu/index/index_reader.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

void index_select(const Out& out, const In& self, int64_t dim, const In& index) {
  const Lines lines(self, dim);
  const std::vector<int64_t> chosen = read_indices("index_select", index, lines.size);
  if (out.numel == 0) return;
  const int64_t count = static_cast<int64_t>(chosen.size());
  const size_t bytes = static_cast<size_t>(lines.inner) * size_of(self.dtype);
  const std::byte* from = self.data<std::byte>();
  std::byte* to = out.data<std::byte>();
  parallel_for(
      0, lines.outer * count, std::max<int64_t>(1, kGrain / std::max<int64_t>(lines.inner, 1)),
      [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const int64_t part = i / count * lines.size + chosen[static_cast<size_t>(i % count)];
          std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(part) * bytes,
                      bytes);
        }
      });
}

template <class T>
void add_to(T& place, T value, Scalar alpha) {
  if constexpr (std::is_same_v<T, bool>) {
    place = place || (value && alpha.to_bool());
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    place = T(static_cast<float>(place) + alpha.to<float>() * static_cast<float>(value));
  } else {
    place = static_cast<T>(place + alpha.to<T>() * value);
  }
}

void index_add(const Out& out, const In& self, int64_t dim, const In& index, const In& source,
               Scalar alpha) {
  const Lines lines(self, dim);
  const std::vector<int64_t> places = read_indices("index_add", index, lines.size);
  const int64_t count = static_cast<int64_t>(places.size());
  const Source unaliased(source, out);
  start_from(out, self);
  with_type(self.dtype, [&]<class T>() {
    T* to = out.data<T>();
    const T* from = unaliased.in().data<T>();
    // Threads own different lines, so that each element receives its terms in the order of the
    // index.
    parallel_for(
        0, lines.outer * lines.inner, std::max<int64_t>(1, kGrain / std::max<int64_t>(count, 1)),
        [&](int64_t first, int64_t last) {
          for (int64_t line = first; line < last; ++line) {
            const int64_t outer = line / lines.inner, inner = line % lines.inner;
            for (int64_t i = 0; i < count; ++i) {
              add_to(
                  to[(outer * lines.size + places[static_cast<size_t>(i)]) * lines.inner + inner],
                  from[(outer * count + i) * lines.inner + inner], alpha);
            }
          }
        });
  });
}

void gather(const Out& out_any, const In& self_any, int64_t dim, const In& index_any, bool) {
  if (index_any.numel == 0) return;
  const In self = at_least_1d(self_any);
  const In index = at_least_1d(index_any);
  const Out out = at_least_1d(out_any);
  const int d = static_cast<int>(dim < 0 ? dim + self.rank : dim);
  const std::vector<int64_t> places = read_indices("gather", index, self.size(d));
  const int64_t length = index.size(d), step = index.stride(d), stride = self.stride(d);
  with_bits(self.dtype, [&]<class T>() {
    const T* from = self.data<T>();
    T* to = out.data<T>();
    parallel_for(
        0, index.numel / length, std::max<int64_t>(1, kGrain / length),
        [&](int64_t first, int64_t last) {
          visit_lines(index, self, out, d, first, last, [&](int64_t at, int64_t base, int64_t) {
            for (int64_t i = 0; i < length; ++i) {
              to[at + i * step] = from[base + places[static_cast<size_t>(at + i * step)] * stride];
            }
          });
        });
  });
}

void scatter_add(const Out& out_any, const In& self_any, int64_t dim, const In& index_any,
                 const In& src_any) {
  const Source unaliased(src_any, out_any);
  start_from(out_any, self_any);
  if (index_any.numel == 0) return;
  const In src = at_least_1d(unaliased.in());
  const In index = at_least_1d(index_any);
  const Out out = at_least_1d(out_any);
  const int d = static_cast<int>(dim < 0 ? dim + out.rank : dim);
  const std::vector<int64_t> places = read_indices("scatter_add", index, out.size(d));
  const int64_t length = index.size(d), step = index.stride(d);
  with_type(out.dtype, [&]<class T>() {
    const T* from = src.data<T>();
    T* to = out.data<T>();
    parallel_for(
        0, index.numel / length, std::max<int64_t>(1, kGrain / length),
        [&](int64_t first, int64_t last) {
          visit_lines(
              index, out, src, d, first, last, [&](int64_t at, int64_t base, int64_t source) {
                for (int64_t i = 0; i < length; ++i) {
                  add_to(to[base + places[static_cast<size_t>(at + i * step)] * out.stride(d)],
                         from[source + i * src.stride(d)], Scalar(1));
                }
              });
        });
  });
}

/// Copies the part of each row [from, to) on one side of the diagonal and zeroes the rest.
void copy_triangle(const Out& out, const In& self, bool lower, int64_t diagonal) {
  const int64_t rows = self.size(-2), columns = self.size(-1);
  if (self.numel == 0) return;
  diagonal = std::clamp(diagonal, -rows, columns);  // outside, all or nothing stays
  const size_t element = size_of(self.dtype);
  const std::byte* from = self.data<std::byte>();
  std::byte* to = out.data<std::byte>();
  parallel_for(0, self.numel / columns, std::max<int64_t>(1, kGrain / columns),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   // Columns left of the split: up to the diagonal, including it (lower) or not
                   // (upper).
                   const int64_t split =
                       std::clamp<int64_t>(i % rows + diagonal + (lower ? 1 : 0), 0, columns);
                   const size_t left = static_cast<size_t>(split) * element;
                   const size_t right = static_cast<size_t>(columns - split) * element;
                   const size_t row = static_cast<size_t>(i * columns) * element;
                   if (lower) {
                     if (to != from) std::memcpy(to + row, from + row, left);
                     std::memset(to + row + left, 0, right);
                   } else {
                     std::memset(to + row, 0, left);
                     if (to != from) std::memcpy(to + row + left, from + row + left, right);
                   }
                 }
               });
}
void tril(const Out& out, const In& self, int64_t diagonal) {
  copy_triangle(out, self, true, diagonal);
}
void triu(const Out& out, const In& self, int64_t diagonal) {
  copy_triangle(out, self, false, diagonal);
}

}  // namespace

LS_KERNEL(CPU, "index_select", index_select, Strides::kContiguous);
LS_KERNEL(CPU, "index_add", index_add, Strides::kContiguous);
LS_KERNEL(CPU, "gather", gather, Strides::kContiguous);
LS_KERNEL(CPU, "scatter_add", scatter_add, Strides::kContiguous);
LS_KERNEL(CPU, "tril", tril, Strides::kContiguous);
LS_KERNEL(CPU, "triu", triu, Strides::kContiguous);

}  // namespace lockstep::cpu

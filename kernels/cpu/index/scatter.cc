#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/ops/index/scatter_rules.h"
#include "kernels/common/at_least_1d.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index/index_lines.h"
#include "kernels/cpu/index/index_reader.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;

/// Lines of an index tensor along one dimension, processed in parallel.
struct IndexedLines {
  In index;
  Out out;
  int dim;
  std::vector<int64_t> places;
  int64_t length;
  int64_t step;

  IndexedLines(std::string_view op, const Out& out_any, int64_t d, const In& index_any)
      : index(at_least_1d(index_any)),
        out(at_least_1d(out_any)),
        dim(static_cast<int>(d < 0 ? d + out.rank : d)),
        places(read_indices(op, index, out.size(dim))),
        length(index.size(dim)),
        step(index.stride(dim)) {}

  int64_t place(int64_t at, int64_t i) const { return places[static_cast<size_t>(at + i * step)]; }

  /// Calls visit(offset of the line in index, in out, in `same`) for each line.
  template <class Visit>
  void for_each(const TensorArg& same, Visit visit) const {
    parallel_for(0, index.numel / length, std::max<int64_t>(1, kGrain / length),
                 [&](int64_t first, int64_t last) {
                   visit_lines(index, out, same, dim, first, last, visit);
                 });
  }
};

void scatter(const Out& out, const In& self, int64_t dim, const In& index, const In& src_any) {
  const Source unaliased(src_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const In src = at_least_1d(unaliased.in());
  const IndexedLines lines("scatter", out, dim, index);
  const int64_t stride = lines.out.stride(lines.dim), from = src.stride(lines.dim);
  with_bits(out.dtype, [&]<class T>() {
    T* y = out.data<T>();
    const T* x = src.data<T>();
    lines.for_each(src, [&](int64_t at, int64_t base, int64_t source) {
      for (int64_t i = 0; i < lines.length; ++i) {
        y[base + lines.place(at, i) * stride] = x[source + i * from];
      }
    });
  });
}

void scatter_value(const Out& out, const In& self, int64_t dim, const In& index, Scalar value) {
  start_from(out, self);
  if (index.numel == 0) return;
  const IndexedLines lines("scatter", out, dim, index);
  const int64_t stride = lines.out.stride(lines.dim);
  with_type(out.dtype, [&]<class T>() {
    T* y = out.data<T>();
    const T number = value.to<T>();
    lines.for_each(lines.index, [&](int64_t at, int64_t base, int64_t) {
      for (int64_t i = 0; i < lines.length; ++i) y[base + lines.place(at, i) * stride] = number;
    });
  });
}

/// Type in which elements of T are reduced: integers exactly, f16 and bf16 in f32, rounded once.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

template <class C>
bool is_nan(C value) {
  if constexpr (std::is_floating_point_v<C>) return std::isnan(value);
  return false;
}

struct Sum {
  template <class C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <class C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};
struct Larger {
  template <class C>
  C operator()(C a, C b) const {
    return is_nan(a) || a > b ? a : b;
  }
};
struct Smaller {
  template <class C>
  C operator()(C a, C b) const {
    return is_nan(a) || a < b ? a : b;
  }
};

/// The sum of `count` elements divided by `count`; integers round down.
template <class T, class C>
C mean_of(C sum, int64_t count) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const int64_t total = static_cast<int64_t>(static_cast<T>(sum));
    return total / count - (total % count < 0 ? 1 : 0);
  } else {
    return sum / static_cast<C>(count);
  }
}

template <class T, bool kMean, class Combine>
void reduce_lines(const IndexedLines& lines, const In& src, bool include_self, Combine combine) {
  using C = Accumulator<T>;
  const int64_t size = lines.out.size(lines.dim);
  const int64_t stride = lines.out.stride(lines.dim), from = src.stride(lines.dim);
  T* y = lines.out.template data<T>();
  const T* x = src.data<T>();
  parallel_for(0, lines.index.numel / lines.length,
               std::max<int64_t>(1, kGrain / (lines.length + size)),
               [&](int64_t first, int64_t last) {
                 std::vector<C> values(static_cast<size_t>(size));
                 std::vector<int64_t> counts(static_cast<size_t>(size));
                 visit_lines(lines.index, lines.out, src, lines.dim, first, last,
                             [&](int64_t at, int64_t base, int64_t source) {
                               std::fill(counts.begin(), counts.end(), 0);
                               for (int64_t i = 0; i < lines.length; ++i) {
                                 const int64_t place = lines.place(at, i);
                                 C& value = values[static_cast<size_t>(place)];
                                 int64_t& count = counts[static_cast<size_t>(place)];
                                 const C read = convert<C>(x[source + i * from]);
                                 if (count == 0 && include_self) {
                                   value = convert<C>(y[base + place * stride]);
                                   ++count;
                                 }
                                 value = count == 0 ? read : combine(value, read);
                                 ++count;
                               }
                               for (int64_t p = 0; p < size; ++p) {
                                 const int64_t count = counts[static_cast<size_t>(p)];
                                 if (count == 0) continue;
                                 const C value = values[static_cast<size_t>(p)];
                                 y[base + p * stride] =
                                     convert<T>(kMean ? mean_of<T, C>(value, count) : value);
                               }
                             });
               });
}

void scatter_reduce(const Out& out, const In& self, int64_t dim, const In& index, const In& src_any,
                    std::string_view reduce, bool include_self) {
  const Source unaliased(src_any, out);
  start_from(out, self);
  if (index.numel == 0) return;
  const In src = at_least_1d(unaliased.in());
  const IndexedLines lines("scatter_reduce", out, dim, index);
  const ScatterReduction reduction = rules::scatter_reduction(reduce);
  with_type(out.dtype, [&]<class T>() {
    switch (reduction) {
      case ScatterReduction::kSum:
        return reduce_lines<T, false>(lines, src, include_self, Sum{});
      case ScatterReduction::kProd:
        return reduce_lines<T, false>(lines, src, include_self, Product{});
      case ScatterReduction::kMean:
        return reduce_lines<T, true>(lines, src, include_self, Sum{});
      case ScatterReduction::kAmax:
        return reduce_lines<T, false>(lines, src, include_self, Larger{});
      case ScatterReduction::kAmin:
        return reduce_lines<T, false>(lines, src, include_self, Smaller{});
    }
  });
}

/// Calls body(outer, first, count), in parallel, for ranges of inner elements that cover
/// [outer][inner] exactly once.
template <class Body>
void for_inner_ranges(const Lines& lines, int64_t repeats, Body body) {
  parallel_for(0, lines.outer * lines.inner,
               std::max<int64_t>(64, kGrain / std::max<int64_t>(repeats, 1)),
               [&](int64_t first, int64_t last) {
                 while (first < last) {
                   const int64_t inner = first % lines.inner;
                   const int64_t count = std::min(last - first, lines.inner - inner);
                   body(first / lines.inner, inner, count);
                   first += count;
                 }
               });
}

void index_copy(const Out& out, const In& self, int64_t dim, const In& index,
                const In& source_any) {
  const Lines lines(self, dim);
  const std::vector<int64_t> places = read_indices("index_copy", index, lines.size);
  const int64_t count = static_cast<int64_t>(places.size());
  const Source unaliased(source_any, out);
  start_from(out, self);
  with_bits(out.dtype, [&]<class T>() {
    T* y = out.data<T>();
    const T* x = unaliased.in().data<T>();
    for_inner_ranges(lines, count, [&](int64_t outer, int64_t first, int64_t length) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t to = outer * lines.size + places[static_cast<size_t>(i)];
        std::copy_n(x + (outer * count + i) * lines.inner + first, length,
                    y + to * lines.inner + first);
      }
    });
  });
}

void index_fill(const Out& out, const In& self, int64_t dim, const In& index, Scalar value) {
  const Lines lines(self, dim);
  const std::vector<int64_t> places = read_wrapped_indices("index_fill", index, lines.size, dim);
  start_from(out, self);
  with_type(out.dtype, [&]<class T>() {
    T* y = out.data<T>();
    const T number = value.to<T>();
    for_inner_ranges(lines, static_cast<int64_t>(places.size()),
                     [&](int64_t outer, int64_t first, int64_t length) {
                       for (const int64_t place : places) {
                         std::fill_n(y + (outer * lines.size + place) * lines.inner + first, length,
                                     number);
                       }
                     });
  });
}

}  // namespace

LS_KERNEL(CPU, "scatter.src", scatter, Strides::kContiguous);
LS_KERNEL(CPU, "scatter.value", scatter_value, Strides::kContiguous);
LS_KERNEL(CPU, "scatter_reduce.two", scatter_reduce, Strides::kContiguous);
LS_KERNEL(CPU, "index_copy", index_copy, Strides::kContiguous);
LS_KERNEL(CPU, "index_fill.int_Scalar", index_fill, Strides::kContiguous);

}  // namespace lockstep::cpu

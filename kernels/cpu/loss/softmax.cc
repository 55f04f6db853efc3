#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/loss/exp_row.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;   // minimum elements per task
constexpr int64_t kColumns = 128;  // adjacent lines processed together when inner > 1
constexpr int64_t kTile = 262144;  // elements of such a group of lines that fit into the L2 cache

/// View of a contiguous tensor as [outer, n, inner] around the normalised dimension.
struct Lines {
  Lines(const TensorArg& tensor, int64_t dim) {
    if (tensor.rank == 0) return;
    const int d = static_cast<int>(wrap_dim("softmax", dim, tensor.rank));
    n = tensor.size(d);
    for (int i = 0; i < d; ++i) outer *= tensor.size(i);
    for (int i = d + 1; i < tensor.rank; ++i) inner *= tensor.size(i);
  }
  int64_t outer = 1;
  int64_t n = 1;
  int64_t inner = 1;
};

/// `width` adjacent lines whose successive elements are `stride` apart. y may be a.
template <class C>
struct Columns {
  C* y;
  const C* a;
  const C* b;  ///< the second input of a backward
  int64_t n;
  int64_t width;
  int64_t stride;
};

/// totals[k] = sum over i of term(i, k): f32 within a block, f64 across blocks.
template <class C, class Term>
void sum_columns(C* totals, int64_t n, int64_t width, Term term) {
  constexpr int64_t kBlock = 128;
  double wide[kColumns] = {};
  C narrow[kColumns];
  for (int64_t first = 0; first < n; first += kBlock) {
    std::fill_n(narrow, width, C(0));
    for (int64_t i = first; i < std::min(n, first + kBlock); ++i) {
      for (int64_t k = 0; k < width; ++k) narrow[k] += term(i, k);
    }
    for (int64_t k = 0; k < width; ++k) wide[k] += static_cast<double>(narrow[k]);
  }
  for (int64_t k = 0; k < width; ++k) totals[k] = static_cast<C>(wide[k]);
}
template <class C>
void largest_of_columns(C* largest, const Columns<C>& c) {
  std::fill_n(largest, c.width, LargestOf<C>::identity());
  for (int64_t i = 0; i < c.n; ++i) {
    for (int64_t k = 0; k < c.width; ++k) {
      largest[k] = LargestOf<C>::combine(largest[k], c.a[i * c.stride + k]);
    }
  }
}

// Each of these structs implements one operator: `row` for a line that is contiguous (y from a, and
// b), `columns` for several adjacent lines.

// Rows of bf16 are read twice and not stored in between: `bf16_row` converts as it reads. If the
// largest element is not finite, the whole result is NaN.

bool fill_unless_finite(BFloat16* y, int64_t n, float largest) {
  if (std::isfinite(largest)) return false;
  std::fill_n(y, n, BFloat16(std::numeric_limits<float>::quiet_NaN()));
  return true;
}

struct Softmax {
  template <bool kPairs>
  static void bf16_row(BFloat16* y, const BFloat16* x, float* buffer, int64_t n) {
    const float largest = largest_of_row(x, n);
    if (fill_unless_finite(y, n, largest)) return;
    fetching_next_row(x, n, [&](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i) {
        buffer[i] = exp_of_negative(static_cast<float>(x[i]) - largest);
      }
    });
    const float scale = 1.0F / join_row<SumOf<float>, kPairs>(buffer, n);
    for (int64_t i = 0; i < n; ++i) y[i] = BFloat16(buffer[i] * scale);
  }
  template <bool kPairs, class C>
  static void row(C* y, const C* x, const C*, int64_t n) {
    const C largest = join_row<LargestOf<C>, kPairs>(x, n);
    fetching_next_row(
        x, n, [&](int64_t first, int64_t count) { exp_row(y + first, x + first, count, largest); });
    const C scale = C(1) / join_row<SumOf<C>, kPairs>(y, n);
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
  template <class C>
  static void columns(const Columns<C>& c) {
    C largest[kColumns], totals[kColumns];
    largest_of_columns(largest, c);
    for (int64_t i = 0; i < c.n; ++i) {
      C* y = c.y + i * c.stride;
      const C* x = c.a + i * c.stride;
#pragma GCC ivdep
      for (int64_t k = 0; k < c.width; ++k) y[k] = elementary::exp(x[k] - largest[k]);
    }
    sum_columns(totals, c.n, c.width, [&](int64_t i, int64_t k) { return c.y[i * c.stride + k]; });
    for (int64_t k = 0; k < c.width; ++k) totals[k] = C(1) / totals[k];
    for (int64_t i = 0; i < c.n; ++i) {
      C* y = c.y + i * c.stride;
#pragma GCC ivdep
      for (int64_t k = 0; k < c.width; ++k) y[k] *= totals[k];
    }
  }
};

struct LogSoftmax {
  template <bool kPairs>
  static void bf16_row(BFloat16* y, const BFloat16* x, float* buffer, int64_t n) {
    const float largest = largest_of_row(x, n);
    if (fill_unless_finite(y, n, largest)) return;
    double sum = 0;
    for (int64_t first = 0; first < n; first += kLaneBlock) {
      const int64_t length = std::min(kLaneBlock, n - first);
      for (int64_t i = 0; i < length; ++i) {
        buffer[i] = exp_of_negative(static_cast<float>(x[first + i]) - largest);
      }
      sum += static_cast<double>(join_row<SumOf<float>, kPairs>(buffer, length));
    }
    const float rest = elementary::log(static_cast<float>(sum));
    fetching_next_row(x, n, [&](int64_t first, int64_t count) {
#pragma GCC ivdep
      for (int64_t i = first; i < first + count; ++i) {
        y[i] = BFloat16((static_cast<float>(x[i]) - largest) - rest);
      }
    });
  }
  template <bool kPairs, class C>
  static void row(C* y, const C* x, const C*, int64_t n) {
    LogSumExp<C> total;
    total.template add<kPairs>(x, n);
    // Subtracted one after the other: shift + rest would lose digits when the shift is large
    // compared with the spread of x.
    const C shift = total.shift(), rest = total.log_sum();
    fetching_next_row(x, n, [&](int64_t first, int64_t count) {
#pragma GCC ivdep
      for (int64_t i = first; i < first + count; ++i) y[i] = (x[i] - shift) - rest;
    });
  }
  template <class C>
  static void columns(const Columns<C>& c) {
    C largest[kColumns], rests[kColumns];
    largest_of_columns(largest, c);
    sum_columns(rests, c.n, c.width, [&](int64_t i, int64_t k) {
      return elementary::exp(c.a[i * c.stride + k] - largest[k]);
    });
    for (int64_t k = 0; k < c.width; ++k) rests[k] = elementary::log(rests[k]);
    for (int64_t i = 0; i < c.n; ++i) {
      C* y = c.y + i * c.stride;
      const C* x = c.a + i * c.stride;
#pragma GCC ivdep
      for (int64_t k = 0; k < c.width; ++k) y[k] = (x[k] - largest[k]) - rests[k];
    }
  }
};

struct SoftmaxBackward {
  template <bool kPairs, class C>
  static void row(C* dx, const C* g, const C* y, int64_t n) {
    double along = 0;
    for (int64_t i = 0; i < n; i += kLaneBlock) {
      LaneAccumulator<SumOf<C>> lanes;
      lanes.add_each(
          std::min(kLaneBlock, n - i),
          [&](int64_t k) -> Vector<C> { return load_vector(g + i + k) * load_vector(y + i + k); },
          [&](int64_t k) -> C { return g[i + k] * y[i + k]; });
      along += static_cast<double>(lanes.total());
    }
    const C mean = static_cast<C>(along);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (g[i] - mean);
  }
  template <class C>
  static void columns(const Columns<C>& c) {
    C along[kColumns];
    sum_columns(along, c.n, c.width, [&](int64_t i, int64_t k) {
      return c.a[i * c.stride + k] * c.b[i * c.stride + k];
    });
    for (int64_t i = 0; i < c.n; ++i) {
      const int64_t at = i * c.stride;
#pragma GCC ivdep
      for (int64_t k = 0; k < c.width; ++k) c.y[at + k] = c.b[at + k] * (c.a[at + k] - along[k]);
    }
  }
};

struct LogSoftmaxBackward {
  template <bool kPairs, class C>
  static void row(C* dx, const C* g, const C* y, int64_t n) {
    const C total = join_row<SumOf<C>, kPairs>(g, n);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dx[i] = g[i] - elementary::exp(y[i]) * total;
  }
  template <class C>
  static void columns(const Columns<C>& c) {
    C totals[kColumns];
    sum_columns(totals, c.n, c.width, [&](int64_t i, int64_t k) { return c.a[i * c.stride + k]; });
    for (int64_t i = 0; i < c.n; ++i) {
      const int64_t at = i * c.stride;
#pragma GCC ivdep
      for (int64_t k = 0; k < c.width; ++k) {
        c.y[at + k] = c.a[at + k] - elementary::exp(c.b[at + k]) * totals[k];
      }
    }
  }
};

/// to[i][k] = from[i][k] for n rows of `width`, converted.
template <class To, class From>
void convert_tile(To* to, int64_t to_stride, const From* from, int64_t from_stride, int64_t n,
                  int64_t width) {
  if (to_stride == width && from_stride == width) {  // one long row, which vectorises
    width *= n;
    n = 1;
  }
  for (int64_t i = 0; i < n; ++i) {
    To* __restrict y = to + i * to_stride;
    const From* __restrict x = from + i * from_stride;
    for (int64_t k = 0; k < width; ++k) y[k] = convert<To>(x[k]);
  }
}

/// Work that is distributed over threads: lines, or tiles of `width` adjacent lines.
template <class To, class From>
struct LineRange {
  Lines lines;
  int64_t width;
  int64_t tiles;  ///< tiles per outer index
  To* y;
  const From* a;
  const From* b;  ///< null in the forward pass
  bool streamed;
};

template <class Work>
concept ReadsBFloat16 = requires(BFloat16* y, const BFloat16* x, float* buffer, int64_t n) {
  Work::template bf16_row<false>(y, x, buffer, n);
};

template <class To, class From>
inline constexpr bool kDirect =
    std::is_same_v<To, ComputeType<From>>&& std::is_same_v<From, ComputeType<From>>;

template <class Work, class To, class From, bool kPairs>
void some_rows(const LineRange<To, From>& all, int64_t first, int64_t last) {
  using C = ComputeType<From>;
  const int64_t n = all.lines.n;
  std::vector<C> buffers(kDirect<To, From> ? 0 : static_cast<size_t>(3 * n));
  std::vector<To> target(all.streamed ? static_cast<size_t>(n) : 0);
  for (int64_t i = first; i < last; ++i) {
    const From* a = all.a + i * n;
    const From* b = all.b != nullptr ? all.b + i * n : nullptr;
    To* const y = all.streamed ? target.data() : all.y + i * n;
    if constexpr (kDirect<To, From>) {
      Work::template row<kPairs>(y, a, b, n);
    } else if constexpr (ReadsBFloat16<Work> && std::is_same_v<To, BFloat16>) {
      Work::template bf16_row<kPairs>(y, a, buffers.data(), n);
    } else {
      C* const wide_y = buffers.data() + 2 * n;
      const C* const wide_b = b != nullptr ? read_row(b, n, buffers.data() + n) : nullptr;
      Work::template row<kPairs>(wide_y, read_row(a, n, buffers.data()), wide_b, n);
      for (int64_t k = 0; k < n; ++k) y[k] = convert<To>(wide_y[k]);
    }
    if (all.streamed) stream(all.y + i * n, y, n * static_cast<int64_t>(sizeof(To)));
  }
}

/// Copies tiles to dense buffers, since the rows of a tile may all map to a few sets of the cache.
template <class Work, class To, class From>
void some_tiles(const LineRange<To, From>& all, int64_t first, int64_t last) {
  using C = ComputeType<From>;
  const int64_t n = all.lines.n, stride = all.lines.inner, width = all.width;
  std::vector<C> buffers(static_cast<size_t>((all.b != nullptr ? 2 : 1) * n * width));
  C* const a = buffers.data();
  C* const b = a + n * width;
  for (int64_t i = first; i < last; ++i) {
    const int64_t column = i % all.tiles * width;
    const int64_t at = i / all.tiles * n * stride + column;
    const int64_t count = std::min(width, stride - column);
    convert_tile(a, width, all.a + at, stride, n, count);
    if (all.b != nullptr) convert_tile(b, width, all.b + at, stride, n, count);
    Work::columns(Columns<C>{a, a, b, n, count, width});
    if (std::is_same_v<To, C> && all.streamed) {
      for (int64_t k = 0; k < n; ++k) {
        stream(all.y + at + k * stride, a + k * width, count * static_cast<int64_t>(sizeof(To)));
      }
    } else {
      convert_tile(all.y + at, stride, a, width, n, count);
    }
  }
}

/// `kPairs`: the variant compiled for wide vectors, see LaneAccumulator.
template <class Work, class To, class From, bool kPairs>
void some_lines(const LineRange<To, From>& all, int64_t first, int64_t last) {
  if (all.lines.inner == 1) {
    some_rows<Work, To, From, kPairs>(all, first, last);
  } else {
    some_tiles<Work>(all, first, last);
  }
  if (all.streamed) finish_streaming();
}
template <class Work, class To, class From>
LS_WIDE_VECTORS void some_lines_wide(const LineRange<To, From>& all, int64_t first, int64_t last) {
  some_lines<Work, To, From, LS_HAVE_WIDE_VECTORS != 0>(all, first, last);
}

/// Applies Work to every line, with one input (forward) or two (backward).
template <class Work, class To, class From>
void each_line(const Out& out, const In& first_in, const In* second_in, int64_t dim) {
  const Lines lines(out, dim);
  const From* a = first_in.data<From>();
  const From* b = second_in != nullptr ? second_in->data<From>() : nullptr;
  To* y = out.data<To>();
  const int64_t n = lines.n;
  constexpr int64_t kLeast = 16;
  const int64_t most =
      std::clamp(kTile / std::max<int64_t>(n, 1) / kLeast * kLeast, kLeast, kColumns);
  const int64_t width = std::min(most, lines.inner);
  const int64_t tiles = (lines.inner + width - 1) / width;
  const auto bytes = [](const TensorArg& x) {
    return x.numel * static_cast<int64_t>(lockstep::size_of(x.dtype));
  };
  const bool in_place = out.address == first_in.address ||
                        (second_in != nullptr && out.address == second_in->address);
  const bool streamed =
      !in_place && worth_streaming(bytes(out) + bytes(first_in) +
                                   (second_in != nullptr ? bytes(*second_in) : 0));
  const LineRange<To, From> all{lines, width, tiles, y, a, b, streamed};
  const auto work =
      for_this_cpu(&some_lines_wide<Work, To, From>, &some_lines<Work, To, From, false>);
  parallel_for(0, lines.outer * tiles, std::max<int64_t>(1, kGrain / (n * width)),
               [&](int64_t first, int64_t last) { work(all, first, last); });
}

template <class Work>
void forward(const Out& out, const In& self, int64_t dim) {
  if (out.numel == 0) return;
  with_floating_type(self.dtype,
                     [&]<class T>() { each_line<Work, T, T>(out, self, nullptr, dim); });
}
/// The gradient's dtype may differ from the output's, for f16 or bf16 inputs with a softmax in f32.
template <class Work>
void backward(const Out& out, const In& grad, const In& output, int64_t dim) {
  if (out.numel == 0) return;
  with_floating_type(output.dtype, [&]<class From>() {
    with_floating_type(out.dtype,
                       [&]<class To>() { each_line<Work, To, From>(out, grad, &output, dim); });
  });
}

void softmax(const Out& out, const In& self, int64_t dim, bool) {
  forward<Softmax>(out, self, dim);
}
void log_softmax(const Out& out, const In& self, int64_t dim, bool) {
  forward<LogSoftmax>(out, self, dim);
}
void softmax_backward_data(const Out& out, const In& grad, const In& output, int64_t dim, DType) {
  backward<SoftmaxBackward>(out, grad, output, dim);
}
void log_softmax_backward_data(const Out& out, const In& grad, const In& output, int64_t dim,
                               DType) {
  backward<LogSoftmaxBackward>(out, grad, output, dim);
}

}  // namespace

LS_KERNEL(CPU, "_softmax", softmax, Strides::kContiguous);
LS_KERNEL(CPU, "_log_softmax", log_softmax, Strides::kContiguous);
LS_KERNEL(CPU, "_softmax_backward_data", softmax_backward_data, Strides::kContiguous);
LS_KERNEL(CPU, "_log_softmax_backward_data", log_softmax_backward_data, Strides::kContiguous);

}  // namespace lockstep::cpu

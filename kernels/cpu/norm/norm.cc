#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/tensor/number_range.h"
#include "kernels/common/norm_rows.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_lanes.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 16384;      // minimum elements per task
constexpr int64_t kGradientRows = 32;  // rows whose parameter gradients are summed in one block

/// Statistics of one row; `mean` stays 0 for RMS norm.
template <class C>
struct Statistics {
  C mean;
  C rstd;
};

/// kCentre: layer norm, else RMS norm. kPairs as in LaneAccumulator.
template <bool kCentre, bool kPairs = false, class C>
Statistics<C> statistics_of(const C* x, int64_t n, double eps) {
  const C mean = kCentre && n > 0 ? join_row<SumOf<C>, kPairs>(x, n) / static_cast<C>(n) : C(0);
  double squares = 0;
  for (int64_t i = 0; i < n; i += kLaneBlock) {
    LaneAccumulator<SumOf<C>> lanes;
    const C* block = x + i;
    lanes.add_each(
        std::min(kLaneBlock, n - i),
        [block, mean](int64_t k) {
          const Vector<C> d = load_vector(block + k) - mean;
          return d * d;
        },
        [block, mean](int64_t k) { return (block[k] - mean) * (block[k] - mean); });
    squares += static_cast<double>(lanes.total());
  }
  return {mean, static_cast<C>(1.0 / std::sqrt(squares / static_cast<double>(n) + eps))};
}

template <bool kCentre, class C>
void normalise(C* __restrict y, const C* __restrict x, const C* __restrict weight,
               const C* __restrict bias, int64_t n, Statistics<C> s) {
  const auto centred = [&](int64_t i) {
    return kCentre ? (x[i] - s.mean) * s.rstd : x[i] * s.rstd;
  };
  if (weight != nullptr && bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::fma(centred(i), weight[i], bias[i]);
  } else if (weight != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = centred(i) * weight[i];
  } else if (bias != nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = centred(i) + bias[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = centred(i);
  }
}

/// True if a tensor that accompanies one of T holds T's compute type.
template <class T>
bool is_computed(const TensorArg& tensor) {
  return std::is_same_v<T, ComputeType<T>> || tensor.dtype == DType::kF32;
}

/// A parameter or statistic of type T or T's compute type, read in the compute type; null if
/// undefined.
template <class T>
class Parameter {
 public:
  explicit Parameter(const In& in) {
    if (!in.defined()) return;
    if (is_computed<T>(in)) {
      data_ = in.data<ComputeType<T>>();
      return;
    }
    buffer_ = std::make_unique_for_overwrite<ComputeType<T>[]>(static_cast<size_t>(in.numel));
    data_ = read_row<T>(in.data<T>(), in.numel, buffer_.get());
  }
  const ComputeType<T>* data() const { return data_; }

 private:
  std::unique_ptr<ComputeType<T>[]> buffer_;
  const ComputeType<T>* data_ = nullptr;
};

/// Memory for one row of T in the compute type; null if T is the compute type.
template <class T>
std::unique_ptr<ComputeType<T>[]> row_buffer(int64_t n) {
  if (std::is_same_v<T, ComputeType<T>>) return nullptr;
  return std::make_unique_for_overwrite<ComputeType<T>[]>(static_cast<size_t>(n));
}

template <class T>
void write_statistic(const Out& to, int64_t row, ComputeType<T> value) {
  if (is_computed<T>(to)) {
    to.data<ComputeType<T>>()[row] = value;
  } else {
    to.data<T>()[row] = convert<T>(value);
  }
}

/// Work that is distributed over threads: rows of n elements.
template <class T>
struct ForwardRows {
  T* y;
  const T* x;
  const ComputeType<T>* weight;  ///< may be null, like bias
  const ComputeType<T>* bias;
  const Out* mean;  ///< may be null
  const Out* rstd;
  int64_t n;
  double eps;
  bool streamed;
};

template <bool kCentre, bool kPairs, class T>
void some_rows(const ForwardRows<T>& all, int64_t first, int64_t last) {
  using C = ComputeType<T>;
  const int64_t n = all.n;
  const auto x_buffer = row_buffer<T>(n), y_buffer = row_buffer<T>(n);
  std::vector<T> target(all.streamed ? static_cast<size_t>(n) : 0);
  for (int64_t row = first; row < last; ++row) {
    const T* from = all.x + row * n;
    T* to = all.streamed ? target.data() : all.y + row * n;
    const C* x = read_row(from, n, x_buffer.get());
    const Statistics<C> s = statistics_of<kCentre, kPairs>(x, n, all.eps);
    if (all.mean != nullptr) write_statistic<T>(*all.mean, row, s.mean);
    write_statistic<T>(*all.rstd, row, s.rstd);
    fetching_next_row(from, n, [&](int64_t i, int64_t count) {
      C* y = row_target<T>(to + i, y_buffer.get());
      normalise<kCentre>(y, x + i, all.weight != nullptr ? all.weight + i : nullptr,
                         all.bias != nullptr ? all.bias + i : nullptr, count, s);
      finish_row<T>(to + i, y, count);
    });
    if (all.streamed) stream(all.y + row * n, to, n * static_cast<int64_t>(sizeof(T)));
  }
  if (all.streamed) finish_streaming();
}
template <bool kCentre, class T>
LS_WIDE_VECTORS void wide_some_rows(const ForwardRows<T>& all, int64_t first, int64_t last) {
  some_rows<kCentre, LS_HAVE_WIDE_VECTORS != 0>(all, first, last);
}

template <bool kCentre>
void forward(const Out& out, const Out* mean, const Out& rstd, const In& input,
             IntList normalized_shape, const In& weight, const In& bias, double eps) {
  const int64_t n = norm_row_length(input, normalized_shape);
  with_floating_type(input.dtype, [&]<class T>() {
    const Parameter<T> scale(weight), shift(bias);
    const bool streamed = out.address != input.address &&
                          worth_streaming(2 * out.numel * static_cast<int64_t>(sizeof(T)));
    const ForwardRows<T> all{
        out.data<T>(), input.data<T>(), scale.data(), shift.data(), mean, &rstd, n, eps, streamed};
    const auto some = for_this_cpu(&wide_some_rows<kCentre, T>, &some_rows<kCentre, false, T>);
    parallel_for(0, rstd.numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
                 [&](int64_t first, int64_t last) { some(all, first, last); });
  });
}

/// Computes the gradient of one row's input: rstd * (gw - mean(gw) - xhat * mean(gw * xhat)), with
/// gw = g * weight; RMS norm (not kCentre) omits the first mean. Adds the row's contribution to
/// those of dw and db that are not null.
template <bool kCentre, class C>
void row_gradients(C* __restrict dx, C* __restrict dw, C* __restrict db, const C* __restrict g,
                   const C* __restrict x, const C* __restrict weight, int64_t n, Statistics<C> s) {
  const auto scaled = [&](int64_t i) {
    return weight != nullptr ? load_vector(g + i) * load_vector(weight + i) : load_vector(g + i);
  };
  const auto scaled_one = [&](int64_t i) { return weight != nullptr ? g[i] * weight[i] : g[i]; };
  double along_one = 0, along_x = 0;
  for (int64_t i = 0; i < n; i += kLaneBlock) {
    const int64_t length = std::min(kLaneBlock, n - i);
    LaneAccumulator<SumOf<C>> ones, xs;
    if (kCentre) {
      ones.add_each(
          length, [&](int64_t k) { return scaled(i + k); },
          [&](int64_t k) { return scaled_one(i + k); });
    }
    xs.add_each(
        length,
        [&](int64_t k) -> Vector<C> {
          return scaled(i + k) * ((load_vector(x + i + k) - s.mean) * s.rstd);
        },
        [&](int64_t k) -> C { return scaled_one(i + k) * ((x[i + k] - s.mean) * s.rstd); });
    along_one += static_cast<double>(ones.total());
    along_x += static_cast<double>(xs.total());
  }
  const C a = static_cast<C>(along_one / static_cast<double>(n));
  const C b = static_cast<C>(along_x / static_cast<double>(n));
  const auto write = [&](auto gradient_of) {  // a separate loop for each set of wanted results
    const auto at = [&](int64_t i, C xhat) { return s.rstd * ((gradient_of(i) - a) - xhat * b); };
    if (dw != nullptr && db != nullptr) {
      for (int64_t i = 0; i < n; ++i) {
        const C xhat = (x[i] - s.mean) * s.rstd;
        dx[i] = at(i, xhat);
        dw[i] = std::fma(g[i], xhat, dw[i]);
        db[i] += g[i];
      }
    } else if (dw != nullptr) {
      for (int64_t i = 0; i < n; ++i) {
        const C xhat = (x[i] - s.mean) * s.rstd;
        dx[i] = at(i, xhat);
        dw[i] = std::fma(g[i], xhat, dw[i]);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) dx[i] = at(i, (x[i] - s.mean) * s.rstd);
      if (db != nullptr) {
        for (int64_t i = 0; i < n; ++i) db[i] += g[i];
      }
    }
  };
  if (weight != nullptr) {
    write([&](int64_t i) { return g[i] * weight[i]; });
  } else {
    write([&](int64_t i) { return g[i]; });
  }
}

/// Adds one row's contribution to dw and db when the input's gradient is not wanted.
template <class C>
void add_parameter_gradients(C* __restrict dw, C* __restrict db, const C* __restrict g,
                             const C* __restrict x, int64_t n, Statistics<C> s) {
  if (dw != nullptr) {
    for (int64_t i = 0; i < n; ++i) dw[i] = std::fma(g[i], (x[i] - s.mean) * s.rstd, dw[i]);
  }
  if (db != nullptr) {
    for (int64_t i = 0; i < n; ++i) db[i] += g[i];
  }
}

/// result[i] = sum over blocks of partial[block][i], in order, in f64.
template <class C>
void join_blocks(const Out& result, const C* partial, int64_t blocks, int64_t stride, int64_t n) {
  with_floating_type(result.dtype, [&]<class T>() {
    parallel_for(0, n, std::max<int64_t>(1, kGrain / std::max<int64_t>(blocks, 1)),
                 [&](int64_t first, int64_t last) {
                   constexpr int64_t kTile = 256;
                   double total[kTile];
                   for (int64_t i = first; i < last; i += kTile) {
                     const int64_t length = std::min(kTile, last - i);
                     std::fill_n(total, length, 0.0);
                     for (int64_t block = 0; block < blocks; ++block) {
                       for (int64_t k = 0; k < length; ++k)
                         total[k] += static_cast<double>(partial[block * stride + i + k]);
                     }
                     for (int64_t k = 0; k < length; ++k)
                       result.data<T>()[i + k] = convert<T>(total[k]);
                   }
                 });
  });
}

/// `dx`, `dw` and `db` may be undefined; `mean` is undefined for RMS norm.
template <bool kCentre>
void backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out, const In& input,
              IntList normalized_shape, const In& mean, const In& rstd, const In& weight) {
  const int64_t n = norm_row_length(input, normalized_shape);
  const int64_t rows = rstd.numel;
  const int64_t blocks = (rows + kGradientRows - 1) / kGradientRows;
  with_floating_type(input.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const Parameter<T> scale(weight), means(mean), rstds(rstd);
    const int64_t wanted = (dw.defined() ? 1 : 0) + (db.defined() ? 1 : 0);
    const auto partial =
        std::make_unique_for_overwrite<C[]>(static_cast<size_t>(blocks * wanted * n));
    C* const dw_blocks = dw.defined() ? partial.get() : nullptr;
    C* const db_blocks = db.defined() ? partial.get() + (dw.defined() ? n : 0) : nullptr;
    parallel_for(0, blocks,
                 std::max<int64_t>(1, kGrain / (kGradientRows * std::max<int64_t>(n, 1))),
                 [&](int64_t first, int64_t last) {
                   const auto x_buffer = row_buffer<T>(n), g_buffer = row_buffer<T>(n),
                              dx_buffer = row_buffer<T>(n);
                   for (int64_t block = first; block < last; ++block) {
                     const int64_t at = block * wanted * n;
                     std::fill_n(partial.get() + at, wanted * n, C(0));
                     const int64_t end = std::min(rows, (block + 1) * kGradientRows);
                     for (int64_t row = block * kGradientRows; row < end; ++row) {
                       const C* x = read_row(input.data<T>() + row * n, n, x_buffer.get());
                       const C* g = read_row(grad_out.data<T>() + row * n, n, g_buffer.get());
                       const Statistics<C> s{kCentre ? means.data()[row] : C(0), rstds.data()[row]};
                       C* const dw_block = dw_blocks != nullptr ? dw_blocks + at : nullptr;
                       C* const db_block = db_blocks != nullptr ? db_blocks + at : nullptr;
                       if (!dx.defined()) {
                         add_parameter_gradients(dw_block, db_block, g, x, n, s);
                         continue;
                       }
                       T* to = dx.data<T>() + row * n;
                       C* result = row_target<T>(to, dx_buffer.get());
                       row_gradients<kCentre>(result, dw_block, db_block, g, x, scale.data(), n, s);
                       finish_row<T>(to, result, n);
                     }
                   }
                 });
    if (dw.defined()) join_blocks(dw, dw_blocks, blocks, wanted * n, n);
    if (db.defined()) join_blocks(db, db_blocks, blocks, wanted * n, n);
  });
}

void native_layer_norm(const Out& out, const Out& mean, const Out& rstd, const In& input,
                       IntList normalized_shape, const In& weight, const In& bias, double eps) {
  forward<true>(out, &mean, rstd, input, normalized_shape, weight, bias, eps);
}

void native_layer_norm_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out,
                                const In& input, IntList normalized_shape, const In& mean,
                                const In& rstd, const In& weight, const In&, BoolList) {
  backward<true>(dx, dw, db, grad_out, input, normalized_shape, mean, rstd, weight);
}

void fused_rms_norm(const Out& out, const Out& rstd, const In& input, IntList normalized_shape,
                    const In& weight, std::optional<double> eps) {
  forward<false>(out, nullptr, rstd, input, normalized_shape, weight, In(),
                 eps.value_or(machine_epsilon(input.dtype)));
}

void fused_rms_norm_backward(const Out& dx, const Out& dw, const In& grad_out, const In& input,
                             IntList normalized_shape, const In& rstd, const In& weight, BoolList) {
  backward<false>(dx, dw, Out(), grad_out, input, normalized_shape, In(), rstd, weight);
}

}  // namespace

LS_KERNEL(CPU, "native_layer_norm", native_layer_norm, Strides::kContiguous);
LS_KERNEL(CPU, "native_layer_norm_backward", native_layer_norm_backward, Strides::kContiguous);
LS_KERNEL(CPU, "_fused_rms_norm", fused_rms_norm, Strides::kContiguous);
LS_KERNEL(CPU, "_fused_rms_norm_backward", fused_rms_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cpu

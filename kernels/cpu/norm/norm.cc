#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "core/tensor/number_range.h"
#include "kernels/common/norm_rows.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/norm/norm_row.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

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
    const NormStatistics<C> s = statistics_of<kCentre, kPairs>(x, n, all.eps);
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
    parallel_for(0, rstd.numel, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(n, 1)),
                 [&](int64_t first, int64_t last) { some(all, first, last); });
  });
}

/// `dx`, `dw` and `db` may be undefined; `mean` is undefined for RMS norm.
template <bool kCentre>
void backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out, const In& input,
              IntList normalized_shape, const In& mean, const In& rstd, const In& weight) {
  const int64_t n = norm_row_length(input, normalized_shape);
  const int64_t rows = rstd.numel;
  const int64_t blocks = (rows + kNormGradientRows - 1) / kNormGradientRows;
  with_floating_type(input.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const Parameter<T> scale(weight), means(mean), rstds(rstd);
    const int64_t wanted = (dw.defined() ? 1 : 0) + (db.defined() ? 1 : 0);
    const auto partial =
        std::make_unique_for_overwrite<C[]>(static_cast<size_t>(blocks * wanted * n));
    C* const dw_blocks = dw.defined() ? partial.get() : nullptr;
    C* const db_blocks = db.defined() ? partial.get() + (dw.defined() ? n : 0) : nullptr;
    parallel_for(
        0, blocks, std::max<int64_t>(1, kNormGrain / (kNormGradientRows * std::max<int64_t>(n, 1))),
        [&](int64_t first, int64_t last) {
          const auto x_buffer = row_buffer<T>(n), g_buffer = row_buffer<T>(n),
                     dx_buffer = row_buffer<T>(n);
          for (int64_t block = first; block < last; ++block) {
            const int64_t at = block * wanted * n;
            std::fill_n(partial.get() + at, wanted * n, C(0));
            const int64_t end = std::min(rows, (block + 1) * kNormGradientRows);
            for (int64_t row = block * kNormGradientRows; row < end; ++row) {
              const C* x = read_row(input.data<T>() + row * n, n, x_buffer.get());
              const C* g = read_row(grad_out.data<T>() + row * n, n, g_buffer.get());
              const NormStatistics<C> s{kCentre ? means.data()[row] : C(0), rstds.data()[row]};
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

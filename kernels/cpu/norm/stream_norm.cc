#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/lanes.h"
#include "kernels/common/norm_rows.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/norm/norm_row.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/wide_vectors.h"

namespace lockstep::cpu {

namespace {

template <class C>
const C* data_or_null(const In& in) {
  return in.defined() ? in.data<C>() : nullptr;
}
template <class C>
C* data_or_null(const Out& out) {
  return out.defined() ? out.data<C>() : nullptr;
}

/// Rows of a tensor beside a stream of C: in C, or in bf16 or f16 beside f32, which are read
/// through a buffer of one row.
template <class C>
class RowsBeside {
 public:
  RowsBeside(const In& in, int64_t n)
      : in_(in),
        n_(n),
        load_(in.dtype == dtype_of<C> ? nullptr : load_function(lane_of<C>, in.dtype)),
        buffer_(load_ != nullptr ? std::make_unique_for_overwrite<C[]>(static_cast<size_t>(n))
                                 : nullptr) {}
  const C* row(int64_t row) const {
    if (load_ == nullptr) return in_.data<C>() + row * n_;
    const auto element = static_cast<int64_t>(lockstep::size_of(in_.dtype));
    load_(n_, buffer_.get(), static_cast<const char*>(in_.address) + row * n_ * element, element);
    return buffer_.get();
  }

 private:
  const In& in_;
  int64_t n_;
  LoadFunction load_;
  std::unique_ptr<C[]> buffer_;
};

/// Writes rows of C to a tensor of its own dtype.
template <class C>
class NarrowRows {
 public:
  NarrowRows(const Out& out, int64_t n)
      : out_(out),
        n_(n),
        element_(static_cast<int64_t>(lockstep::size_of(out.dtype))),
        store_(store_function(out.dtype, lane_of<C>)) {}
  void write(int64_t row, const C* from) const {
    store_(n_, static_cast<char*>(out_.address) + row * n_ * element_, element_, from);
  }

 private:
  const Out& out_;
  int64_t n_;
  int64_t element_;
  StoreFunction store_;
};

template <class C>
void add_rows(C* __restrict to, const C* __restrict a, const C* __restrict b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = a[i] + b[i];
}
template <class C>
void add_to_row(C* __restrict to, const C* __restrict more, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += more[i];
}

/// Work that is distributed over threads: rows of n elements of C. Absent tensors are null.
template <class C>
struct ForwardRows {
  C* y;  ///< where the row is computed
  const C* x;
  const C* weight;
  const C* bias;
  int64_t n;
  double eps;
};

/// One row; x is followed by the next row of the input.
template <bool kCentre, bool kPairs, class C>
NormStatistics<C> one_row(const ForwardRows<C>& row) {
  const NormStatistics<C> s = statistics_of<kCentre, kPairs>(row.x, row.n, row.eps);
  fetching_next_row(row.x, row.n, [&](int64_t i, int64_t count) {
    normalise<kCentre>(row.y + i, row.x + i, row.weight != nullptr ? row.weight + i : nullptr,
                       row.bias != nullptr ? row.bias + i : nullptr, count, s);
  });
  return s;
}
template <bool kCentre, class C>
LS_WIDE_VECTORS NormStatistics<C> wide_one_row(const ForwardRows<C>& row) {
  return one_row<kCentre, LS_HAVE_WIDE_VECTORS != 0>(row);
}

/// `branch` and `sum` may be undefined, and `mean` is for RMS norm.
template <bool kCentre, class C>
void forward_in(const Out& out, const Out& sum, const Out& mean, const Out& rstd, const In& input,
                const In& branch, int64_t n, const In& weight, const In& bias, double eps) {
  const bool narrows = out.dtype != dtype_of<C>;
  const bool streamed =
      !narrows && worth_streaming(2 * out.numel * static_cast<int64_t>(sizeof(C)));
  const auto one = for_this_cpu(&wide_one_row<kCentre, C>, &one_row<kCentre, false, C>);
  const auto some_rows = [&](int64_t first, int64_t last) {
    const RowsBeside<C> branches(branch, n);
    const NarrowRows<C> narrow(out, n);
    std::vector<C> buffer(narrows || streamed ? static_cast<size_t>(n) : 0);
    for (int64_t row = first; row < last; ++row) {
      const C* x = input.data<C>() + row * n;
      if (sum.defined()) {
        C* const to = sum.data<C>() + row * n;
        add_rows(to, x, branches.row(row), n);
        x = to;
      }
      C* const y = narrows || streamed ? buffer.data() : out.data<C>() + row * n;
      const NormStatistics<C> s =
          one({y, x, data_or_null<C>(weight), data_or_null<C>(bias), n, eps});
      if (kCentre) mean.data<C>()[row] = s.mean;
      rstd.data<C>()[row] = s.rstd;
      if (narrows) narrow.write(row, y);
      if (streamed) stream(out.data<C>() + row * n, y, n * static_cast<int64_t>(sizeof(C)));
    }
    if (streamed) finish_streaming();
  };
  parallel_for(0, rstd.numel, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(n, 1)),
               some_rows);
}

void forward(const Out& out, const Out& sum, const Out& mean, const Out& rstd, const In& stream,
             const In& branch, IntList normalized_shape, const In& weight, const In& bias,
             double eps) {
  const int64_t n = norm_row_length(stream, normalized_shape);
  with_floating_lane(stream.dtype, [&]<class C>() {
    const auto run = mean.defined() ? forward_in<true, C> : forward_in<false, C>;
    run(out, sum, mean, rstd, stream, branch, n, weight, bias, eps);
  });
}

/// Partial sums of the parameters' gradients: a row of them for each block of rows.
template <class C>
struct PartialSums {
  C* dw;  ///< null if not wanted, like db
  C* db;
  int64_t stride;
  std::unique_ptr<C[]> memory;

  PartialSums(bool weight, bool bias, int64_t blocks, int64_t n)
      : stride((static_cast<int64_t>(weight) + static_cast<int64_t>(bias)) * n),
        memory(std::make_unique_for_overwrite<C[]>(static_cast<size_t>(blocks * stride))) {
    dw = weight ? memory.get() : nullptr;
    db = bias ? memory.get() + (weight ? n : 0) : nullptr;
  }
  /// The sums of one block, set to 0.
  C* begin(C* sums, int64_t block, int64_t n) const {
    if (sums != nullptr) std::fill_n(sums + block * stride, n, C(0));
    return sums != nullptr ? sums + block * stride : nullptr;
  }
};

/// Arguments of backward. Results may be undefined.
struct Backward {
  const Out& dx;
  const Out& narrow;  ///< dx in another dtype
  const Out& dw;
  const Out& db;
  const In& grad;
  const In& carried;  ///< added to dx; may be undefined, like mean and weight
  const In& x;
  const In& mean;
  const In& rstd;
  const In& weight;
  int64_t n;
};

template <bool kCentre, class C>
void backward_in(const Backward& of) {
  const int64_t n = of.n, rows = of.rstd.numel;
  const int64_t blocks = (rows + kNormGradientRows - 1) / kNormGradientRows;
  const PartialSums<C> sums(of.dw.defined(), of.db.defined(), blocks, n);
  const auto some_blocks = [&](int64_t first, int64_t last) {
    const RowsBeside<C> grads(of.grad, n);
    const NarrowRows<C> narrow(of.narrow, n);
    std::vector<C> buffer(of.dx.defined() ? 0 : static_cast<size_t>(n));
    for (int64_t block = first; block < last; ++block) {
      C* const dw = sums.begin(sums.dw, block, n);
      C* const db = sums.begin(sums.db, block, n);
      const int64_t end = std::min(rows, (block + 1) * kNormGradientRows);
      for (int64_t row = block * kNormGradientRows; row < end; ++row) {
        const C* const g = grads.row(row);
        const C* const x = of.x.data<C>() + row * n;
        const NormStatistics<C> s{kCentre ? of.mean.data<C>()[row] : C(0), of.rstd.data<C>()[row]};
        if (!of.dx.defined() && !of.narrow.defined()) {
          add_parameter_gradients(dw, db, g, x, n, s);
          continue;
        }
        C* const dx = of.dx.defined() ? of.dx.data<C>() + row * n : buffer.data();
        row_gradients<kCentre>(dx, dw, db, g, x, data_or_null<C>(of.weight), n, s);
        if (of.carried.defined()) add_to_row(dx, of.carried.data<C>() + row * n, n);
        if (of.narrow.defined()) narrow.write(row, dx);
      }
    }
  };
  parallel_for(0, blocks,
               std::max<int64_t>(1, kNormGrain / (kNormGradientRows * std::max<int64_t>(n, 1))),
               some_blocks);
  if (of.dw.defined()) join_blocks(of.dw, sums.dw, blocks, sums.stride, n);
  if (of.db.defined()) join_blocks(of.db, sums.db, blocks, sums.stride, n);
}

void stream_norm_backward(const Out& dx, const Out& narrow, const Out& dw, const Out& db,
                          const In& grad_out, const In& carried, const In& input,
                          IntList normalized_shape, const In& mean, const In& rstd,
                          const In& weight, std::optional<DType>, BoolList) {
  const Backward of{dx,
                    narrow,
                    dw,
                    db,
                    grad_out,
                    carried,
                    input,
                    mean,
                    rstd,
                    weight,
                    norm_row_length(input, normalized_shape)};
  with_floating_lane(input.dtype, [&]<class C>() {
    mean.defined() ? backward_in<true, C>(of) : backward_in<false, C>(of);
  });
}

void stream_norm(const Out& out, const Out& mean, const Out& rstd, const In& stream,
                 IntList normalized_shape, const In& weight, const In& bias, double eps, bool,
                 std::optional<DType>) {
  forward(out, Out(), mean, rstd, stream, In(), normalized_shape, weight, bias, eps);
}

void stream_sum_norm(const Out& out, const Out& sum, const Out& mean, const Out& rstd,
                     const In& stream, const In& branch, IntList normalized_shape, const In& weight,
                     const In& bias, double eps, bool, std::optional<DType>) {
  forward(out, sum, mean, rstd, stream, branch, normalized_shape, weight, bias, eps);
}

}  // namespace

LS_KERNEL(CPU, "stream_norm", stream_norm, Strides::kContiguous);
LS_KERNEL(CPU, "stream_sum_norm", stream_sum_norm, Strides::kContiguous);
LS_KERNEL(CPU, "stream_norm_backward", stream_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cpu

#pragma once

#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

// Layer norm and RMS norm of one row in its compute type C, and its gradients.

/// Minimum number of elements per task.
inline constexpr int64_t kNormGrain = 16384;
/// Rows whose parameter gradients are summed in one block.
inline constexpr int64_t kNormGradientRows = 32;

/// Statistics of one row; `mean` stays 0 for RMS norm.
template <class C>
struct NormStatistics {
  C mean;
  C rstd;
};

/// kCentre: layer norm, else RMS norm. kPairs as in LaneAccumulator.
template <bool kCentre, bool kPairs = false, class C>
NormStatistics<C> statistics_of(const C* x, int64_t n, double eps) {
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
               const C* __restrict bias, int64_t n, NormStatistics<C> s) {
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

/// Computes the gradient of one row's input: rstd * (gw - mean(gw) - xhat * mean(gw * xhat)), with
/// gw = g * weight; RMS norm (not kCentre) omits the first mean. Adds the row's contribution to
/// those of dw and db that are not null.
template <bool kCentre, class C>
void row_gradients(C* __restrict dx, C* __restrict dw, C* __restrict db, const C* __restrict g,
                   const C* __restrict x, const C* __restrict weight, int64_t n,
                   NormStatistics<C> s) {
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
                             const C* __restrict x, int64_t n, NormStatistics<C> s) {
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
    parallel_for(0, n, std::max<int64_t>(1, kNormGrain / std::max<int64_t>(blocks, 1)),
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

}  // namespace lockstep::cpu

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;  // minimum elements per task

template <class T>
using Buffer = std::unique_ptr<ComputeType<T>[]>;
template <class T>
Buffer<T> row_buffer(int64_t n) {
  return std::make_unique_for_overwrite<ComputeType<T>[]>(static_cast<size_t>(n));
}

/// Element i of a floating tensor, or `otherwise` if it is undefined.
double read_at(const In& tensor, int64_t i, double otherwise) {
  if (!tensor.defined()) return otherwise;
  return with_floating_type(tensor.dtype,
                            [&]<class T>() { return convert<double>(tensor.data<T>()[i]); });
}

int64_t grain_of(int64_t elements) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(elements, 1));
}

void fused_group_norm(const Out& out, const Out& mean, const Out& rstd, const In& input,
                      const In& weight, const In& bias, int64_t n, int64_t channels,
                      int64_t positions, int64_t groups, double eps) {
  const int64_t width = channels / groups, count = width * positions;
  with_floating_type(input.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    parallel_for(0, n * groups, grain_of(count), [&](int64_t first, int64_t last) {
      const Buffer<T> x_buffer = row_buffer<T>(count), y_buffer = row_buffer<T>(count);
      for (int64_t i = first; i < last; ++i) {
        const C* x = read_row(input.data<T>() + i * count, count, x_buffer.get());
        C* y = y_buffer.get();
        const C centre = join_row<SumOf<C>>(x, count) / static_cast<C>(count);
        for (int64_t k = 0; k < count; ++k) y[k] = (x[k] - centre) * (x[k] - centre);
        const double variance =
            static_cast<double>(join_row<SumOf<C>>(y, count)) / static_cast<double>(count);
        const C scale = static_cast<C>(1 / std::sqrt(variance + eps));
        mean.data<C>()[i] = centre;
        rstd.data<C>()[i] = scale;
        for (int64_t c = 0; c < width; ++c) {
          const int64_t channel = i % groups * width + c;
          const C factor = scale * static_cast<C>(read_at(weight, channel, 1));
          const C offset = static_cast<C>(read_at(bias, channel, 0));
          for (int64_t k = c * positions; k < (c + 1) * positions; ++k) {
            y[k] = (x[k] - centre) * factor + offset;
          }
        }
        T* to = out.data<T>() + i * count;
        for (int64_t k = 0; k < count; ++k) to[k] = convert<T>(y[k]);
      }
    });
  });
}

/// Sums over the positions of each sample and channel: of the gradient, and of the gradient times
/// xhat (`along`).
struct ChannelSums {
  std::vector<double> gradient;
  std::vector<double> along;
};

template <class T>
ChannelSums sum_positions(const In& grad_out, const In& input, const In& mean, const In& rstd,
                          int64_t rows, int64_t positions, int64_t width) {
  using C = ComputeType<T>;
  ChannelSums sums;
  sums.gradient.resize(static_cast<size_t>(rows));
  sums.along.resize(static_cast<size_t>(rows));
  parallel_for(0, rows, grain_of(positions), [&](int64_t first, int64_t last) {
    const Buffer<T> x_buffer = row_buffer<T>(positions), g_buffer = row_buffer<T>(positions),
                    product = row_buffer<T>(positions);
    for (int64_t row = first; row < last; ++row) {
      const C* x = read_row(input.data<T>() + row * positions, positions, x_buffer.get());
      const C* g = read_row(grad_out.data<T>() + row * positions, positions, g_buffer.get());
      const C centre = static_cast<C>(read_at(mean, row / width, 0));
      for (int64_t k = 0; k < positions; ++k)
        product[static_cast<size_t>(k)] = g[k] * (x[k] - centre);
      const auto at = static_cast<size_t>(row);
      sums.gradient[at] = static_cast<double>(join_row<SumOf<C>>(g, positions));
      sums.along[at] = static_cast<double>(join_row<SumOf<C>>(product.get(), positions)) *
                       read_at(rstd, row / width, 0);
    }
  });
  return sums;
}

/// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)) with gw = grad_out * weight.
template <class T>
void input_gradient(const Out& dx, const In& grad_out, const In& input, const In& mean,
                    const In& rstd, const In& weight, const ChannelSums& sums, int64_t samples,
                    int64_t width, int64_t positions, int64_t groups) {
  using C = ComputeType<T>;
  const int64_t count = width * positions;
  parallel_for(0, samples * groups, grain_of(count), [&](int64_t first, int64_t last) {
    const Buffer<T> x_buffer = row_buffer<T>(positions), g_buffer = row_buffer<T>(positions);
    for (int64_t i = first; i < last; ++i) {
      const auto weight_of = [&](int64_t c) { return read_at(weight, i % groups * width + c, 1); };
      double gradient = 0, along = 0;
      for (int64_t c = 0; c < width; ++c) {
        const auto at = static_cast<size_t>(i * width + c);
        gradient += sums.gradient[at] * weight_of(c);
        along += sums.along[at] * weight_of(c);
      }
      const double scale = read_at(rstd, i, 0);
      const C centre = static_cast<C>(read_at(mean, i, 0));
      const C level = static_cast<C>(scale * gradient / static_cast<double>(count));
      const C slope = static_cast<C>(scale * scale * along / static_cast<double>(count));
      for (int64_t c = 0; c < width; ++c) {
        const int64_t at = i * count + c * positions;
        const C* x = read_row(input.data<T>() + at, positions, x_buffer.get());
        const C* g = read_row(grad_out.data<T>() + at, positions, g_buffer.get());
        const C factor = static_cast<C>(scale * weight_of(c));
        T* to = dx.data<T>() + at;
        for (int64_t k = 0; k < positions; ++k) {
          to[k] = convert<T>(factor * g[k] - level - (x[k] - centre) * slope);
        }
      }
    }
  });
}

/// Sums each channel over the samples, in order.
void parameter_gradient(const Out& result, const std::vector<double>& sums, int64_t samples) {
  if (!result.defined()) return;
  with_floating_type(result.dtype, [&]<class T>() {
    for (int64_t channel = 0; channel < result.numel; ++channel) {
      double total = 0;
      for (int64_t i = 0; i < samples; ++i) {
        total += sums[static_cast<size_t>(i * result.numel + channel)];
      }
      result.data<T>()[channel] = convert<T>(total);
    }
  });
}

void native_group_norm_backward(const Out& dx, const Out& dw, const Out& db, const In& grad_out,
                                const In& input, const In& mean, const In& rstd, const In& weight,
                                int64_t n, int64_t channels, int64_t positions, int64_t groups,
                                BoolList) {
  const int64_t width = channels / groups;
  with_floating_type(input.dtype, [&]<class T>() {
    const ChannelSums sums =
        sum_positions<T>(grad_out, input, mean, rstd, n * channels, positions, width);
    if (dx.defined()) {
      input_gradient<T>(dx, grad_out, input, mean, rstd, weight, sums, n, width, positions, groups);
    }
    parameter_gradient(dw, sums.along, n);
    parameter_gradient(db, sums.gradient, n);
  });
}

}  // namespace

LS_KERNEL(CPU, "_fused_group_norm", fused_group_norm, Strides::kContiguous);
LS_KERNEL(CPU, "native_group_norm_backward", native_group_norm_backward, Strides::kContiguous);

}  // namespace lockstep::cpu

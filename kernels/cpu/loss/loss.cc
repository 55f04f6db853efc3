#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/loss/exp_row.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;  // minimum elements per task

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

constexpr int64_t kIgnored = -1;

/// Reads class indices as int64; those equal to `ignore_index` become kIgnored.
std::vector<int64_t> read_targets(std::string_view op, const In& target, int64_t classes,
                                  int64_t ignore_index) {
  std::vector<int64_t> targets(static_cast<size_t>(target.numel));
  for (int64_t i = 0; i < target.numel; ++i) {
    const int64_t value = target.dtype == DType::kI64   ? target.data<int64_t>()[i]
                          : target.dtype == DType::kI32 ? target.data<int32_t>()[i]
                                                        : target.data<uint8_t>()[i];
    const bool ignored = value == ignore_index;
    LS_CHECK(ignored || (value >= 0 && value < classes), IndexError,
             "[{}] target out of range: expected a class in [0, {}) or ignore_index {}, got {} at "
             "position {}.",
             op, classes, ignore_index, value, i);
    targets[static_cast<size_t>(i)] = ignored ? kIgnored : value;
  }
  return targets;
}

int64_t count_used(const std::vector<int64_t>& targets) {
  return static_cast<int64_t>(targets.size()) -
         std::count(targets.begin(), targets.end(), kIgnored);
}

void nll_loss_forward(const Out& out, const Out& total_weight, const In& self, const In& target,
                      const In& weight, int64_t reduction, int64_t ignore_index) {
  const int64_t classes = self.size(-1);
  const std::vector<int64_t> targets = read_targets("nll_loss", target, classes, ignore_index);
  with_floating_type(self.dtype, [&]<class T>() {
    const T* scores = self.data<T>();
    const T* weights = weight.data<T>();
    double loss = 0, total = 0;
    for (size_t row = 0; row < targets.size(); ++row) {
      double each = 0;
      if (targets[row] != kIgnored) {
        const double scale = weight.defined() ? convert<double>(weights[targets[row]]) : 1.0;
        each = -scale * convert<double>(scores[static_cast<int64_t>(row) * classes + targets[row]]);
        total += scale;
      }
      if (reduction == kNone) out.data<T>()[row] = convert<T>(each);
      loss += each;
    }
    if (reduction != kNone) *out.data<T>() = convert<T>(reduction == kMean ? loss / total : loss);
    *total_weight.data<T>() = convert<T>(reduction == kNone && self.rank == 2 ? 0.0 : total);
  });
}

void nll_loss_backward(const Out& out, const In& grad_output, const In& self, const In& target,
                       const In& weight, int64_t reduction, int64_t ignore_index,
                       const In& total_weight) {
  const int64_t classes = self.size(-1);
  const std::vector<int64_t> targets =
      read_targets("nll_loss_backward", target, classes, ignore_index);
  with_floating_type(self.dtype, [&]<class T>() {
    const T* grads = grad_output.data<T>();
    const double shared = reduction == kMean ? 1.0 / convert<double>(*total_weight.data<T>()) : 1.0;
    const int64_t rows = static_cast<int64_t>(targets.size());
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(classes, 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t row = first; row < last; ++row) {
                     T* to = out.data<T>() + row * classes;
                     std::fill_n(to, classes, T());
                     const int64_t chosen = targets[static_cast<size_t>(row)];
                     if (chosen == kIgnored) continue;
                     const double scale =
                         weight.defined() ? convert<double>(weight.data<T>()[chosen]) : 1.0;
                     const double grad = convert<double>(grads[reduction == kNone ? row : 0]);
                     to[chosen] = convert<T>(-grad * scale * shared);
                   }
                 });
  });
}

void fused_cross_entropy(const Out& out, const Out& logsumexp, const In& self, const In& target,
                         int64_t reduction, int64_t ignore_index) {
  const int64_t rows = self.size(0), classes = self.size(1);
  const std::vector<int64_t> targets =
      read_targets("cross_entropy_loss", target, classes, ignore_index);
  with_floating_type(self.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    std::vector<C> losses(static_cast<size_t>(rows));
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(classes, 1)),
                 [&](int64_t first, int64_t last) {
                   std::vector<C> buffer(std::is_same_v<T, C> ? 0 : static_cast<size_t>(classes));
                   for (int64_t row = first; row < last; ++row) {
                     const C* x = read_row(self.data<T>() + row * classes, classes, buffer.data());
                     LogSumExp<C> total;
                     total.add(x, classes);
                     const int64_t chosen = targets[static_cast<size_t>(row)];
                     logsumexp.data<C>()[row] = total.value();
                     losses[static_cast<size_t>(row)] =
                         chosen == kIgnored ? C(0) : total.value() - x[chosen];
                   }
                 });
    if (reduction == kNone) {
      for (int64_t row = 0; row < rows; ++row)
        out.data<T>()[row] = convert<T>(losses[static_cast<size_t>(row)]);
      return;
    }
    double loss = 0;
    for (const C each : losses) loss += static_cast<double>(each);
    if (reduction == kMean) loss /= static_cast<double>(count_used(targets));
    *out.data<T>() = convert<T>(loss);
  });
}

/// dx[i] = scale * exp(x[i] - logsumexp).
template <class C>
void scaled_softmax(C* dx, const C* x, int64_t n, C logsumexp, C scale) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = scale * elementary::exp(x[i] - logsumexp);
}

void fused_cross_entropy_backward(const Out& out, const In& grad_output, const In& self,
                                  const In& target, const In& logsumexp, int64_t reduction,
                                  int64_t ignore_index) {
  const int64_t rows = self.size(0), classes = self.size(1);
  const std::vector<int64_t> targets =
      read_targets("cross_entropy_loss", target, classes, ignore_index);
  const double shared = reduction == kMean ? 1.0 / static_cast<double>(count_used(targets)) : 1.0;
  with_floating_type(self.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const T* grads = grad_output.data<T>();
    parallel_for(
        0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(classes, 1)),
        [&](int64_t first, int64_t last) {
          const size_t room = std::is_same_v<T, C> ? 0 : static_cast<size_t>(classes);
          std::vector<C> x_buffer(room), dx_buffer(room);
          for (int64_t row = first; row < last; ++row) {
            T* to = out.data<T>() + row * classes;
            const int64_t chosen = targets[static_cast<size_t>(row)];
            if (chosen == kIgnored) {
              std::fill_n(to, classes, T());
              continue;
            }
            const C* x = read_row(self.data<T>() + row * classes, classes, x_buffer.data());
            C* dx = row_target<T>(to, dx_buffer.data());
            const C scale =
                static_cast<C>(convert<double>(grads[reduction == kNone ? row : 0]) * shared);
            scaled_softmax(dx, x, classes, logsumexp.data<C>()[row], scale);
            dx[chosen] -= scale;
            finish_row<T>(to, dx, classes);
          }
        });
  });
}

}  // namespace

LS_KERNEL(CPU, "nll_loss_forward", nll_loss_forward, Strides::kContiguous);
LS_KERNEL(CPU, "nll_loss_backward", nll_loss_backward, Strides::kContiguous);
LS_KERNEL(CPU, "_fused_cross_entropy", fused_cross_entropy, Strides::kContiguous);
LS_KERNEL(CPU, "_fused_cross_entropy_backward", fused_cross_entropy_backward, Strides::kContiguous);

}  // namespace lockstep::cpu

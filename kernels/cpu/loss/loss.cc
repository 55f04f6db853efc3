#include "core/ops/loss/loss.h"

#include <algorithm>
#include <vector>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/loss/class_targets.h"
#include "kernels/cpu/loss/cross_entropy_row.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 8192;  // minimum elements per task

constexpr int64_t kNone = static_cast<int64_t>(Reduction::kNone);
constexpr int64_t kMean = static_cast<int64_t>(Reduction::kMean);

/// Rows that a thread takes at least.
int64_t rows_per_task(int64_t classes) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(classes, 1));
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
      if (targets[row] != kIgnoredClass) {
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
    parallel_for(0, rows, rows_per_task(classes), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        T* to = out.data<T>() + row * classes;
        std::fill_n(to, classes, T());
        const int64_t chosen = targets[static_cast<size_t>(row)];
        if (chosen == kIgnoredClass) continue;
        const double scale = weight.defined() ? convert<double>(weight.data<T>()[chosen]) : 1.0;
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
    parallel_for(0, rows, rows_per_task(classes), [&](int64_t first, int64_t last) {
      std::vector<C> buffer(std::is_same_v<T, C> ? 0 : static_cast<size_t>(classes));
      for (int64_t row = first; row < last; ++row) {
        const auto at = static_cast<size_t>(row);
        losses[at] = cross_entropy_of_row(self.data<T>() + row * classes, classes, targets[at],
                                          buffer.data(), logsumexp.data<C>()[row]);
      }
    });
    if (reduction == kNone) {
      std::copy(losses.begin(), losses.end(), out.data<C>());
      return;
    }
    *out.data<C>() = reduced_loss<C>(losses, targets, reduction == kMean);
  });
}

void fused_cross_entropy_backward(const Out& out, const In& self, const In& grad_output,
                                  const In& target, const In& logsumexp, int64_t reduction,
                                  int64_t ignore_index) {
  const int64_t rows = self.size(0), classes = self.size(1);
  const std::vector<int64_t> targets =
      read_targets("cross_entropy_loss", target, classes, ignore_index);
  const double shared = reduction == kMean ? 1.0 / static_cast<double>(count_used(targets)) : 1.0;
  with_floating_type(self.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const C* grads = grad_output.data<C>();
    parallel_for(0, rows, rows_per_task(classes), [&](int64_t first, int64_t last) {
      std::vector<C> buffer(std::is_same_v<T, C> ? 0 : static_cast<size_t>(classes));
      for (int64_t row = first; row < last; ++row) {
        const C scale =
            static_cast<C>(static_cast<double>(grads[reduction == kNone ? row : 0]) * shared);
        cross_entropy_gradient_of_row(out.data<T>() + row * classes, self.data<T>() + row * classes,
                                      classes, targets[static_cast<size_t>(row)],
                                      logsumexp.data<C>()[row], scale, buffer.data());
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

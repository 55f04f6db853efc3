#include "core/ops/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/bias_correction.h"
#include "kernels/common/lion_direction.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

namespace {

/// Elements per part; a part is updated by one task.
constexpr int64_t kPart = 16384;

/// A range of elements of one tensor of a list.
struct Part {
  size_t tensor;
  int64_t number;  ///< index among all parts of the list
  int64_t first;
  int64_t count;
};

/// Calls `work(part)` for parts of `size` elements of every tensor of the list in a single parallel
/// loop, so that many small tensors cost no more than one large one.
template <class List, class Work>
void for_each_part(const List& list, int64_t size, Work work) {
  std::vector<int64_t> starts{0};  // first part of each tensor
  for (const auto& tensor : list) {
    starts.push_back(starts.back() + (tensor.numel + size - 1) / size);
  }
  parallel_for(0, starts.back(), 4, [&](int64_t begin, int64_t end) {
    auto tensor = std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin() - 1;
    for (int64_t part = begin; part < end; ++part) {
      while (part >= starts[static_cast<size_t>(tensor) + 1]) ++tensor;
      const auto i = static_cast<size_t>(tensor);
      const int64_t first = (part - starts[i]) * size;
      work(Part{i, part, first, std::min(size, list[i].numel - first)});
    }
  });
}

/// Calls `update(first, count)` for pieces of a part, and writes each piece's new `values` to the
/// cast of its parameter while they are in the nearest cache. Without casts there is one piece.
template <class T, class Update>
void update_and_cast(const Part& part, const T* values, OutList casts, Update update) {
  if (casts.empty()) return update(part.first, part.count);
  constexpr int64_t kPiece = 1024;
  const Out& cast = casts[part.tensor];
  const auto size = static_cast<int64_t>(size_of(cast.dtype));
  const StoreFunction store = store_function(cast.dtype, lane_of<T>);
  for (int64_t first = part.first; first < part.first + part.count; first += kPiece) {
    const int64_t count = std::min(kPiece, part.first + part.count - first);
    update(first, count);
    store(count, cast.data<char>() + first * size, size, values + first);
  }
}

double decay_of(double weight_decay, IntList decayed, size_t i) {
  return decayed.empty() || decayed[i] != 0 ? weight_decay : 0.0;
}

/// The factor times the one that is on the device, where there is one.
double factor_of(double factor, const In& other) {
  return other.defined() ? factor * *other.data<double>() : factor;
}

bool is_left_out(const In& found_inf) {
  return found_inf.defined() && *found_inf.data<float>() != 0;
}

/// Factors of one AdamW step, the same for all elements.
template <class T>
struct AdamWFactors {
  T gradient, first, second, second_new, step_size, inverse_root, eps;
};

template <class T>
void adamw_part(T* __restrict p, const T* __restrict grad, T* __restrict m, T* __restrict v,
                int64_t n, const AdamWFactors<T>& f, T keep) {
  for (int64_t i = 0; i < n; ++i) {
    const T g = f.gradient * grad[i];
    const T first = std::fma(f.first, g - m[i], m[i]);
    const T second = std::fma(f.second_new * g, g, f.second * v[i]);
    const T root = std::fma(std::sqrt(second), f.inverse_root, f.eps);
    m[i] = first;
    v[i] = second;
    p[i] = std::fma(p[i], keep, -(f.step_size * first / root));
  }
}

template <class T>
void adamw(OutList self, InList grads, OutList exp_avgs, OutList exp_avg_sqs, double lr,
           double beta1, double beta2, double weight_decay, double eps, double step,
           double grad_scale, IntList decayed, OutList casts) {
  const AdamWFactors<T> factors{static_cast<T>(grad_scale),
                                static_cast<T>(1 - beta1),
                                static_cast<T>(beta2),
                                static_cast<T>(1 - beta2),
                                static_cast<T>(lr / bias_correction(beta1, step)),
                                static_cast<T>(1 / std::sqrt(bias_correction(beta2, step))),
                                static_cast<T>(eps)};
  for_each_part(self, kPart, [&](const Part& part) {
    const size_t i = part.tensor;
    const T keep = static_cast<T>(1 - lr * decay_of(weight_decay, decayed, i));
    T* const p = self[i].data<T>();
    const T* const grad = grads[i].data<T>();
    T* const mean = exp_avgs[i].data<T>();
    T* const square = exp_avg_sqs[i].data<T>();
    update_and_cast(part, p, casts, [&](int64_t first, int64_t count) {
      adamw_part(p + first, grad + first, mean + first, square + first, count, factors, keep);
    });
  });
}

void fused_adamw(OutList self, InList grads, OutList exp_avgs, OutList exp_avg_sqs, double lr,
                 double beta1, double beta2, double weight_decay, double eps, const In& step,
                 double grad_scale, IntList decayed, const In& grad_factor, const In& found_inf,
                 OutList casts, const In& lr_factor) {
  if (self.empty() || is_left_out(found_inf)) return;
  const double number = *step.data<double>();
  LS_CHECK(number >= 1 && number < 0x1p63, IndexError,
           "[_fused_adamw_] step out of range: expected at least 1, got {}.", number);
  const auto run = self[0].dtype == DType::kF64 ? adamw<double> : adamw<float>;
  run(self, grads, exp_avgs, exp_avg_sqs, factor_of(lr, lr_factor), beta1, beta2, weight_decay, eps,
      number, factor_of(grad_scale, grad_factor), decayed, casts);
}

template <class T>
struct SgdFactors {
  T gradient, momentum, lr;
};

template <class T>
void sgd_part(T* __restrict p, const T* __restrict grad, int64_t n, const SgdFactors<T>& f,
              T decay) {
  for (int64_t i = 0; i < n; ++i) {
    p[i] = std::fma(-f.lr, std::fma(decay, p[i], f.gradient * grad[i]), p[i]);
  }
}

template <class T>
void momentum_part(T* __restrict p, const T* __restrict grad, T* __restrict buffer, int64_t n,
                   const SgdFactors<T>& f, T decay, bool nesterov) {
  // The step's direction: g + momentum * b with Nesterov momentum, else b alone.
  const T of_gradient = nesterov ? T(1) : T(0);
  const T of_buffer = nesterov ? f.momentum : T(1);
  for (int64_t i = 0; i < n; ++i) {
    const T g = std::fma(decay, p[i], f.gradient * grad[i]);
    const T b = std::fma(f.momentum, buffer[i], g);
    buffer[i] = b;
    p[i] = std::fma(-f.lr, std::fma(of_buffer, b, of_gradient * g), p[i]);
  }
}

template <class T>
void sgd(OutList self, InList grads, OutList momentum_buffers, double lr, double momentum,
         bool nesterov, double weight_decay, double grad_scale, IntList decayed, OutList casts) {
  const SgdFactors<T> factors{static_cast<T>(grad_scale), static_cast<T>(momentum),
                              static_cast<T>(lr)};
  for_each_part(self, kPart, [&](const Part& part) {
    const size_t i = part.tensor;
    const T decay = static_cast<T>(decay_of(weight_decay, decayed, i));
    T* const p = self[i].data<T>();
    const T* const grad = grads[i].data<T>();
    T* const buffer = momentum == 0 ? nullptr : momentum_buffers[i].data<T>();
    update_and_cast(part, p, casts, [&](int64_t first, int64_t count) {
      if (momentum == 0) {
        sgd_part(p + first, grad + first, count, factors, decay);
      } else {
        momentum_part(p + first, grad + first, buffer + first, count, factors, decay, nesterov);
      }
    });
  });
}

void fused_sgd(OutList self, InList grads, OutList momentum_buffers, double lr, double momentum,
               bool nesterov, double weight_decay, double grad_scale, IntList decayed,
               const In& grad_factor, const In& found_inf, OutList casts, const In& lr_factor) {
  if (self.empty() || is_left_out(found_inf)) return;
  const auto run = self[0].dtype == DType::kF64 ? sgd<double> : sgd<float>;
  run(self, grads, momentum_buffers, factor_of(lr, lr_factor), momentum, nesterov, weight_decay,
      factor_of(grad_scale, grad_factor), decayed, casts);
}

/// Factors of one Lion step, the same for all elements.
template <class T>
struct LionFactors {
  T gradient, lr, first, first_new, second, second_new;
};

template <class T>
void lion_part(T* __restrict p, const T* __restrict grad, T* __restrict m, int64_t n,
               const LionFactors<T>& f, T keep) {
  for (int64_t i = 0; i < n; ++i) {
    const T g = f.gradient * grad[i];
    const T c = std::fma(f.first, m[i], f.first_new * g);
    p[i] = std::fma(p[i], keep, -(f.lr * lion_direction(c)));
    m[i] = std::fma(f.second, m[i], f.second_new * g);
  }
}

template <class T>
void lion(OutList self, InList grads, OutList exp_avgs, double lr, double beta1, double beta2,
          double weight_decay, double grad_scale, IntList decayed, OutList casts) {
  const LionFactors<T> factors{static_cast<T>(grad_scale), static_cast<T>(lr),
                               static_cast<T>(beta1),      static_cast<T>(1 - beta1),
                               static_cast<T>(beta2),      static_cast<T>(1 - beta2)};
  for_each_part(self, kPart, [&](const Part& part) {
    const size_t i = part.tensor;
    const T keep = static_cast<T>(1 - lr * decay_of(weight_decay, decayed, i));
    T* const p = self[i].data<T>();
    const T* const grad = grads[i].data<T>();
    T* const mean = exp_avgs[i].data<T>();
    update_and_cast(part, p, casts, [&](int64_t first, int64_t count) {
      lion_part(p + first, grad + first, mean + first, count, factors, keep);
    });
  });
}

void fused_lion(OutList self, InList grads, OutList exp_avgs, double lr, double beta1, double beta2,
                double weight_decay, double grad_scale, IntList decayed, const In& grad_factor,
                const In& found_inf, OutList casts, const In& lr_factor) {
  if (self.empty() || is_left_out(found_inf)) return;
  const auto run = self[0].dtype == DType::kF64 ? lion<double> : lion<float>;
  run(self, grads, exp_avgs, factor_of(lr, lr_factor), beta1, beta2, weight_decay,
      factor_of(grad_scale, grad_factor), decayed, casts);
}

/// Squares of as many elements as a vector of f64 holds.
template <class T>
Vector<double> squares_at(const T* x) {
  typedef T Elements __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  const auto wide = __builtin_convertvector(*reinterpret_cast<const Elements*>(x), Vector<double>);
  return wide * wide;
}

template <class T>
double square_sum(const T* x, int64_t n) {
  // Squares in f64: squares of f32 values are exact there and neither overflow nor underflow.
  constexpr int64_t kChunk = 512, kAhead = 1024;
  double total = 0;
  for (int64_t first = 0; first < n; first += kChunk) {
    const T* const chunk = x + first;
    // Gradients are read once from memory, faster than the processor looks ahead by itself.
    for (int64_t i = 0; i < kChunk; i += 64 / static_cast<int64_t>(sizeof(T))) {
      __builtin_prefetch(chunk + kAhead + i);
    }
    LaneAccumulator<SumOf<double>> sums;
    sums.add_each(
        std::min(kChunk, n - first), [chunk](int64_t i) { return squares_at(chunk + i); },
        [chunk](int64_t i) {
          const auto value = static_cast<double>(chunk[i]);
          return value * value;
        });
    total += sums.total();
  }
  return total;
}

template <class T>
void square_sums(const Out& out, InList self) {
  for_each_part(self, kNormBlock, [&](const Part& block) {
    out.data<double>()[block.number] =
        square_sum(self[block.tensor].data<T>() + block.first, block.count);
  });
}

void block_square_sums(const Out& out, InList self) {
  self[0].dtype == DType::kF64 ? square_sums<double>(out, self) : square_sums<float>(out, self);
}

/// The sum of each run of kSumRun elements; at least one.
template <class T>
std::vector<double> sums_of_runs(std::span<const T> x) {
  std::vector<double> sums;
  do {
    const std::span<const T> run = x.first(std::min(x.size(), static_cast<size_t>(kSumRun)));
    double sum = 0;
    for (const T each : run) sum += each;
    sums.push_back(sum);
    x = x.subspan(run.size());
  } while (!x.empty());
  return sums;
}

template <class T>
std::vector<double> sums_of_runs(const In& self) {
  return sums_of_runs(std::span(self.data<T>(), static_cast<size_t>(self.numel)));
}

void ordered_sum(const Out& out, const In& self) {
  std::vector<double> sums =
      self.dtype == DType::kF64 ? sums_of_runs<double>(self) : sums_of_runs<float>(self);
  while (sums.size() > 1) sums = sums_of_runs(std::span<const double>(sums));
  *out.data<double>() = sums[0];
}

}  // namespace

LS_KERNEL(CPU, "_fused_adamw_", fused_adamw, Strides::kContiguous);
LS_KERNEL(CPU, "_fused_sgd_", fused_sgd, Strides::kContiguous);
LS_KERNEL(CPU, "_fused_lion_", fused_lion, Strides::kContiguous);
LS_KERNEL(CPU, "_block_square_sums", block_square_sums, Strides::kContiguous);
LS_KERNEL(CPU, "_ordered_sum", ordered_sum, Strides::kContiguous);

}  // namespace lockstep::cpu

#include "kernels/common/bias_correction.h"
#include "kernels/common/lion_direction.h"
#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/fault.cuh"
#include "kernels/cuda/optimizer/optimizer.h"

namespace lockstep::cuda {

namespace {

constexpr int kThreads = 256;

/// A part of a tensor: the elements [first, end).
template <class Tensor>
struct Part {
  const Tensor& tensor;
  int64_t first, end;
};

template <class Tensor, uint32_t kMost>
__device__ Part<Tensor> part_at(const PartList<Tensor, kMost>& over, uint32_t part) {
  // Binary search for the last tensor whose first part is at or before this part.
  uint32_t low = 0, high = over.tensors;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (over.list[middle].first_part <= part ? low : high) = middle;
  }
  const Tensor& tensor = over.list[low];
  const int64_t first = static_cast<int64_t>(part - tensor.first_part) * kOptimizerPart;
  const int64_t end = first + kOptimizerPart;
  return {tensor, first, end < tensor.count ? end : tensor.count};
}

__device__ bool is_left_out(const StepControl& control) {
  if (control.found_inf != nullptr && *control.found_inf != 0) return true;
  if (control.step == nullptr || (*control.step >= 1 && *control.step < 0x1p63)) return false;
  note_fault(control.fault, static_cast<int64_t>(*control.step), 1, INT64_MAX);
  return true;
}

template <class T>
__device__ T grad_factor(const StepControl& control) {
  return static_cast<T>(control.grad_factor != nullptr ? control.grad_scale * *control.grad_factor
                                                       : control.grad_scale);
}

__device__ double learning_rate(double lr, const StepControl& control) {
  return control.lr_factor != nullptr ? lr * *control.lr_factor : lr;
}

// Each launch constructs an update rule, which is reset for each of its tensors.

template <class T>
struct AdamW {
  static constexpr int kStates = 2;
  const AdamWFactors<T>& f;
  T gradient;  ///< factor of the gradients
  double lr;
  T step_size, inverse_root;
  T keep = T(1);
  /// All threads of a block must construct it together.
  __device__ AdamW(const AdamWFactors<T>& factors, const StepControl& control)
      : f(factors), gradient(grad_factor<T>(control)), lr(learning_rate(factors.lr, control)) {
    __shared__ T corrected[2];
    if (threadIdx.x < 2) {  // both powers at once, in one warp
      const bool first = threadIdx.x == 0;
      const double correction = bias_correction(first ? f.beta1 : f.beta2, *control.step);
      corrected[threadIdx.x] = static_cast<T>(first ? lr / correction : 1 / std::sqrt(correction));
    }
    __syncthreads();
    step_size = corrected[0];
    inverse_root = corrected[1];
  }
  __device__ void begin(bool decays) {
    keep = decays ? static_cast<T>(1 - lr * f.weight_decay) : T(1);
  }
  __device__ bool uses(int) const { return true; }
  __device__ void operator()(T& p, T grad, T* state) const {
    const T g = gradient * grad;
    const T first = std::fma(f.first, g - state[0], state[0]);
    const T second = std::fma(f.second_new * g, g, f.second * state[1]);
    const T root = std::fma(std::sqrt(second), inverse_root, f.eps);
    state[0] = first;
    state[1] = second;
    p = std::fma(p, keep, -(step_size * first / root));
  }
};

template <class T>
struct Sgd {
  static constexpr int kStates = 1;
  const SgdFactors<T>& f;
  T gradient, lr;
  T decay = T(0);
  __device__ Sgd(const SgdFactors<T>& factors, const StepControl& control)
      : f(factors),
        gradient(grad_factor<T>(control)),
        lr(static_cast<T>(learning_rate(factors.lr, control))) {}
  __device__ void begin(bool decays) { decay = f.decay[decays ? 1 : 0]; }
  __device__ bool uses(int) const { return f.has_momentum; }
  __device__ void operator()(T& p, T grad, T* state) const {
    const T g = std::fma(decay, p, gradient * grad);
    if (!f.has_momentum) {
      p = std::fma(-lr, g, p);
      return;
    }
    const T b = std::fma(f.momentum, state[0], g);
    state[0] = b;
    p = std::fma(-lr, std::fma(f.of_buffer, b, f.of_gradient * g), p);
  }
};

template <class T>
struct Lion {
  static constexpr int kStates = 1;
  const LionFactors<T>& f;
  T gradient;
  double lr;
  T keep = T(1);
  __device__ Lion(const LionFactors<T>& factors, const StepControl& control)
      : f(factors), gradient(grad_factor<T>(control)), lr(learning_rate(factors.lr, control)) {}
  __device__ void begin(bool decays) {
    keep = decays ? static_cast<T>(1 - lr * f.weight_decay) : T(1);
  }
  __device__ bool uses(int) const { return true; }
  __device__ void operator()(T& p, T grad, T* state) const {
    const T g = gradient * grad;
    const T c = std::fma(f.first, state[0], f.first_new * g);
    p = std::fma(p, keep, -(static_cast<T>(lr) * lion_direction(c)));
    state[0] = std::fma(f.second, state[0], f.second_new * g);
  }
};

/// Writes pack number `i` of a parameter to its cast.
template <class T, int kWidth>
__device__ void store_cast(void* cast, bool to_bf16, int64_t i, const Pack<T, kWidth>& values) {
  if (to_bf16) {
    static_cast<Pack<BFloat16, kWidth>*>(cast)[i] = converted_pack<BFloat16, kWidth>(values.at);
  } else {
    static_cast<Pack<Half, kWidth>*>(cast)[i] = converted_pack<Half, kWidth>(values.at);
  }
}

/// Updates elements [first, last) of a tensor, kWidth adjacent ones at a time.
template <class T, int kWidth, class Rule>
__device__ void update_part(const OptimizerTensor& tensor, bool to_bf16, const Rule& rule,
                            int64_t first, int64_t last) {
  using Elements = Pack<T, kWidth>;
  auto* const p = static_cast<Elements*>(tensor.parameter);
  const auto* const grad = static_cast<const Elements*>(tensor.gradient);
  for (int64_t i = first / kWidth + threadIdx.x; i < last / kWidth; i += blockDim.x) {
    Elements parameter = p[i];
    const Elements gradient = grad[i];
    Elements states[Rule::kStates] = {};
    for (int s = 0; s < Rule::kStates; ++s) {
      if (rule.uses(s)) states[s] = static_cast<const Elements*>(tensor.state[s])[i];
    }
    for (int k = 0; k < kWidth; ++k) {
      T state[Rule::kStates];
      for (int s = 0; s < Rule::kStates; ++s) state[s] = states[s].at[k];
      rule(parameter.at[k], gradient.at[k], state);
      for (int s = 0; s < Rule::kStates; ++s) states[s].at[k] = state[s];
    }
    p[i] = parameter;
    if (tensor.cast != nullptr) store_cast(tensor.cast, to_bf16, i, parameter);
    for (int s = 0; s < Rule::kStates; ++s) {
      if (rule.uses(s)) static_cast<Elements*>(tensor.state[s])[i] = states[s];
    }
  }
}

__device__ bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;  // true for null
}

template <class T, class Rule, class Step>
__device__ void optimizer_step(const Step& p) {
  constexpr int kWidth = 16 / sizeof(T);
  if (is_left_out(p.control)) return;
  Rule rule(p.factors, p.control);
  for (uint32_t part = blockIdx.x; part < p.over.parts; part += gridDim.x) {
    const auto [tensor, first, end] = part_at(p.over, part);
    rule.begin(tensor.decays != 0);
    const bool aligned = is_aligned(tensor.parameter) && is_aligned(tensor.gradient) &&
                         is_aligned(tensor.state[0]) && is_aligned(tensor.state[1]) &&
                         is_aligned(tensor.cast);
    const bool to_bf16 = p.casts_to_bf16 != 0;
    const int64_t wide_end = aligned ? end / kWidth * kWidth : first;
    update_part<T, kWidth>(tensor, to_bf16, rule, first, wide_end);
    update_part<T, 1>(tensor, to_bf16, rule, wide_end, end);
  }
}

/// The order of addition depends only on the number of elements.
template <class T>
__device__ void block_square_sums(const BlockSquareSums& p) {
  constexpr int kWidth = 4;
  using Elements = Pack<T, kWidth>;
  for (uint32_t part = blockIdx.x; part < p.over.parts; part += gridDim.x) {
    const auto [tensor, first, end] = part_at(p.over, part);
    const T* const x = static_cast<const T*>(tensor.x) + first;
    const int64_t count = end - first;
    const bool aligned = reinterpret_cast<uintptr_t>(x) % sizeof(Elements) == 0;
    double sum = 0;
    for (int64_t i = threadIdx.x * kWidth; i < count; i += kThreads * kWidth) {
      Elements values{};
      if (aligned && i + kWidth <= count) {
        values = *reinterpret_cast<const Elements*>(x + i);
      } else {
        for (int k = 0; k < kWidth; ++k) values.at[k] = i + k < count ? x[i + k] : T(0);
      }
      for (int k = 0; k < kWidth; ++k) {
        const double value = static_cast<double>(values.at[k]);
        sum += value * value;
      }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) tensor.out[part - tensor.first_part] = sum;
  }
}

/// The block loads its runs into shared memory, then one thread adds each run in order.
template <class T>
__device__ void ordered_sum(const OrderedSum& p) {
  constexpr int kLine = kOrderedRun + 1;  // so that threads in step read from different banks
  __shared__ double runs[kOrderedRuns * kLine];
  const T* const x = static_cast<const T*>(p.x);
  const int64_t first = int64_t{blockIdx.x} * kOrderedRuns * kOrderedRun;
  const int64_t rest = p.count - first;
  const int count =
      static_cast<int>(rest < kOrderedRuns * kOrderedRun ? rest : kOrderedRuns * kOrderedRun);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    runs[i / kOrderedRun * kLine + i % kOrderedRun] = x[first + i];
  }
  __syncthreads();
  const int run = static_cast<int>(threadIdx.x);
  const int begin = run * kOrderedRun;
  if (run >= kOrderedRuns || (begin >= count && first + begin > 0)) return;
  const int length = count - begin < kOrderedRun ? count - begin : kOrderedRun;
  double sum = 0;
  for (int i = 0; i < length; ++i) sum += runs[run * kLine + i];
  p.out[int64_t{blockIdx.x} * kOrderedRuns + run] = sum;
}

}  // namespace

LS_CUDA_KERNEL(optimizer_adamw_f32, OptimizerStep<AdamWFactors<float>>, kThreads) {
  optimizer_step<float, AdamW<float>>(p);
}
LS_CUDA_KERNEL(optimizer_adamw_f64, OptimizerStep<AdamWFactors<double>>, kThreads) {
  optimizer_step<double, AdamW<double>>(p);
}
LS_CUDA_KERNEL(optimizer_sgd_f32, OptimizerStep<SgdFactors<float>>, kThreads) {
  optimizer_step<float, Sgd<float>>(p);
}
LS_CUDA_KERNEL(optimizer_sgd_f64, OptimizerStep<SgdFactors<double>>, kThreads) {
  optimizer_step<double, Sgd<double>>(p);
}
LS_CUDA_KERNEL(optimizer_lion_f32, OptimizerStep<LionFactors<float>>, kThreads) {
  optimizer_step<float, Lion<float>>(p);
}
LS_CUDA_KERNEL(optimizer_lion_f64, OptimizerStep<LionFactors<double>>, kThreads) {
  optimizer_step<double, Lion<double>>(p);
}
LS_CUDA_KERNEL(optimizer_square_sums_f32, BlockSquareSums, kThreads) {
  block_square_sums<float>(p);
}
LS_CUDA_KERNEL(optimizer_square_sums_f64, BlockSquareSums, kThreads) {
  block_square_sums<double>(p);
}
LS_CUDA_KERNEL(optimizer_ordered_sum_f32, OrderedSum, kThreads) { ordered_sum<float>(p); }
LS_CUDA_KERNEL(optimizer_ordered_sum_f64, OrderedSum, kThreads) { ordered_sum<double>(p); }

}  // namespace lockstep::cuda

#include "kernels/cuda/optimizer.h"

#include <cmath>

#include "core/library.h"
#include "core/ops/optimizer.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/optimizer.fatbin.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const DTypeKernels kAdamW(kImage, "optimizer_adamw", {DType::kF32, DType::kF64});
const DTypeKernels kSgd(kImage, "optimizer_sgd", {DType::kF32, DType::kF64});
const DTypeKernels kSquareSums(kImage, "optimizer_square_sums", {DType::kF32, DType::kF64});
const DTypeKernels kOrderedSum(kImage, "optimizer_ordered_sum", {DType::kF32, DType::kF64});

/// Launches `kernel` over all tensors, as many of them at a time as its parameters have room for.
/// Tensor i's states are those of `states[0][i]`, ...; a list may be empty.
template <class Factors>
void launch_steps(Kernel kernel, const Factors& factors, const StepControl& control, OutList self,
                  InList grads, const OutList (&states)[2], IntList decayed) {
  OptimizerStep<Factors> step{};
  step.factors = factors;
  step.control = control;
  const auto flush = [&] {
    if (step.parts != 0) {
      launch(kernel, {.blocks = {step.parts, 1, 1}, .threads = kThreads}, step);
    }
    step.tensors = step.parts = 0;
  };
  for (size_t i = 0; i < self.size(); ++i) {
    if (self[i].numel == 0) continue;
    const auto state = [&](const OutList& list) {
      return list.empty() ? nullptr : list[i].address;
    };
    step.list[step.tensors++] = {.parameter = self[i].address,
                                 .gradient = grads[i].address,
                                 .state = {state(states[0]), state(states[1])},
                                 .count = self[i].numel,
                                 .first_part = step.parts,
                                 .decays = decayed.empty() || decayed[i] != 0 ? 1U : 0U};
    step.parts += static_cast<uint32_t>((self[i].numel + kOptimizerPart - 1) / kOptimizerPart);
    if (step.tensors == OptimizerStep<Factors>::kMost) flush();
  }
  flush();
}

StepControl control_of(double grad_scale, const In& grad_factor, const In& found_inf) {
  return {.grad_scale = grad_scale,
          .grad_factor = grad_factor.defined() ? grad_factor.data<double>() : nullptr,
          .found_inf = found_inf.defined() ? found_inf.data<float>() : nullptr};
}

template <class T>
AdamWFactors<T> adamw_factors(double lr, double beta1, double beta2, double weight_decay,
                              double eps, int64_t step) {
  const double steps = static_cast<double>(step);
  const double correction1 = 1 - std::pow(beta1, steps);
  const double correction2 = 1 - std::pow(beta2, steps);
  return {.first = static_cast<T>(1 - beta1),
          .second = static_cast<T>(beta2),
          .second_new = static_cast<T>(1 - beta2),
          .step_size = static_cast<T>(lr / correction1),
          .inverse_root = static_cast<T>(1 / std::sqrt(correction2)),
          .eps = static_cast<T>(eps),
          .keep = {T(1), static_cast<T>(1 - lr * weight_decay)}};
}

void fused_adamw(OutList self, InList grads, OutList exp_avgs, OutList exp_avg_sqs, double lr,
                 double beta1, double beta2, double weight_decay, double eps, int64_t step,
                 double grad_scale, IntList decayed, const In& grad_factor, const In& found_inf) {
  if (self.empty()) return;
  const auto run = [&]<class T>() {
    launch_steps(kAdamW[self[0].dtype], adamw_factors<T>(lr, beta1, beta2, weight_decay, eps, step),
                 control_of(grad_scale, grad_factor, found_inf), self, grads,
                 {exp_avgs, exp_avg_sqs}, decayed);
  };
  self[0].dtype == DType::kF64 ? run.template operator()<double>()
                               : run.template operator()<float>();
}

void fused_sgd(OutList self, InList grads, OutList momentum_buffers, double lr, double momentum,
               bool nesterov, double weight_decay, double grad_scale, IntList decayed,
               const In& grad_factor, const In& found_inf) {
  if (self.empty()) return;
  const bool has_momentum = momentum != 0;
  const auto run = [&]<class T>() {
    const SgdFactors<T> factors{.momentum = static_cast<T>(momentum),
                                .lr = static_cast<T>(lr),
                                .of_gradient = nesterov ? T(1) : T(0),
                                .of_buffer = nesterov ? static_cast<T>(momentum) : T(1),
                                .decay = {T(0), static_cast<T>(weight_decay)},
                                .has_momentum = has_momentum};
    launch_steps(kSgd[self[0].dtype], factors, control_of(grad_scale, grad_factor, found_inf), self,
                 grads, {has_momentum ? momentum_buffers : OutList(), OutList()}, decayed);
  };
  self[0].dtype == DType::kF64 ? run.template operator()<double>()
                               : run.template operator()<float>();
}

void block_square_sums(const Out& out, const In& self) {
  if (out.numel == 0) return;
  launch(kSquareSums[self.dtype], {.blocks = {blocks_for(out.numel, 1), 1, 1}, .threads = kThreads},
         BlockSquareSums{self.address, out.data<double>(), self.numel, out.numel});
}

void ordered_sum(const Out& out, const In& self) {
  launch(kOrderedSum[self.dtype], {.blocks = {1, 1, 1}, .threads = kThreads},
         OrderedSum{self.address, out.data<double>(), self.numel});
}

}  // namespace

LS_KERNEL(CUDA, "_fused_adamw_", fused_adamw, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_sgd_", fused_sgd, Strides::kContiguous);
LS_KERNEL(CUDA, "_block_square_sums", block_square_sums, Strides::kContiguous);
LS_KERNEL(CUDA, "_ordered_sum", ordered_sum, Strides::kContiguous);

}  // namespace lockstep::cuda

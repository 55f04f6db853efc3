#include "kernels/cuda/optimizer/optimizer.h"

#include <algorithm>
#include <utility>

#include "core/dispatch/kernel.h"
#include "core/ops/optimizer/optimizer.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/optimizer/optimizer.fatbin.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const DTypeKernels kAdamW(kImage, "optimizer_adamw", {DType::kF32, DType::kF64});
const DTypeKernels kSgd(kImage, "optimizer_sgd", {DType::kF32, DType::kF64});
const DTypeKernels kLion(kImage, "optimizer_lion", {DType::kF32, DType::kF64});
const DTypeKernels kSquareSums(kImage, "optimizer_square_sums", {DType::kF32, DType::kF64});
const DTypeKernels kOrderedSum(kImage, "optimizer_ordered_sum", {DType::kF32, DType::kF64});

int64_t parts_of(int64_t count) { return (count + kOptimizerPart - 1) / kOptimizerPart; }

/// Launches `kernel` over the `count` tensors that `tensor_at(i)` describes (all but first_part),
/// as many at a time as `params.over` can hold.
template <class Params, class TensorAt>
void launch_over(Kernel kernel, Params params, size_t count, TensorAt tensor_at) {
  auto& over = params.over;
  over.tensors = over.parts = 0;
  const auto flush = [&] {
    if (over.parts != 0) {
      launch(kernel, {.blocks = {over.parts, 1, 1}, .threads = kThreads}, params);
    }
    over.tensors = over.parts = 0;
  };
  for (size_t i = 0; i < count; ++i) {
    auto tensor = tensor_at(i);
    if (tensor.count == 0) continue;
    tensor.first_part = over.parts;
    over.list[over.tensors++] = tensor;
    over.parts += static_cast<uint32_t>(parts_of(tensor.count));
    if (over.tensors == over.kMostTensors) flush();
  }
  flush();
}

/// The states of tensor i are `states[0][i]` and `states[1][i]`; a list may be empty.
template <class Factors>
void launch_steps(Kernel kernel, const Factors& factors, const StepControl& control, OutList self,
                  InList grads, const OutList (&states)[2], IntList decayed, OutList casts) {
  OptimizerStep<Factors> step{};
  step.factors = factors;
  step.control = control;
  step.casts_to_bf16 = !casts.empty() && casts[0].dtype == DType::kBF16 ? 1U : 0U;
  launch_over(kernel, step, self.size(), [&](size_t i) {
    const auto place = [&](const OutList& list) {
      return list.empty() ? nullptr : list[i].address;
    };
    return OptimizerTensor{.parameter = self[i].address,
                           .gradient = grads[i].address,
                           .state = {place(states[0]), place(states[1])},
                           .cast = place(casts),
                           .count = self[i].numel,
                           .decays = decayed.empty() || decayed[i] != 0 ? 1U : 0U};
  });
}

const FaultKind kOfStep("_fused_adamw_", "step out of range");

StepControl control_of(double grad_scale, const In& grad_factor, const In& lr_factor,
                       const In& found_inf) {
  return {.grad_scale = grad_scale,
          .grad_factor = grad_factor.defined() ? grad_factor.data<double>() : nullptr,
          .lr_factor = lr_factor.defined() ? lr_factor.data<double>() : nullptr,
          .found_inf = found_inf.defined() ? found_inf.data<float>() : nullptr};
}

template <class T>
AdamWFactors<T> adamw_factors(double lr, double beta1, double beta2, double weight_decay,
                              double eps) {
  return {.lr = lr,
          .beta1 = beta1,
          .beta2 = beta2,
          .weight_decay = weight_decay,
          .first = static_cast<T>(1 - beta1),
          .second = static_cast<T>(beta2),
          .second_new = static_cast<T>(1 - beta2),
          .eps = static_cast<T>(eps)};
}

void fused_adamw(OutList self, InList grads, OutList exp_avgs, OutList exp_avg_sqs, double lr,
                 double beta1, double beta2, double weight_decay, double eps, const In& step,
                 double grad_scale, IntList decayed, const In& grad_factor, const In& found_inf,
                 OutList casts, const In& lr_factor) {
  if (self.empty()) return;
  StepControl control = control_of(grad_scale, grad_factor, lr_factor, found_inf);
  control.step = step.data<double>();
  control.fault = fault_place(kOfStep);
  const auto run = [&]<class T>() {
    launch_steps(kAdamW[self[0].dtype], adamw_factors<T>(lr, beta1, beta2, weight_decay, eps),
                 control, self, grads, {exp_avgs, exp_avg_sqs}, decayed, casts);
  };
  self[0].dtype == DType::kF64 ? run.template operator()<double>()
                               : run.template operator()<float>();
}

void fused_sgd(OutList self, InList grads, OutList momentum_buffers, double lr, double momentum,
               bool nesterov, double weight_decay, double grad_scale, IntList decayed,
               const In& grad_factor, const In& found_inf, OutList casts, const In& lr_factor) {
  if (self.empty()) return;
  const bool has_momentum = momentum != 0;
  const auto run = [&]<class T>() {
    const SgdFactors<T> factors{.lr = lr,
                                .momentum = static_cast<T>(momentum),
                                .of_gradient = nesterov ? T(1) : T(0),
                                .of_buffer = nesterov ? static_cast<T>(momentum) : T(1),
                                .decay = {T(0), static_cast<T>(weight_decay)},
                                .has_momentum = has_momentum};
    launch_steps(kSgd[self[0].dtype], factors,
                 control_of(grad_scale, grad_factor, lr_factor, found_inf), self, grads,
                 {has_momentum ? momentum_buffers : OutList(), OutList()}, decayed, casts);
  };
  self[0].dtype == DType::kF64 ? run.template operator()<double>()
                               : run.template operator()<float>();
}

void fused_lion(OutList self, InList grads, OutList exp_avgs, double lr, double beta1, double beta2,
                double weight_decay, double grad_scale, IntList decayed, const In& grad_factor,
                const In& found_inf, OutList casts, const In& lr_factor) {
  if (self.empty()) return;
  const auto run = [&]<class T>() {
    const LionFactors<T> factors{.lr = lr,
                                 .weight_decay = weight_decay,
                                 .first = static_cast<T>(beta1),
                                 .first_new = static_cast<T>(1 - beta1),
                                 .second = static_cast<T>(beta2),
                                 .second_new = static_cast<T>(1 - beta2)};
    launch_steps(kLion[self[0].dtype], factors,
                 control_of(grad_scale, grad_factor, lr_factor, found_inf), self, grads,
                 {exp_avgs, OutList()}, decayed, casts);
  };
  self[0].dtype == DType::kF64 ? run.template operator()<double>()
                               : run.template operator()<float>();
}

void block_square_sums(const Out& out, InList self) {
  static_assert(kOptimizerPart == kNormBlock);
  double* place = out.data<double>();
  launch_over(kSquareSums[self[0].dtype], BlockSquareSums{}, self.size(), [&](size_t i) {
    const int64_t count = self[i].numel;
    return SquaredTensor{
        .x = self[i].address, .out = std::exchange(place, place + parts_of(count)), .count = count};
  });
}

void ordered_sum(const Out& out, const In& self) {
  static_assert(kOrderedRun == kSumRun);
  const auto runs_of = [](int64_t count) {
    return std::max<int64_t>(1, (count + kOrderedRun - 1) / kOrderedRun);
  };
  const auto level = [&](DType dtype, const void* x, double* sums, int64_t count) {
    const int64_t blocks = (runs_of(count) + kOrderedRuns - 1) / kOrderedRuns;
    launch(kOrderedSum[dtype],
           {.blocks = {static_cast<unsigned>(blocks), 1, 1}, .threads = kThreads},
           OrderedSum{x, sums, count});
  };
  const int64_t runs = runs_of(self.numel);
  if (runs == 1) return level(self.dtype, self.address, out.data<double>(), self.numel);
  // The sums of every level but the last, one level behind the other.
  int64_t held = 0;
  for (int64_t count = runs; count > 1; count = runs_of(count)) held += count;
  const Workspace workspace(static_cast<size_t>(held) * sizeof(double));
  double* sums = workspace.data<double>();
  level(self.dtype, self.address, sums, self.numel);
  for (int64_t count = runs; count > 1; count = runs_of(count)) {
    double* const next = runs_of(count) == 1 ? out.data<double>() : sums + count;
    level(DType::kF64, sums, next, count);
    sums = next;
  }
}

}  // namespace

LS_KERNEL(CUDA, "_fused_adamw_", fused_adamw, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_sgd_", fused_sgd, Strides::kContiguous);
LS_KERNEL(CUDA, "_fused_lion_", fused_lion, Strides::kContiguous);
LS_KERNEL(CUDA, "_block_square_sums", block_square_sums, Strides::kContiguous);
LS_KERNEL(CUDA, "_ordered_sum", ordered_sum, Strides::kContiguous);

}  // namespace lockstep::cuda

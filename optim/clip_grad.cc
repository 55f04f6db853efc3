#include "optim/clip_grad.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"

namespace lockstep::optim {

namespace {

std::vector<Tensor> gradients_in(const ParameterList& parameters) {
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& grad = parameters[i].grad();
    if (grad.defined()) gradients.push_back(grad.detach());
  }
  return gradients;
}

/// f16 and bf16 as f32, others as they are.
Tensor widened(const Tensor& gradient) {
  const bool is_wide = gradient.dtype() == DType::kF32 || gradient.dtype() == DType::kF64;
  return is_wide ? gradient : gradient.to(DType::kF32);
}

/// Sums of squares of blocks of all gradients, in their order.
Tensor square_sums(const std::vector<Tensor>& gradients) {
  std::vector<Tensor> sums;
  for (size_t first = 0; first < gradients.size();) {
    // One call for each run of one dtype on one device.
    std::vector<Tensor> run;
    for (; first < gradients.size(); ++first) {
      const Tensor next = widened(gradients[first]);
      if (!run.empty() && (next.dtype() != run[0].dtype() || next.device() != run[0].device())) {
        break;
      }
      run.push_back(next);
    }
    sums.push_back(_block_square_sums(run).to(gradients[0].device()));
  }
  return cat(sums);
}

Tensor norm_of(const std::vector<Tensor>& gradients, double norm_type) {
  if (gradients.empty()) return zeros({}, DType::kF64);
  if (norm_type == 2) return sqrt(_ordered_sum(square_sums(gradients)));
  std::vector<Tensor> norms;
  for (const Tensor& gradient : gradients) {
    if (gradient.numel() == 0) continue;
    norms.push_back(
        linalg_vector_norm(gradient, norm_type, {}, false, DType::kF64).to(gradients[0].device()));
  }
  if (norms.empty()) return zeros({}, {DType::kF64, gradients[0].device()});
  return linalg_vector_norm(stack(norms), norm_type == 0 ? 1 : norm_type);
}

void check_finite_norm(const ParameterList& parameters, const Tensor& norm) {
  if (std::isfinite(norm.item<double>())) return;
  std::string first = "no single one";
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& grad = parameters[i].grad();
    if (!grad.defined() || all(isfinite(grad)).item<bool>()) continue;
    first = parameters.describe(i);
    break;
  }
  throw NonFiniteError(
      fmt::format("[optim.clip_grad_norm_] the norm of the gradients is {}: expected a finite "
                  "number. The first "
                  "with a gradient that is not finite: {}.",
                  norm.item<double>(), first));
}

}  // namespace

IgnorableTensor clip_grad_norm_(const ParameterList& parameters, double max_norm, double norm_type,
                                bool error_if_nonfinite) {
  LS_CHECK(max_norm >= 0, ConfigError,
           "[optim.clip_grad_norm_] max_norm is out of range: expected at least 0, got {}.",
           max_norm);
  LS_CHECK(norm_type >= 0, ConfigError,
           "[optim.clip_grad_norm_] norm_type is out of range: expected at least 0, got {}.",
           norm_type);
  const NoGradGuard no_grad;
  const std::vector<Tensor> gradients = gradients_in(parameters);
  const Tensor norm = norm_of(gradients, norm_type);
  if (error_if_nonfinite) check_finite_norm(parameters, norm);
  const Tensor factor = clamp_max(mul(reciprocal(add(norm, 1e-6)), max_norm), 1.0);
  for (const Tensor& gradient : gradients) gradient.mul_(factor.to(gradient.device()));
  return norm;
}

void clip_grad_value_(const ParameterList& parameters, double clip_value) {
  LS_CHECK(clip_value >= 0, ConfigError,
           "[optim.clip_grad_value_] clip_value is out of range: expected at least 0, got {}.",
           clip_value);
  const NoGradGuard no_grad;
  for (const Tensor& gradient : gradients_in(parameters)) {
    clamp_(gradient, Scalar(-clip_value), Scalar(clip_value));
  }
}

}  // namespace lockstep::optim

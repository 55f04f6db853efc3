#pragma once

#include <functional>
#include <vector>

#include "autograd/autograd.h"
#include "core/ops/factory/copy.h"
#include "tests/cuda/gpu.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {

inline constexpr DType kFloating[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
inline constexpr DType kDtypesOfEverySize[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kI64,
                                               DType::kU8};
inline constexpr DType kDtypesOfEveryKind[] = {DType::kF32, DType::kBF16, DType::kF64, DType::kI64,
                                               DType::kI32, DType::kU8,   DType::kBool};

using Compute = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Expects the same results and strides on cuda:0 and on the CPU, up to `tolerance`, absolute and
/// relative. Also compares gradients of the arguments that require one, for random gradients of the
/// first result.
inline void expect_agreement(const std::vector<Tensor>& arguments, const Compute& compute,
                             double tolerance = 1e-5) {
  const auto results_on = [&](Device device) {
    std::vector<Tensor> moved, leaves;
    for (const Tensor& argument : arguments) {
      Tensor& there = moved.emplace_back(argument);
      if (!argument.defined()) continue;
      there = argument.detach().to(device);
      if (argument.requires_grad()) leaves.push_back(there.set_requires_grad());
    }
    std::vector<Tensor> results = compute(moved);
    for (const Tensor& result : results) EXPECT_EQ(result.device(), device);
    if (leaves.empty()) return results;
    const Tensor& first = results[0];
    const Tensor weights = random_tensor(first.sizes(), first.dtype(), 77).to(device);
    for (const Tensor& gradient : grad({first}, leaves, {weights})) results.push_back(gradient);
    return results;
  };
  const std::vector<Tensor> got = results_on(kGpu), want = results_on(kCPU);
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    EXPECT_TRUE(same(got[i].strides(), want[i].strides()));
    expect_near(got[i].to(kCPU), want[i], tolerance, tolerance);
  }
}

/// Normally distributed elements that require a gradient.
inline Tensor random_leaf(IntList sizes, DType dtype = DType::kF32, uint64_t seed = 1) {
  return random_tensor(sizes, dtype, seed).set_requires_grad();
}

/// Tolerance for two results in `dtype` that were both computed in f32 or wider.
inline double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 2e-2;
    case DType::kF16:
      return 3e-3;
    case DType::kF64:
      return 1e-12;
    default:
      return 2e-5;
  }
}

}  // namespace lockstep

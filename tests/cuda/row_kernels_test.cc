// Groups of operators along rows, each as one kernel of a GPU.

#include <gmock/gmock.h>

#include <functional>

#include "autograd/autograd.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/loss/loss.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "tests/cuda/with_kernels.h"

namespace lockstep {
namespace {

class CudaRowKernels : public WithKernels {
 protected:
  static void expect_one_kernel(const CompiledFunction& compiled,
                                const std::vector<Tensor>& inputs) {
    expect_kernels("lockstep_row_kernel", 1, [&] { (void)compiled(inputs); });
  }
};

/// Layer norm of a sum, and gelu of it, written by hand.
std::vector<Tensor> norm_of_operators(TensorList in) {
  const Tensor x = in[0].add(in[1]);
  const Tensor centred = x.sub(x.mean({-1}, true));
  const Tensor scale = centred.mul(centred).mean({-1}, true).add(1e-5).rsqrt();
  return {gelu(centred.mul(scale).mul(in[2]).add(in[3])), x};
}

std::vector<Tensor> norm_inputs(int64_t rows, int64_t length, DType dtype) {
  std::vector<Tensor> inputs;
  for (const Dims& sizes : {Dims{rows, length}, Dims{rows, length}, Dims{length}, Dims{length}}) {
    inputs.push_back(randn(sizes).to(dtype).to(kGpu));
  }
  return inputs;
}

TEST_F(CudaRowKernels, ANormWrittenInOperatorsIsOne) {
  // Each length has its warps or blocks, packs or single elements.
  for (const int64_t length : {64, 37, 1000, 1032, 1501, 4096}) {
    SCOPED_TRACE(length);
    const std::vector<Tensor> inputs = norm_inputs(19, length, DType::kF32);
    const CompiledFunction compiled = expect_body_s_bits(&norm_of_operators, inputs);
    expect_one_kernel(compiled, inputs);
  }
}

TEST_F(CudaRowKernels, HaveTheBitsOfEachDtype) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF64}) {
    for (const int64_t length : {72, 1501}) {
      SCOPED_TRACE(to_string(dtype) + " " + std::to_string(length));
      expect_body_s_bits(&norm_of_operators, norm_inputs(9, length, dtype));
    }
  }
}

TEST_F(CudaRowKernels, ReductionsOfIntegersAndTruthsAreSteps) {
  const auto body = [](TensorList in) {
    const Tensor doubled = in[0].mul(2);
    return std::vector<Tensor>{doubled.sub(doubled.amax({-1}, true)),
                               doubled.sum({-1}),
                               doubled.gt(in[0]).sum({-1}, true),
                               doubled.amin({-1}, true),
                               prod(doubled, -1),
                               any(doubled, -1),
                               all(doubled.lt(in[0]), -1)};
  };
  for (const DType dtype : {DType::kI64, DType::kI32}) {
    expect_body_s_bits(body, {randint(-9, 9, {6, 4, 50}, {dtype}).to(kGpu)});
  }
}

TEST_F(CudaRowKernels, SoftmaxBetweenElementwiseOperatorsIsAStep) {
  const auto body = [](TensorList in) {
    const Tensor scores = in[0].mul(0.125).add(in[1]);
    return std::vector<Tensor>{scores.softmax(-1).mul(in[2]), scores.log_softmax(-1)};
  };
  for (const int64_t length : {40, 1024, 1027, 3000}) {
    SCOPED_TRACE(length);
    const std::vector<Tensor> inputs{randn({4, 7, length}).to(kGpu), randn({length}).to(kGpu),
                                     randn({4, 7, 1}).to(kGpu)};
    expect_one_kernel(expect_body_s_bits(body, inputs), inputs);
  }
}

TEST_F(CudaRowKernels, FusedNormsAndTheirStatisticsAreSteps) {
  const auto body = [](TensorList in) {
    const Tensor x = in[0].mul(in[0]);
    const auto [y, mean, rstd] = native_layer_norm(x, {x.size(1)}, in[1], in[2], 1e-5);
    const Tensor z = rms_norm(y.add(x), {x.size(1)});
    return std::vector<Tensor>{y, mean, rstd.mul(2), z.relu()};
  };
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t length : {64, 1100, 1001}) {
      SCOPED_TRACE(to_string(dtype) + " " + std::to_string(length));
      const std::vector<Tensor> inputs{randn({11, length}).to(dtype).to(kGpu),
                                       randn({length}).to(dtype).to(kGpu),
                                       randn({length}).to(dtype).to(kGpu)};
      expect_one_kernel(expect_body_s_bits(body, inputs), inputs);
    }
  }
}

TEST_F(CudaRowKernels, DerivativesAreRecorded) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{in[0].mul(in[1]).softmax(-1).mul(in[0])};
  };
  const Tensor start = randn({33, 64}), scale = randn({64});
  const auto gradients = [&](const compiler::Body& function) {
    const Tensor x = start.to(kGpu).set_requires_grad(), y = scale.to(kGpu).set_requires_grad();
    const std::vector<Tensor> out = function(std::vector<Tensor>{x, y});
    out[0].square().sum().backward();
    return std::vector<Tensor>{x.grad(), y.grad()};
  };
  const CompiledFunction compiled = with_kernels(body);
  const std::vector<Tensor> expected = gradients(body);
  for (int call = 0; call < 3; ++call) {
    const std::vector<Tensor> got = gradients([&](TensorList inputs) { return compiled(inputs); });
    for (size_t i = 0; i < 2; ++i) expect_equal_bits(got[i], expected[i]);
  }
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST_F(CudaRowKernels, OperandsThatLieOddlyAreComputedApart) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{in[0].sub(in[0].mean({-1}, true)).tanh()};
  };
  const CompiledFunction compiled = with_kernels(body);
  const Tensor x = randn({10 * 64 + 3}).to(kGpu);
  for (const int64_t first : {0, 1, 3}) {
    SCOPED_TRACE(first);
    expect_body_s_bits(compiled, body, {x.slice(0, first, first + 640).view({10, 64})});
  }
}

TEST_F(CudaRowKernels, WhatDoesNotFitIntoSharedMemoryIsAnotherGroup) {
  // Each exponential is read behind the sum of them all.
  const auto body = [](TensorList in) {
    std::vector<Tensor> terms;
    Tensor sum = zeros({in[0].size(0), 1}, {DType::kF32, kGpu});
    for (int i = 0; i < 6; ++i) {
      terms.push_back(in[0].mul(0.1 * i).exp());
      sum = sum.add(terms.back().sum({-1}, true));
    }
    for (Tensor& term : terms) term = term.div(sum);
    return terms;
  };
  expect_body_s_bits(body, {randn({5, 4096}).to(kGpu)});
}

TEST_F(CudaRowKernels, LongRowsKeepTheirOperatorsKernels) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{in[0].softmax(-1), in[0].sub(in[0].sum({-1}, true))};
  };
  const std::vector<Tensor> inputs{randn({3, 9000}).to(kGpu)};
  const CompiledFunction compiled = with_kernels(body);
  expect_body_s_bits(compiled, body, inputs);
  for (const compiler::GroupKernel* const kernel : compiled.programs().at(0)->kernels()) {
    EXPECT_THAT(kernel->pending()->source().what, Not(::testing::HasSubstr("rows of")));
  }
}

TEST_F(CudaRowKernels, SizesMayChange) {
  CompileOptions options;
  options.kernels = KernelBuild::kAtOnce;
  options.symbolic_sizes = true;
  const CompiledFunction compiled(&norm_of_operators, options);
  // The last two have no kernel: sums of so few elements have others, long rows are not held.
  for (const auto& [rows, length] : std::vector<std::pair<int64_t, int64_t>>{
           {5, 64}, {7, 128}, {9, 128}, {3, 1032}, {4, 6}, {3, 9000}}) {
    SCOPED_TRACE(length);
    expect_body_s_bits(compiled, &norm_of_operators, norm_inputs(rows, length, DType::kF32));
  }
  EXPECT_EQ(compiled.counts().eager, 0);
}

TEST_F(CudaRowKernels, OneTextServesAllLengthsOfAStrategy) {
  const auto source_of = [&](int64_t length) {
    const CompiledFunction compiled = with_kernels(&norm_of_operators);
    (void)compiled(norm_inputs(5, length, DType::kF32));
    return compiled.programs().at(0)->kernels().at(0)->pending()->source().text;
  };
  EXPECT_EQ(source_of(64), source_of(128));
  EXPECT_NE(source_of(64), source_of(1032));
}

}  // namespace
}  // namespace lockstep

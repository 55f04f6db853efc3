// Compiled functions on a GPU: groups as kernels that are made at run time.

#include "compile/compile.h"

#include <functional>

#include "autograd/autograd.h"
#include "core/cuda/graph.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/view/shape.h"
#include "core/tensor/generator.h"
#include "core/tensor/stream.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/every_functor.h"
#include "tests/cuda/with_kernels.h"

namespace lockstep {
namespace {

class CudaCompile : public WithKernels {
 protected:
  static void expect_one_kernel(const std::function<void()>& call) {
    expect_kernels("lockstep_loop_kernel", 1, call);
  }
};

TEST_F(CudaCompile, AChainIsOneKernel) {
  const auto body = [](TensorList in) {
    const Tensor x = in[0].mul(0.5).add(1);
    return std::vector<Tensor>{gelu(x.mul(x.tanh())).relu()};
  };
  const Tensor x = randn({70001}).to(kGpu);
  const CompiledFunction compiled = expect_body_s_bits(body, {x});
  expect_one_kernel([&] { (void)compiled({&x, 1}); });
}

TEST_F(CudaCompile, RowsColumnsNumbersAndDtypesAreOperands) {
  const auto body = [](TensorList in) {
    const Tensor sum = in[0].add(in[1]).mul(in[2]);               // a row, a column
    const Tensor half = sum.to(DType::kBF16).mul(in[3]);          // a number in memory
    const Tensor large = half.gt(0.25).logical_and(in[0].lt(1));  // truths
    return std::vector<Tensor>{half, large, large.to(DType::kI64).mul(3).add(in[4]),
                               half.to(DType::kF64).sub(sum, 2), sum.to(DType::kF16)};
  };
  for (const int64_t columns : {4, 7, 1030}) {
    SCOPED_TRACE(columns);
    expect_body_s_bits(body, {randn({37, columns}).to(kGpu), randn({columns}).to(kGpu),
                              randn({37, 1}).to(kGpu), full({}, 1.5, {DType::kBF16, kGpu}),
                              randint(-9, 9, {37, columns}, {DType::kI32}).to(kGpu)});
  }
}

TEST_F(CudaCompile, EveryFunctorHasTheBitsOfItsOperator) {
  const Tensor x = randn({1000}).mul(3), y = randn({1000});
  x.slice(0, 0, 4).copy_(tensor({INFINITY, -INFINITY, 0.0F, -0.0F}));
  expect_body_s_bits(&every_functor, {x.to(kGpu), y.to(kGpu), randint(-40, 40, {1000}).to(kGpu),
                                      randint(-40, 40, {1000}).to(kGpu)});
}

TEST_F(CudaCompile, HalvesOfRowsAreOperands) {
  const auto body = [](TensorList in) {
    const std::vector<Tensor> halves = chunk(in[0], 2, -1);
    return std::vector<Tensor>{halves[0].mul(halves[1].sigmoid()).add(in[1])};
  };
  for (const int64_t length : {16, 601}) {
    SCOPED_TRACE(length);
    expect_body_s_bits(body, {randn({3, 7, 2 * length}).to(kGpu), randn({length}).to(kGpu)});
  }
}

TEST_F(CudaCompile, RowsAreGatheredAndMasksDrawnInTheKernel) {
  const auto body = [](TensorList in) {
    const Tensor rows = embedding(in[0], in[1]).add(in[2]);
    const auto [dropped, mask] = native_dropout(rows, 0.25, true);
    const Tensor truths = bernoulli(rows, 0.5);
    return std::vector<Tensor>{gelu(dropped), mask, dropped.mul(truths)};
  };
  const Tensor table = randn({40, 12}), row = randn({12});
  for (const int64_t count : {5, 333}) {
    const Tensor numbers = randint(0, 40, {count});
    const std::vector<Tensor> inputs{table.to(kGpu), numbers.to(kGpu), row.to(kGpu)};
    const CompiledFunction compiled = expect_body_s_bits(body, inputs);
    expect_one_kernel([&] { (void)compiled(inputs); });
  }
}

TEST_F(CudaCompile, ARowThatIsNotThereIsAnErrorOfItsOperator) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{embedding(in[0], in[1]).mul(2).add(1)};
  };
  const Tensor table = randn({40, 12}).to(kGpu);
  const Tensor numbers = zeros({3}, {DType::kI64, kGpu});
  const CompiledFunction compiled = expect_body_s_bits(body, {table, numbers});
  (void)compiled(std::vector<Tensor>{table, full({3}, 40, {DType::kI64, kGpu})});
  expect_error<Error>([] { synchronize(kGpu); }, "[embedding] index out of range", "got 40");
}

TEST_F(CudaCompile, AReplayedGraphDrawsOtherMasks) {
  const CompiledTensorFunction compiled(
      [](TensorList in) { return std::vector<Tensor>{dropout(in[0], 0.5, true).add(1)}; },
      [] {
        CompileOptions options;
        options.kernels = KernelBuild::kAtOnce;
        return options;
      }());
  const Tensor x = ones({1000}, {DType::kF32, kGpu});
  for (int call = 0; call < 2; ++call) (void)compiled(x);
  Tensor result;
  CudaGraph graph(kGpu);
  graph.capture([&] { result = compiled(x); });
  manual_seed(3);
  graph.replay();
  const std::vector<float> first = floats_of(result);
  graph.replay();
  EXPECT_NE(floats_of(result), first);
  manual_seed(3);
  EXPECT_EQ(floats_of(dropout(x, 0.5, true).add(1)), first);
}

TEST_F(CudaCompile, OperandsMayLieAnywhere) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{in[0].add(in[1]).tanh(), in[0].sub(in[1])};
  };
  const Tensor x = randn({1003}).to(kGpu), y = randn({1003}).to(kGpu);
  for (const int64_t first : {0, 1, 2, 3}) {
    SCOPED_TRACE(first);
    expect_body_s_bits(body, {x.slice(0, first, first + 999), y.slice(0, 0, 999)});
  }
}

TEST_F(CudaCompile, DerivativesAreRecorded) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{gelu(in[0].mul(in[1]).add(in[1])).sigmoid()};
  };
  const Tensor start = randn({33, 64}), scale = randn({64});
  const auto gradients = [&](const compiler::Body& function) {
    const Tensor x = start.to(kGpu).set_requires_grad(), y = scale.to(kGpu).set_requires_grad();
    const std::vector<Tensor> out = function(std::vector<Tensor>{x, y});
    out[0].sum().backward();
    return std::vector<Tensor>{x.grad(), y.grad()};
  };
  const CompiledFunction compiled = with_kernels(body);
  const std::vector<Tensor> expected = gradients(body);
  for (int call = 0; call < 3; ++call) {
    const std::vector<Tensor> got = gradients([&](TensorList inputs) { return compiled(inputs); });
    for (size_t i = 0; i < 2; ++i) expect_equal_bits(got[i], expected[i]);
  }
  EXPECT_EQ(compiled.counts().replayed, 2);
  EXPECT_EQ(compiled.counts().eager, 0);
}

}  // namespace
}  // namespace lockstep

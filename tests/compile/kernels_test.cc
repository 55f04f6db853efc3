// Kernels that are made of groups, beside the operators' own loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "compile/compile.h"
#include "compile/native/kernel_builder.h"
#include "compile/program.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/generator.h"
#include "tests/compile/same_bytes.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using train::TemporaryDirectory;

class Kernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!compiler::find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  }

  /// Compiles the body with kernels, and expects that these compute the bits of the body.
  CompiledFunction expect_same_bits(const compiler::Body& body, const std::vector<Tensor>& inputs) {
    CompileOptions options;
    options.kernels = KernelBuild::kAtOnce;
    const CompiledFunction compiled = compile(body, options);
    (void)compiled(inputs);
    EXPECT_THAT(compiled.reasons(), IsEmpty());
    for (const compiler::GroupKernel* const kernel : compiled.programs().at(0)->kernels()) {
      EXPECT_NE(kernel->pending(), nullptr);
    }
    const std::vector<Tensor> expected = body(inputs);
    for (int call = 0; call < 2; ++call) {
      const std::vector<Tensor> results = compiled(inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(have_same_bytes(results[i], expected[i])) << "result " << i;
      }
    }
    return compiled;
  }

  TemporaryDirectory folder_;
  EnvironmentVariable cache_{"LOCKSTEP_CACHE_DIR", (folder_.path() / "cache").c_str()};
};

std::vector<Tensor> chain_of_eight(TensorList inputs) {
  Tensor y = inputs[0];
  for (int i = 0; i < 4; ++i) y = y.mul(1.5).sub(inputs[0]);
  return {y};
}

TEST_F(Kernels, TakeTheLoopsPlaceWhereTheyAreFaster) {
  manual_seed(1);
  const CompiledFunction compiled = expect_same_bits(chain_of_eight, {randn({100'000})});
  EXPECT_EQ(compiled.counts().kernels, 1);
}

TEST_F(Kernels, HaveTheBitsOfLoopsInAllDtypes) {
  manual_seed(2);
  const auto body = [](TensorList inputs) {
    const Tensor &x = inputs[0], &y = inputs[1], &n = inputs[2], &b = inputs[3];
    const Tensor wide = x.to(DType::kF64).mul(n).add(0.25);
    const Tensor half = x.to(DType::kBF16).mul(y).relu();
    const Tensor whole = n.mul(3).sub(n.to(DType::kI32)).bitwise_xor(n);
    const Tensor truth = x.gt(0).logical_or(b).logical_not();
    return std::vector<Tensor>{wide.to(DType::kF32).tanh(), half.add(half), half.gelu(),
                               whole.to(DType::kI8),        truth,          x.mul(truth),
                               whole.to(DType::kBool)};
  };
  for (const int64_t size : {7, 1000, 5000, 200'000}) {
    const Tensor x = randn({size});
    expect_same_bits(body, {x, x.to(DType::kBF16).neg(), x.mul(50).to(DType::kI64), x.gt(0.5)});
  }
}

TEST_F(Kernels, StoreWhatIsInAnElementAndNotTheObject) {
  // GCC vectorises no loop that copies objects of classes.
  const CompiledFunction compiled = expect_same_bits(
      [](TensorList inputs) {
        const Tensor y = inputs[0].mul(1.5).add(0.25);
        return std::vector<Tensor>{y, y.gt(0)};
      },
      {randn({5000}).to(DType::kBF16)});
  const std::string& text = compiled.programs().at(0)->kernels().at(0)->pending()->source().text;
  EXPECT_THAT(text, AllOf(HasSubstr("[i].bits = e"), HasSubstr("[i].byte = e")));
  EXPECT_THAT(text, Not(HasSubstr("[i] = e")));
}

TEST_F(Kernels, OfLongChainsComputeFourVectorsAtOnce) {
  const auto body = [](TensorList inputs) {
    const Tensor &x = inputs[0], &row = inputs[1], &column = inputs[2], &number = inputs[3];
    const Tensor first = x.mul(1.5).sub(row).relu().add(column).mul(number);
    const Tensor second = first.sub(x).mul(row).add(0.25).relu().sub(column);
    return std::vector<Tensor>{second.mul(first), first, second.add(number)};
  };
  // Short rows are repeated in a block; long ones are not, and a column of those is a number.
  for (const int64_t length : {31, 32, 600}) {
    for (const int64_t rows : {40, 1001}) {
      const CompiledFunction compiled = expect_same_bits(
          body, {randn({rows, length}), randn({length}), randn({rows, 1}), randn({})});
      const auto kernels = compiled.programs().at(0)->kernels();
      ASSERT_EQ(kernels.size(), 1);
      EXPECT_THAT(kernels[0]->pending()->source().text, HasSubstr("_3 = as_stored<float>"));
    }
  }
}

TEST_F(Kernels, ThatPassTheCacheHaveTheSameBits) {
  manual_seed(3);
  const Tensor x = randn({9'000'011});  // more than a cache with its results
  expect_same_bits(
      [](TensorList inputs) {
        const Tensor y = inputs[0].mul(1.5).relu();
        return std::vector<Tensor>{y, y.sub(inputs[0]), y.gt(0.5)};
      },
      {x});
  expect_same_bits(chain_of_eight, {x});
  expect_same_bits([](TensorList inputs) { return std::vector<Tensor>{inputs[0].mul(2).gelu()}; },
                   {x});
}

TEST_F(Kernels, ComputeArgumentsThatVectorsDoNotHandle) {
  const Tensor x = arange(10'000, DType::kF32).sub(5000).mul(2e5);
  expect_same_bits(
      [](TensorList inputs) {
        const Tensor y = inputs[0].add(1).sin();
        return std::vector<Tensor>{y, inputs[0].remainder(y.abs()).cos()};
      },
      {x});
}

TEST_F(Kernels, TakeRowsNumbersAndScalars) {
  manual_seed(3);
  for (const int64_t columns : {3, 700, 3000}) {
    const Tensor x = randn({37, columns}), row = randn({columns}), number = randn({});
    expect_same_bits(
        [](TensorList inputs) {
          const Tensor y = inputs[0].add(inputs[1]).mul(inputs[2]);
          return std::vector<Tensor>{y.clamp(-0.5, 0.5), y.div(inputs[1]), y.lerp(inputs[0], 0.3)};
        },
        {x, row, number});
  }
}

TEST_F(Kernels, TakeRowsThatLieApart) {
  manual_seed(5);
  const auto body = [](TensorList in) {
    const Tensor gate = in[0].slice(-1, 0, in[1].numel()), up = in[0].slice(-1, in[1].numel());
    return std::vector<Tensor>{gate.sigmoid().mul(gate).mul(up).add(in[1]), up.mul(2).neg()};
  };
  for (const int64_t length : {16, 100, 700, 3001}) {
    SCOPED_TRACE(length);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      expect_same_bits(body, {randn({5, 9, 2 * length}).to(dtype), randn({length}).to(dtype)});
    }
  }
}

TEST_F(Kernels, KeepNotANumberAndSignedZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = empty({4096});
  const float values[] = {0.0F, -0.0F, 1.0F, -1.0F, infinity, -infinity, nan, -nan, 1e-40F};
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = values[i % 9];
  expect_same_bits(
      [](TensorList inputs) {
        const Tensor &y = inputs[0], z = inputs[1];
        return std::vector<Tensor>{y.maximum(z).neg(), y.minimum(z).mul(z), y.relu().add(z),
                                   y.sign().sub(z.sqrt())};
      },
      {x, x.flip({0})});
}

TEST_F(Kernels, OfBackwardHaveTheBitsOfLoops) {
  manual_seed(4);
  const Tensor x = randn({50'000});
  const Tensor leaf = x.clone().set_requires_grad(), same = x.clone().set_requires_grad();
  const auto body = [](const Tensor& input) { return input.mul(input).tanh().mul(2).sigmoid(); };
  CompileOptions options;
  options.kernels = KernelBuild::kAtOnce;
  const CompiledTensorFunction compiled = compile(body, options);
  for (int step = 0; step < 3; ++step) {
    compiled(leaf).sum().backward();
    body(same).sum().backward();
  }
  EXPECT_TRUE(have_same_bytes(leaf.grad(), same.grad()));
  EXPECT_THAT(compiled.reasons(), IsEmpty());
}

TEST_F(Kernels, MadeOnceServeOtherConstants) {
  const auto compiled = [](double factor) {
    CompileOptions options;
    options.kernels = KernelBuild::kAtOnce;
    return compile([factor](const Tensor& x) { return x.mul(factor).add(factor).mul(x); }, options);
  };
  const Tensor x = ones({5000});
  const CompiledTensorFunction two = compiled(2), three = compiled(3);
  (void)two(x), (void)three(x);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(two(x).data<float>()[4999], 4);
    EXPECT_EQ(three(x).data<float>()[4999], 6);
  }
  const auto kernel_of = [](const CompiledTensorFunction& function) {
    return function.programs().at(0)->kernels().at(0)->pending();
  };
  EXPECT_EQ(kernel_of(two), kernel_of(three));
}

TEST_F(Kernels, AreNotMadeUnlessAskedFor) {
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  const CompiledFunction compiled = compile(chain_of_eight, options);
  (void)compiled({ones({100})});
  EXPECT_EQ(compiled.programs().at(0)->kernels().at(0)->pending(), nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "cache"));
}

TEST_F(Kernels, MadeInTheBackgroundAreTakenWhenTheyAreThere) {
  const CompiledFunction compiled = compile(chain_of_eight);
  const Tensor x = ones({100'000});
  (void)compiled({x});
  compiled.programs().at(0)->kernels().at(0)->pending()->wait();
  const Tensor result = compiled({x})[0];
  EXPECT_EQ(compiled.counts().kernels, 1);
  EXPECT_TRUE(have_same_bytes(result, chain_of_eight({x})[0]));
}

TEST_F(Kernels, ThatCannotBeMadeLeaveTheLoopsAndAReason) {
  const EnvironmentVariable chosen("CXX", "/bin/false");
  const EnvironmentVariable path("PATH", folder_.path().c_str());
  CompileOptions options;
  options.kernels = KernelBuild::kAtOnce;
  const CompiledTensorFunction compiled =
      compile([](const Tensor& x) { return x.mul(2).exp().add(1).mul(x); }, options);
  const Tensor x = ones({1000});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(compiled(x).numel(), x.numel());
  EXPECT_EQ(compiled.counts().kernels, 0);
  EXPECT_THAT(compiled.reasons(), ElementsAre(HasSubstr("there is no C++ compiler")));
}

}  // namespace
}  // namespace lockstep

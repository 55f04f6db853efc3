#include "compile/prepared_run.h"

#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "compile/compile.h"
#include "compile/program.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/generator.h"
#include "tests/compile/same_bytes.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

CompiledFunction small(compiler::Body body) {
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  return CompiledFunction(std::move(body), options);
}

bool is_prepared(const CompiledFunction& function) {
  return function.programs().at(0)->is_prepared();
}

TEST(PreparedRun, ASmallStepHasTheBitsOfTheFunction) {
  const Tensor w = randn({16, 16}).set_requires_grad(), b = randn({16}).set_requires_grad();
  const Tensor target = randn({4, 16});
  const compiler::Body body = [&](TensorList in) {
    return std::vector<Tensor>{mse_loss(linear(relu(linear(in[0], w, b)), w, b), target)};
  };
  const CompiledFunction compiled = small(body);
  for (int call = 0; call < 8; ++call) {
    SCOPED_TRACE(call);
    const Tensor x = randn({4, 16});
    const Tensor expected = body({&x, 1})[0], got = compiled({&x, 1})[0];
    EXPECT_TRUE(have_same_bytes(got, expected));
    const std::vector<Tensor> wanted = grad({expected}, {w, b}), found = grad({got}, {w, b});
    EXPECT_TRUE(have_same_bytes(found[0], wanted[0]));
    EXPECT_TRUE(have_same_bytes(found[1], wanted[1]));
    const NoGradGuard no_grad;
    w.sub_(found[0]);
  }
  EXPECT_TRUE(is_prepared(compiled));
}

TEST(PreparedRun, DrawsTheNumbersOfTheCall) {
  const compiler::Body body = [](TensorList in) {
    const Tensor x = dropout(in[0].mul(2), 0.5, true).tanh();
    return std::vector<Tensor>{x.add(rand({6, 7})), x.sum()};
  };
  const CompiledFunction compiled = small(body);
  for (int call = 0; call < 6; ++call) {
    SCOPED_TRACE(call);
    const Tensor x = randn({6, 7});
    manual_seed(static_cast<uint64_t>(call));
    const std::vector<Tensor> expected = body({&x, 1});
    const Tensor next = rand({3});
    manual_seed(static_cast<uint64_t>(call));
    const std::vector<Tensor> got = compiled({&x, 1});
    EXPECT_TRUE(have_same_bytes(rand({3}), next));
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(have_same_bytes(got[i], expected[i]));
  }
  EXPECT_TRUE(is_prepared(compiled));
}

TEST(PreparedRun, ResultsAreTheCallersAndViewsAreThoseOfItsTensors) {
  const compiler::Body body = [](TensorList in) {
    const Tensor y = in[0].mm(in[1]).add(1);
    return std::vector<Tensor>{y, y.t(), in[0].select(0, 1), in[1], y.sum()};
  };
  const CompiledFunction compiled = small(body);
  std::vector<std::vector<Tensor>> kept, expected;
  for (int call = 0; call < 6; ++call) {
    const std::vector<Tensor> inputs{randn({3, 5}), randn({5, 5})};
    expected.push_back(body(inputs));
    kept.push_back(compiled(inputs));
    const std::vector<Tensor>& got = kept.back();
    EXPECT_EQ(got[0].storage(), got[1].storage());
    EXPECT_EQ(got[2].data(), inputs[0].select(0, 1).data());
    EXPECT_TRUE(got[3].is_same(inputs[1]));
  }
  for (size_t call = 0; call < kept.size(); ++call) {
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(have_same_bytes(kept[call][i], expected[call][i])) << call << " " << i;
    }
  }
  EXPECT_TRUE(is_prepared(compiled));
}

TEST(PreparedRun, ErrorsAreThoseOfTheOperators) {
  const CompiledFunction compiled = small([](TensorList in) {
    return std::vector<Tensor>{in[0].index_select(0, in[1]).mm(in[0].t())};
  });
  const Tensor table = randn({5, 4}), good = zeros({3}, DType::kI64);
  for (int call = 0; call < 5; ++call) (void)compiled(std::vector<Tensor>{table, good});
  EXPECT_TRUE(is_prepared(compiled));
  expect_error<IndexError>(
      [&] {
        (void)compiled(std::vector<Tensor>{table, full({3}, 5, DType::kI64)});
      },
      "[index_select]");
  EXPECT_TRUE(have_same_bytes(compiled(std::vector<Tensor>{table, good})[0],
                              table.index_select(0, good).mm(table.t())));
}

TEST(PreparedRun, FunctionsWhoseOperatorsCopyOperandsRunAsTheyAre) {
  const compiler::Body body = [](TensorList in) {
    return std::vector<Tensor>{in[0].gt(in[1]).sum().add(in[0].mm(in[0]).sum())};
  };
  const CompiledFunction compiled = small(body);
  for (int call = 0; call < 6; ++call) {
    const std::vector<Tensor> inputs{randn({4, 4}), randn({4, 4}).to(DType::kF64)};
    EXPECT_TRUE(have_same_bytes(compiled(inputs)[0], body(inputs)[0]));
  }
  EXPECT_FALSE(is_prepared(compiled));
}

TEST(PreparedRun, CallsOfSeveralThreadsMayOverlap) {
  const compiler::Body body = [](TensorList in) {
    return std::vector<Tensor>{in[0].mm(in[0]).tanh().mm(in[0])};
  };
  const CompiledFunction compiled = small(body);
  const Tensor first = randn({8, 8});
  for (int call = 0; call < 4; ++call) (void)compiled({&first, 1});
  EXPECT_TRUE(is_prepared(compiled));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int call = 0; call < 200; ++call) {
        const Tensor x = randn({8, 8});
        EXPECT_TRUE(have_same_bytes(compiled({&x, 1})[0], body({&x, 1})[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lockstep

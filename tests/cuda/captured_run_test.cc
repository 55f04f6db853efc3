// Compiled functions as CUDA graphs.

#include "compile/captured_run.h"

#include <gmock/gmock.h>

#include <functional>

#include "autograd/autograd.h"
#include "autograd/set_data.h"
#include "compile/compile.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/generator.h"
#include "core/tensor/stream.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/cuda/same_bits.h"
#include "tests/emulation/queued_work.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CompiledFunction captured(compiler::Body body, KernelBuild kernels = KernelBuild::kNever) {
  CompileOptions options;
  options.kernels = kernels;
  options.cuda_graphs = true;
  return CompiledFunction(std::move(body), options);
}

constexpr int kAny = 1'000'000;

/// Expects a call to launch so many graphs, and from `least` to `most` kernels apart from these.
void expect_launches(int graphs, int least, int most, const std::function<void()>& call) {
  if (!is_emulated()) return call();
  emulation::QueuedWork work;
  call();
  int found = 0, others = 0;
  for (const auto& [name, count] : work.take()) (name == "graph" ? found : others) += count;
  EXPECT_EQ(found, graphs);
  EXPECT_GE(others, least);
  EXPECT_LE(others, most);
}

TEST(CudaCapturedRun, ReplaysHaveTheBitsOfTheFunction) {
  const Tensor weight = randn({16, 16}).to(kGpu);
  const compiler::Body body = [&](TensorList in) {
    const Tensor x = dropout(in[0].mm(weight).tanh(), 0.25, true);
    return std::vector<Tensor>{x.mul(in[1]), x.sum()};
  };
  const CompiledFunction compiled = captured(body);
  std::vector<std::vector<Tensor>> kept;
  for (int call = 0; call < 6; ++call) {
    SCOPED_TRACE(call);
    const std::vector<Tensor> inputs{randn({8, 16}).to(kGpu), randn({16}).to(kGpu)};
    manual_seed(static_cast<uint64_t>(call));
    const std::vector<Tensor> expected = body(inputs);
    const Tensor next = rand({3}, {DType::kF32, kGpu});
    manual_seed(static_cast<uint64_t>(call));
    kept.push_back(compiled(inputs));
    expect_equal_bits(rand({3}, {DType::kF32, kGpu}), next);
    kept.push_back(expected);
    weight.mul_(0.5);  // the graph reads it where it is
  }
  // Results are the caller's: later replays leave them.
  for (size_t i = 0; i < kept.size(); i += 2) {
    for (size_t k = 0; k < 2; ++k) expect_equal_bits(kept[i][k], kept[i + 1][k]);
  }
  EXPECT_THAT(compiled.reasons(), IsEmpty());
}

TEST(CudaCapturedRun, ACallIsOneLaunchBesideCopies) {
  const CompiledTensorFunction compiled(
      [](TensorList in) {
        Tensor x = in[0];
        for (int i = 0; i < 20; ++i) x = x.mm(in[0]).tanh();
        return std::vector<Tensor>{x};
      },
      [] {
        CompileOptions options;
        options.cuda_graphs = true;
        options.kernels = KernelBuild::kNever;
        return options;
      }());
  const Tensor x = randn({8, 8}).to(kGpu);
  expect_launches(0, 40, kAny, [&] { (void)compiled(x); });
  for (int call = 0; call < 3; ++call) (void)compiled(x);
  expect_launches(1, 0, 2, [&] { (void)compiled(x); });
}

TEST(CudaCapturedRun, ASizeThatComesBackIsAGraphOfItsOwn) {
  const compiler::Body body = [](TensorList in) {
    return std::vector<Tensor>{in[0].mm(in[1]).tanh().mul(2)};
  };
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  options.cuda_graphs = true;
  options.symbolic_sizes = true;
  const CompiledFunction compiled(body, options);
  const Tensor weight = randn({16, 16}).to(kGpu);
  const auto call = [&](int64_t n) {
    const std::vector<Tensor> inputs{randn({n, 16}).to(kGpu), weight};
    expect_equal_bits(compiled(inputs)[0], body(inputs)[0]);
  };
  for (int round = 0; round < 4; ++round) {
    for (const int64_t n : {4, 6, 10}) call(n);
  }
  EXPECT_EQ(compiled.counts().recorded, 2);
  EXPECT_THAT(compiled.reasons(), Each(Not(HasSubstr("no CUDA graph"))));
  for (const int64_t n : {10, 4}) {
    const std::vector<Tensor> inputs{randn({n, 16}).to(kGpu), weight};
    expect_launches(1, 0, 3, [&] { (void)compiled(inputs); });
  }
}

class CudaCapturedGradients : public ::testing::Test {
 protected:
  std::vector<Tensor> gradients(const compiler::Body& body, const Tensor& input,
                                bool differentiates = true) {
    const Tensor x = input.detach().set_requires_grad();
    weight_.set_grad({});
    const std::vector<Tensor> results = body({&x, 1});
    if (!differentiates) {
      held_ = results;
      return {};
    }
    results[0].sum().backward();
    return {results[0].detach(), x.grad(), weight_.grad().clone()};
  }
  void expect_the_gradients_of_the_body(int call) {
    SCOPED_TRACE(call);
    const Tensor x = randn({8, 16}).to(kGpu);
    const std::vector<Tensor> expected = gradients(body_, x);
    const std::vector<Tensor> got = gradients([&](TensorList in) { return compiled_(in); }, x);
    for (size_t i = 0; i < expected.size(); ++i) expect_equal_bits(got[i], expected[i]);
  }

  Tensor weight_ = randn({16, 16}).to(kGpu).set_requires_grad();
  compiler::Body body_ = [this](TensorList in) {
    return std::vector<Tensor>{in[0].mm(weight_).tanh().mm(weight_).sigmoid()};
  };
  CompiledFunction compiled_ = captured(body_);
  std::vector<Tensor> held_;
};

TEST_F(CudaCapturedGradients, AreThoseOfTheFunction) {
  for (int call = 0; call < 8; ++call) expect_the_gradients_of_the_body(call);
  const Tensor x = randn({8, 16}).to(kGpu);
  expect_launches(2, 0, kAny, [&] {  // forward and backward
    (void)gradients([&](TensorList in) { return compiled_(in); }, x);
  });
  EXPECT_THAT(compiled_.reasons(), IsEmpty());
}

TEST_F(CudaCapturedGradients, WhatADerivativeStillNeedsIsNotWrittenOver) {
  for (int call = 0; call < 6; ++call) expect_the_gradients_of_the_body(call);
  const Tensor x = randn({8, 16}).to(kGpu);
  const auto compiled = [&](TensorList in) { return compiled_(in); };
  (void)gradients(compiled, x, /*differentiates=*/false);
  for (int call = 0; call < 2; ++call) expect_the_gradients_of_the_body(call);
  weight_.set_grad({});
  held_[0].sum().backward();
  const Tensor of_the_first = weight_.grad().clone();
  expect_equal_bits(of_the_first, gradients(body_, x)[2]);
  held_.clear();
  for (int call = 0; call < 3; ++call) expect_the_gradients_of_the_body(call);
}

TEST(CudaCapturedRun, HasTheKernelsOfGroups) {
  const train::TemporaryDirectory folder;
  const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", (folder.path() / "cache").c_str());
  const compiler::Body body = [](TensorList in) {
    return std::vector<Tensor>{dropout(in[0].mul(2).tanh(), 0.5, true)};
  };
  const CompiledFunction compiled = captured(body, KernelBuild::kAtOnce);
  for (int call = 0; call < 5; ++call) {
    const Tensor x = randn({1003}).to(kGpu);
    manual_seed(9);
    const Tensor expected = body({&x, 1})[0];
    manual_seed(9);
    expect_equal_bits(compiled({&x, 1})[0], expected);
  }
  EXPECT_EQ(compiled.counts().kernels, 1);
}

TEST(CudaCapturedRun, CallsOnAnotherStreamRunWithout) {
  const compiler::Body body = [](TensorList in) {
    return std::vector<Tensor>{in[0].mul(2).tanh()};
  };
  const CompiledFunction compiled = captured(body);
  const Tensor x = randn({100}).to(kGpu);
  for (int call = 0; call < 4; ++call) (void)compiled({&x, 1});
  const Stream side = get_stream_from_pool(kGpu);
  side.wait_stream(current_stream(kGpu));
  {
    const StreamGuard on_side(side);
    expect_launches(0, 0, kAny, [&] { expect_equal_bits(compiled({&x, 1})[0], body({&x, 1})[0]); });
  }
  expect_launches(1, 0, kAny, [&] { (void)compiled({&x, 1}); });
}

TEST(CudaCapturedRun, AWeightThatMovesIsFoundAgainAFewTimes) {
  const Tensor weight = randn({16}).to(kGpu);
  const compiler::Body body = [&](TensorList in) {
    return std::vector<Tensor>{in[0].mul(weight).tanh()};
  };
  const CompiledFunction compiled = captured(body);
  const Tensor x = randn({4, 16}).to(kGpu);
  for (int round = 0; round < 5; ++round) {
    for (int call = 0; call < 4; ++call) {
      expect_equal_bits(compiled({&x, 1})[0], body({&x, 1})[0]);
    }
    set_data(weight, randn({16}).to(kGpu));
  }
  EXPECT_THAT(compiled.reasons(), Contains(HasSubstr("what it reads besides its arguments moves")));
}

TEST(CudaCapturedRun, FunctionsThatCannotBeOneSayWhy) {
  const auto reasons = [](compiler::Body body) {
    const CompiledFunction compiled = captured(std::move(body));
    for (int call = 0; call < 5; ++call) {
      const Tensor x = randn({4, 16}).to(kGpu);
      (void)compiled({&x, 1});
    }
    return compiled.reasons();
  };
  EXPECT_THAT(reasons([](TensorList in) { return std::vector<Tensor>{in[0].t()}; }),
              Contains("no CUDA graph of forward: it returns a view of an argument"));
  EXPECT_THAT(reasons([](TensorList in) { return std::vector<Tensor>{in[0].add_(1).neg()}; }),
              Contains("no CUDA graph of forward: it changes an argument"));
  EXPECT_THAT(reasons([](TensorList in) { return std::vector<Tensor>{in[0].to(kCPU).neg()}; }),
              Contains(HasSubstr("no CUDA graph of forward: [")));
}

}  // namespace
}  // namespace lockstep

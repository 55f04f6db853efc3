// Functions whose records serve all sizes of a dimension.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/native/toolchain.h"
#include "compile/program.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/index.h"
#include "core/ops/loss/loss.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/generator.h"
#include "tests/compile/same_bytes.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CompileOptions for_all_sizes(KernelBuild kernels = KernelBuild::kNever) {
  CompileOptions options;
  options.symbolic_sizes = true;
  options.kernels = kernels;
  return options;
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return same(a.strides(), b.strides()) && have_same_bytes(a, b);
}

/// Calls a compiled function with tensors of several sizes, as it is and compiled: results, what
/// becomes of the arguments, and gradients must have equal bits.
class SizesBeside {
 public:
  using MakeInputs = std::function<std::vector<Tensor>(std::span<const int64_t> sizes)>;

  SizesBeside(compiler::Body body, MakeInputs inputs, CompileOptions options = for_all_sizes())
      : body_([this, body](TensorList in) {
          ++calls_;
          return body(in);
        }),
        plain_(std::move(body)),
        inputs_(std::move(inputs)),
        compiled_(body_, std::move(options)) {}

  bool same_for(std::vector<int64_t> sizes) {
    const auto [mine, got] = outcome([&](TensorList in) { return compiled_(in); }, sizes);
    const auto [theirs, want] = outcome(plain_, sizes);
    return std::ranges::equal(mine, theirs, equal_bytes) &&
           std::ranges::equal(got, want, equal_bytes);
  }

  const CompiledFunction& compiled() const { return compiled_; }
  int calls() const { return calls_; }  ///< of the body, by the compiled function

 private:
  /// The inputs behind the call, and results with the gradients.
  std::pair<std::vector<Tensor>, std::vector<Tensor>> outcome(
      const std::function<std::vector<Tensor>(TensorList)>& function,
      const std::vector<int64_t>& sizes) const {
    manual_seed(7);
    const std::vector<Tensor> inputs = inputs_(sizes);
    manual_seed(8);
    std::vector<Tensor> results = function(inputs);
    std::vector<Tensor> roots, weights, leaves;
    for (const Tensor& result : results) {
      if (!result.requires_grad()) continue;
      roots.push_back(result);
      weights.push_back(ones_like(result));
    }
    for (const Tensor& input : inputs) {
      if (input.requires_grad()) leaves.push_back(input);
    }
    if (!roots.empty()) {
      for (const Tensor& gradient : grad(roots, leaves, weights, {.allow_unused = true})) {
        if (gradient.defined()) results.push_back(gradient.contiguous().view({-1}));
      }
    }
    return {inputs, results};
  }

  int calls_ = 0;
  compiler::Body body_, plain_;
  MakeInputs inputs_;
  CompiledFunction compiled_;
};

Tensor leaf_of(IntList sizes) { return randn(sizes).set_requires_grad(); }

TEST(SymbolicSizes, OneProgramServesAllSizesAfterTwo) {
  SizesBeside sizes(
      [](TensorList in) {
        const Tensor y = in[0].mul(0.5).add(in[1]);
        return std::vector<Tensor>{gelu(y), y.tanh().mul(y).sum({-1})};
      },
      [](auto n) {
        return std::vector<Tensor>{randn({n[0], 64}), randn({64})};
      });
  for (const int64_t n : {8, 9, 2, 3, 31, 100, 9, 31}) EXPECT_TRUE(sizes.same_for({n})) << n;
  EXPECT_EQ(sizes.calls(), 2);
  EXPECT_EQ(sizes.compiled().counts().recorded, 2);
  EXPECT_EQ(sizes.compiled().counts().replayed, 6);
  EXPECT_THAT(sizes.compiled().reasons(),
              ElementsAre(HasSubstr("input 0 is float32[9, 64], not float32[8, 64]"),
                          "one program for sizes: input 0 is float32[s0, 64], for s0 from 2"));
}

TEST(SymbolicSizes, MoreSizesThanProgramsAreKeptRunFromOne) {
  CompileOptions options = for_all_sizes();
  options.most_programs = 2;
  SizesBeside sizes([](TensorList in) { return std::vector<Tensor>{softmax(in[0], -1).exp()}; },
                    [](auto n) {
                      return std::vector<Tensor>{randn({4, n[0]})};
                    },
                    options);
  for (int64_t n = 2; n < 60; ++n) EXPECT_TRUE(sizes.same_for({n})) << n;
  EXPECT_EQ(sizes.compiled().counts().eager, 0);
  EXPECT_EQ(sizes.calls(), 2);
}

TEST(SymbolicSizes, SizeOneIsAProgramOfItsOwn) {
  SizesBeside sizes([](TensorList in) { return std::vector<Tensor>{in[0].add(in[1]).sum({0})}; },
                    [](auto n) {
                      return std::vector<Tensor>{leaf_of({n[0], 3}), leaf_of({n[0], 3})};
                    });
  for (const int64_t n : {1, 5, 1, 6, 1, 7}) EXPECT_TRUE(sizes.same_for({n})) << n;
  EXPECT_EQ(sizes.calls(), 3);
}

TEST(SymbolicSizes, SizesThatWereEqualHaveAProgramOfTheirOwn) {
  SizesBeside sizes(
      [](TensorList in) {
        return std::vector<Tensor>{in[0].exp(), in[1].neg()};
      },
      [](auto n) {
        return std::vector<Tensor>{randn({n[0]}), randn({n[1]})};
      });
  for (const auto& [a, b] : std::vector<std::pair<int64_t, int64_t>>{
           {5, 5}, {6, 6}, {9, 9}, {9, 5}, {12, 4}, {7, 7}, {3, 11}}) {
    EXPECT_TRUE(sizes.same_for({a, b})) << a << " " << b;
  }
  EXPECT_EQ(sizes.calls(), 4);
  EXPECT_THAT(sizes.compiled().reasons(),
              Contains(HasSubstr("input 0 is float32[s0], input 1 is float32[s0], for s0 from 2")));
  EXPECT_THAT(
      sizes.compiled().reasons(),
      Contains(HasSubstr("float32[s0], input 1 is float32[s1], for s0 in multiples of 3 and s1")));
}

/// Heads of attention written by hand: sizes are arguments of views, and of masks.
std::vector<Tensor> attend(TensorList in) {
  const Tensor& x = in[0];
  const int64_t batch = x.size(0), length = x.size(1);
  const auto heads = [&](const Tensor& weight) {
    return x.matmul(weight).view({batch, length, 2, 4}).transpose(1, 2);
  };
  const Tensor query = heads(in[1]), key = heads(in[2]), value = heads(in[3]);
  const Tensor future = ones({length, length}, DType::kBool).triu(1);
  const Tensor scores = query.matmul(key.transpose(2, 3)).mul(0.5).masked_fill(future, -INFINITY);
  const Tensor mixed = softmax(scores, -1).matmul(value).transpose(1, 2);
  return {layer_norm(mixed.reshape({batch, length, 8}).add(x), {8})};
}

TEST(SymbolicSizes, BatchAndLengthOfAttentionMayChange) {
  SizesBeside sizes(attend, [](auto n) {
    return std::vector<Tensor>{leaf_of({n[0], n[1], 8}), leaf_of({8, 8}), leaf_of({8, 8}),
                               leaf_of({8, 8})};
  });
  for (const auto& [b, t] : std::vector<std::pair<int64_t, int64_t>>{
           {2, 5}, {3, 7}, {4, 6}, {2, 9}, {7, 16}, {3, 2}, {5, 33}}) {
    EXPECT_TRUE(sizes.same_for({b, t})) << b << " " << t;
  }
  EXPECT_LE(sizes.calls(), 3);  // two sizes may leave open what the product of one is
  EXPECT_THAT(sizes.compiled().reasons().back(), HasSubstr("float32[s0, s1, 8]"));
}

TEST(SymbolicSizes, GathersMasksAndConcatenationsFollow) {
  SizesBeside sizes(
      [](TensorList in) {
        const Tensor rows = dropout(embedding(in[0], in[1]).mul(2).tanh(), 0.25, true);
        const Tensor both = cat({rows, in[2]}, 1);
        return std::vector<Tensor>{both.slice(1, 1).exp(), rows.reshape({-1}).neg(),
                                   both.select(1, both.size(1) - 1)};
      },
      [](auto n) {
        const Tensor table = leaf_of({10, 6});
        return std::vector<Tensor>{table, arange(n[0] * n[1]).remainder(10).reshape({n[0], n[1]}),
                                   leaf_of({n[0], 3, 6})};
      });
  for (const auto& [b, t] :
       std::vector<std::pair<int64_t, int64_t>>{{4, 5}, {4, 8}, {4, 3}, {5, 8}, {9, 4}, {3, 31}}) {
    EXPECT_TRUE(sizes.same_for({b, t})) << b << " " << t;
  }
  EXPECT_EQ(sizes.calls(), 3);
}

TEST(SymbolicSizes, ChangesOfArgumentsAreMade) {
  SizesBeside sizes(
      [](TensorList in) {
        in[0].mul_(2).select(0, 1).zero_();
        return std::vector<Tensor>{in[0].add(in[1])};
      },
      [](auto n) {
        return std::vector<Tensor>{randn({n[0], 4}), randn({n[0], 4})};
      });
  for (const int64_t n : {4, 5, 6, 13}) EXPECT_TRUE(sizes.same_for({n})) << n;
  EXPECT_EQ(sizes.calls(), 2);
}

TEST(SymbolicSizes, OtherStridesAreRecordedApart) {
  SizesBeside sizes([](TensorList in) { return std::vector<Tensor>{in[0].exp().sum({0})}; },
                    [](auto n) {
                      const Tensor x = randn({n[0], 6});
                      return std::vector<Tensor>{n[1] != 0 ? x.t().contiguous().t() : x};
                    });
  for (const auto& [n, transposed] : std::vector<std::pair<int64_t, int64_t>>{
           {4, 0}, {5, 0}, {7, 1}, {6, 0}, {8, 1}, {9, 1}, {10, 0}}) {
    EXPECT_TRUE(sizes.same_for({n, transposed})) << n << " " << transposed;
  }
  EXPECT_EQ(sizes.calls(), 4);
}

TEST(SymbolicSizes, WhatHangsOnASizeInAnotherWayStaysExactAndSaysSo) {
  const auto expect_exact = [](const std::function<Tensor(const Tensor&)>& body,
                               const std::string& reason) {
    SizesBeside sizes([body](TensorList in) { return std::vector<Tensor>{body(in[0])}; },
                      [](auto n) {
                        return std::vector<Tensor>{randn({n[0], 4})};
                      });
    for (const int64_t n : {16, 18, 11, 16, 18, 11}) EXPECT_TRUE(sizes.same_for({n})) << n;
    EXPECT_EQ(sizes.compiled().counts().recorded, 3);
    EXPECT_THAT(sizes.compiled().reasons(), Contains(HasSubstr("sizes stay exact: " + reason)));
  };
  expect_exact([](const Tensor& x) { return x.mul(1.0 / static_cast<double>(x.size(0))); },
               "mul.Scalar is called with 0.0625 and with 0.0555");
  expect_exact([](const Tensor& x) { return x.size(0) > 16 ? x.neg() : x.exp(); },
               "neg is called instead of exp");
  expect_exact([](const Tensor& x) { return x.narrow(0, 0, x.size(0) / 2).exp(); },
               "slice.Tensor has 8 and 9, which is neither");
  std::map<int64_t, Tensor> tables;
  for (const int64_t n : {16, 18, 11}) tables[n] = randn({n, 4});
  expect_exact([&](const Tensor& x) { return x.mul(tables.at(x.size(0))); },
               "it reads or makes other tensors on the host");
}

TEST(SymbolicSizes, SizesThatAreNoMultiplesOfThoseSeenAreRecorded) {
  SizesBeside sizes(
      [](TensorList in) {
        const int64_t missing = (8 - in[0].size(0) % 8) % 8;
        const Tensor padded = missing == 0 ? in[0] : cat({in[0], zeros({missing, 4})});
        return std::vector<Tensor>{padded.exp().sum({0}, true)};
      },
      [](auto n) {
        return std::vector<Tensor>{randn({n[0], 4})};
      });
  for (const int64_t n : {16, 24, 40, 64, 12, 8, 20, 13}) EXPECT_TRUE(sizes.same_for({n})) << n;
  EXPECT_EQ(sizes.compiled().counts().replayed, 3);  // 40, 64, 8
  EXPECT_THAT(sizes.compiled().reasons(), Contains(HasSubstr("for s0 in multiples of 8")));
}

TEST(SymbolicSizes, AThirdSizeTellsSumsApart) {
  SizesBeside sizes(
      [](TensorList in) {
        const Tensor all = cat({in[0], in[1]}, 0);
        return std::vector<Tensor>{all.mul(all.size(0) - 1).slice(0, in[0].size(0))};
      },
      [](auto n) {
        return std::vector<Tensor>{randn({n[0], 3}), randn({n[1], 3})};
      });
  for (const auto& [n, m] :
       std::vector<std::pair<int64_t, int64_t>>{{5, 9}, {6, 11}, {8, 30}, {13, 12}, {40, 7}}) {
    EXPECT_TRUE(sizes.same_for({n, m})) << n << " " << m;
  }
  EXPECT_EQ(sizes.calls(), 3);
  EXPECT_THAT(sizes.compiled().reasons(),
              Contains(HasSubstr("may depend on sizes in several ways")));
}

TEST(SymbolicSizes, AreOffUnlessAskedFor) {
  SizesBeside sizes([](TensorList in) { return std::vector<Tensor>{in[0].exp()}; },
                    [](auto n) { return std::vector<Tensor>{randn({n[0]})}; }, {});
  for (int64_t n = 2; n < 12; ++n) EXPECT_TRUE(sizes.same_for({n}));
  EXPECT_EQ(sizes.compiled().counts().recorded, 8);
  EXPECT_EQ(sizes.compiled().counts().eager, 2);
}

TEST(SymbolicSizes, GroupsKeepTheirKernel) {
  if (!compiler::find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  const train::TemporaryDirectory folder;
  const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", (folder.path() / "cache").c_str());
  SizesBeside sizes(
      [](TensorList in) {
        return std::vector<Tensor>{in[0].mul(0.5).add(in[1]).tanh().mul(in[0]).mul(in[2])};
      },
      [](auto n) {
        return std::vector<Tensor>{randn({n[0], n[1]}), randn({n[1]}), randn({n[0], 1})};
      },
      for_all_sizes(KernelBuild::kAtOnce));
  for (const auto& [n, m] : std::vector<std::pair<int64_t, int64_t>>{
           {64, 48}, {81, 49}, {33, 7}, {1000, 64}, {3, 1024}}) {
    EXPECT_TRUE(sizes.same_for({n, m})) << n << " " << m;
  }
  EXPECT_LE(sizes.calls(), 3);
  for (const auto& program : sizes.compiled().programs()) {
    ASSERT_EQ(program->kernels().size(), 1U);
    EXPECT_EQ(program->kernels()[0]->refusal(), "");
  }
}

TEST(SymbolicSizes, AKernelForShortRowsReadsNoColumnOfLongOnes) {
  if (!compiler::find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  const train::TemporaryDirectory folder;
  const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", (folder.path() / "cache").c_str());
  const compiler::Body body = [](TensorList in) {
    return std::vector<Tensor>{in[0].mul(0.5).add(1).mul(in[1])};
  };
  const CompiledFunction compiled(body, for_all_sizes(KernelBuild::kAtOnce));
  const auto call = [&](int64_t length, const Tensor& column) {
    const std::vector<Tensor> inputs = {randn({3, length}), column};
    return have_same_bytes(compiled(inputs)[0], body(inputs)[0]);
  };
  for (const int64_t length : {8, 12, 16}) EXPECT_TRUE(call(length, randn({3, 1})));
  // What lies behind the column is what is in it, when the kernel is tried.
  EXPECT_TRUE(call(4096, ones({1 << 14}).slice(0, 0, 3).view({3, 1})));
  EXPECT_TRUE(call(4096, randn({3, 1})));
  EXPECT_EQ(compiled.counts().recorded, 2);
}

/// One step of a random function, whose choice hangs on no size.
struct SizedStep {
  int operation = 0;
  int first = 0;
  int second = 0;
  int parameter = 0;
};

std::ostream& operator<<(std::ostream& out, const SizedStep& step) {
  return out << step.operation << "(" << step.first << ", " << step.second << ", " << step.parameter
             << ")";
}

constexpr int kSizedOperations = 21;

Tensor perform_sized(const SizedStep& step, const Tensor& a, const Tensor& b) {
  const int64_t dim = a.dim() == 0 ? 0 : step.parameter % a.dim();
  switch (step.operation) {
    case 0:
      return a.tanh();
    case 1:
      return a.add(b);
    case 2:
      return a.mul(b);
    case 3:
      return a.sub(b, 0.5).sigmoid();
    case 4:
      return a.maximum(b);
    case 5:
      return softmax(a, dim);
    case 6:
      return a.sum(a.dim() > 0 ? OptionalIntList(dim) : OptionalIntList(), step.parameter > 3);
    case 7:
      return std::get<0>(a.max(dim));
    case 8:
      // Contiguous: eager backward may add gradients of several layouts in another one than a
      // record, and sums go along memory.
      return a.dim() == 2 ? a.t().contiguous() : a.reshape({-1});
    case 9:
      return a.select(dim, 0);
    case 10:
      return a.slice(dim, 1);
    case 11:
      return cat({a, b}, dim);
    case 12:
      return a.mm(b);
    case 13:
      return a.to(DType::kBF16).mul(3).to(DType::kF32);
    case 14:
      return dropout(a, 0.25, true);
    case 15:
      return a.unsqueeze(0).expand({2, -1, -1});
    case 16:
      return a.clone().mul_(2).add_(b);
    case 17:
      return a.dim() == 0 ? a : layer_norm(a, {a.size(-1)});
    case 18:
      return a.dim() == 0 ? a : a.slice(dim, 0, a.size(dim) - 1);
    case 19:
      return b.dim() == 0 ? a : a.mul(b.size(0) + step.parameter);
    case 20:
      return a.dim() == 0 || b.dim() == 0 ? a : a.add(a.size(0) + b.size(-1));
  }
  return a;
}

using SizedPlan = std::vector<SizedStep>;

std::vector<Tensor> run_sized(const SizedPlan& plan, TensorList inputs) {
  std::vector<Tensor> tensors(inputs.begin(), inputs.end());
  for (const SizedStep& step : plan) {
    tensors.push_back(perform_sized(step, tensors[static_cast<size_t>(step.first)],
                                    tensors[static_cast<size_t>(step.second)]));
  }
  std::vector<Tensor> results;
  for (size_t i = inputs.size(); i < tensors.size(); ++i) {
    if (i + 3 >= tensors.size()) results.push_back(tensors[i].clone());
  }
  return results;
}

std::vector<Tensor> sized_inputs(std::span<const int64_t> n) {
  return {leaf_of({n[0], n[1]}), leaf_of({n[1]}), leaf_of({n[0], 1}), leaf_of({n[1], 4}),
          leaf_of({})};
}

/// Those of the steps that can be made whatever the sizes are: for sizes that have nothing in
/// common.
SizedPlan possible_steps(const std::vector<SizedStep>& steps) {
  const int64_t sizes[] = {13, 37};
  std::vector<Tensor> tensors = sized_inputs(sizes);
  SizedPlan plan;
  for (SizedStep step : steps) {
    step.first %= static_cast<int>(tensors.size());
    step.second %= static_cast<int>(tensors.size());
    try {
      const Tensor made = perform_sized(step, tensors[static_cast<size_t>(step.first)],
                                        tensors[static_cast<size_t>(step.second)]);
      if (made.numel() > 100'000) continue;
      tensors.push_back(made);
      plan.push_back(step);
    } catch (const Error&) {
      // the operator does not take these
    }
  }
  return plan;
}

RC_GTEST_PROP(SymbolicSizes, RandomFunctionsGiveEqualBitsForAllSizes, ()) {
  const auto any_step =
      rc::gen::construct<SizedStep>(rc::gen::inRange(0, kSizedOperations), rc::gen::inRange(0, 64),
                                    rc::gen::inRange(0, 64), rc::gen::inRange(0, 8));
  const SizedPlan plan = possible_steps(*rc::gen::container<std::vector<SizedStep>>(20, any_step));
  const auto any_sizes =
      rc::gen::pair(rc::gen::inRange<int64_t>(8, 24), rc::gen::inRange<int64_t>(8, 24));
  SizesBeside sizes([&](TensorList in) { return run_sized(plan, in); }, sized_inputs);
  for (int k = 0; k < 7; ++k) {
    const auto [n, m] = *any_sizes;
    RC_ASSERT(sizes.same_for({n, m}));
  }
  const CompileCounts counts = sizes.compiled().counts();
  RC_ASSERT(counts.eager == 0);
  RC_TAG(counts.replayed >= 4 ? "one program for most" : "exact");
}

TEST(SymbolicSizes, MostRandomFunctionsHaveOneProgram) {
  std::mt19937 random(5);
  int joined = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<SizedStep> steps;
    for (int k = 0; k < 15; ++k) {
      const auto next = [&](unsigned end) { return static_cast<int>(random() % end); };
      steps.push_back({next(kSizedOperations), next(64), next(64), next(8)});
    }
    const SizedPlan plan = possible_steps(steps);
    SizesBeside sizes([&](TensorList in) { return run_sized(plan, in); }, sized_inputs);
    for (const int64_t n : {5, 7, 12, 16, 9, 23})
      EXPECT_TRUE(sizes.same_for({n, 2 * n + 1 + n % 3}));
    joined += sizes.calls() <= 3 ? 1 : 0;
  }
  EXPECT_GE(joined, 15);
}

TEST(SymbolicSizes, ASizeThatComesBackRunsAsRecordedCalls) {
  SizesBeside both(
      [](TensorList in) { return std::vector<Tensor>{layer_norm(in[0].mul(2).add(1), {8})}; },
      [](std::span<const int64_t> sizes) {
        return std::vector<Tensor>{leaf_of({sizes[0], 8})};
      });
  for (int64_t n = 4; n < 8; ++n) ASSERT_TRUE(both.same_for({n}));
  EXPECT_EQ(both.calls(), 2);
  for (int call = 0; call < 4; ++call) ASSERT_TRUE(both.same_for({6})) << call;
  EXPECT_EQ(both.calls(), 2);
  EXPECT_TRUE(both.compiled().programs().front()->is_prepared());
}

}  // namespace
}  // namespace lockstep

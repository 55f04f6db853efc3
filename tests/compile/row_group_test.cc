// Groups of operators that work row by row: which nodes they take, and that their bits are those of
// whole tensors.

#include "compile/row_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/fusion.h"
#include "compile/native/toolchain.h"
#include "compile/program.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/loss/loss.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/generator.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;
using Function = std::function<std::vector<Tensor>(TensorList)>;

std::vector<int32_t> row_groups_of(const Graph& graph) {
  std::vector<int32_t> groups;
  for (const Node& node : graph.nodes) groups.push_back(node.group);
  return groups;
}

TEST(FuseRows, TakesReductionsAndTheElementwiseOperatorsAroundThem) {
  const Graph graph = fuse_rows(parse_graph(R"(graph(%0: float32[8, 64], %1: float32[64]) {
  %2: float32[8, 64] = exp(%0)
  %3: float32[8, 1] = sum.dim_IntList(%2, [1], True, None)
  %4: float32[64, 64] = mm(%0, %0)
  %5: float32[8, 64] = div.Tensor(%2, %3)
  %6: float32[8, 64] = mul.Tensor(%5, %1)
  %7: float32[8] = amax(%6, [-1], False)
  %8: float32[64, 64] = neg(%4)
  return %6, %7, %8
})"));
  EXPECT_THAT(row_groups_of(graph), ElementsAre(0, 0, 0, 0, 0, -1, -1));
  EXPECT_EQ(graph.nodes[5].op->name(), "mm");
}

TEST(FuseRows, TakesSoftmaxAndNorms) {
  const Graph graph = fuse_rows(parse_graph(R"(graph(%0: float32[2, 4, 64], %1: float32[64]) {
  %2: float32[2, 4, 64] = add.Tensor(%0, %1, 1)
  %3: float32[2, 4, 64], %4: float32[2, 4, 1], %5: float32[2, 4, 1] = native_layer_norm(%2, [64], %1, %1, 1e-05)
  %6: float32[2, 4, 64] = _softmax(%3, -1, False)
  return %6
})"));
  EXPECT_THAT(row_groups_of(graph), ElementsAre(0, 0, 0));
}

TEST(FuseRows, LeavesOutWhatWorksAcrossRows) {
  const Graph graph = fuse_rows(parse_graph(R"(graph(%0: float32[8, 64], %1: float32[8, 32]) {
  %2: float32[8, 64] = exp(%0)
  %3: float32[64] = sum.dim_IntList(%2, [0], False, None)
  %4: float32[] = sum.dim_IntList(%2, None, False, None)
  %5: float32[8, 64] = _softmax(%2, 0, False)
  %6: float32[8, 1] = sum.dim_IntList(%1, [1], True, None)
  %7: float32[64] strides [0] = expand(%4, [64], False)
  return %3, %5, %6, %7
})"));
  for (const int32_t group : row_groups_of(graph)) EXPECT_EQ(group, -1);
}

TEST(FuseRows, LeavesElementwiseOperatorsWithoutReductionsAlone) {
  const Graph graph = fuse_rows(parse_graph(R"(graph(%0: float32[8, 64]) {
  %1: float32[8, 64] = exp(%0)
  %2: float32[8, 64] = neg(%1)
  return %2
})"));
  EXPECT_THAT(row_groups_of(graph), ElementsAre(-1, -1));
}

TEST(FuseRows, AWeightAsLongAsThereAreRowsIsNoReducedTensor) {
  // The sums without their dimension have the sizes of a row: they are no operand of the group.
  const Graph graph = fuse_rows(parse_graph(R"(graph(%0: float32[16, 16]) {
  %1: float32[16] = sum.dim_IntList(%0, [1], False, None)
  %2: float32[16, 16] = mul.Tensor(%0, %1)
  %3: float32[16, 16] = exp(%0)
  return %2, %3
})"));
  EXPECT_THAT(row_groups_of(graph), ElementsAre(0, 0, -1));
  EXPECT_EQ(graph.nodes[1].op->name(), "exp");
}

TEST(ReadUnexpanded, ReadsTheColumnOfAnExpandedGradient) {
  const Graph graph = read_unexpanded(parse_graph(R"(graph(%0: float32[8, 64], %1: float32[8, 1]) {
  %2: float32[8, 64] strides [1, 0] = expand(%1, [8, 64], False)
  %3: float32[8, 64] = mul.Tensor(%0, %2)
  %4: float32[8, 64] strides [1, 0] = neg(%2)
  %5: float32[8, 64] = mul.Tensor(%2, %2)
  return %3, %4, %5
})"));
  EXPECT_EQ(graph.nodes[1].arguments[1].values[0], 1);
  EXPECT_EQ(graph.nodes[2].arguments[0].values[0], 2);  // its result has the view's sizes
  EXPECT_EQ(graph.nodes[3].arguments[0].values[0], 2);  // nothing else has the result's sizes
}

Tensor layer_norm_by_hand(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor centred = x.sub(x.mean({-1}, true));
  const Tensor variance = centred.mul(centred).mean({-1}, true);
  return centred.mul(rsqrt(variance.add(1e-5))).mul(weight).add(bias);
}

/// Functions of rows, two weights of a row's length, and other rows.
const std::vector<std::pair<const char*, Function>>& functions_of_rows() {
  static const std::vector<std::pair<const char*, Function>> functions = {
      {"layer norm by hand, residual and gelu",
       [](TensorList in) {
         const Tensor sum = in[0].add(in[3]);
         return std::vector<Tensor>{sum, gelu(layer_norm_by_hand(sum, in[1], in[2]))};
       }},
      {"softmax by hand",
       [](TensorList in) {
         const Tensor e = in[0].sub(amax(in[0], {-1}, true)).exp();
         return std::vector<Tensor>{e.div(e.sum({-1}, true))};
       }},
      {"layer norm, residual and softmax",
       [](TensorList in) {
         const Tensor norm = layer_norm(in[0].add(in[3]), {in[0].size(-1)}, in[1], in[2]);
         return std::vector<Tensor>{softmax(norm.mul(2), -1), norm.to(DType::kBF16)};
       }},
      {"moments and extremes",
       [](TensorList in) {
         const auto [variance, mean] = var_mean(in[0].mul(in[3]), {-1}, Scalar(1), true);
         const auto [largest, index] = max(in[0].add(in[1]), -1, false);
         return std::vector<Tensor>{in[0].sub(mean).div(variance.add(1).sqrt()), largest, index};
       }},
      {"running sums",
       [](TensorList in) {
         return std::vector<Tensor>{cumsum(in[0].mul(in[3]), -1).tanh(),
                                    logsumexp(in[0].abs(), {-1}, true).neg()};
       }},
  };
  return functions;
}

std::vector<Tensor> rows_and_weights(IntList sizes, DType dtype, bool require_grad) {
  const int64_t length = sizes.back();
  std::vector<Tensor> inputs = {randn(sizes).to(dtype), randn({length}).to(dtype),
                                randn({length}).to(dtype), randn(sizes).to(dtype)};
  for (const Tensor& input : inputs) input.set_requires_grad(require_grad);
  return inputs;
}

void expect_same_bits(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].dtype(), want[i].dtype());
    ASSERT_TRUE(same(got[i].sizes(), want[i].sizes()));
    const Tensor a = got[i].detach().contiguous(), b = want[i].detach().contiguous();
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.nbytes()), 0) << "tensor " << i;
  }
}

/// Runs the function compiled and as it is, with gradients where it has them.
void expect_bits_of_whole_tensors(const Function& function, IntList sizes, DType dtype,
                                  CompileOptions options) {
  const CompiledFunction compiled = compile(function, std::move(options));
  for (int threads = 1; threads <= 3; ++threads) {
    set_num_threads(threads);
    manual_seed(static_cast<uint64_t>(threads));
    const std::vector<Tensor> inputs = rows_and_weights(sizes, dtype, /*require_grad=*/true);
    const std::vector<Tensor> want = function(inputs);
    const std::vector<Tensor> got = compiled(inputs);
    expect_same_bits(got, want);
    std::vector<Tensor> roots[2];
    std::vector<Tensor> weights;
    for (size_t i = 0; i < want.size(); ++i) {
      if (!want[i].requires_grad()) continue;
      roots[0].push_back(want[i]);
      roots[1].push_back(got[i]);
      weights.push_back(randn(want[i].sizes()).to(want[i].dtype()));
    }
    const GradOptions unused{.allow_unused = true};
    const std::vector<Tensor> wanted = grad(roots[0], inputs, weights, unused);
    const std::vector<Tensor> gotten = grad(roots[1], inputs, weights, unused);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(gotten[i].defined(), wanted[i].defined());
      if (wanted[i].defined()) expect_same_bits({gotten[i]}, {wanted[i]});
    }
  }
  set_num_threads(2);
  ASSERT_EQ(compiled.programs().size(), 1u);
  EXPECT_GE(std::ranges::count(row_groups_of(compiled.programs()[0]->forward()), 0), 2);
}

TEST(RowGroup, GivesTheBitsOfWholeTensors) {
  CompileOptions loops;
  loops.kernels = KernelBuild::kNever;
  const std::vector<Dims> shapes = {{2, 2},        {5, 3},     {3, 7, 64},
                                    {1, 130, 100}, {40, 1030}, {3, 5000}};
  for (const auto& [name, function] : functions_of_rows()) {
    for (const Dims& sizes : shapes) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        SCOPED_TRACE(std::string(name) + " of " + to_string(IntList(sizes)) + " in " +
                     std::string(lockstep::name(dtype)));
        expect_bits_of_whole_tensors(function, sizes, dtype, loops);
      }
    }
  }
}

TEST(RowGroup, KernelsOfTheLoopsInsideGiveTheSameBits) {
  if (!find_toolchain({})) GTEST_SKIP() << "there is no C++ compiler";
  const train::TemporaryDirectory folder;
  const EnvironmentVariable cache("LOCKSTEP_CACHE_DIR", (folder.path() / "cache").c_str());
  CompileOptions kernels;
  kernels.kernels = KernelBuild::kAtOnce;
  const auto function = [](TensorList in) {
    return std::vector<Tensor>{in[0].sub(in[0].mean({-1}, true)).mul(in[1]).tanh()};
  };
  // Columns of short rows are repeated for a kernel, of long ones it reads an element.
  for (const Dims& sizes : {Dims{101, 300}, Dims{131, 1030}}) {
    const CompiledFunction compiled = compile(function, kernels);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      manual_seed(seed);
      const std::vector<Tensor> inputs = {randn(sizes), randn({sizes.back()})};
      expect_same_bits(compiled(inputs), function(inputs));
    }
    const std::vector<const GroupKernel*> loops = compiled.programs().at(0)->kernels();
    ASSERT_EQ(loops.size(), 2u);  // of whole tiles, and of the last rows
    for (const GroupKernel* const kernel : loops) {
      ASSERT_NE(kernel->pending(), nullptr);
      EXPECT_EQ(kernel->refusal(), "");
    }
  }
}

TEST(RowGroup, ErrorsOfAnOperatorReachTheCaller) {
  const CompiledFunction compiled = compile([](TensorList in) {
    return std::vector<Tensor>{in[0].floor_divide(in[1]).sum({-1}, true).add(in[0])};
  });
  const Tensor x = arange(4096, DType::kI64).view({64, 64});
  EXPECT_NO_THROW(compiled({x, ones_like(x)}));
  expect_error<Error>([&] { compiled({x, zeros_like(x)}); }, "integer division by zero");
}

TEST(RowGroup, TextHoldsTheGroupAndRunsFromIt) {
  const std::string text = R"(graph(%0: float32[8, 64]) {
  fused {
    %1: float32[8, 1] = sum.dim_IntList(%0, [1], True, None)
    %2: float32[8, 64] = div.Tensor(%0, %1)
  }
  return %2
}
)";
  const Graph graph = parse_graph(text);
  EXPECT_EQ(to_string(graph), text);
  const Tensor x = randn({8, 64}).abs();
  expect_same_bits(Interpreter(graph).run({x}), {x.div(x.sum({1}, true))});
}

TEST(RowGroup, ANodeThatWorksAcrossRowsIsRefused) {
  const Graph graph = parse_graph(R"(graph(%0: float32[8, 64]) {
  fused {
    %1: float32[8, 64] = exp(%0)
    %2: float32[1, 64] = sum.dim_IntList(%1, [0], True, None)
  }
  return %2
})");
  expect_error<Error>([&] { Interpreter runs(graph); }, "sum.dim_IntList cannot be part of");
}

/// One step of a random function of rows: an operation on two of the tensors so far.
struct RowStep {
  int operation = 0;
  int first = 0;
  int second = 0;
};
std::ostream& operator<<(std::ostream& out, const RowStep& step) {
  return out << step.operation << "(" << step.first << ", " << step.second << ")";
}

constexpr int kRowOperations = 12;

Tensor perform_on_rows(const RowStep& step, const Tensor& a, const Tensor& b) {
  switch (step.operation) {
    case 0:
      return a.add(b);
    case 1:
      return a.mul(b).tanh();
    case 2:
      return a.sub(b).abs();
    case 3:
      return a.sum({-1}, true);
    case 4:
      return a.mean({-1}, true).sigmoid();
    case 5:
      return amax(a, {-1}, true);
    case 6:
      return softmax(a, -1);
    case 7:
      return layer_norm(a, {a.size(-1)}, {}, {});
    case 8:
      return a.to(DType::kBF16).to(DType::kF32);
    case 9:
      return cumsum(a, -1).tanh();
    case 10:
      return std::get<0>(max(a, -1, false)).unsqueeze(-1);
    case 11:
      return where(a.gt(b), a, b);
  }
  return a;
}

RC_GTEST_PROP(RowGroup, RandomFunctionsOfRowsGiveEqualBits, ()) {
  const auto step = rc::gen::construct<RowStep>(rc::gen::inRange(0, kRowOperations),
                                                rc::gen::inRange(0, 64), rc::gen::inRange(0, 64));
  const auto steps = *rc::gen::mapcat(rc::gen::inRange<size_t>(3, 20), [step](size_t length) {
    return rc::gen::container<std::vector<RowStep>>(length, step);
  });
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 200);
  const int64_t length = *rc::gen::elementOf(std::vector<int64_t>{1, 2, 5, 16, 100, 257});
  const auto function = [&](TensorList inputs) {
    std::vector<Tensor> tensors(inputs.begin(), inputs.end());
    for (const RowStep& each : steps) {
      const auto count = static_cast<int>(tensors.size());
      tensors.push_back(perform_on_rows(each, tensors[static_cast<size_t>(each.first % count)],
                                        tensors[static_cast<size_t>(each.second % count)]));
    }
    return std::vector<Tensor>(tensors.end() - 3, tensors.end());
  };
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  const CompiledFunction compiled = compile(function, options);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    manual_seed(seed);
    const std::vector<Tensor> inputs = {randn({rows, length}), randn({length}), randn({rows, 1}),
                                        randn({1, length})};
    const std::vector<Tensor> want = function(inputs);
    const std::vector<Tensor> got = compiled(inputs);
    RC_ASSERT(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      RC_ASSERT(same(got[i].sizes(), want[i].sizes()));
      const Tensor a = got[i].contiguous(), b = want[i].contiguous();
      RC_ASSERT(std::memcmp(a.data(), b.data(), a.nbytes()) == 0);
    }
  }
}

}  // namespace
}  // namespace lockstep::compiler

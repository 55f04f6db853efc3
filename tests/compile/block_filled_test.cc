// Rows that are gathered, and truths that are drawn, where a group reads them.

#include "compile/block_filled.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "autograd/autograd.h"
#include "compile/compile.h"
#include "compile/fusion.h"
#include "compile/native/toolchain.h"
#include "compile/program.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/index/index.h"
#include "core/ops/index/subscript.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/generator.h"
#include "tests/compile/same_bytes.h"
#include "tests/core/base/environment_variable.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> operators_in_groups(const Graph& graph) {
  std::vector<std::string> groups;
  for (const Node& node : graph.nodes) {
    groups.push_back(node.op->name() + " " + std::to_string(node.group));
  }
  return groups;
}

TEST(BlockFilled, RowsThatOnlyTheGroupReadsAreGatheredInIt) {
  const Graph graph = fuse_pointwise(parse_graph(
      R"(graph(%0: float32[9, 8], %1: int64[4], %2: float32[5, 8], %3: int32[4]) {
  %4: float32[4, 8] = embedding(%0, %1, -1, False, False)
  %5: float32[4, 8] = index_select(%2, 0, %3)
  %6: float32[4, 8] = mul.Tensor(%4, %5)
  %7: float32[4, 8] = index.Tensor(%0, [%1])
  %8: float32[4, 8] = add.Tensor(%6, %7, 1)
  return %8, %7
})"));
  check(graph);
  EXPECT_THAT(operators_in_groups(graph),
              ElementsAre("index.Tensor -1", "embedding 0", "index_select 0", "mul.Tensor 0",
                          "add.Tensor 0"));
}

TEST(BlockFilled, GathersOfAnotherKindStayApart) {
  const Graph graph = fuse_pointwise(parse_graph(
      R"(graph(%0: float32[4, 4], %1: int64[4], %2: float32[4, 4] strides [1, 4]) {
  %3: float32[4, 4] = index_select(%0, 1, %1)
  %4: float32[4, 4] = index_select(%2, 0, %1)
  %5: float32[4, 4] = index.Tensor(%0, [None, %1])
  %6: float32[4, 4] = add.Tensor(%3, %4, 1)
  %7: float32[4, 4] = mul.Tensor(%5, %6)
  return %7
})"));
  EXPECT_THAT(operators_in_groups(graph),
              ElementsAre("index_select -1", "index_select -1", "index.Tensor -1", "add.Tensor 0",
                          "mul.Tensor 0"));
}

TEST(BlockFilled, MasksAreDrawnInTheOrderOfTheirNodes) {
  const Graph graph = fuse_pointwise(parse_graph(R"(graph(%0: float32[4, 8], %1: float32[4, 8]) {
  %2: float32[4, 8], %3: bool[4, 8] = native_dropout(%0, 0.5, True)
  %4: float32[4, 8] = neg(%2)
  %5: float32[4, 8] = uniform(%1, 0.5, 1.5, None)
  %6: float32[4, 8] = bernoulli.p(%0, 0.25, None)
  %7: float32[4, 8] = mul.Tensor(%4, %6)
  return %5, %7
})"));
  check(graph);
  EXPECT_THAT(operators_in_groups(graph), ElementsAre("native_dropout 0", "neg 0", "uniform -1",
                                                      "bernoulli.p 1", "mul.Tensor 1"));
}

/// Calls the body as it is and compiled: results and the next random numbers must have equal bits.
void expect_same_bits(const CompiledFunction& compiled, const Body& body,
                      const std::vector<Tensor>& inputs, const std::string& what) {
  manual_seed(5);
  const std::vector<Tensor> want = body(inputs);
  const Tensor next = rand({3});
  for (int call = 0; call < 2; ++call) {
    manual_seed(5);
    const std::vector<Tensor> got = compiled(inputs);
    EXPECT_TRUE(have_same_bytes(next, rand({3}))) << what;
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(have_same_bytes(got[i], want[i])) << "result " << i << " of " << what;
    }
  }
}

/// Compiles with loops, and with kernels if there is a compiler and no result is float64, of which
/// kernels are no different.
void expect_same_bits_of_both(const Body& body, const std::vector<Tensor>& inputs,
                              const std::string& what) {
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  expect_same_bits(compile(body, options), body, inputs, what);
  if (!find_toolchain({}) || inputs[0].dtype() == DType::kF64) return;
  options.kernels = KernelBuild::kAtOnce;
  const CompiledFunction compiled = compile(body, options);
  expect_same_bits(compiled, body, inputs, what + ", with a kernel");
  EXPECT_THAT(compiled.reasons(), IsEmpty()) << what;
}

class BlockFilledBits : public ::testing::Test {
 protected:
  train::TemporaryDirectory folder_;
  EnvironmentVariable cache_{"LOCKSTEP_CACHE_DIR", (folder_.path() / "cache").c_str()};
};

TEST_F(BlockFilledBits, OfGatheredRowsAreThoseOfTheOperators) {
  const Body body = [](TensorList in) {
    const Tensor x = embedding(in[0], in[1]).add(index_select(in[2], 0, in[3])).mul(0.5);
    return std::vector<Tensor>{x, x.tanh().add(in[2][in[1]])};
  };
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    for (const int64_t width : {2, 7, 64, 700, 1500, 5000}) {
      const int64_t count = 5000 / width + 3;
      const Tensor numbers = arange(count, DType::kI64).mul(5);
      expect_same_bits_of_both(body,
                               {randn({11, width}).to(dtype), numbers.remainder(7),
                                randn({7, width}).to(dtype), numbers.remainder(3).to(DType::kI32)},
                               fmt::format("rows of {} {}", width, to_string(dtype)));
    }
  }
}

TEST_F(BlockFilledBits, OfDrawnMasksAreThoseOfTheOperators) {
  const Body body = [](TensorList in) {
    const auto [kept, mask] = native_dropout(in[0].mul(1.5), 0.3, true);
    const Tensor chosen = bernoulli(in[0], 0.25).add(bernoulli(in[0].gt(0), 0.75));
    return std::vector<Tensor>{kept.add(in[1]), mask, chosen.mul(kept),
                               dropout(chosen, 1, true).neg()};
  };
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    for (const int64_t size : {2, 255, 1025, 40'000, 300'001}) {
      for (int threads = 1; threads <= 3; ++threads) {
        set_num_threads(threads);
        expect_same_bits_of_both(body, {randn({size}).to(dtype), randn({size}).to(dtype)},
                                 fmt::format("{} {}", size, to_string(dtype)));
      }
    }
  }
  set_num_threads(2);
}

TEST_F(BlockFilledBits, OfMasksBesideLongRowsAreThoseOfTheOperators) {
  const Body body = [](TensorList in) {
    return std::vector<Tensor>{dropout(embedding(in[0], in[1]).add(in[2]), 0.5, true).mul(in[3])};
  };
  for (const int64_t width : {513, 777, 2050}) {
    expect_same_bits_of_both(
        body,
        {randn({5, width}), arange(6, DType::kI64).remainder(5), randn({width}), randn({6, 1})},
        fmt::format("rows of {}", width));
  }
}

TEST_F(BlockFilledBits, OfResultsThatPassTheCacheAreThoseOfTheOperators) {
  const Body body = [](TensorList in) {
    const auto [kept, mask] = native_dropout(in[0].add(embedding(in[1], in[2])), 0.5, true);
    return std::vector<Tensor>{kept.relu(), mask};
  };
  expect_same_bits_of_both(
      body, {randn({40'000, 512}), randn({100, 512}), arange(40'000, DType::kI64).remainder(100)},
      "80 MB");
}

TEST(BlockFilled, GradientsAreThoseOfTheOperators) {
  const Tensor indices = arange(40, DType::kI64).remainder(9);
  const auto body = [&](const Tensor& table) {
    return dropout(embedding(table, indices).mul(2).tanh(), 0.4, true).sigmoid();
  };
  const CompiledTensorFunction compiled = compile(body);
  for (int call = 0; call < 3; ++call) {
    const Tensor values = randn({9, 30});
    const Tensor mine = values.clone().set_requires_grad();
    const Tensor theirs = values.clone().set_requires_grad();
    manual_seed(8);
    compiled(mine).sum().backward();
    manual_seed(8);
    body(theirs).sum().backward();
    EXPECT_TRUE(have_same_bytes(mine.grad(), theirs.grad()));
  }
  EXPECT_EQ(compiled.counts().replayed, 2);
}

TEST(BlockFilled, IndicesOutOfRangeAreNamedAsEagerly) {
  const auto error_of = [](const std::function<void()>& body) {
    try {
      body();
    } catch (const IndexError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const Tensor table = randn({4, 3}), good = zeros({2}, DType::kI64);
  for (const DType dtype : {DType::kI64, DType::kI32}) {
    const Body bodies[] = {
        [](TensorList in) { return std::vector<Tensor>{embedding(in[0], in[1]).neg()}; },
        [](TensorList in) { return std::vector<Tensor>{index_select(in[0], 0, in[1]).neg()}; },
        [](TensorList in) { return std::vector<Tensor>{Tensor(in[0][in[1]]).neg()}; }};
    for (const Body& body : bodies) {
      const CompiledFunction compiled = compile(body);
      (void)compiled({table, good.to(dtype)});
      for (const int64_t bad : {4, -5, -1}) {
        const Tensor indices = full({2}, bad, dtype);
        const std::string want = error_of([&] { body({{table, indices}}); });
        EXPECT_EQ(error_of([&] { compiled({table, indices}); }), want);
      }
    }
  }
}

TEST_F(BlockFilledBits, OfIndicesFromTheEndAreThoseOfTheOperators) {
  const Body body = [](TensorList in) {
    return std::vector<Tensor>{Tensor(in[0][in[1]]).mul(2).add(1)};
  };
  expect_same_bits_of_both(body, {randn({4, 3}), arange(8, DType::kI64).sub(4)}, "-4 to 3");
}

/// Element-wise operators behind a gather, with masks in between.
RC_GTEST_PROP(BlockFilled, RandomChainsHaveEqualBits, ()) {
  const std::vector<int> operations = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 7));
  const int64_t rows = *rc::gen::inRange(1, 9), width = *rc::gen::inRange(1, 1200);
  const bool is_narrow = *rc::gen::arbitrary<bool>();
  const Body body = [&](TensorList in) {
    Tensor x = embedding(in[0], in[1]);
    std::vector<Tensor> results;
    for (const int operation : operations) {
      switch (operation) {
        case 0:
          x = dropout(x, 0.5, true);
          break;
        case 1:
          x = x.mul(bernoulli(x, 0.75)).add(0.5);
          break;
        case 2:
          x = x.add(index_select(in[0], 0, in[1]));
          break;
        case 3:
          x = x.tanh();
          break;
        case 4:
          x = x.add(x.uniform());
          break;
        case 5:
          results.push_back(x);
          break;
        default:
          x = x.relu().sub(0.25);
      }
    }
    results.push_back(x);
    return results;
  };
  manual_seed(static_cast<uint64_t>(width));
  const Tensor table = randn({5, width}).to(is_narrow ? DType::kBF16 : DType::kF32);
  const std::vector<Tensor> inputs = {table, arange(rows, DType::kI64).remainder(5)};
  CompileOptions options;
  options.kernels = KernelBuild::kNever;
  const CompiledFunction compiled = compile(body, options);
  for (uint64_t call = 0; call < 2; ++call) {
    manual_seed(call);
    const std::vector<Tensor> want = body(inputs);
    manual_seed(call);
    const std::vector<Tensor> got = compiled(inputs);
    for (size_t i = 0; i < want.size(); ++i) RC_ASSERT(have_same_bytes(got[i], want[i]));
  }
}

}  // namespace
}  // namespace lockstep::compiler

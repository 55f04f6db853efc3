#include "compile/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compile/compile.h"
#include "compile/program.h"
#include "core/base/parallel.h"
#include "core/ops/factory/factory.h"
#include "core/ops/forms/pointwise.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/tensor/generator.h"
#include "tests/core/expect_error.h"

namespace lockstep::compiler {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> groups_of(const Graph& graph) {
  std::vector<int32_t> groups;
  for (const Node& node : graph.nodes) groups.push_back(node.group);
  return groups;
}

TEST(FusePointwise, TakesLaterNodesThatAreReady) {
  const Graph graph = fuse_pointwise(parse_graph(R"(graph(%0: float32[256, 256], %1: float32[]) {
  %2: float32[256, 256] = exp(%0)
  %3: float32[256, 256] = mm(%0, %0)
  %4: float32[256, 256] = mul.Tensor(%2, %1)
  %5: float32[256, 256] = add.Tensor(%4, %3, 1)
  %6: bool[256, 256] = gt.Scalar(%4, 0)
  return %5, %6
})"));
  check(graph);
  // exp, mul and gt; then mm, and add alone.
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 0, 0, -1, -1));
  EXPECT_EQ(graph.nodes[3].op->name(), "mm");
}

TEST(FusePointwise, LeavesOutWhatIsStridedRandomOrChecked) {
  const Graph graph = fuse_pointwise(parse_graph(R"(graph(%0: int64[4, 4], %1: float32[4, 8]) {
  %3: int64[4, 4] = floor_divide(%0, %0)
  %4: int64[4, 4] = neg(%3)
  %5: float32[4, 8] = add.Tensor(%1, %1, 1)
  %6: float32[4, 8] = uniform(%5, 0.5, 1.5, None)
  %8: float32[8, 4] strides [1, 8] = t(%6)
  %9: float32[8, 4] strides [1, 8] = neg(%8)
  %10: float32[8, 4] strides [1, 8] = exp(%9)
  return %4, %10
})"));
  for (const int32_t group : groups_of(graph)) EXPECT_EQ(group, -1);
}

TEST(FusePointwise, TakesSmallTensorsRowsColumnsAndNumbers) {
  const Graph graph = fuse_pointwise(parse_graph(
      R"(graph(%0: float32[2, 3], %1: float32[3], %2: float32[1, 1], %3: float32[2, 1]) {
  %4: float32[2, 3] = add.Tensor(%0, %1, 1)
  %5: float32[2, 3] = mul.Tensor(%4, %2)
  %6: float32[2, 3] = sub.Tensor(%5, %3, 1)
  %7: bfloat16[2, 3] = _to_copy(%6, bfloat16, None, None, None, False, None)
  return %7
})"));
  EXPECT_THAT(groups_of(graph), ElementsAre(0, 0, 0, 0));
}

TEST(FusePointwise, LongChainsAreSeveralGroups) {
  std::string text = "graph(%0: float32[64]) {\n";
  for (int i = 1; i <= 600; ++i) {
    text += "  %" + std::to_string(i) + ": float32[64] = tanh(%" + std::to_string(i - 1) + ")\n";
  }
  const Graph graph = fuse_pointwise(parse_graph(text + "  return %600\n}"));
  check(graph);
  const std::vector<int32_t> groups = groups_of(graph);
  EXPECT_EQ(std::ranges::count(groups, 0), 256);
  EXPECT_EQ(std::ranges::count(groups, 1), 256);
  EXPECT_EQ(std::ranges::count(groups, 2), 88);
}

TEST(FusePointwise, DivisionsByZeroAreStillFound) {
  const CompiledFunction quotient = compile(
      [](TensorList in) { return std::vector<Tensor>{in[0].add(1).floor_divide(in[1]).neg()}; });
  const Tensor x = arange(6, DType::kI64);
  EXPECT_NO_THROW(quotient({x, ones_like(x)}));
  expect_error<Error>([&] { quotient({x, zeros_like(x)}); }, "integer division by zero");
}

TEST(FusePointwise, RowsAndColumnsOfAnyLengthGiveTheBitsOfWholeTensors) {
  const CompiledFunction compiled = compile([](TensorList in) {
    const Tensor x = in[0].add(in[1]).mul(in[2]).to(DType::kBF16);
    return std::vector<Tensor>{x, x.add(in[3]).tanh().sub(in[0]).mul(in[4])};
  });
  for (const int64_t columns : {1, 3, 1000, 1024, 1025, 5000}) {
    for (const int64_t rows : {int64_t{2}, int64_t{7}, 3000 / columns + 2}) {
      const std::vector<Tensor> in = {randn({2, rows, columns}), randn({columns}),
                                      randn({1, rows, columns}), randn({1, 1}).to(DType::kBF16),
                                      randn({2, rows, 1})};
      const Tensor x = in[0].add(in[1]).mul(in[2]).to(DType::kBF16);
      const std::vector<Tensor> want = {x, x.add(in[3]).tanh().sub(in[0]).mul(in[4])};
      compiled(in);
      const std::vector<Tensor> got = compiled(in);
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(std::memcmp(got[i].data(), want[i].data(), want[i].nbytes()), 0)
            << "output " << i << " of " << rows << " rows of " << columns;
      }
    }
  }
}

TEST(FusePointwise, AnOperandMayBeARowOfOneResultAndAColumnOfAnother) {
  const auto body = [](TensorList in) {
    return std::vector<Tensor>{in[0].add(in[2]).tanh(), in[1].mul(in[2]).neg()};
  };
  const CompiledFunction compiled = compile(body);
  // Both results have six elements: element i of the first reads i % 2, of the second i / 3.
  const std::vector<Tensor> in = {randn({3, 2, 1}), randn({2, 3}), randn({2, 1})};
  const std::vector<Tensor> want = body(in);
  compiled(in);
  const std::vector<Tensor> got = compiled(in);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(std::memcmp(got[i].data(), want[i].data(), want[i].nbytes()), 0) << "output " << i;
  }
}

TEST(FusePointwise, TextHoldsGroups) {
  const std::string text = R"(graph(%0: float32[256, 256]) {
  %1: float32[256, 256] = mm(%0, %0)
  fused {
    %2: float32[256, 256] = exp(%1)
    %3: float32[256, 256] = neg(%2)
  }
  fused {
    %4: float32[256, 256] = sin(%3)
    %5: float32[256, 256] = cos(%4)
  }
  return %5
}
)";
  EXPECT_EQ(to_string(parse_graph(text)), text);
}

TEST(FusePointwise, AGroupThatIsTornApartIsNotSound) {
  Graph graph = parse_graph(R"(graph(%0: float32[4]) {
  %1: float32[4] = exp(%0)
  %2: float32[4] = neg(%0)
  %3: float32[4] = sin(%0)
  return %1, %2, %3
})");
  graph.nodes[0].group = graph.nodes[2].group = 0;
  expect_error<Error>([&] { check(graph); }, "node 2 (sin) is apart from the rest of its group 0");
}

/// Bits of a function compiled and as it is, on sizes around the length of blocks.
void expect_equal_bits(const std::function<std::vector<Tensor>(TensorList)>& body, DType dtype) {
  for (const int64_t size : {1 << 15, (1 << 15) + 1, 3 * (1 << 14) - 1, (1 << 18) + 77}) {
    const CompiledFunction compiled = compile(body);
    for (int threads = 1; threads <= 3; ++threads) {
      set_num_threads(threads);
      manual_seed(static_cast<uint64_t>(threads));
      const std::vector<Tensor> inputs = {randn({size}).to(dtype), randn({size}).to(dtype),
                                          randn({}).to(dtype)};
      const std::vector<Tensor> want = body(inputs);
      const std::vector<Tensor> got = compiled(inputs);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].dtype(), want[i].dtype());
        EXPECT_EQ(std::memcmp(got[i].data(), want[i].data(), want[i].nbytes()), 0)
            << "output " << i << " of " << size << " elements on " << threads << " threads";
      }
    }
    ASSERT_EQ(compiled.programs().size(), 1u);
    const std::vector<int32_t> groups = groups_of(compiled.programs()[0]->forward());
    EXPECT_EQ(std::ranges::count(groups, 0), static_cast<std::ptrdiff_t>(groups.size()));
  }
  set_num_threads(2);
}

TEST(FusePointwise, BlocksGiveTheBitsOfWholeTensors) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    expect_equal_bits(
        [](TensorList in) {
          const Tensor a = in[0].mul(in[1]).add(in[2]).tanh();
          const Tensor b = a.exp().div(in[1].abs().add(1));
          const Tensor c = b.gt(a);
          const Tensor d = where(c, a, b).sigmoid().to(DType::kF32).sin();
          return std::vector<Tensor>{a, c, d, b.clamp(-0.5, 0.5).pow(2).erf()};
        },
        dtype);
  }
}

TEST(FusePointwise, RunsSafelyUnderEveryNumberOfThreads) {
  expect_equal_bits(
      [](TensorList in) {
        return std::vector<Tensor>{in[0].add(in[1], 0.5).relu().neg(), in[0].maximum(in[1])};
      },
      DType::kF32);
}

}  // namespace
}  // namespace lockstep::compiler

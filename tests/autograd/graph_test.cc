#include "autograd/graph.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/saved_tensor_hooks.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "tests/autograd/sample_operators.h"

namespace lockstep {
namespace {

using sample::leaf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names(const std::vector<Ref<Node>>& nodes) {
  std::vector<std::string> result;
  for (const Ref<Node>& node : nodes) result.push_back(node->name());
  return result;
}

TEST(GraphNodes, AreEachNodeOnceFromTheRootsDown) {
  const Tensor x = sample::matrix(2, 2), w = sample::matrix(2, 2), b = leaf({1, 2});
  const Tensor y = addmm(b, x, w);
  EXPECT_THAT(names(graph_nodes({(y * y).sum()})),
              ElementsAre("SumBackward0", "MulBackward0", "AddmmBackward0", "AccumulateGrad",
                          "AccumulateGrad", "AccumulateGrad"));
  EXPECT_TRUE(graph_nodes({sample::vector({1})}).empty());
}

TEST(GraphNodes, LeavesComeLastHoweverNearTheyAreAndLaterCallsFirst) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  EXPECT_THAT(names(graph_nodes({exp(neg(x)) * y})),
              ElementsAre("MulBackward0", "ExpBackward0", "NegBackward0", "AccumulateGrad",
                          "AccumulateGrad"));
  const Tensor first = exp(x), second = sin(x);
  EXPECT_THAT(names(graph_nodes({first, second})),
              ElementsAre("SinBackward0", "ExpBackward0", "AccumulateGrad"));
}

TEST(SavedTensors, HaveNamesShapesAndBytes) {
  const Tensor x = sample::matrix(2, 3), w = sample::matrix(3, 4);
  const Tensor y = mm(x, w);
  const std::vector<SavedTensorInfo> saved = y.grad_fn()->saved_tensors();
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_EQ(saved[0].name, "self");
  EXPECT_TRUE(saved[0].tensor.is_same(x));
  EXPECT_EQ(saved[0].bytes, 48U);
  EXPECT_EQ(saved[1].name, "mat2");
  EXPECT_EQ(saved[1].bytes, 96U);
  const Tensor e = x.exp();
  ASSERT_EQ(e.grad_fn()->saved_tensors().size(), 1U);
  EXPECT_EQ(e.grad_fn()->saved_tensors()[0].name, "result");
  EXPECT_EQ(e.grad_fn()->saved_tensors()[0].tensor.data(), e.data());
}

TEST(SavedTensors, OfAListHaveItsNumbersAndWhatIsSavedBehindItHasItsName) {
  for (size_t count = 1; count <= 3; ++count) {
    const std::vector<Tensor> parts(count, leaf({1, 2}));
    const std::vector<SavedTensorInfo> saved =
        sample::weighted(parts, leaf({3, 4})).grad_fn()->saved_tensors();
    ASSERT_EQ(saved.size(), count + 1);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(saved[i].name, fmt::format("parts[{}]", i));
    EXPECT_EQ(saved[count].name, "weight");
  }
}

TEST(SavedTensors, OnlyThoseThatAWantedGradientReadsAreKept) {
  const Tensor x = sample::matrix(2, 3, false), w = sample::matrix(3, 4);
  const std::vector<SavedTensorInfo> saved = mm(x, w).grad_fn()->saved_tensors();
  ASSERT_EQ(saved.size(), 1U);
  EXPECT_EQ(saved[0].name, "self");
}

TEST(SavedTensors, AreGoneAfterABackwardThatDoesNotRetainThem) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  y.sum().backward();
  EXPECT_TRUE(y.grad_fn()->saved_tensors().empty());
}

TEST(SavedTensors, KeptByHooksAreNamedWithoutATensor) {
  const Tensor x = leaf({1, 2});
  const SavedTensorHooksGuard guard(
      {[](const Tensor& tensor) -> std::any { return tensor; },
       [](const std::any& what) { return std::any_cast<Tensor>(what); }});
  const Tensor y = x.exp();
  ASSERT_EQ(y.grad_fn()->saved_tensors().size(), 1U);
  EXPECT_FALSE(y.grad_fn()->saved_tensors()[0].tensor.defined());
}

TEST(SavedBytes, CountSharedMemoryOnce) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(saved_bytes({x.exp()}), 16U);
  EXPECT_EQ(saved_bytes({x * x}), x.storage()->bytes());
  const Tensor y = x * 1;
  EXPECT_EQ(saved_bytes({y * y + y.exp()}), y.storage()->bytes() + 16);
}

TEST(GraphToDot, ShowsNodesLeavesNamesAndWhatIsKept) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  GraphToDotOptions options;
  options.names = {{w, "layer.\"weight\""}};
  const std::string dot = graph_to_dot({(x * w).sum()}, options);
  EXPECT_THAT(dot, HasSubstr("digraph"));
  EXPECT_THAT(dot, HasSubstr("n0 [shape=ellipse, label=\"SumBackward0\\nfloat64[]\"]"));
  EXPECT_THAT(dot, HasSubstr("keeps other float64[2], 16 bytes"));
  EXPECT_THAT(dot, HasSubstr("label=\"layer.\\\"weight\\\"\\nAccumulateGrad"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n1;"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n2;"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n3;"));
  options.saved_tensors = false;
  EXPECT_THAT(graph_to_dot({(x * w).sum()}, options), Not(HasSubstr("keeps")));
}

TEST(GraphToDot, IsAWholeFile) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  GraphToDotOptions options;
  options.names = {{w, "a\\b"}, {sample::vector({1}), "no node"}};
  EXPECT_EQ(graph_to_dot({(x * w).sum()}, options),
            R"(digraph backward {
  node [fontname="sans-serif", fontsize=10];
  n0 [shape=ellipse, label="SumBackward0\nfloat64[]"];
  n1 [shape=ellipse, label="MulBackward0\nfloat64[2]\nkeeps self float64[2], 16 bytes)"
            R"(\nkeeps other float64[2], 16 bytes"];
  n2 [shape=box, label="AccumulateGrad\nfloat64[2]"];
  n3 [shape=box, label="a\\b\nAccumulateGrad\nfloat64[2]"];
  n0 -> n1;
  n1 -> n2;
  n1 -> n3;
}
)");
  const SavedTensorHooksGuard guard(
      {[](const Tensor& tensor) -> std::any { return tensor; },
       [](const std::any& what) { return std::any_cast<Tensor>(what); }});
  EXPECT_THAT(graph_to_dot({x.exp()}), HasSubstr("\\nkeeps result by hooks\"];"));
}

TEST(GraphToDot, OfATensorWithoutAHistoryIsEmpty) {
  GraphToDotOptions options;
  options.fold_blocks = true;
  EXPECT_EQ(graph_to_dot({sample::vector({1, 2})}, options),
            "digraph backward {\n  node [fontname=\"sans-serif\", fontsize=10];\n}\n");
}

TEST(GraphToDot, LeavesOutArgumentsWithoutAGradient) {
  const Tensor x = leaf({1, 2}), constant = sample::vector({3, 4});
  const std::string dot = graph_to_dot({constant * x});
  EXPECT_THAT(dot, HasSubstr("n0 -> n1;"));
  EXPECT_EQ(dot.find("->"), dot.rfind("->")) << dot;
}

TEST(GraphToDot, NumbersTheResultsThatEdgesEnter) {
  const Tensor x = leaf({1, 2, 3, 4});
  const std::vector<Tensor> parts = x.split(2);
  EXPECT_THAT(graph_to_dot({(parts[1] * 2).sum()}), HasSubstr("[label=\"1\"]"));
}

/// Multiplies by each of `weights` and takes the tangent.
Tensor layers(Tensor x, TensorList weights) {
  for (const Tensor& weight : weights) x = (x * weight).tanh();
  return x;
}

std::vector<Tensor> leaves(int count) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) all.push_back(leaf({3, 4}));
  return all;
}

TEST(GraphToDot, FoldsEqualBlocksBetweenTheFirstAndTheLast) {
  const Tensor x = leaf({1, 2});
  const std::vector<Tensor> weights = leaves(6);
  GraphToDotOptions options;
  options.saved_tensors = false;
  for (size_t i = 0; i < weights.size(); ++i) {
    options.names.emplace_back(weights[i], "w" + std::to_string(i));
  }
  const Tensor loss = layers(x.exp(), weights).sum();
  EXPECT_THAT(graph_to_dot({loss}, options), Not(HasSubstr("more blocks")));
  options.fold_blocks = true;
  // n0 is the sum; tanh and mul of layer 5 are n1 and n2, those of layer 0 n11 and n12.
  const std::string dot = graph_to_dot({loss}, options);
  EXPECT_THAT(dot, HasSubstr("f0 [shape=box3d, label=\"4 more blocks of 2 nodes\"]"));
  EXPECT_THAT(dot, HasSubstr("  n0 -> n1;\n  n1 -> n2;\n  n2 -> f0;\n"));
  EXPECT_THAT(dot, HasSubstr("  f0 -> n11;\n  n11 -> n12;\n"));
  EXPECT_THAT(dot, HasSubstr("w0\\n"));
  EXPECT_THAT(dot, HasSubstr("w5\\n"));
  for (const char* folded : {"n3 ", "n10 ", "w1", "w4", "f0 -> f0"}) {
    EXPECT_THAT(dot, Not(HasSubstr(folded)));
  }
  options.saved_tensors = true;
  // Of each folded block the weight, the product's argument and the tangent, which the next keeps.
  EXPECT_THAT(graph_to_dot({loss}, options),
              HasSubstr("4 more blocks of 2 nodes\\nkeep 144 bytes"));
}

TEST(GraphToDot, DrawsALeafThatFoldedBlocksShareWithOthers) {
  const Tensor x = leaf({1, 2}), tied = leaf({3, 4});
  GraphToDotOptions options;
  options.names = {{tied, "tied"}};
  options.fold_blocks = true;
  const std::string dot =
      graph_to_dot({layers(x.exp(), std::vector<Tensor>(5, tied)).sum()}, options);
  EXPECT_THAT(dot, HasSubstr("3 more blocks of 2 nodes"));
  EXPECT_THAT(dot, HasSubstr("label=\"tied\\nAccumulateGrad"));
  // Each edge of a fold is drawn once.
  EXPECT_THAT(dot, testing::ContainsRegex("f0 -> n1[0-9];"));
  const size_t last = dot.rfind("f0 -> ");
  EXPECT_EQ(dot.find(dot.substr(last, dot.find('\n', last) - last)), last);
}

TEST(GraphToDot, BlocksOfOtherShapesOrFewerThanFourAreDrawn) {
  GraphToDotOptions options;
  options.fold_blocks = true;
  const Tensor x = leaf({1, 2});
  EXPECT_THAT(graph_to_dot({layers(x.exp(), leaves(3)).sum()}, options),
              Not(HasSubstr("more blocks")));
  // From {2} to {1, 2} after three layers: two groups of three.
  const Tensor middle = layers(x.exp(), leaves(3)).reshape({1, 2});
  EXPECT_THAT(graph_to_dot({layers(middle, leaves(3)).sum()}, options),
              Not(HasSubstr("more blocks")));
  const std::string both =
      graph_to_dot({layers(layers(x.exp(), leaves(4)).reshape({1, 2}), leaves(5)).sum()}, options);
  EXPECT_THAT(both, HasSubstr("f0 [shape=box3d, label=\"3 more blocks of 2 nodes"));
  EXPECT_THAT(both, HasSubstr("f1 [shape=box3d, label=\"2 more blocks of 2 nodes"));
}

TEST(GraphToDot, NodesThatReadFromOtherPlacesAreNoBlocks) {
  GraphToDotOptions options;
  options.fold_blocks = true;
  const Tensor x = leaf({1, 2});
  const Tensor shared = x.sin();
  Tensor y = x.exp();
  // Each product's first factor is the one before it, and the second is farther away each time.
  for (int i = 0; i < 6; ++i) y = y * shared;
  EXPECT_THAT(graph_to_dot({y}, options), Not(HasSubstr("more blocks")));
}

TEST(GraphToDot, NodesThatFollowEachOtherInAnyOrderAreNoBlocks) {
  GraphToDotOptions options;
  options.fold_blocks = true;
  const Tensor x = leaf({1, 2});
  // Kinds are numbered as they are met; here the numbers rise and fall, but nothing repeats.
  const Tensor there = x.exp().sin().tanh().cos().sqrt();
  const Tensor back = there.cos().tanh().sin().exp();
  EXPECT_THAT(graph_to_dot({back}, options), Not(HasSubstr("more blocks")));
}

TEST(GraphNodes, AreOneForAllPartsOfUnbind) {
  const Tensor x = ones({100}).set_requires_grad(true);
  Tensor total = zeros({});
  for (const Tensor& part : unbind(x)) total = total + part * part;
  size_t nodes = 0;
  for (const std::string& name : names(graph_nodes({total}))) nodes += name == "UnbindBackward0";
  EXPECT_EQ(nodes, 1u);
}

TEST(Unbind, ManyUnboundPartsCanBeDifferentiatedTwice) {
  const Tensor x = arange(Scalar(100.0), {DType::kF32, kCPU}).set_requires_grad(true);
  const std::vector<Tensor> parts = unbind(x);
  Tensor total = zeros({});
  for (const size_t i : {0u, 1u, 70u, 99u}) total = total + parts[i] * parts[i] * parts[i];
  const Tensor first = grad({total}, {x}, {}, {.create_graph = true})[0];
  const Tensor second = grad({first.sum()}, {x})[0];
  for (const int64_t i : {0, 1, 70, 99}) {
    EXPECT_EQ(first.select(0, i).item<float>(), 3.0f * static_cast<float>(i * i));
    EXPECT_EQ(second.select(0, i).item<float>(), 6.0f * static_cast<float>(i));
  }
  EXPECT_EQ(second.select(0, 50).item<float>(), 0.0f);
}

TEST(Grad, EveryRequestForOneGradientIsAnswered) {
  const Tensor x = full({2}, Scalar(3.0)).set_requires_grad(true);
  const Tensor y = full({2}, Scalar(5.0)).set_requires_grad(true);
  const std::vector<Tensor> found = grad({(x * y).sum()}, {x, y, x});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].select(0, 0).item<float>(), 5.0f);
  EXPECT_EQ(found[1].select(0, 0).item<float>(), 3.0f);
  EXPECT_EQ(found[2].select(0, 0).item<float>(), 5.0f);
}

}  // namespace
}  // namespace lockstep

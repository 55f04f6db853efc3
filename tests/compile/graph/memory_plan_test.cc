#include "compile/graph/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "compile/compile.h"
#include "compile/interpreter.h"
#include "compile/passes.h"
#include "core/dispatch/dispatcher.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/device/every_device.h"

namespace lockstep::compiler {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::string planned(const std::string& text) { return to_string(plan_memory(parse_graph(text))); }

TEST(MemoryPlan, ResultsHaveBuffersInTurn) {
  EXPECT_EQ(planned(R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64, 64] = mm(%1, %0)
  %3: float32[64, 64] = mm(%2, %0)
  %4: float32[64, 64] = mm(%3, %0)
  %5: float32[64, 64] = mm(%4, %0)
  return %5
})"),
            R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] in 0 = mm(%0, %0)
  %2: float32[64, 64] in 1 = mm(%1, %0)
  %3: float32[64, 64] in 0 = mm(%2, %0)
  %4: float32[64, 64] in 1 = mm(%3, %0)
  %5: float32[64, 64] = mm(%4, %0)
  return %5
}
)");
}

TEST(MemoryPlan, ItsTextReadsBack) {
  const std::string text = planned(R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64, 64] = mm(%1, %0)
  %3: float32[64, 64] = mm(%2, %0)
  %4: float32[64, 64] = mm(%3, %0)
  return %4
})");
  EXPECT_THAT(text, HasSubstr("%3: float32[64, 64] in 0 = mm"));
  EXPECT_EQ(to_string(parse_graph(text)), text);
}

TEST(MemoryPlan, AValueLivesAsLongAsItsViewsAndTheGroupsThatReadIt) {
  EXPECT_EQ(planned(R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[4096] = view(%1, [4096])
  %3: float32[64, 64] = mm(%0, %0)
  fused {
    %4: float32[4096] = neg(%2)
    %5: float32[4096] = exp(%4)
  }
  %6: float32[4096] = sin(%5)
  %7: float32[64, 64] = mm(%3, %0)
  %8: float32[4096] = cos(%6)
  return %7, %8
})"),
            R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] in 0 = mm(%0, %0)
  %2: float32[4096] = view(%1, [4096])
  %3: float32[64, 64] = mm(%0, %0)
  fused {
    %4: float32[4096] = neg(%2)
    %5: float32[4096] = exp(%4)
  }
  %6: float32[4096] in 0 = sin(%5)
  %7: float32[64, 64] = mm(%3, %0)
  %8: float32[4096] = cos(%6)
  return %7, %8
}
)");
}

TEST(MemoryPlan, LeavesOutWhatReachesTheCallerAndWhatOtherOperatorsRead) {
  // %1 is an output by its view, %2 is written into an input, %3 is read by an operator that may
  // return what it is given.
  const std::string text = R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64, 64] = mm(%1, %0)
  %3: float32[64, 64] = mm(%2, %0)
  %4: float32[64, 64] strides [1, 64] = t(%1)
  %5: int64[8, 2] = nonzero(%3)
  %6: float32[64, 64] = mm(%0, %0)
  %7: float32[64, 64] = mm(%6, %0)
  write %2 into %0
  return %4, %7
}
)";
  EXPECT_EQ(planned(text), text);
}

TEST(MemoryPlan, AChangedArgumentAndItsResultAreOneMemory) {
  EXPECT_EQ(planned(R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64, 64] = mm(%0, %0)
  None, %3: float32[64, 64] = add_.Tensor(%1, %2, 1)
  %4: float32[64, 64] = mm(%0, %0)
  %5: float32[64, 64] = mm(%3, %4)
  return %5
})"),
            R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64, 64] in 0 = mm(%0, %0)
  None, %3: float32[64, 64] = add_.Tensor(%1, %2, 1)
  %4: float32[64, 64] in 0 = mm(%0, %0)
  %5: float32[64, 64] = mm(%3, %4)
  return %5
}
)");
}

TEST(MemoryPlan, ABufferThatWouldHoldMoreAtThePeakIsNotShared) {
  // The memory of %1 would be idle while %3 is there, which is the peak; a small value does not
  // keep that of a large one.
  const std::string text = R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64] = sum.dim_IntList(%1, [0], False, None)
  %3: float32[64, 64] = mm(%0, %0)
  %4: float32[64, 64] = mm(%0, %0)
  %5: float32[64] = exp(%2)
  %6: float32[64] = sin(%5)
  return %3, %4, %6
}
)";
  EXPECT_EQ(planned(text), text);
}

TEST(MemoryPlan, BuffersThatAreNotSoundAreNamed) {
  const auto expect = [](const std::string& third, const std::string& message) {
    expect_error<Error>(
        [&] {
          parse_graph(
              "graph(%0: float32[64, 64]) {\n"
              "  %1: float32[64, 64] in 0 = mm(%0, %0)\n"
              "  %2: float32[64, 64] = mm(%1, %0)\n"
              "  %3: float32[64, 64] in " +
              third +
              " = mm(%1, %2)\n"
              "  %4: float32[64, 64] = mm(%3, %1)\n"
              "  return %2, %4\n}\n");
        },
        message);
  };
  expect("0", "%1 and %3 live at the same time in one buffer");
  expect("-5", "%3 cannot be in buffer -5");
  expect_error<Error>(
      [] {
        parse_graph("graph(%0: float32[2]) {\n  %1: float32[2] in 0 = neg(%0)\n  return %1\n}");
      },
      "%1 cannot be in buffer 0: it lives on behind the run");
  expect_error<Error>([] { parse_graph("graph(%0: float32[2] in 0) {\n  return %0\n}"); },
                      "1 values are in buffers and have no memory of their own");
}

/// The most bytes on loan during a run of the graph.
int64_t peak_of_run(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Interpreter interpreter(graph, {});
  Allocator& memory = allocator(kCPU);
  const int64_t before = memory.stats().allocated;
  memory.reset_peak();
  (void)interpreter.run(inputs);
  return memory.stats().peak_allocated - before;
}

RC_GTEST_PROP(MemoryPlan, NeverNeedsMoreMemory, ()) {
  Graph graph;
  const auto kinds = *rc::gen::inRange(1, 4);
  const auto width = *rc::gen::element<int64_t>(1, 64);
  const auto size = [&] { return int64_t{8} << *rc::gen::inRange(0, 2 * kinds); };
  const auto type = [&](int64_t n) { return ValueType{DType::kF32, kCPU, {n, width}, {width, 1}}; };
  const ValueId table = graph.add_value(type(1024));
  graph.inputs = {table};
  std::vector<ValueId> made = {table};
  const int nodes = *rc::gen::inRange(2, 24);
  for (int i = 0; i < nodes; ++i) {
    // Rows of an earlier value: results of any size.
    const ValueId from = made[static_cast<size_t>(*rc::gen::inRange<size_t>(0, made.size()))];
    const int64_t rows = std::min(size(), type_of(graph, from).sizes[0]);
    Node view{.op = &dispatcher().find("slice.Tensor"),
              .arguments = {tensor_argument(from), constant_argument(Value(int64_t{0})),
                            constant_argument(Value(int64_t{0})), constant_argument(Value(rows)),
                            constant_argument(Value(int64_t{1}))},
              .results = {graph.add_value(type(rows))}};
    Node exp{.op = &dispatcher().find("exp"),
             .arguments = {tensor_argument(view.results[0])},
             .results = {graph.add_value(type(rows))}};
    made.push_back(exp.results[0]);
    graph.nodes.push_back(std::move(view));
    graph.nodes.push_back(std::move(exp));
  }
  for (size_t i = 1; i < made.size(); ++i) {
    if (*rc::gen::inRange(0, 4) == 0 || i + 1 == made.size()) graph.outputs.push_back(made[i]);
  }
  const Graph with = plan_memory(graph);
  check(with);
  RC_CLASSIFY(!with.buffers.empty(), "buffers");
  const Tensor x = zeros({1024, width});
  RC_ASSERT(peak_of_run(with, {x}) <= peak_of_run(graph, {x}));
}

class MemoryPlanOnDevice : public EveryDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, MemoryPlanOnDevice, kEveryDevice, name_of_device);

/// A function whose results in between are operators' and groups', with a view, a change in place
/// and two results of one operator among them.
std::vector<Tensor> function(TensorList in) {
  const Tensor a = in[0].mm(in[0]);
  const Tensor b = a.t().mm(in[0]).add_(a);
  const auto [values, indices] = b.sort(1);
  const Tensor c = values.mul(0.5).add(a).tanh().mm(in[0]);
  return {c.softmax(1).mm(values), indices.sum()};
}

TEST_P(MemoryPlanOnDevice, ARunHasTheBitsOfOneWithout) {
  Graph graph;
  const Tensor x = randn({96, 96}, {DType::kF32, device()});
  CompileOptions options;
  options.passes.push_back({"keep", [&](Graph of) { return graph = std::move(of); }});
  const CompiledFunction compiled = compile(function, options);
  const std::vector<Tensor> expected = compiled(TensorList({x}));
  ASSERT_FALSE(planned_buffers(graph).empty()) << to_string(graph);
  for (int run = 0; run < 3; ++run) {
    const std::vector<Tensor> results = Interpreter(graph, {}).run({x});
    ASSERT_EQ(results.size(), expected.size());
    EXPECT_TRUE(equal(results[0], expected[0]));
    EXPECT_TRUE(equal(results[1], expected[1]));
  }
}

TEST(MemoryPlan, ARunAllocatesItsBuffersAndOutputs) {
  const Graph graph = parse_graph(R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] in 0 = mm(%0, %0)
  %2: float32[64, 64] in 1 = mm(%1, %0)
  %3: float32[64, 64] in 0 = mm(%2, %0)
  %4: float32[64, 64] in 1 = mm(%3, %0)
  %5: float32[64, 64] = mm(%4, %0)
  return %5
})");
  const Interpreter interpreter(graph, {});
  const Tensor x = randn({64, 64});
  Allocator& memory = allocator(kCPU);
  const int64_t before = memory.stats().allocations;
  const std::vector<Tensor> results = interpreter.run({x});
  EXPECT_EQ(memory.stats().allocations - before, 3);
  EXPECT_EQ(results[0].storage()->parent(), nullptr);
}

TEST(MemoryPlan, IsToldInTheLog) {
  Graph graph = parse_graph(R"(graph(%0: float32[64, 64]) {
  %1: float32[64, 64] = mm(%0, %0)
  %2: float32[64, 64] = mm(%1, %0)
  %3: float32[64, 64] = mm(%2, %0)
  %4: float32[64, 64] = mm(%3, %0)
  return %4
})");
  std::vector<std::string> log;
  (void)run_passes(std::move(graph), default_passes(), &log);
  EXPECT_THAT(log, Contains("plan_memory: 2 values in 1 buffer"));
}

}  // namespace
}  // namespace lockstep::compiler

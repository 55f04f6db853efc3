#include "core/dispatch/call_op.h"

#include "core/ops/factory/factory.h"
#include "tests/conformance/elements.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

TEST(CallOp, FillsInDefaultsAndTakesNamedArguments) {
  const Tensor x = full({2}, 3.0);
  const Tensor y = full({2}, 1.0);
  EXPECT_EQ(elements_as<double>(call_op("add.Tensor", {x, y})), (std::vector<double>{4, 4}));
  EXPECT_EQ(elements_as<double>(call_op("add.Tensor", {x, y}, {{"alpha", 2}})),
            (std::vector<double>{5, 5}));
  EXPECT_EQ(elements_as<double>(call_op("add.Tensor", {x}, {{"other", y}, {"alpha", 0.5}})),
            (std::vector<double>{3.5, 3.5}));
}

TEST(CallOp, ReturnsSeveralResultsAndListsAsTensors) {
  const Tensor x = full({4, 2}, 1);
  EXPECT_EQ(call_op_tensors("max.dim", {x, 0}).size(), 2u);
  EXPECT_EQ(call_op_tensors("split.Tensor", {x, 2}).size(), 2u);
}

TEST(CallOp, InPlaceFormsReturnTheirArgument) {
  const Tensor x = full({2}, 3.0);
  EXPECT_TRUE(call_op("add_.Tensor", {x, x}).is_same(x));
}

TEST(CallOp, AnUnknownOperatorNamesTheNearest) {
  expect_error<DispatchError>([] { call_op("add.Tenso", {}); }, "no operator \"add.Tenso\"",
                              "Did you mean \"add.Tensor\"?");
}

TEST(CallOp, WrongArgumentsAreNamedWithTheSchema) {
  const Tensor x = full({2}, 3.0);
  expect_error<DispatchError>([&] { call_op("add.Tensor", {x}); },
                              "[add.Tensor] argument other is missing: expected Tensor",
                              "Scalar alpha=1");
  expect_error<DispatchError>(
      [&] {
        call_op("add.Tensor", {x, x, 1, 2});
      },
      "too many arguments: expected at most 3, got 4");
  expect_error<DispatchError>(
      [&] {
        call_op("add.Tensor", {x, 1.5});
      },
      "argument other has the wrong type: expected Tensor, got 1.5");
  expect_error<DispatchError>(
      [&] {
        call_op("add.Tensor", {x, Tensor()});
      },
      "argument other has the wrong type: expected Tensor, got nothing");
  expect_error<DispatchError>(
      [&] {
        call_op("add.Tensor", {x, x}, {{"alhpa", 2}});
      },
      "there is no argument \"alhpa\"", "Did you mean \"alpha\"?");
  expect_error<DispatchError>(
      [&] {
        call_op("add.Tensor", {x, x}, {{"other", x}});
      },
      "argument other is given twice");
  expect_error<DispatchError>(
      [&] {
        call_op("max.dim", {x, 0});
      },
      "has 2 results", "call_op_tensors");
}

TEST(CallOp, ANumberStandsForAListOfFixedLength) {
  const Operator& op = dispatcher().find("avg_pool2d");
  const std::vector<Value> bound = bind_arguments(op, std::vector<Value>{full({1, 1, 4, 4}, 1), 2});
  EXPECT_TRUE(same(bound[1].to_int_list(), {2, 2}));
  expect_error<DispatchError>(
      [&] {
        bind_arguments(op, std::vector<Value>{full({1, 1, 4, 4}, 1), 2.5});
      },
      "argument kernel_size has the wrong type: expected int[2], got 2.5");
}

}  // namespace
}  // namespace lockstep

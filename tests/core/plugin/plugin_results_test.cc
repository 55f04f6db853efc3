// Operators of plug-ins with results that no shape rule describes.

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/opcheck.h"
#include "autograd/vmap.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/factory.h"
#include "core/plugin/plugin.h"
#include "tests/conformance/elements.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Doubles = std::vector<double>;

class PluginResults : public ::testing::Test {
 protected:
  static Tensor tensor(const Doubles& values) {
    const Tensor made = empty({static_cast<int64_t>(values.size())});
    set_elements(made, values);
    return made;
  }
  static Value number(const char* op, std::initializer_list<Value> arguments) {
    const std::vector<Value> given(arguments);
    return call_values(dispatcher().find(op), given)[0];
  }

  Plugin plugin_ = load_library(std::filesystem::path(LOCKSTEP_TEST_PLUGINS) / "libby_values.so");
};

TEST_F(PluginResults, KernelsMakeTensorsOfSizesThatElementsTell) {
  const Operator& op = dispatcher().find("values::positives");
  EXPECT_EQ(op.kind(), OpKind::kDynamic);
  for (const Doubles& values : {Doubles{1, -2, 3}, Doubles{-1}, Doubles{}}) {
    const Value x(tensor(values));
    const std::vector<Value> results = call_values(op, {&x, 1});
    const int64_t count = std::ranges::count_if(values, [](double v) { return v > 0; });
    EXPECT_THAT(results[0].tensor().sizes(), ElementsAre(count));
    EXPECT_EQ(results[1].to_int(), count);
  }
}

TEST_F(PluginResults, TheHostCopiesStridesThatTheirKernelsDoNotTake) {
  const Tensor x = tensor({1, -2, 3, 4, -5, 6}).view({3, 2}).t();
  const std::vector<Value> results =
      call_values(dispatcher().find("values::positives"), std::vector<Value>{x});
  EXPECT_THAT(elements_as<double>(results[0].tensor()), ElementsAre(1, 3, 4, 6));
}

TEST_F(PluginResults, TheyAreRecordedWhereThereIsADerivative) {
  const Tensor x = tensor({1, -2, 3}).set_requires_grad();
  const std::vector<Value> results =
      call_values(dispatcher().find("values::positives"), std::vector<Value>{x});
  const std::vector<Tensor> gradients = grad({results[0].tensor()}, {x}, {tensor({10, 20})});
  EXPECT_THAT(elements_as<double>(gradients[0]), ElementsAre(10, 0, 20));
}

TEST_F(PluginResults, NumbersAreReturnedAsTheyAre) {
  EXPECT_EQ(dispatcher().find("values::is_sorted").kind(), OpKind::kHostValue);
  EXPECT_TRUE(number("values::is_sorted", {tensor({1, 2})}).to_bool());
  EXPECT_FALSE(number("values::is_sorted", {tensor({2, 1})}).to_bool());
  EXPECT_EQ(number("values::largest", {tensor({1, 2.5})}).to_double(), 2.5);
  EXPECT_EQ(number("values::largest", {tensor({1, 2.5}), 3}).to_double(), 3);
  // Arguments that require grad are accepted: there is nothing to record.
  EXPECT_TRUE(number("values::is_sorted", {tensor({1, 2}).set_requires_grad()}).to_bool());
}

TEST_F(PluginResults, BodiesReturnNumbersAndViews) {
  EXPECT_TRUE(number("values::same", {tensor({1, 2}), tensor({1, 2})}).to_bool());
  EXPECT_FALSE(number("values::same", {tensor({1, 2}), tensor({1, 3})}).to_bool());

  const Tensor x = tensor({1, 2, 3, 4}).view({2, 2});
  const Tensor column = call_op("values::column", {x, 1});
  EXPECT_TRUE(column.storage() == x.storage());
  column.fill_(7);
  EXPECT_THAT(elements_as<double>(x), ElementsAre(1, 7, 3, 7));
}

TEST_F(PluginResults, OpcheckFindsNothing) {
  const Tensor x = tensor({1, -2, 3});
  const Tensor row = x.view({1, 3});
  const auto problems = [](const char* op, std::vector<Value> arguments) {
    const OpSample samples[] = {{std::move(arguments), {}}};
    return opcheck(op, samples);
  };
  EXPECT_THAT(problems("values::positives", {x}), IsEmpty());
  EXPECT_THAT(problems("values::is_sorted", {x}), IsEmpty());
  EXPECT_THAT(problems("values::column", {row, 1}), IsEmpty());
}

TEST_F(PluginResults, OtherDevicesRunTheCpusKernel) {
  const Device host{DeviceType::kHost, 0};
  const Tensor x = tensor({1, -2, 3}).to(host);
  const std::vector<Value> results =
      call_values(dispatcher().find("values::positives"), std::vector<Value>{x});
  EXPECT_EQ(results[0].tensor().device(), host);
  EXPECT_THAT(elements_as<double>(results[0].tensor().to(kCPU)), ElementsAre(1, 3));
  EXPECT_FALSE(number("values::is_sorted", {x}).to_bool());
}

TEST_F(PluginResults, AreRefusedWhereThereAreNoElements) {
  const Tensor x = empty({3}, kMeta);
  expect_error<DispatchError>([&] { (void)number("values::positives", {x}); },
                              "[values::positives] cannot run on meta",
                              "the size of its result depends on elements");
  expect_error<DispatchError>([&] { (void)number("values::is_sorted", {x}); },
                              "[values::is_sorted] cannot run on meta",
                              "its result depends on elements");
  const auto first = [](const Tensor& sample) {
    return call_op("values::makes_nothing", {sample});
  };
  expect_error<AutogradError>(
      [&] {
        (void)vmap(first)(tensor({1, 2}));
      },
      "[values::makes_nothing] returns as many elements as the values");
}

TEST_F(PluginResults, MisuseIsAnErrorOfTheCall) {
  const Tensor x = tensor({1, 2});
  expect_error<DispatchError>([&] { call_op("values::makes_twice", {x}); },
                              "new_result: result 0 was made before");
  expect_error<DispatchError>([&] { call_op("values::makes_nothing", {x}); },
                              "did not make result 0", plugin_.path());
  expect_error<DispatchError>([&] { call_op("values::has_a_rule", {x}); },
                              "new_result: the operator has a shape rule", "Use set_dynamic");
  expect_error<DispatchError>([&] { call_op("values::has_none", {x}); },
                              "result_view: the operator has no shape rule", "expected new_result");
}

}  // namespace
}  // namespace lockstep

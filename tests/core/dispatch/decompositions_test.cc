#include "core/dispatch/decompositions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

LS_OP(test_twice, Tensor(const Tensor&), "test_twice(Tensor self) -> Tensor")
    .composite([](const Tensor& self) { return self.add(self); });
Tensor nothing(const Tensor&) { return {}; }

TEST(Decompositions, ListCompositesOnly) {
  const std::vector<const Operator*> found = decompositions();
  const auto has = [&](std::string_view name) {
    return std::find(found.begin(), found.end(), &dispatcher().find(name)) != found.end();
  };
  EXPECT_TRUE(has("test_twice"));
  EXPECT_TRUE(has("linear"));
  EXPECT_FALSE(has("mm"));
}

TEST(Decompositions, TheBodyRunsWhereAKernelWasRegisteredOverIt) {
  const Registration over =
      dispatcher().register_kernel("test_twice", kernel_record(Key::kCPU, &nothing, Strides::kAny));
  const Tensor x = ones({2});
  EXPECT_FALSE(op_test_twice(x).defined());
  std::array<Value, 1> arguments{Value(x)};
  Stack stack(arguments);
  decompose(dispatcher().find("test_twice"), stack);
  EXPECT_EQ(stack.results()[0].tensor().data<float>()[0], 2);
}

TEST(Decompositions, AnOperatorWithoutOneSaysSo) {
  const Tensor x = ones({2, 2});
  std::array<Value, 2> arguments{Value(x), Value(x)};
  Stack stack(arguments);
  expect_error<DispatchError>([&] { decompose(dispatcher().find("mm"), stack); },
                              "[mm] has no decomposition");
}

}  // namespace
}  // namespace lockstep

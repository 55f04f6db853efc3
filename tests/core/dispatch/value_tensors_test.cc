#include "core/dispatch/value_tensors.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

Tensor tensor(int64_t size) { return empty_tensor({size}, DType::kF32, kMeta); }

/// Whether each tensor is defined.
std::vector<bool> defined_in(const Value& value) {
  std::vector<bool> defined;
  each_tensor(value, [&](const Tensor& each) { defined.push_back(each.defined()); });
  return defined;
}

TEST(ValueTensors, AreVisitedAloneAndInLists) {
  const std::vector<Tensor> gaps{tensor(1), Tensor(), tensor(3)};
  EXPECT_EQ(defined_in(Value(tensor(4))), std::vector<bool>({true}));
  EXPECT_EQ(defined_in(Value(TensorList(gaps))), std::vector<bool>({true, false, true}));
  EXPECT_EQ(defined_in(Value(int64_t{5})), std::vector<bool>());
  int64_t elements = 0;
  each_defined_tensor(Value(TensorList(gaps)),
                      [&](const Tensor& each) { elements += each.numel(); });
  EXPECT_EQ(elements, 4);
}

TEST(ValueTensors, AreReplacedWhereTheyAreDefined) {
  const std::vector<Tensor> gaps{tensor(1), Tensor(), tensor(3)};
  const std::vector<Value> values = {Value(tensor(4)), Value(TensorList(gaps)), Value(int64_t{5})};
  const std::vector<Value> mapped =
      map_tensors(values, [](const Tensor& each) { return tensor(each.numel() + 10); });
  ASSERT_EQ(mapped.size(), 3U);
  EXPECT_EQ(mapped[0].tensor().numel(), 14);
  ASSERT_EQ(mapped[1].tensors().size(), 3U);
  EXPECT_EQ(mapped[1].tensors()[0].numel(), 11);
  EXPECT_FALSE(mapped[1].tensors()[1].defined());
  EXPECT_EQ(mapped[1].tensors()[2].numel(), 13);
  EXPECT_EQ(mapped[2].to_int(), 5);
  EXPECT_EQ(values[0].tensor().numel(), 4) << "the values themselves stay as they are";
}

}  // namespace
}  // namespace lockstep

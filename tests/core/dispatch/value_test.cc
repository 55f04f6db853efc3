#include "core/dispatch/value.h"

#include <gtest/gtest.h>

#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

Tensor small() { return empty_tensor({2, 3}, DType::kF32); }
uint32_t uses(const Tensor& tensor) { return tensor.impl()->use_count(); }

TEST(Value, BorrowsATensorWithoutCountingAReference) {
  const Tensor tensor = small();
  const Value borrowed(tensor);
  EXPECT_EQ(uses(tensor), 1u);
  EXPECT_EQ(&borrowed.tensor(), &tensor);
  EXPECT_EQ(borrowed.tag(), Value::Tag::kTensorRef);
}

TEST(Value, OwnsATensorThatIsMovedIn) {
  Tensor tensor = small();
  TensorImpl* impl = tensor.impl();
  Value owned(std::move(tensor));
  EXPECT_EQ(owned.tensor().impl(), impl);
  {
    const Value copy(owned);
    EXPECT_EQ(impl->use_count(), 2u);
    EXPECT_EQ(copy.tensor().impl(), impl);
  }
  EXPECT_EQ(impl->use_count(), 1u);
  const Tensor out = owned.take_tensor();
  EXPECT_EQ(impl->use_count(), 1u) << "taking an owned tensor moves it";
}

TEST(Value, OwnKeepsWhatTheSourceLetsGo) {
  Value tensor, list, numbers, reals, text;
  {
    const Tensor a = small();
    const std::vector<Tensor> tensors = {small(), small()};
    const std::vector<int64_t> ints = {4, 5};
    const std::vector<double> doubles = {0.5, 2};
    const std::string string = "a string too long to live inside its object";
    tensor = Value(a).own();
    list = Value(TensorList(tensors)).own();
    numbers = Value(IntList(ints)).own();
    reals = Value(DoubleList(std::span(doubles))).own();
    text = Value(std::string_view(string)).own();
    EXPECT_EQ(uses(a), 2u);
  }
  EXPECT_EQ(uses(tensor.tensor()), 1u);
  ASSERT_EQ(list.tensors().size(), 2u);
  EXPECT_EQ(uses(list.tensors()[1]), 1u);
  EXPECT_EQ(to_dims(numbers.to_int_list()), (Dims{4, 5}));
  EXPECT_EQ(reals.to_string(), "[0.5, 2]");
  EXPECT_EQ(reals.to_double_list().back(), 2);
  EXPECT_EQ(text.to_string_view(), "a string too long to live inside its object");
  const Value again = text;  // a copy owns its text
  text = Value();
  EXPECT_EQ(again.to_string_view(), "a string too long to live inside its object");
}

TEST(Value, MovingLeavesNone) {
  Value a(small());
  const Value b(std::move(a));
  EXPECT_TRUE(a.is_none());
  EXPECT_EQ(uses(b.tensor()), 1u);
}

TEST(Value, AbsentOptionalsAreNone) {
  EXPECT_TRUE(Value(OptionalTensor()).is_none());
  EXPECT_TRUE(Value(OptionalTensor(Tensor())).is_none()) << "an undefined tensor is no tensor";
  EXPECT_TRUE(Value(std::optional<int64_t>()).is_none());
  EXPECT_TRUE(Value(static_cast<Generator*>(nullptr)).is_none());
  EXPECT_EQ(Value(std::optional<int64_t>(3)).to_int(), 3);
  const Tensor tensor = small();
  EXPECT_EQ(&Value(OptionalTensor(tensor)).tensor(), &tensor);
}

TEST(Value, StringLiteralsAreStrings) { EXPECT_EQ(Value("mean").to_string_view(), "mean"); }

TEST(Value, NumbersConvertWhereNothingIsLost) {
  EXPECT_EQ(Value(int64_t{3}).to_double(), 3.0);
  EXPECT_EQ(Value(true).to_int(), 1);
  EXPECT_EQ(Value(Scalar(7)).to_int(), 7);
  EXPECT_EQ(Value(Scalar(2.5)).to_double(), 2.5);
  EXPECT_EQ(Value(2.5).to_scalar().kind(), DType::kF64);
  EXPECT_EQ(Value(int64_t{2}).to_scalar().kind(), DType::kI64);
  EXPECT_EQ(Value(true).to_scalar().kind(), DType::kBool);
  EXPECT_THROW(Value(2.5).to_int(), DispatchError);
  EXPECT_THROW(Value(Scalar(2.5)).to_int(), DispatchError);
}

TEST(Value, TheWrongTypeIsAnErrorThatNamesBoth) {
  expect_error<DispatchError>([] { Value(2.5).tensor(); }, "expected Tensor, got float");
  expect_error<DispatchError>([] { Value().to_int(); }, "expected int, got None");
  expect_error<DispatchError>([] { Value(small()).to_int_list(); }, "expected int[], got Tensor");
  expect_error<DispatchError>([] { Value(DType::kF32).to_device(); }, "expected Device, got dtype");
  expect_error<DispatchError>([] { Value(kCPU).to_dtype(); }, "expected dtype, got Device");
  expect_error<DispatchError>([] { Value("x").to_bool(); }, "expected bool, got str");
  expect_error<DispatchError>([] { Value(true).to_string_view(); }, "expected str, got bool");
}

TEST(Value, PrintsAsInACall) {
  const Tensor tensor = small();
  const std::vector<Tensor> pair = {tensor, tensor};
  EXPECT_EQ(Value(tensor).to_string(), "float32[2, 3] on cpu");
  EXPECT_EQ(Value(TensorList(pair)).to_string(), "[float32[2, 3] on cpu, float32[2, 3] on cpu]");
  EXPECT_EQ(Value().to_string(), "None");
  EXPECT_EQ(Value(1.5).to_string(), "1.5");
  EXPECT_EQ(Value(true).to_string(), "True");
  EXPECT_EQ(Value(IntList{0, 1}).to_string(), "[0, 1]");
  EXPECT_EQ(Value(std::string_view("mean")).to_string(), "\"mean\"");
  EXPECT_EQ(Value(DType::kBF16).to_string(), "bfloat16");
  EXPECT_EQ(Value(MemoryFormat::kPreserve).to_string(), "preserve_format");
  EXPECT_EQ(Value(BoolList{true, false}).to_string(), "[True, False]");
}

TEST(Value, AScalarPrintsItsKind) {
  EXPECT_EQ(Value(Scalar(2)).to_string(), "2");
  EXPECT_EQ(Value(Scalar(2.0)).to_string(), "2.0");
  EXPECT_EQ(Value(Scalar(-3.0)).to_string(), "-3.0");
  EXPECT_EQ(Value(Scalar(1e30)).to_string(), "1e+30");
  EXPECT_EQ(Value(Scalar(false)).to_string(), "False");
}

TEST(FromValue, GivesWhatSignaturesName) {
  EXPECT_EQ(FromValue<std::optional<int64_t>>::get(Value()), std::nullopt);
  EXPECT_EQ(FromValue<std::optional<int64_t>>::get(Value(int64_t{3})), 3);
  EXPECT_FALSE(FromValue<OptionalTensor>::get(Value()).has_value());
  EXPECT_EQ(FromValue<Generator*>::get(Value()), nullptr);
  const BoolList flags = FromValue<BoolList>::get(Value(BoolList{false, true, true}));
  EXPECT_EQ(flags.size(), 3u);
  EXPECT_FALSE(flags[0]);
  EXPECT_TRUE(flags[2]);
}

}  // namespace
}  // namespace lockstep

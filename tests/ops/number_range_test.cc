// Numbers that a dtype cannot hold are refused, as PyTorch refuses them.

#include "core/tensor/number_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/matmul/linalg.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/random/random.h"
#include "tests/conformance/elements.h"
#include "tests/ops/op_samples.h"

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorOptions of(DType dtype) {
  TensorOptions options;
  options.dtype = dtype;
  return options;
}

TEST(NumberRange, IntegersHoldTheNumbersBetweenTheirEnds) {
  EXPECT_TRUE(can_hold(DType::kU8, 255));
  EXPECT_FALSE(can_hold(DType::kU8, 256));
  EXPECT_TRUE(can_hold(DType::kU8, -255)) << "counts from 256, as in PyTorch";
  EXPECT_FALSE(can_hold(DType::kU8, -256));
  EXPECT_FALSE(can_hold(DType::kU8, -1.0));
  EXPECT_TRUE(can_hold(DType::kI8, -128));
  EXPECT_FALSE(can_hold(DType::kI8, -129));
  EXPECT_TRUE(can_hold(DType::kI32, 2147483647.0));
  EXPECT_FALSE(can_hold(DType::kI32, 2147483648.0));
  EXPECT_TRUE(can_hold(DType::kI64, std::numeric_limits<int64_t>::min()));
  EXPECT_TRUE(can_hold(DType::kI64, -0x1p63));
  EXPECT_FALSE(can_hold(DType::kI64, 0x1p63));
  for (const double number : {double{NAN}, kInfinity, -kInfinity}) {
    EXPECT_FALSE(can_hold(DType::kI64, number)) << number;
    EXPECT_TRUE(can_hold(DType::kBool, number)) << number;
  }
}

TEST(NumberRange, EpsilonIsTheLastStepAboveOneThatAFloatHolds) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const double epsilon = machine_epsilon(dtype);
    EXPECT_EQ(full({}, 1 + epsilon, of(dtype)).item<double>(), 1 + epsilon) << to_string(dtype);
    EXPECT_EQ(full({}, 1 + epsilon / 2, of(dtype)).item<double>(), 1) << to_string(dtype);
    EXPECT_EQ(full({}, largest_finite(dtype), of(dtype)).item<double>(), largest_finite(dtype));
  }
}

TEST(NumberRange, ScalarsRefuseUnsignedNumbersBeyondInt64) {
  EXPECT_EQ(Scalar(uint64_t{1} << 62).to_int(), int64_t{1} << 62);
  EXPECT_THROW(Scalar(uint64_t{1} << 63), DTypeError);
  EXPECT_THROW((void)Scalar(std::numeric_limits<uint64_t>::max()), DTypeError);
}

TEST(NumberRange, FloatsHoldInfinitiesAndFiniteNumbersUpToTheirLargest) {
  EXPECT_TRUE(can_hold(DType::kF16, 65504));
  EXPECT_FALSE(can_hold(DType::kF16, 65520));
  EXPECT_FALSE(can_hold(DType::kF16, -1e9));
  EXPECT_TRUE(can_hold(DType::kF32, std::numeric_limits<float>::max()));
  EXPECT_FALSE(can_hold(DType::kF32, 1e39));
  EXPECT_FALSE(can_hold(DType::kBF16, 3.4e38));
  EXPECT_TRUE(can_hold(DType::kF64, 1e300));
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const double number : {double{NAN}, kInfinity, -kInfinity}) {
      EXPECT_TRUE(can_hold(dtype, number)) << to_string(dtype) << " " << number;
    }
  }
}

TEST(NumberRange, OperatorsRefuseWhatTheResultCannotHold) {
  const Tensor bytes = integers({3}, 0, 9, 1, DType::kU8);
  const Tensor ints = integers({3}, 0, 9, 1, DType::kI32);
  const Tensor halves = floats({3}, 1, DType::kF16);
  EXPECT_THROW(full({2}, 300, of(DType::kU8)), DTypeError);
  EXPECT_THROW(full({2}, NAN, of(DType::kI32)), DTypeError);
  EXPECT_THROW(bytes.fill_(300), DTypeError);
  EXPECT_THROW(ints.fill_(kInfinity), DTypeError);
  EXPECT_THROW(masked_fill(ints, flags({3}), -kInfinity), DTypeError);
  EXPECT_THROW(masked_fill(halves, flags({3}), -1e9), DTypeError);
  EXPECT_THROW(add(bytes, bytes, 300), DTypeError);
  EXPECT_NO_THROW(masked_fill(halves, flags({3}), -kInfinity));
}

TEST(NumberRange, IndicesAreOnlyWrittenToTheirOwnDtype) {
  const Tensor numbers = floats({4}, 1), number = floats({}, 1), ints = integers({4}, 0, 9);
  for (const DType dtype : {DType::kU8, DType::kI32, DType::kF32}) {
    const Tensor one = empty({}, of(dtype)), four = empty({4}, of(dtype));
    EXPECT_THROW(call_op("argmax.out", {numbers, 0, false, one}), DTypeError);
    EXPECT_THROW(call_op("argsort.stable_out", {numbers, true, 0, false, four}), DTypeError);
    EXPECT_THROW(call_op("nonzero.out", {numbers, four}), DTypeError);
    EXPECT_THROW(call_op("count_nonzero.out", {numbers, std::nullopt, one}), DTypeError);
    EXPECT_THROW(call_op("bincount.out", {ints, Tensor(), 0, four}), DTypeError);
    EXPECT_THROW(call_op("searchsorted.Tensor_out",
                         {numbers, number, false, false, std::nullopt, Tensor(), one}),
                 DTypeError);
  }
  EXPECT_NO_THROW(call_op("searchsorted.Scalar_out", {numbers, 2, true, false, std::nullopt,
                                                      Tensor(), empty({}, of(DType::kI32))}));
}

TEST(NumberRange, IntegersHaveTwoEnds) {
  EXPECT_EQ(smallest_integer(DType::kU8), 0);
  EXPECT_EQ(largest_integer(DType::kU8), 255);
  EXPECT_EQ(smallest_integer(DType::kI16), -32768);
  EXPECT_EQ(largest_integer(DType::kI32), 2147483647);
  EXPECT_EQ(smallest_integer(DType::kI64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(largest_integer(DType::kI64), std::numeric_limits<int64_t>::max());
}

TEST(NumberRange, ABoundBeyondTheEndsOfAnIntegerDtypeBoundsNothing) {
  const Tensor bytes = integers({3}, 0, 9, 1, DType::kU8);
  const std::vector<int64_t> same = elements_as<int64_t>(bytes);
  EXPECT_EQ(elements_as<int64_t>(clamp(bytes, 0, 300)), same);
  EXPECT_EQ(elements_as<int64_t>(clamp(bytes, -1, std::nullopt)), same);
  EXPECT_EQ(elements_as<int64_t>(call_op("clamp_max", {bytes, 300})), same);
  EXPECT_EQ(elements_as<int64_t>(call_op("clamp_min", {bytes, -300})), same);
  const Tensor ints = integers({3}, -9, 9, 1, DType::kI32);
  EXPECT_EQ(elements_as<int64_t>(clamp(ints, std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max())),
            elements_as<int64_t>(ints));
}

TEST(NumberRange, ABoundThatNoElementReachesIsRefused) {
  const Tensor bytes = integers({3}, 0, 9, 1, DType::kU8);
  EXPECT_THROW(clamp(bytes, 300, std::nullopt), DTypeError);
  EXPECT_THROW(clamp(bytes, std::nullopt, -1), DTypeError);
  EXPECT_THROW(call_op("clamp_min", {bytes, 256}), DTypeError);
  EXPECT_THROW(call_op("clamp_max", {bytes, -1}), DTypeError);
  EXPECT_THROW(clamp(floats({3}, 1, DType::kF16), std::nullopt, 1e9), DTypeError);
}

TEST(NumberRange, AnExponentThatTheResultCannotHoldIsRefused) {
  const Tensor bytes = integers({3}, 0, 9, 1, DType::kU8);
  EXPECT_THROW(pow(bytes, 300), DTypeError);
  EXPECT_THROW(pow(floats({3}, 1, DType::kF16), 1e9), DTypeError);
  EXPECT_NO_THROW(pow(bytes, 255));
  EXPECT_EQ(elements_as<double>(pow(full({1}, 2, of(DType::kU8)), 1e300))[0], kInfinity);
  EXPECT_EQ(elements_as<double>(pow(full({1}, 2, of(DType::kF32)), 1e300))[0], kInfinity);
}

TEST(NumberRange, FactorsOfActivationsMustFitTheirArithmetic) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    const Tensor numbers = floats({3}, 1, dtype);
    for (const char* op : {"elu", "celu", "leaky_relu"}) {
      EXPECT_THROW(call_op(op, {numbers, 1e300}), DTypeError) << op << " " << to_string(dtype);
      EXPECT_NO_THROW(call_op(op, {numbers, 1e9})) << op << " " << to_string(dtype);
    }
  }
  EXPECT_NO_THROW(call_op("elu", {floats({3}, 1, DType::kF64), 1e300}));
}

TEST(NumberRange, FactorsOfProductsMustFitTheirArithmetic) {
  const Tensor halves = floats({2, 2}, 1, DType::kF16);
  const Tensor bytes = integers({2, 2}, 0, 9, 1, DType::kU8);
  const Tensor half = floats({2}, 1, DType::kF16), byte = integers({2}, 0, 9, 1, DType::kU8);
  EXPECT_THROW(addmm(bytes, bytes, bytes, 300), DTypeError);
  EXPECT_THROW(addmm(bytes, bytes, bytes, 1, 300), DTypeError);
  EXPECT_THROW(addmm(halves, halves, halves, 1, 1e39), DTypeError);
  EXPECT_NO_THROW(addmm(halves, halves, halves, 1e9, kInfinity));
  const Tensor batch = bytes.unsqueeze(0);
  EXPECT_THROW(baddbmm(batch, batch, batch, 1, NAN), DTypeError);
  EXPECT_THROW(addbmm(bytes, batch, batch, 300), DTypeError);
  EXPECT_THROW(addmv(byte, bytes, byte, 1, 1e39), DTypeError);
  EXPECT_THROW(addmv(half, halves, half, 1e9), DTypeError);
  EXPECT_THROW(addr(bytes, byte, byte, 1, true), DTypeError);
  EXPECT_THROW(addr(halves, half, half, 1e9), DTypeError);
  const Tensor first = integers({1}, 0, 1);
  EXPECT_THROW(index_add(bytes, 0, first, bytes.slice(0, 0, 1), 300), DTypeError);
  EXPECT_THROW(index_add(halves, 0, first, halves.slice(0, 0, 1), 1e9), DTypeError);
}

TEST(NumberRange, FactorsOfFormulasMustFitTheirArithmetic) {
  const Tensor halves = floats({3}, 1, DType::kF16);
  for (const Scalar number : {Scalar(1e39), Scalar(-1e300)}) {
    EXPECT_THROW(call_op("softplus", {halves, number}), DTypeError);
    EXPECT_THROW(call_op("softplus", {halves, 1, number}), DTypeError);
    EXPECT_THROW(call_op("lerp.Scalar", {halves, halves, number}), DTypeError);
    EXPECT_THROW(call_op("addcdiv", {halves, halves, halves, number}), DTypeError);
    EXPECT_THROW(call_op("addcmul", {halves, halves, halves, number}), DTypeError);
    EXPECT_THROW(call_op("elu_backward", {halves, number, 1, 1, false, halves}), DTypeError);
    EXPECT_THROW(call_op("threshold_backward", {halves, halves, number}), DTypeError);
  }
  EXPECT_THROW(call_op("hardshrink", {halves, 1e9}), DTypeError);
  EXPECT_THROW(call_op("softshrink", {halves, 1e9}), DTypeError);
  EXPECT_NO_THROW(call_op("softplus", {halves, 1, 1e9}));
  EXPECT_NO_THROW(call_op("addcmul", {halves, halves, halves, 1e9}));
}

TEST(NumberRange, ABoolIsNoFactorOfNumbers) {
  const Tensor ints = integers({3}, 0, 9), mask = flags({3});
  EXPECT_THROW(add(ints, ints, true), DTypeError);
  EXPECT_THROW(sub(ints, ints, true), DTypeError);
  EXPECT_NO_THROW(add(mask, mask, true));
}

TEST(NumberRange, XlogyTakesANumberBeyondTheDtypeAsAnInfinity) {
  const Tensor halves = full({2}, 2, of(DType::kF16));
  EXPECT_EQ(elements_as<double>(call_op("xlogy.Scalar_Other", {halves, 1e9}))[0], kInfinity);
  EXPECT_EQ(elements_as<double>(call_op("xlogy.Scalar_Self", {-1e9, halves}))[0], -kInfinity);
}

TEST(NumberRange, NumbersThatAreOnlyComparedOrTakenAsFloatsNeedNotFit) {
  const Tensor bytes = integers({3}, 1, 4, 1, DType::kU8);
  EXPECT_EQ(elements_as<int64_t>(call_op("searchsorted.Scalar", {bytes, 300}))[0], 3);
  EXPECT_EQ(elements_as<int64_t>(call_op("bucketize.Scalar", {300, bytes}))[0], 3);
  EXPECT_FALSE(elements_as<int64_t>(call_op("eq.Scalar", {bytes, 300}))[0]);
  for (const double element : elements_as<double>(call_op("xlogy.Scalar_Other", {bytes, -1}))) {
    EXPECT_TRUE(std::isnan(element)) << element;
  }
  EXPECT_GT(elements_as<double>(call_op("xlogy.Scalar_Other", {bytes, 300}))[0], 0);
  EXPECT_LE(elements_as<double>(call_op("xlogy.Scalar_Self", {-1, bytes}))[0], 0);
}

TEST(NumberRange, RandomRangesMustBeFiniteAndFitTheDtype) {
  const Tensor numbers = floats({3});
  EXPECT_THROW(uniform_(numbers, 0, kInfinity), Error);
  EXPECT_THROW(uniform_(numbers, -kInfinity, 0), Error);
  EXPECT_THROW(uniform_(numbers, NAN, 1), Error);
  EXPECT_THROW(uniform_(numbers, -3e38, 3e38), Error) << "the difference overflows";
  EXPECT_THROW(randperm(300, of(DType::kU8)), DTypeError);
  EXPECT_NO_THROW(randperm(200, of(DType::kU8)));
}

TEST(NumberRange, DropoutRefusesWhatIsNoProbability) {
  for (const double p : {-0.1, 1.5, double{NAN}, kInfinity}) {
    EXPECT_THROW(dropout(floats({3}), p, true), Error) << p;
    EXPECT_THROW(dropout(floats({3}), p, false), Error) << p;
  }
}

}  // namespace
}  // namespace lockstep

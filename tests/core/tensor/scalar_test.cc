#include "core/tensor/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

template <class T>
using Limits = std::numeric_limits<T>;

TEST(Scalar, CheckedNumbersAreThoseThatFit) {
  EXPECT_EQ(Scalar(255).checked_to<uint8_t>(), 255);
  EXPECT_EQ(Scalar(-128).checked_to<int8_t>(), -128);
  EXPECT_EQ(Scalar(3.0).checked_to<int>(), 3);
  EXPECT_EQ(Scalar(-0x1p63).checked_to<int64_t>(), Limits<int64_t>::min());
  EXPECT_EQ(Scalar(Limits<int64_t>::max()).checked_to<uint64_t>(), 0x7fffffffffffffffU);
  EXPECT_EQ(Scalar(2.5).checked_to<float>(), 2.5F);
  EXPECT_EQ(Scalar(0.1).checked_to<float>(), 0.1F);
  EXPECT_TRUE(Scalar(2.5).checked_to<bool>());
  EXPECT_TRUE(std::isnan(Scalar(Limits<double>::quiet_NaN()).checked_to<float>()));
  EXPECT_EQ(Scalar(-Limits<double>::infinity()).checked_to<float>(), -Limits<float>::infinity());
}

TEST(Scalar, CheckedNumbersThatDoNotFitAreRefused) {
  expect_error<DTypeError>([] { Scalar(256).checked_to<uint8_t>(); }, "256", "from 0 to 255");
  EXPECT_THROW(Scalar(-1).checked_to<uint8_t>(), DTypeError);
  EXPECT_THROW(Scalar(-1).checked_to<uint64_t>(), DTypeError);
  EXPECT_THROW(Scalar(-129).checked_to<int8_t>(), DTypeError);
  EXPECT_THROW(Scalar(0x1p63).checked_to<int64_t>(), DTypeError);
  EXPECT_THROW(Scalar(128.0).checked_to<int8_t>(), DTypeError);
  expect_error<DTypeError>([] { Scalar(2.5).checked_to<int>(); }, "2.5", "integer");
  EXPECT_THROW(Scalar(Limits<double>::quiet_NaN()).checked_to<int>(), DTypeError);
  EXPECT_THROW(Scalar(Limits<double>::infinity()).checked_to<int64_t>(), DTypeError);
  expect_error<DTypeError>([] { Scalar(1e39).checked_to<float>(); }, "double");
  EXPECT_THROW(Scalar(1e5).checked_to<Half>(), DTypeError);
}

}  // namespace
}  // namespace lockstep

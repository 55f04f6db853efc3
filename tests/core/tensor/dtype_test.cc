#include "core/tensor/dtype.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr std::array<DType, kDTypeCount> kAll = {
    DType::kBool, DType::kU8,  DType::kI8,   DType::kI16, DType::kI32,
    DType::kI64,  DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

/// Decodes `bits` as a binary format with these field widths, in double.
double decode(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> 15) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<uint16_t>(bits);
  return value;
}

template <class T>
void expect_all_patterns_convert(int exponent_bits, int mantissa_bits) {
  for (int bits = 0; bits < 65536; ++bits) {
    const float got = static_cast<float>(from_bits<T>(bits));
    const double want = decode(static_cast<uint32_t>(bits), exponent_bits, mantissa_bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(got)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(got), want) << bits;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << bits;
      ASSERT_EQ(T(got).bits, bits) << "the way back is exact";
    }
  }
}

TEST(Half, EveryPatternConvertsToItsValueAndBack) { expect_all_patterns_convert<Half>(5, 10); }
TEST(BFloat16, EveryPatternConvertsToItsValueAndBack) {
  expect_all_patterns_convert<BFloat16>(8, 7);
}

/// Checks that `value` was rounded to the nearest pattern, ties to even. `first_beyond` is the
/// value that the pattern after the largest finite one would have.
template <class T>
bool is_nearest(float value, double first_beyond) {
  const T got(value);
  const double magnitude = std::fabs(static_cast<double>(value));
  const int below_sign = got.bits & 0x7fff;
  const auto value_of = [&](int pattern) {
    const double decoded = static_cast<float>(from_bits<T>(pattern));
    return std::isinf(decoded) ? first_beyond : decoded;
  };
  if (std::signbit(value) != ((got.bits >> 15) != 0)) return false;
  const double distance = std::fabs(value_of(below_sign) - magnitude);
  for (const int other : {below_sign - 1, below_sign + 1}) {
    if (other < 0) continue;
    const double decoded = static_cast<float>(from_bits<T>(other));
    if (std::isnan(decoded)) continue;
    const double other_distance = std::fabs(value_of(other) - magnitude);
    if (other_distance < distance && std::isfinite(value)) return false;
    if (other_distance == distance && (below_sign & 1) != 0) return false;
  }
  return true;
}

RC_GTEST_PROP(Half, RoundsToNearestEven, ()) {
  // Half of the values are in or near the range of normal numbers, the others anywhere.
  float value = std::bit_cast<float>(*rc::gen::arbitrary<uint32_t>());
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  if (*rc::gen::arbitrary<bool>()) value = std::ldexp(mantissa, *rc::gen::inRange(-27, 19));
  RC_PRE(!std::isnan(value));
  RC_ASSERT(is_nearest<Half>(value, 65536.0));
}

RC_GTEST_PROP(BFloat16, RoundsToNearestEven, ()) {
  const float value = std::bit_cast<float>(*rc::gen::arbitrary<uint32_t>());
  RC_PRE(!std::isnan(value));
  RC_ASSERT(is_nearest<BFloat16>(value, std::ldexp(1.0, 128)));
}

template <class T>
void expect_midpoints_go_to_even(int largest_finite) {
  for (int bits = 0; bits < largest_finite; ++bits) {
    const double low = static_cast<float>(from_bits<T>(bits));
    const double high = static_cast<float>(from_bits<T>(bits + 1));
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(T(middle).bits, (bits & 1) != 0 ? bits + 1 : bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 1e38f)).bits, bits + 1) << bits;
  }
}
TEST(Half, MidpointsGoToTheEvenNeighbour) { expect_midpoints_go_to_even<Half>(0x7bff); }
TEST(BFloat16, MidpointsGoToTheEvenNeighbour) { expect_midpoints_go_to_even<BFloat16>(0x7e96); }

TEST(Half, OverflowsToInfinityFromTheMidpointOn) {
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-1e30f).bits, 0xfc00);
}

TEST(DType, PromotionIsASemilattice) {
  for (DType a : kAll) {
    EXPECT_EQ(promote(a, a), a);
    for (DType b : kAll) {
      EXPECT_EQ(promote(a, b), promote(b, a)) << to_string(a) << " " << to_string(b);
      EXPECT_EQ(promote(a, promote(a, b)), promote(a, b));
      for (DType c : kAll) EXPECT_EQ(promote(promote(a, b), c), promote(a, promote(b, c)));
    }
  }
}

TEST(DType, PromotionIsThatOfTheField) {
  // Table of torch.promote_types over our dtypes, in enum order; one letter or digit per dtype.
  // b: bool, u: uint8, 1 2 4 8: bytes of an int, h: float16, B: bfloat16, f: float32, d: float64.
  constexpr std::string_view kLetters = "bu1248hBfd";
  constexpr std::array<std::string_view, kDTypeCount> kTable = {
      "bu1248hBfd", "uu2248hBfd", "121248hBfd", "222248hBfd", "444448hBfd",
      "888888hBfd", "hhhhhhhffd", "BBBBBBfBfd", "fffffffffd", "dddddddddd"};
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      EXPECT_EQ(kLetters[static_cast<int>(promote(kAll[a], kAll[b]))], kTable[a][b])
          << to_string(kAll[a]) << " with " << to_string(kAll[b]);
    }
  }
}

TEST(DType, NamesParseBack) {
  for (DType dtype : kAll) EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  EXPECT_EQ(name(DType::kBF16), "bfloat16");
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, SizesAreThoseOfTheCppTypes) {
  EXPECT_EQ(size_of(dtype_of<bool>), sizeof(bool));
  EXPECT_EQ(size_of(dtype_of<Half>), sizeof(Half));
  EXPECT_EQ(size_of(dtype_of<BFloat16>), sizeof(BFloat16));
  EXPECT_EQ(size_of(dtype_of<int16_t>), sizeof(int16_t));
  EXPECT_EQ(size_of(dtype_of<float>), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<double>), sizeof(double));
}

TEST(DType, BoolIsNeitherIntegralNorFloating) {
  EXPECT_FALSE(is_integral(DType::kBool));
  EXPECT_FALSE(is_floating(DType::kBool));
  EXPECT_TRUE(is_integral(DType::kU8));
  EXPECT_TRUE(is_integral(DType::kI64));
  EXPECT_TRUE(is_floating(DType::kF16));
  EXPECT_FALSE(is_integral(DType::kF16));
}

}  // namespace
}  // namespace lockstep

// Accuracy and edges of Bessel functions, of the normal distribution's and of functions of pairs.

#include <gtest/gtest.h>

#include <bit>

#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_bessel.h"
#include "core/ops/pointwise/pointwise_normal.h"
#include "core/ops/pointwise/pointwise_pairs.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr DType kF64 = DType::kF64;

/// Expects f(points) in float64 within 1e-13 of `wanted`, relative, and in float32 within 1e-6.
template <class F>
void expect_function(const F& f, const Numbers& points, const Numbers& wanted) {
  const Tensor exact = tensor_of(wanted, kF64);
  expect_near(f(tensor_of(points, kF64)), exact, 1e-16, 1e-13);
  expect_near(f(tensor_of(points)).to(kF64), exact, 1e-7, 2e-6);
}

// The values wanted are those of mpmath with 40 digits.

TEST(Bessel, AgreesWithExactValues) {
  expect_function(i0, {-3.5, -0.25, 0.001953125, 2, 7.75, 29.5},
                  {7.3782034322254797, 1.0156861412236079, 1.0000009536745438, 2.2795853023360673,
                   338.51375374727595, 478144163888.0398});
  expect_function(special_i1, {-3.5, -0.25, 0.001953125, 2, 7.75, 29.5},
                  {-6.2058349222583655, -0.12597910894546793, 0.00097656296566136132,
                   1.5906368546373291, 315.8524809240034, 469968885416.2773});
  expect_function(special_i0e, {-40, -3.5, -0.25, 0.001953125, 2, 7.75, 29.5, 31, 100},
                  {0.06327827987523533, 0.22280243801077916, 0.79101716213971936,
                   0.99804973292119147, 0.30850832255367104, 0.14581227430891431,
                   0.07376861727872859, 0.071946496696983833, 0.039944379299096683});
  expect_function(special_i1e, {-40, -3.5, -0.25, 0.001953125, 2, 7.75, 29.5, 31, 100},
                  {-0.062482229074442061, -0.18739997660304999, -0.098112628697368247,
                   0.00097465747755302309, 0.21526928924893766, 0.13605110008033911,
                   0.072507326157183725, 0.07077639283438568, 0.039744153025130253});
  expect_function(special_bessel_j0, {-3.5, -0.25, 0.001953125, 2, 7.75},
                  {-0.38012773998726338, 0.9844359292958527, 0.99999904632591097,
                   0.22389077914123567, 0.2252340691201067});
  expect_function(special_bessel_j1, {-3.5, -0.25, 0.001953125, 2, 7.75},
                  {-0.13737752736232719, -0.12402597732272692, 0.00097656203433878671,
                   0.57672480775687339, 0.19160259218911781});
}

TEST(Bessel, TakesTheirLimits) {
  const Tensor x = tensor_of({kInfinity, -kInfinity, kNaN, 0}, kF64);
  expect_values(i0(x), {kInfinity, kInfinity, kNaN, 1});
  expect_values(special_i1(x), {kInfinity, -kInfinity, kNaN, 0});
  expect_values(special_i0e(x), {0, 0, kNaN, 1});
  expect_values(special_i1e(x), {0, 0, kNaN, 0});
  expect_values(special_bessel_j0(x), {0, 0, kNaN, 1});
}

TEST(NormalDistribution, AgreesWithExactValues) {
  expect_function(
      special_erfcx, {-3.5, -0.25, 0.5, 7.75, 24.75, 25.25, 1000},
      {417962.42244577031, 1.3586423701047221, 0.61569034419292587, 0.072207170814669761,
       0.022776977402694558, 0.022326659889443408, 0.00056418930145338765});
  expect_function(
      special_ndtr, {-8, -1.5, 0, 0.75, 5},
      {6.2209605742717841e-16, 0.066807201268858066, 0.5, 0.7733726476231318, 0.99999971334842812});
  expect_function(special_log_ndtr, {-100, -30, -1.5, -0.5, 0.75, 3},
                  {-5005.5242086942051, -454.3212439563432, -2.7059444008238898,
                   -1.1759117615936186, -0.25699426683836524, -0.0013508099647481938});
  expect_function(erfinv, {-0.96875, -0.25, 0.0009765625, 0.5, 0.875, 0.9990234375},
                  {-1.5230194019969561, -0.2253120550121781, 0.00086545619796713755,
                   0.47693627620446987, 1.0847870400692831, 2.3314677736219477});
  expect_function(
      special_ndtri, {0.0009765625, 0.25, 0.625, 0.96875},
      {-3.0972690781987845, -0.67448975019608174, 0.31863936396437516, 1.8627318674216515});
}

TEST(NormalDistribution, TakesItsLimits) {
  const Tensor ends = tensor_of({-1, 1, 1.5, kNaN, 0}, kF64);
  expect_values(erfinv(ends), {-kInfinity, kInfinity, kNaN, kNaN, 0});
  expect_values(special_ndtri(tensor_of({0, 1, 0.5, -0.1, 1.1, kNaN}, kF64)),
                {-kInfinity, kInfinity, 0, kNaN, kNaN, kNaN});
  const Tensor x = tensor_of({-kInfinity, kInfinity, kNaN}, kF64);
  expect_values(special_ndtr(x), {0, 1, kNaN});
  expect_values(special_log_ndtr(x), {-kInfinity, 0, kNaN});
  expect_values(special_erfcx(x), {kInfinity, 0, kNaN});
  expect_values(special_entr(tensor_of({0, -1, 1, kNaN, kInfinity})),
                {0, -kInfinity, 0, kNaN, -kInfinity});
  expect_values(sinc(tensor_of({0, kInfinity, 0.5}, kF64)), {1, kNaN, 2 / 3.14159265358979323846});
}

TEST(Zeta, AgreesWithExactValuesAndHasItsPoles) {
  const auto zeta = [](double s, double q) {
    return values(special_zeta(tensor_of({s}, kF64), tensor_of({q}, kF64)))[0];
  };
  EXPECT_NEAR(zeta(2, 1) / 1.6449340668482264, 1, 1e-14);
  EXPECT_NEAR(zeta(1.5, 0.25) / 10.213055360466601, 1, 1e-14);
  EXPECT_NEAR(zeta(3, 7.5) / 0.010152626268322332, 1, 1e-14);
  EXPECT_NEAR(zeta(12.5, 2) / 0.00017375173364317819, 1, 1e-14);
  EXPECT_NEAR(zeta(60, 3) / 2.3589825628243266e-29, 1, 1e-14);
  EXPECT_NEAR(zeta(2, -1.5) / 9.3792466449891238, 1, 1e-14);
  EXPECT_NEAR(zeta(3, -0.25) / -61.34868339183118, 1, 1e-14);
  EXPECT_EQ(zeta(1, 2), kInfinity);
  EXPECT_EQ(zeta(3, 0), kInfinity);
  EXPECT_EQ(zeta(2, -3), kInfinity);
  EXPECT_TRUE(std::isnan(zeta(0.5, 2)));
  EXPECT_TRUE(std::isnan(zeta(2.5, -0.5)));
  EXPECT_EQ(zeta(1e6, 1), 1);
}

TEST(Zeta, RefusesTheGradientOfItsOrder) {
  const Tensor order = tensor_of({2.5}).set_requires_grad();
  const Tensor result = special_zeta(order, tensor_of({1.5}));
  expect_error<Error>([&] { result.sum().backward(); }, "[special_zeta]");
}

TEST(Signs, AreThoseOfZerosAndNans) {
  const Tensor signs = tensor_of({-0.0, 0.0, -2, 2});
  expect_values(signbit(signs), {1, 0, 1, 0});
  expect_values(signbit(copysign(tensor_of({kNaN, kNaN, 0, 0}), signs)), {1, 0, 1, 0});
  expect_values(copysign(tensor_of({1, -1, 3, -3}), signs), {-1, 1, -3, 3});
  expect_values(signbit(tensor_of({-1, 0, 1}, DType::kI64)), {1, 0, 0});
}

TEST(LargerNumber, IgnoresOneNan) {
  const Tensor a = tensor_of({kNaN, 1, kNaN, 2}), b = tensor_of({3, kNaN, kNaN, -2});
  expect_values(fmax(a, b), {3, 1, kNaN, 2});
  expect_values(fmin(a, b), {3, 1, kNaN, -2});
  expect_values(heaviside(a, b), {0, 1, 0, 1});
  expect_values(heaviside(tensor_of({-0.0, 0}), tensor_of({0.5, kNaN})), {0.5, kNaN});
}

TEST(Divisors, TakeZerosSignsAndTheEndsOfInt64) {
  const Tensor a = tensor_of({0, 0, -12, 12, 7}, DType::kI64);
  const Tensor b = tensor_of({0, -5, 18, -18, 0}, DType::kI64);
  expect_values(gcd(a, b), {0, 5, 6, 6, 7});
  expect_values(lcm(a, b), {0, 0, 36, 36, 0});
  const int64_t least = std::numeric_limits<int64_t>::min();
  const Tensor end = tensor_from({least}, {1});
  EXPECT_EQ(gcd(end, end).item<int64_t>(), least);
  EXPECT_EQ(gcd(end, tensor_from({int64_t{6}}, {1})).item<int64_t>(), 2);
  expect_error<DTypeError>([&] { gcd(tensor_of({1.5}), tensor_of({2})); }, "[gcd]");
}

TEST(NextAfter, MovesToTheNextNumberOfTheDtype) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    // All finite numbers of 16 bits, in order.
    std::vector<double> numbers;
    for (int bits = 0; bits < 1 << 16; ++bits) {
      const auto pattern = static_cast<uint16_t>(bits);
      const float number = dtype == DType::kF16
                               ? static_cast<float>(std::bit_cast<Half>(pattern))
                               : static_cast<float>(std::bit_cast<BFloat16>(pattern));
      if (std::isfinite(number) && pattern != 0x8000) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    const Tensor all = tensor_of(numbers).to(dtype);
    Numbers above(numbers.begin() + 1, numbers.end()), below(numbers.begin(), numbers.end() - 1);
    above.push_back(kInfinity);
    below.insert(below.begin(), -kInfinity);
    const auto towards = [&](double end) {
      return values(nextafter(all, full({}, end, {dtype, kCPU})));
    };
    EXPECT_EQ(towards(kInfinity), above) << to_string(dtype);
    EXPECT_EQ(towards(-kInfinity), below) << to_string(dtype);
  }
  EXPECT_EQ(nextafter(tensor_of({1.0F}), tensor_of({2.0F})).item<float>(), 1.0F + 0x1p-23F);
  expect_values(nextafter(tensor_of({1, kNaN}), tensor_of({1, 2})), {1, kNaN});
}

TEST(LogAddExp2, TakesInfinities) {
  const Tensor a = tensor_of({kInfinity, -kInfinity, kInfinity, 1});
  const Tensor b = tensor_of({kInfinity, -kInfinity, -kInfinity, 1});
  expect_values(logaddexp2(a, b), {kInfinity, -kInfinity, kInfinity, 2});
}

}  // namespace
}  // namespace lockstep

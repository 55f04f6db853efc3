// Edge cases of the operators in core/ops/pointwise_{round,logic,division,formula,piecewise}.cc.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_division.h"
#include "core/ops/pointwise/pointwise_formula.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/pointwise/pointwise_piecewise.h"
#include "core/ops/pointwise/pointwise_round.h"
#include "core/ops/pointwise/pointwise_special.h"
#include "tests/core/expect_error.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr DType kBothFloats[] = {DType::kF32, DType::kF64};

TEST(Rounding, HalvesGoToTheEvenNeighbour) {
  for (const DType dtype : kBothFloats) {
    const Tensor x = tensor_of({0.5, 1.5, 2.5, -0.5, -1.5, 2.6, -kInfinity, kNaN}, dtype);
    expect_values(round(x), {0, 2, 2, -0.0, -2, 3, -kInfinity, kNaN});
    expect_values(floor(x), {0, 1, 2, -1, -2, 2, -kInfinity, kNaN});
    expect_values(ceil(x), {1, 2, 3, -0.0, -1, 3, -kInfinity, kNaN});
    expect_values(trunc(x), {0, 1, 2, -0.0, -1, 2, -kInfinity, kNaN});
    expect_values(frac(tensor_of({1.25, -1.25, kInfinity}, dtype)), {0.25, -0.25, kNaN});
    expect_values(round(tensor_of({1250, 350, -150}, dtype), -2), {1200, 400, -200});
  }
  const Tensor large = tensor_of({9007199254740993.0, -7}, DType::kI64);
  EXPECT_EQ(values(round(large)), values(large));
  expect_error<DTypeError>([&] { floor(tensor_of({1}, DType::kBool)); }, "[floor]");
  expect_error<DTypeError>([&] { round(tensor_of({1}, DType::kI64), 2); }, "[round]");
}

TEST(Clamp, NanInAnyOfTheThreeGivesNan) {
  for (const DType dtype : kBothFloats) {
    const Tensor x = tensor_of({kNaN, 1, 1, -5, 5}, dtype);
    expect_values(clamp(x, -2, 2), {kNaN, 1, 1, -2, 2});
    expect_values(clamp(x, kNaN, 2), {kNaN, kNaN, kNaN, kNaN, kNaN});
    expect_values(clamp(x, -2, kNaN), {kNaN, kNaN, kNaN, kNaN, kNaN});
    expect_values(clamp_min(x, kNaN), {kNaN, kNaN, kNaN, kNaN, kNaN});
    const Tensor low = tensor_of({0, kNaN, 0, 0, 0}, dtype);
    const Tensor high = tensor_of({2, 2, kNaN, 2, 2}, dtype);
    expect_values(clamp(x, OptionalTensor(low), OptionalTensor(high)), {kNaN, kNaN, kNaN, 0, 2});
  }
}

TEST(Clamp, TakesTheUpperBoundWhereBoundsCrossAndPromotesByBounds) {
  expect_values(clamp(tensor_of({0, 9}, DType::kF32), 5, 2), {2, 2});
  const Tensor integers = tensor_of({3, -4}, DType::kI32);
  EXPECT_EQ(clamp(integers, -1, 2).dtype(), DType::kI32);
  EXPECT_EQ(clamp(integers, 0.5, std::nullopt).dtype(), DType::kF32);
  expect_error<Error>([&] { clamp(integers, std::optional<Scalar>(), std::nullopt); },
                      "both missing");
}

TEST(NanToNum, TakesTheLargestNumbersOfTheDType) {
  const Numbers odd = {kNaN, kInfinity, -kInfinity, 2};
  expect_values(nan_to_num(tensor_of(odd, DType::kF16)), {0, 65504, -65504, 2});
  expect_values(nan_to_num(tensor_of(odd, DType::kBF16)), {0, 0x1.fep127, -0x1.fep127, 2});
  const double most = std::numeric_limits<float>::max();
  expect_values(nan_to_num(tensor_of(odd, DType::kF32)), {0, most, -most, 2});
  expect_values(nan_to_num(tensor_of(odd, DType::kF64), 1.0, 7.0, -7.0), {1, 7, -7, 2});
}

TEST(IntegerDivision, RoundsDownOrTowardsZero) {
  const Tensor a = tensor_of({7, -7, 7, -7, 0}, DType::kI32);
  const Tensor b = tensor_of({2, 2, -2, -2, 3}, DType::kI32);
  expect_values(div(a, b, "floor"), {3, -4, -4, 3, 0});
  expect_values(div(a, b, "trunc"), {3, -3, -3, 3, 0});
  expect_values(fmod(a, b), {1, -1, 1, -1, 0});
  expect_values(remainder(a, b), {1, 1, -1, -1, 0});
  expect_values(remainder(-7, b), {1, 1, -1, -1, 2});
  expect_values(div(a, b, std::nullopt), {3.5, -3.5, -3.5, 3.5, 0});
}

TEST(IntegerDivision, ByZeroIsAnErrorAndTheLowestNumberByMinusOneIsNot) {
  const Tensor a = tensor_of({7, 8}, DType::kI64);
  const Tensor b = tensor_of({2, 0}, DType::kI64);
  expect_error<Error>([&] { div(a, b, "floor"); }, "[div] integer division by zero");
  expect_error<Error>([&] { div(a, b, "trunc"); }, "[div] integer division by zero");
  expect_error<Error>([&] { fmod(a, b); }, "[fmod] integer division by zero");
  expect_error<Error>([&] { remainder(a, 0); }, "[remainder] integer division by zero");
  expect_error<Error>([&] { div(a, b, "ceil"); }, "unknown rounding mode");
  const Tensor lowest = full({1}, std::numeric_limits<int64_t>::min(), DType::kI64);
  EXPECT_EQ(div(lowest, -1, "trunc").data<int64_t>()[0], std::numeric_limits<int64_t>::min());
  expect_values(fmod(lowest, -1), {0});
  expect_values(remainder(lowest, -1), {0});
}

TEST(FloatDivision, FollowsTheExactQuotient) {
  for (const DType dtype : kBothFloats) {
    const Tensor a = tensor_of({1, -1, kInfinity, 1, -kInfinity, 0, kNaN, -1}, dtype);
    const Tensor b = tensor_of({kInfinity, kInfinity, 2, 0, 3, -2, 1, 0}, dtype);
    expect_values(div(a, b, "floor"), {0, -1, kNaN, kInfinity, kNaN, -0.0, kNaN, -kInfinity});
    expect_values(fmod(a, b), {1, -1, kNaN, kNaN, kNaN, 0, kNaN, kNaN});
    expect_values(remainder(a, b), {1, kInfinity, kNaN, kNaN, kNaN, 0, kNaN, kNaN});
  }
  // Floor division by 0.1 gives 9: as a double, 0.1 is above 1/10, so 10 * 0.1 > 1.
  const Tensor tenth = tensor_of({0.1}, DType::kF64);
  expect_values(div(tensor_of({1}, DType::kF64), tenth, "floor"), {9});
}

TEST(FloatDivision, RemaindersAreExactForQuotientsOfAnySize) {
  Numbers a, b;
  for (int i = 0; i < 3000; ++i) {
    a.push_back(std::ldexp(1.0 + 0.37 * (i % 97) / 97, i % 211 - 100) * (i % 2 == 0 ? 1 : -1));
    b.push_back(std::ldexp(1.0 + 0.71 * (i % 89) / 89, i % 173 - 90) * (i % 3 == 0 ? 1 : -1));
  }
  const Tensor x = tensor_of(a, DType::kF32), y = tensor_of(b, DType::kF32);
  Numbers wanted = values(x);
  const Numbers divisors = values(y);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = std::fmod(wanted[i], divisors[i]);
  expect_values(fmod(x, y), wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != 0 && (wanted[i] < 0) != (divisors[i] < 0)) {
      wanted[i] = static_cast<float>(wanted[i]) + static_cast<float>(divisors[i]);
    }
  }
  expect_values(remainder(x, y), wanted);
}

TEST(Bits, NarrowIntegersAndShiftsKeepTheirWidth) {
  const Tensor bytes = tensor_of({3, 200}, DType::kU8);
  expect_values(bitwise_not(bytes), {252, 55});
  expect_values(bitwise_and(bytes, 300), {0, 8});
  expect_values(bitwise_left_shift(bytes, 1), {6, 144});
  expect_values(bitwise_right_shift(bytes, tensor_of({1, 8}, DType::kU8)), {1, 0});
  const Tensor signs = tensor_of({-100, 100}, DType::kI8);
  expect_values(bitwise_right_shift(signs, 70), {-1, 0});
  expect_values(bitwise_left_shift(signs, -1), {0, 0});
  const Tensor flags = tensor_of({1, 0}, DType::kBool);
  expect_values(bitwise_not(flags), {0, 1});
  EXPECT_EQ(bitwise_xor(flags, flags).dtype(), DType::kBool);
  expect_error<DTypeError>([&] { bitwise_and(tensor_of({1}, DType::kF32), flags); },
                           "[bitwise_and]");
  expect_error<DTypeError>([&] { bitwise_left_shift(flags, flags); }, "[bitwise_left_shift]");
}

TEST(IsClose, ComparesInfinitiesAndNans) {
  const Tensor a = tensor_of({kInfinity, kInfinity, kNaN, 1, 1}, DType::kF32);
  const Tensor b = tensor_of({kInfinity, -kInfinity, kNaN, kInfinity, 1.4}, DType::kF32);
  expect_values(isclose(a, b), {1, 0, 0, 0, 0});
  expect_values(isclose(a, b, 0.5, 0, true), {1, 0, 1, 0, 1});
  expect_error<Error>([&] { isclose(a, b, -1); }, "[isclose]");
  expect_error<DTypeError>([&] { isclose(a, b.to(DType::kF64)); }, "[isclose]");
}

TEST(Formulas, KeepInfinitiesAndZeros) {
  for (const DType dtype : kBothFloats) {
    const auto of = [dtype](const Numbers& numbers) { return tensor_of(numbers, dtype); };
    expect_values(hypot(of({kInfinity, kNaN, 3, kNaN}), of({kNaN, -kInfinity, 4, 1})),
                  {kInfinity, kInfinity, 5, kNaN});
    expect_values(logaddexp(of({kInfinity, -kInfinity, kInfinity, kNaN}),
                            of({kInfinity, -kInfinity, -kInfinity, 1})),
                  {kInfinity, -kInfinity, kInfinity, kNaN});
    expect_values(xlogy(of({0, 0, 1, 0}), of({kNaN, -1, 0, 0})), {kNaN, 0, -kInfinity, 0});
    expect_values(lerp(of({1, 1}), of({3, 4}), 1.0), {3, 4});
  }
  // The square overflows f32, the result does not.
  expect_values(hypot(tensor_of({3e38}, DType::kF32), tensor_of({0}, DType::kF32)), {3e38F});
  expect_values(rsub(tensor_of({3, 5}, DType::kU8), 1.5), {-1.5, -3.5});
  expect_error<DTypeError>(
      [&] {
        addcdiv(tensor_of({1}, DType::kF32), tensor_of({1}, DType::kI32),
                tensor_of({1}, DType::kI32));
      },
      "[addcdiv]");
  expect_error<DTypeError>(
      [&] { lerp(tensor_of({1}, DType::kF32), tensor_of({1}, DType::kF64), 1); }, "[lerp]");
}

TEST(Powers, OfIntegersToNegativeIntegersAreZeroExceptForUnits) {
  const Tensor bases = tensor_of({0, 1, -1, -1, 2}, DType::kI64);
  expect_values(pow(bases, tensor_of({-1, -2, -3, -4, -5}, DType::kI64)), {0, 1, -1, 1, 0});
  expect_values(pow(2, tensor_of({-1, 5}, DType::kI64)), {0, 32});
  expect_values(pow(1, tensor_of({kNaN}, DType::kF32)), {1});
  expect_error<DTypeError>([&] { pow(tensor_of({1}, DType::kBool), tensor_of({1}, DType::kBool)); },
                           "[pow]");
}

TEST(Activations, PassNanOnAndKeepTheirLimits) {
  for (const DType dtype : kBothFloats) {
    const Tensor x = tensor_of({kNaN, kInfinity, -kInfinity}, dtype);
    expect_values(hardsigmoid(x), {kNaN, 1, 0});
    expect_values(hardswish(x), {kNaN, kInfinity, kNaN});
    expect_values(hardtanh(x), {kNaN, 1, -1});
    expect_values(hardshrink(x), {kNaN, kInfinity, -kInfinity});
    expect_values(softshrink(x), {kNaN, kInfinity, -kInfinity});
    expect_values(threshold(x, 0, 7), {kNaN, kInfinity, 7});
    expect_values(leaky_relu(x), {kNaN, kInfinity, -kInfinity});
    expect_values(elu(x), {kNaN, kInfinity, -1});
    expect_values(softplus(x), {kNaN, kInfinity, 0});
    expect_values(log_sigmoid(x), {kNaN, 0, -kInfinity});
    expect_values(mish(x), {kNaN, kInfinity, kNaN});
    expect_values(logit(tensor_of({0, 1, 2, -1}, dtype)), {-kInfinity, kInfinity, kNaN, kNaN});
  }
}

TEST(Activations, NanBeyondTheirBoundsHasNoSlopeAndInTheirCurvesStaysNan) {
  const auto slopes = [](auto&& f) {
    const Tensor x = tensor_of({kNaN, -5, 0.25, 5}, DType::kF64).set_requires_grad();
    f(x).sum().backward();
    return x.grad();
  };
  expect_values(slopes([](const Tensor& x) { return hardtanh(x); }), {0, 0, 1, 0});
  expect_values(slopes([](const Tensor& x) { return relu6(x); }), {0, 0, 1, 1});
  expect_values(slopes([](const Tensor& x) { return hardshrink(x); }), {0, 1, 0, 1});
  expect_values(slopes([](const Tensor& x) { return softshrink(x); }), {0, 1, 0, 1});
  expect_values(slopes([](const Tensor& x) { return elu(x, 0, 3, 1); }), {kNaN, 0, 3, 3});
}

TEST(Activations, RefuseWhatTheyCannotTake) {
  const Tensor x = tensor_of({1, 2}, DType::kF32);
  expect_error<Error>([&] { celu(x, 0); }, "[celu]");
  expect_error<Error>([&] { softshrink(x, -1); }, "[softshrink]");
  expect_error<DTypeError>([&] { elu(tensor_of({1}, DType::kI64)); }, "[elu]");
  expect_error<DTypeError>([&] { hardtanh(tensor_of({1}, DType::kBool)); }, "[hardtanh]");
  expect_error<ShapeError>([&] { prelu(x, tensor_of({1, 2, 3}, DType::kF32)); }, "[prelu]");
  expect_error<DTypeError>([&] { prelu(x, tensor_of({1}, DType::kF64)); }, "[prelu]");
  expect_error<ShapeError>(
      [&] {
        prelu(scalar_tensor(1.0), tensor_of({1, 2}, DType::kF32));
      },
      "[prelu]");
}

}  // namespace
}  // namespace lockstep

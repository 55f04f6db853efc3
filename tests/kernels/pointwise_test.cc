#include "core/ops/pointwise/pointwise.h"

#include <gtest/gtest.h>

#include "core/device/copies.h"
#include "core/dispatch/call_op.h"
#include "core/ops/factory/copy.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// A unary operator and the function that it computes.
struct Unary {
  const char* name;
  Tensor (*op)(const Tensor&);
  double (*function)(double);
  double tolerance = 3e-7;  ///< relative, or absolute below 1
};

double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
const Unary kUnary[] = {
    {"neg", neg, [](double x) { return -x; }, 0},
    {"abs", abs, [](double x) { return std::abs(x); }, 0},
    {"square", square, [](double x) { return x * x; }},
    {"sign", sign, [](double x) { return double((x > 0) - (x < 0)); }, 0},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"log", [](const Tensor& x) { return log(abs(x)); },
     [](double x) { return std::log(std::abs(x)); }},
    {"sqrt", [](const Tensor& x) { return sqrt(abs(x)); },
     [](double x) { return std::sqrt(std::abs(x)); }},
    {"rsqrt", [](const Tensor& x) { return rsqrt(abs(x)); },
     [](double x) { return 1 / std::sqrt(std::abs(x)); }},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"relu", relu, [](double x) { return x > 0 ? x : 0; }, 0},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }, [](double x) { return x * phi(x); }},
    {"gelu tanh", [](const Tensor& x) { return gelu(x, "tanh"); },
     [](double x) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     }},
};

TEST(Pointwise, UnaryOperatorsComputeTheirFunction) {
  const Tensor x = mul(random_tensor({40000}), 2);
  for (const Unary& unary : kUnary) {
    SCOPED_TRACE(unary.name);
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
      SCOPED_TRACE(name(dtype));
      const Tensor input = x.to(dtype);
      Numbers wanted = values(input);
      for (double& v : wanted) v = unary.function(v);
      const double rounding = dtype == DType::kBF16 ? 1.0 / 256 : dtype == DType::kF16 ? 1e-3 : 0;
      const Tensor got = unary.op(input);
      EXPECT_EQ(got.dtype(), dtype);
      expect_near(got, tensor_of(wanted, DType::kF64), unary.tolerance + (rounding > 0 ? 1e-7 : 0),
                  unary.tolerance + rounding);
    }
  }
}

TEST(Pointwise, SineTakesAnglesOfAnySize) {
  const Tensor x = tensor_of({1e8, 1e30, -3e38, 0.5}, DType::kF32);
  Numbers wanted = values(x);
  for (double& v : wanted) v = std::sin(v);
  expect_near(sin(x), tensor_of(wanted, DType::kF64), 1e-7, 0);
  EXPECT_TRUE(std::isnan(values(sin(tensor_of({INFINITY}, DType::kF32)))[0]));
}

TEST(Pointwise, BinaryOperatorsCombineElements) {
  const Tensor a = tensor_of({1, -2, 7, 0.5}, DType::kF32);
  const Tensor b = tensor_of({4, 8, -2, 0.25}, DType::kF32);
  EXPECT_EQ(values(add(a, b)), (Numbers{5, 6, 5, 0.75}));
  EXPECT_EQ(values(add(a, b, 2)), (Numbers{9, 14, 3, 1}));
  EXPECT_EQ(values(sub(a, b)), (Numbers{-3, -10, 9, 0.25}));
  EXPECT_EQ(values(sub(a, b, 0.5)), (Numbers{-1, -6, 8, 0.375}));
  EXPECT_EQ(values(mul(a, b)), (Numbers{4, -16, -14, 0.125}));
  EXPECT_EQ(values(div(a, b)), (Numbers{0.25, -0.25, -3.5, 2}));
  EXPECT_EQ(values(maximum(a, b)), (Numbers{4, 8, 7, 0.5}));
  EXPECT_EQ(values(minimum(a, b)), (Numbers{1, -2, -2, 0.25}));
  EXPECT_EQ(values(1 - a), (Numbers{0, 3, -6, 0.5}));
  EXPECT_EQ(values(2 / b), (Numbers{0.5, 0.25, -1, 8}));
  EXPECT_EQ(values(a * 2 + 1), (Numbers{3, -3, 15, 2}));
}

TEST(Pointwise, MaximumAndMinimumPassNanOn) {
  const Tensor a = tensor_of({NAN, 1}, DType::kF32);
  const Tensor b = tensor_of({1, NAN}, DType::kF32);
  for (const Tensor& result : {maximum(a, b), minimum(a, b), maximum(b, a), minimum(b, a)}) {
    EXPECT_TRUE(std::isnan(values(result)[0]) && std::isnan(values(result)[1]));
  }
}

TEST(Pointwise, IntegersWrapAroundInTheirOwnWidth) {
  const Tensor a = tensor_of({100, -100}, DType::kI8);
  EXPECT_EQ(values(add(a, a)), (Numbers{-56, 56}));
  EXPECT_EQ(values(mul(tensor_of({200}, DType::kU8), 2)), (Numbers{144}));
  EXPECT_EQ(values(pow(tensor_of({3, -2}, DType::kI64), 5)), (Numbers{243, -32}));
  EXPECT_EQ(values(div(tensor_of({5, -2}, DType::kI32), 2)), (Numbers{2.5, -1}));
  const Tensor flags = tensor_of({1, 0}, DType::kBool);
  EXPECT_EQ(values(add(flags, flags)), (Numbers{1, 0}));
  EXPECT_EQ(values(add(flags, 1)), (Numbers{2, 1}));
}

TEST(Pointwise, ZeroDimTensorsOfAnotherDTypeAreReadInTheResultsDType) {
  const Tensor a = tensor_of({1, 2}, DType::kF32);
  const Tensor wide = scalar_tensor(0.1, DType::kF64);
  EXPECT_EQ(mul(a, wide).dtype(), DType::kF32);
  EXPECT_EQ(values(mul(a, wide))[0], static_cast<double>(0.1F));
}

TEST(Pointwise, PowersOfFloats) {
  const Tensor x = tensor_of({4, 9, 0.25}, DType::kF32);
  for (const double e : {0.0, 0.5, 1.0, 2.0, 3.0, -0.5, -1.0, 2.5, -3.0}) {
    Numbers wanted = values(x);
    for (double& v : wanted) v = std::pow(v, e);
    expect_near(pow(x, e), tensor_of(wanted, DType::kF64), 0, 2e-7);
  }
}

TEST(Pointwise, Comparisons) {
  const Tensor a = tensor_of({1, 2, 3, NAN}, DType::kF32);
  const Tensor b = tensor_of({1, 3, 2, NAN}, DType::kF64);
  EXPECT_EQ(values(eq(a, b)), (Numbers{1, 0, 0, 0}));
  EXPECT_EQ(values(ne(a, b)), (Numbers{0, 1, 1, 1}));
  EXPECT_EQ(values(lt(a, b)), (Numbers{0, 1, 0, 0}));
  EXPECT_EQ(values(le(a, b)), (Numbers{1, 1, 0, 0}));
  EXPECT_EQ(values(gt(a, 1)), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(values(ge(a, 2)), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(values(eq(tensor_of({1, 2}, DType::kI64), 1.5)), (Numbers{0, 0}));
  EXPECT_EQ(values(eq(tensor_of({0.1}, DType::kBF16), 0.1)), (Numbers{1}));
  EXPECT_EQ(values(logical_not(tensor_of({0, 2, NAN}, DType::kF32))), (Numbers{1, 0, 0}));
  EXPECT_EQ(values(isnan(a)), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(values(isfinite(tensor_of({1, INFINITY, -INFINITY, NAN}, DType::kF32))),
            (Numbers{1, 0, 0, 0}));
}

TEST(Pointwise, WhereAndMaskedFillChoose) {
  const Tensor mask = tensor_of({1, 0, 1}, DType::kBool);
  const Tensor a = tensor_of({1, NAN, 3}, DType::kF32);
  const Tensor b = tensor_of({4, 5, NAN}, DType::kF32);
  EXPECT_EQ(values(where(mask, a, b)), (Numbers{1, 5, 3}));
  EXPECT_EQ(values(masked_fill(b, mask, -1)), (Numbers{-1, 5, -1}));
  EXPECT_EQ(where(mask, tensor_of({1, 2, 3}, DType::kI64), a).dtype(), DType::kF32);
  const Tensor column = view(mask, {3, 1});
  EXPECT_EQ(values(where(column, a.view({1, 3}), scalar_tensor(0))).size(), 9u);
}

TEST(Pointwise, BackwardOperatorsAreTheSlopes) {
  const Tensor x = mul(random_tensor({1000}, DType::kF64), 2);
  const Tensor grad = random_tensor({1000}, DType::kF64, 2);
  constexpr double kStep = 1e-5;
  const auto check = [&](const Tensor& got, auto function) {
    const Tensor rise = sub(function(add(x, kStep)), function(sub(x, kStep)));
    const Tensor slope = div(rise, 2 * kStep);
    expect_near(got, mul(grad, slope), 1e-8, 1e-7);
    return mul(grad, slope);
  };
  const Tensor g32 = grad.to(DType::kF32), x32 = x.to(DType::kF32);
  const auto check32 = [&](const Tensor& got, const Tensor& wanted) {
    expect_near(got, wanted, 1e-6, 1e-6);
  };
  check32(gelu_backward(g32, x32), check(gelu_backward(grad, x), [](Tensor t) { return gelu(t); }));
  check32(gelu_backward(g32, x32, "tanh"),
          check(gelu_backward(grad, x, "tanh"), [](Tensor t) { return gelu(t, "tanh"); }));
  check32(silu_backward(g32, x32), check(silu_backward(grad, x), silu));
  check32(tanh_backward(g32, tanh(x32)), check(tanh_backward(grad, tanh(x)), tanh));
  check32(sigmoid_backward(g32, sigmoid(x32)), check(sigmoid_backward(grad, sigmoid(x)), sigmoid));
  check32(threshold_backward(g32, relu(x32), 0), check(threshold_backward(grad, relu(x), 0), relu));
}

TEST(Pointwise, InPlaceAndOutGiveTheFunctionalBits) {
  const Tensor a = random_tensor({50, 70});
  const Tensor b = random_tensor({70}, DType::kF32, 2);
  const Numbers wanted = values(add(a, b, 0.5));
  Tensor in_place = clone(a);
  EXPECT_TRUE(add_(in_place, b, 0.5).is_same(in_place));
  EXPECT_EQ(values(in_place), wanted);
  EXPECT_EQ(in_place.version(), 1u);
  const Tensor out = empty_tensor({0}, DType::kF32);
  add_out(out, a, b, 0.5);
  EXPECT_EQ(values(out), wanted);
  const Tensor strided = empty_tensor({70, 50}, DType::kF32).t();
  add_out(strided, a, b, 0.5);
  EXPECT_EQ(values(strided), wanted);
  const Tensor half = empty_tensor({50, 70}, DType::kBF16);
  add_out(half, a, b, 0.5);
  EXPECT_EQ(values(half), values(add(a, b, 0.5).to(DType::kBF16)));
}

TEST(Pointwise, OutRefusesWhatItCannotHold) {
  const Tensor a = random_tensor({4, 4});
  const Tensor whole = empty_tensor({4, 4}, DType::kI64);
  expect_error<DTypeError>([&] { add_out(whole, a, a); }, "[add", "float32", "int64");
  const Tensor base = random_tensor({5, 4});
  const Tensor top = base.slice(0, 0, 4), bottom = base.slice(0, 1, 5);
  expect_error<ShapeError>([&] { add_out(top, bottom, a); }, "shares part of its memory");
  const Tensor stretched = random_tensor({4, 1}).expand({4, 4});
  expect_error<ShapeError>([&] { add_out(stretched, a, a); }, "overlap");
  expect_error<ShapeError>([&] { random_tensor({4}).add_(a); }, "does not fit in place");
}

TEST(Pointwise, NumbersInWherePromoteAsOperandsDo) {
  const Tensor flags = tensor_of({1, 0}, DType::kBool);
  const auto dtype = [&](std::string_view op, Value self, Value other) {
    return call_op(op, {flags, self, other}).dtype();
  };
  const Tensor half = tensor_of({1, 2}, DType::kBF16), whole = tensor_of({1, 2}, DType::kI32);
  EXPECT_EQ(dtype("where.ScalarSelf", 1.5, half), DType::kBF16);
  EXPECT_EQ(dtype("where.ScalarOther", whole, 1), DType::kI32);
  EXPECT_EQ(dtype("where.ScalarOther", whole, 1.5), DType::kF32);
  EXPECT_EQ(dtype("where.ScalarSelf", true, whole), DType::kI32);
  EXPECT_EQ(dtype("where.Scalar", 1, 1.5), DType::kF32);
  EXPECT_EQ(dtype("where.Scalar", 1, true), DType::kI64);
  EXPECT_EQ(dtype("where.Scalar", true, false), DType::kBool);
  EXPECT_EQ(values(call_op("where.ScalarSelf", {flags, 7, whole})), (std::vector<double>{7, 2}));
}

TEST(Pointwise, RulesNameShapesAndDTypes) {
  const Tensor a = random_tensor({2, 3});
  const Tensor flags = tensor_of({1, 0, 1}, DType::kBool);
  expect_error<ShapeError>([&] { add(a, random_tensor({4})); }, "[add]", "[2, 3]", "[4]");
  expect_error<DTypeError>([&] { sub(flags, flags); }, "[sub]", "bool");
  expect_error<DTypeError>([&] { where(a, a, a); }, "[where]", "float32");
  expect_error<DTypeError>([&] { gelu(tensor_of({1}, DType::kI64)); }, "[gelu]", "int64");
  expect_error<Error>([&] { gelu(a, "fast"); }, "[gelu]", "\"fast\"");
  expect_error<DTypeError>(
      [&] { add(tensor_of({1}, DType::kI64), tensor_of({1}, DType::kI64), 0.5); }, "[add]",
      "alpha");
  expect_error<Error>([&] { pow(tensor_of({2}, DType::kI64), -1); }, "[pow]");
}

TEST(Pointwise, ResultsKeepTheOrderOfDimensions) {
  const Tensor transposed = random_tensor({5, 3}).t();
  EXPECT_TRUE(same(exp(transposed).strides(), transposed.strides()));
  EXPECT_TRUE(same(add(transposed, random_tensor({5})).strides(), transposed.strides()));
  EXPECT_TRUE(same(add(transposed, random_tensor({3, 5})).strides(), transposed.strides()));
  EXPECT_TRUE(add(random_tensor({3, 5}), transposed).is_contiguous()) << "the first decides";
  EXPECT_TRUE(same(add(random_tensor({5}), transposed).strides(), transposed.strides()))
      << "one dimension has no order";
  EXPECT_TRUE(exp(random_tensor({6, 4}).slice(1, 0, 2)).is_contiguous());
  EXPECT_TRUE(same(exp(transposed.slice(0, 0, 2)).strides(), {1, 2})) << "its gaps are closed";
}

}  // namespace
}  // namespace lockstep

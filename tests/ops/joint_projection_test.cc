// Operators of joint projections: the bits of their references, and weights that are read in place.

#include <gtest/gtest.h>

#include <cstring>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "core/ops/attention/rotary.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/linear_of_parts.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/swiglu_of_halves.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/allocator.h"
#include "tests/core/expect_error.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kF64};

bool have_equal_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return same(x.sizes(), y.sizes()) && x.dtype() == y.dtype() &&
         std::memcmp(x.data(), y.data(), x.nbytes()) == 0;
}

std::vector<Tensor> weights_of(DType dtype) {
  std::vector<Tensor> weights;
  int seed = 1;
  for (const int64_t rows : {48, 16, 24}) {
    weights.push_back(floats({rows, 40}, ++seed).to(dtype).set_requires_grad());
  }
  return weights;
}

TEST(LinearOfParts, HasTheBitsOfAProductWithJoinedWeightsWhereverTheyLie) {
  for (const DType dtype : kDTypes) {
    const Tensor input = floats({5, 7, 40}).to(dtype);
    const std::vector<Tensor> apart = weights_of(dtype), beside = weights_of(dtype);
    {
      const NoGradGuard no_grad;
      lay_side_by_side(beside);
    }
    const auto results = [&](const std::vector<Tensor>& weights, bool is_reference) {
      const Tensor x = cast_copy(input, dtype).set_requires_grad();
      const Tensor y =
          is_reference ? linear_of_parts_reference(x, weights) : linear_of_parts(x, weights);
      std::vector<Tensor> found = {y.detach()};
      std::vector<Tensor> leaves = {x};
      leaves.insert(leaves.end(), weights.begin(), weights.end());
      for (Tensor& each : grad({y}, leaves, {floats(y.sizes(), 9).to(dtype)})) {
        found.push_back(std::move(each));
      }
      return found;
    };
    const std::vector<Tensor> expected = results(apart, true);
    for (const auto& weights : {apart, beside}) {
      const std::vector<Tensor> found = results(weights, false);
      EXPECT_TRUE(have_equal_bits(found[0], expected[0])) << name(dtype);
      EXPECT_TRUE(have_equal_bits(found[1], expected[1])) << name(dtype);
      for (size_t i = 2; i < found.size(); ++i) {
        // One product for each weight, where the reference has one for all.
        EXPECT_EQ(difference({{found[i]}}, {{expected[i]}}, 1e-2), "") << name(dtype);
      }
    }
  }
}

/// Bytes allocated on the way by a call that returns a tensor.
template <class F>
int64_t bytes_of_call(const F& call) {
  Allocator& memory = allocator(kCPU);
  const int64_t before = memory.stats().allocated;
  memory.reset_peak();
  const Tensor result = call();
  return memory.stats().peak_allocated - before;
}

TEST(LinearOfParts, ReadsWeightsThatLieSideBySideInPlace) {
  const NoGradGuard no_grad;
  const Tensor x = zeros({1, 512});
  const std::vector<Tensor> weights = {zeros({256, 512}), zeros({128, 512})};
  const auto joined = static_cast<int64_t>(weights[0].nbytes() + weights[1].nbytes());
  // A weight does not begin where it ends.
  const std::vector<Tensor> apart = {weights[0], weights[0]};
  EXPECT_GE(bytes_of_call([&] { return linear_of_parts(x, apart); }), joined);
  lay_side_by_side(weights);
  EXPECT_LT(bytes_of_call([&] { return linear_of_parts(x, weights); }), joined / 2);
  EXPECT_LT(bytes_of_call([&] {
              return linear_of_parts_backward(zeros({1, 384}), weights);
            }),
            joined / 2);
}

TEST(LinearOfParts, OtherWidthsAreRefused) {
  expect_error<ShapeError>(
      [] {
        (void)linear_of_parts(zeros({2, 4}), std::vector<Tensor>{zeros({3, 4}), zeros({3, 5})});
      },
      "weights [out, in] of one width", "[3, 5]");
  expect_error<ShapeError>(
      [] {
        (void)linear_of_parts_backward(zeros({2, 4}), std::vector<Tensor>{zeros({3, 4})});
      },
      "expected a gradient [..., 3]", "[2, 4]");
}

TEST(LaySideBySide, MovesTensorsThatStayTheSame) {
  const std::vector<Tensor> tensors = {floats({3, 4}).set_requires_grad(), floats({5, 4}, 2)};
  const Tensor first = cast_copy(tensors[0].detach(), DType::kF32);
  const Tensor second = cast_copy(tensors[1], DType::kF32);
  {
    const NoGradGuard no_grad;
    lay_side_by_side(tensors);
  }
  EXPECT_TRUE(have_equal_bits(tensors[0], first));
  EXPECT_TRUE(have_equal_bits(tensors[1], second));
  EXPECT_TRUE(tensors[0].requires_grad());
  EXPECT_TRUE(tensors[0].is_leaf());
  EXPECT_EQ(tensors[0].data<float>() + 12, tensors[1].data<float>());
  const uint32_t version = tensors[1].version();
  {
    const NoGradGuard no_grad;
    fill_(tensors[0], 1);
  }
  EXPECT_EQ(tensors[1].version(), version) << "each counts its own changes";
  expect_error<Error>(
      [] {
        lay_side_by_side(std::vector<Tensor>{zeros({2}), zeros({2}, DType::kF64)});
      },
      "dense tensors of one dtype");
}

TEST(RotaryOfQkv, HasTheBitsOfItsReference) {
  const Tensor angles = floats({6, 4}, 6);
  for (const DType dtype : kDTypes) {
    const DType tables = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    const Tensor cosine = cos(angles).to(tables), sine = sin(angles).to(tables);
    for (const bool inverse : {false, true}) {
      const Tensor x = floats({2, 6, 7 * 8}).to(dtype).set_requires_grad();
      const Tensor fused = rotary_of_qkv(x, cosine, sine, 3, 2, inverse);
      const Tensor reference = rotary_of_qkv_reference(x, cosine, sine, 3, 2, inverse);
      EXPECT_TRUE(have_equal_bits(fused.detach(), reference.detach())) << name(dtype);
      const Tensor along = floats(x.sizes(), 3).to(dtype);
      EXPECT_TRUE(
          have_equal_bits(grad({fused}, {x}, {along})[0], grad({reference}, {x}, {along})[0]))
          << name(dtype);
    }
  }
}

TEST(SwigluOfHalves, HasTheBitsOfSwigluOfSlices) {
  for (const DType dtype : kDTypes) {
    const Tensor x = floats({3, 5, 2 * 37}).to(dtype).set_requires_grad();
    const Tensor fused = swiglu_of_halves(x);
    const Tensor reference = swiglu(x.slice(-1, 0, 37), x.slice(-1, 37));
    EXPECT_TRUE(have_equal_bits(fused.detach(), reference.detach())) << name(dtype);
    const Tensor along = floats(fused.sizes(), 3).to(dtype);
    EXPECT_TRUE(have_equal_bits(grad({fused}, {x}, {along})[0], grad({reference}, {x}, {along})[0]))
        << name(dtype);
  }
}

}  // namespace
}  // namespace lockstep

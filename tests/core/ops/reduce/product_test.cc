#include "autograd/autograd.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Cumprod, HasGradientsOfNanWhereItEndsInNanWithoutAZero) {
  const Tensor x = tensor_of({2, kNaN, 3, 2, 5, 3}).view({2, 3}).set_requires_grad();
  const Tensor gradient = grad({cumprod(x, 1).sum()}, {x})[0];
  expect_values(gradient.reshape({6}), {kNaN, kNaN, kNaN, 21, 8, 10});
}

}  // namespace
}  // namespace lockstep

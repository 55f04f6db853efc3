#include "core/ops/index/scatter.h"

#include "autograd/autograd.h"
#include "core/ops/reduce/reduce.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(TakeAlongDim, WrapsAnIndexPastEitherEnd) {
  const Tensor x = tensor_of({10, 20, 30, 40, 50, 60}).view({2, 3});
  const Tensor places = tensor_of({-1, 3, 7}, DType::kI64).view({1, 3});
  expect_values(take_along_dim(x, places, 1).reshape({6}), {30, 10, 20, 60, 40, 50});
}

TEST(ScatterReduce, SecondDerivativesOfAProductWithZerosAreProductsOfTheRest) {
  // Of a b c d, of which three or two are zero.
  for (const double third : {0.0, 7.0}) {
    const Tensor self = tensor_of({0}).set_requires_grad();
    const Tensor source = tensor_of({0, third, 5}).set_requires_grad();
    const Tensor product =
        scatter_reduce(self, 0, tensor_of({0, 0, 0}, DType::kI64), source, "prod");
    const Tensor first = grad({product.sum()}, {self}, {}, {.create_graph = true})[0];
    expect_values(first.detach(), {0});
    expect_values(grad({first.sum()}, {source})[0], {third * 5, 0, 0});
  }
}

}  // namespace
}  // namespace lockstep

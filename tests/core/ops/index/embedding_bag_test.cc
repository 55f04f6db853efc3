#include "core/ops/index/embedding_bag.h"

#include "autograd/autograd.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(EmbeddingBag, WeightsOfPaddingHaveNoGradient) {
  const Tensor weight = tensor_of({1, 2, 3, 4, 50, 60}).view({3, 2});
  const Tensor indices = tensor_of({0, 2, 1, 2}, DType::kI64);
  const Tensor offsets = tensor_of({0, 2}, DType::kI64);
  const Tensor scales = tensor_of({2, 3, 4, 5}).set_requires_grad();
  const Tensor bags = std::get<0>(
      embedding_bag(weight, indices, offsets, false, 0, false, scales, false, /*padding_idx=*/2));
  expect_values(bags.detach().reshape({4}), {2, 4, 12, 16});
  bags.backward(tensor_of({1, 10, 100, 1000}).view({2, 2}));
  expect_values(scales.grad(), {21, 0, 4300, 0});
}

TEST(EmbeddingBag, AnEmptyBagGivesNoRowAGradientOfTheLargest) {
  const Tensor weight = tensor_of({1, 8, 3, 4}).view({2, 2}).set_requires_grad();
  const Tensor indices = tensor_of({0, 1}, DType::kI64);
  const Tensor offsets = tensor_of({0, 2}, DType::kI64);  // the second bag is empty
  const Tensor bags = std::get<0>(embedding_bag(weight, indices, offsets, false, 2));
  expect_values(bags.detach().reshape({4}), {3, 8, 0, 0});
  bags.backward(tensor_of({1, 10, 100, 1000}).view({2, 2}));
  expect_values(weight.grad().reshape({4}), {0, 10, 1, 0});
}

}  // namespace
}  // namespace lockstep

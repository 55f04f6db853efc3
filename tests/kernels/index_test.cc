#include "core/ops/index/index.h"

#include "core/base/parallel.h"
#include "core/ops/factory/copy.h"
#include "core/ops/index/advanced_index.h"
#include "core/ops/index/embedding_bag.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Deterministic numbers in [0, limit), with many repeats.
Tensor scattered_indices(IntList sizes, int64_t limit) {
  const int64_t count = count_elements(sizes);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back((i % 3 == 0 ? 5 : i * i + i / 7) % limit);
  return tensor_from<int64_t>(numbers, sizes);
}

TEST(Embedding, CopiesRows) {
  const Tensor weight = random_tensor({10, 4});
  const Tensor indices = tensor_from<int64_t>({3, 0, 9, 3}, {2, 2});
  const Tensor got = embedding(weight, indices);
  EXPECT_EQ(got.shape(), "[2, 2, 4]");
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = indices.data<int64_t>()[i];
    EXPECT_TRUE(equal(got.reshape({4, 4}).select(0, i), weight.select(0, row)));
  }
  EXPECT_TRUE(equal(embedding(weight, indices.to(DType::kI32)), got));
}

TEST(Embedding, GradientAddsTheRowsOfEachIndex) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const Tensor indices = scattered_indices({40}, 12);
    const Tensor grad = random_tensor({40, 9}, dtype);
    const Tensor wanted = zeros({12, 9}, {DType::kF64});
    for (int64_t i = 0; i < 40; ++i) {
      wanted.select(0, indices.data<int64_t>()[i]).add_(grad.select(0, i).to(DType::kF64));
    }
    const double tolerance = dtype == DType::kBF16 ? 0x1p-8 : 1e-5;
    expect_near(embedding_dense_backward(grad, indices, 12), wanted, tolerance, tolerance);
    wanted.select(0, 5).zero_();
    expect_near(embedding_dense_backward(grad, indices, 12, 5), wanted, tolerance, tolerance);
  }
}

TEST(Embedding, GradientMayBeDividedByFrequency) {
  const Tensor indices = tensor_from<int64_t>({1, 1, 0, 1}, {4});
  const Tensor got = embedding_dense_backward(ones({4, 2}), indices, 3, -1, true);
  EXPECT_EQ(values(got), (std::vector<double>{1, 1, 1, 1, 0, 0}));
}

TEST(Embedding, GradientIsWrittenIntoTheGivenPlace) {
  const Tensor place = full({6, 3}, 7.0);
  const Tensor indices = tensor_from<int64_t>({2, 2}, {2});
  embedding_dense_backward_out(place, ones({2, 3}), indices, 6);
  EXPECT_EQ(sum(place).item<float>(), 6.0F);
  EXPECT_EQ(values(place.select(0, 2)), (std::vector<double>{2, 2, 2}));
}

TEST(Embedding, GradientAddedHasTheBitsOfTheSeparateAddition) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    SCOPED_TRACE(to_string(dtype));
    const Tensor sum = random_tensor({12, 9}, dtype, 1);
    const Tensor grad = random_tensor({40, 9}, dtype, 2);
    const Tensor indices = scattered_indices({40}, 9);  // rows 9 to 11 have no use
    for (const bool by_frequency : {false, true}) {
      const Tensor wanted =
          sum + embedding_dense_backward(grad, indices, 12, /*padding_idx=*/3, by_frequency);
      EXPECT_TRUE(equal(_embedding_gradient_added(sum, grad, indices, 3, by_frequency), wanted));
      const Tensor place = sum.clone();
      _embedding_gradient_added_(place, grad, indices, 3, by_frequency);
      EXPECT_TRUE(equal(place, wanted));
    }
  }
  expect_error<ShapeError>(
      [] {
        _embedding_gradient_added(zeros({4, 3}), zeros({2, 5}), zeros({2}, DType::kI64), -1, false);
      },
      "[_embedding_gradient_added]", "width 3", "[2, 5]");
}

TEST(Embedding, GradientBitsDoNotDependOnThreads) {
  for (const int64_t rows : {7, 65, 5000}) {
    const Tensor indices = scattered_indices({2000}, rows);
    const Tensor grad = random_tensor({2000, 48});
    expect_same_bits_for_any_threads(
        [&] { return std::vector<Tensor>{embedding_dense_backward(grad, indices, rows)}; });
  }
}

TEST(Embedding, IndexOutOfRangeIsNamed) {
  const Tensor weight = zeros({10, 4});
  const Tensor bad = tensor_from<int64_t>({3, 10}, {2});
  expect_error<IndexError>([&] { embedding(weight, bad); }, "[embedding]", "[0, 10)", "10",
                           "position 1");
  expect_error<IndexError>([&] { embedding_dense_backward(zeros({2, 4}), bad, 10); }, "[0, 10)");
  expect_error<IndexError>([&] { index_select(weight, 0, full({1}, -1, {DType::kI64})); },
                           "[index_select]", "-1");
  expect_error<DTypeError>([&] { embedding(weight, zeros({2})); }, "[embedding]", "float32");
  expect_error<ShapeError>([&] { embedding(zeros({3}), bad); }, "[embedding]", "[3]");
}

TEST(EmbeddingBag, MeansDivideByTheNumberOfRowsThatAreNoPadding) {
  const Tensor weight = tensor_from<float>({1, 2, 3, 4, 5, 6, 70, 80}, {4, 2}).set_requires_grad();
  const Tensor indices = tensor_from<int64_t>({0, 3, 1, 3, 3, 2, 2, 2}, {8});
  const Tensor offsets = tensor_from<int64_t>({0, 3, 5}, {3});  // the second bag is padding alone
  const auto [means, bag_of, sizes, most] =
      embedding_bag(weight, indices, offsets, false, 1, false, {}, false, /*padding_idx=*/3);
  expect_values(means.view({6}), {2, 3, 0, 0, 5, 6});
  expect_values(sizes, {2, 0, 3});
  means.backward(tensor_from<float>({2, 4, 100, 100, 6, 12}, {3, 2}));
  expect_values(weight.grad().view({8}), {1, 2, 1, 2, 6, 12, 0, 0});
}

TEST(Index, SelectTakesPartsAlongAnyDimension) {
  const Tensor x = random_tensor({3, 4, 5});
  const Tensor index = tensor_from<int64_t>({2, 0, 2, 1}, {4});
  for (const int64_t dim : {0, 1, 2, -1}) {
    const Tensor got = index_select(x, dim, index);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(equal(got.select(dim, i), x.select(dim, index.data<int64_t>()[i])));
    }
  }
}

TEST(Index, AddIsTheTransposeOfSelect) {
  const Tensor x = random_tensor({3, 6, 5}, DType::kF64);
  const Tensor index = tensor_from<int64_t>({2, 0, 2, 5}, {4});
  const Tensor source = random_tensor({3, 4, 5}, DType::kF64, 2);
  const Tensor added = index_add(zeros({3, 6, 5}, {DType::kF64}), 1, index, source, 2);
  const double along = sum(added * x).item<double>();
  EXPECT_NEAR(along, 2 * sum(index_select(x, 1, index) * source).item<double>(), 1e-12);
}

TEST(Index, GatherAndScatterAddFollowTheIndex) {
  const Tensor x = arange(12).reshape({3, 4});
  const Tensor index = tensor_from<int64_t>({0, 2, 1, 1}, {2, 2});
  EXPECT_EQ(values(gather(x, 0, index)), (std::vector<double>{0, 9, 4, 5}));
  EXPECT_EQ(values(gather(x, 1, index)), (std::vector<double>{0, 2, 5, 5}));
  const Tensor src = tensor_from<int64_t>({1, 10, 100, 1000, 7, 100}, {2, 3}).slice(1, 0, 2);
  const Tensor got = scatter_add(zeros({3, 2}, {DType::kI64}), 0, index, src);
  EXPECT_EQ(values(got), (std::vector<double>{1, 0, 1000, 7, 0, 10}));
}

TEST(Index, GatherAndScatterAddTakeZeroDimensionalTensors) {
  const Tensor zero = zeros({}, {DType::kI64});
  EXPECT_EQ(gather(full({}, 4.0), 0, zero).item<float>(), 4.0F);
  EXPECT_EQ(scatter_add(full({}, 4.0), 0, zero, full({}, 0.5)).item<float>(), 4.5F);
}

TEST(Index, MistakesAreNamed) {
  const Tensor x = zeros({3, 4});
  const Tensor index = zeros({4, 2}, {DType::kI64});
  expect_error<ShapeError>([&] { gather(x, 1, index); }, "[gather]", "[3, 4]", "[4, 2]");
  expect_error<IndexError>(
      [&] {
        gather(x, 0, full({1, 1}, 3, {DType::kI64}));
      },
      "[gather]", "[0, 3)");
  expect_error<DTypeError>([&] { scatter_add(x, 0, index, index); }, "[scatter_add]", "float32",
                           "int64");
  expect_error<ShapeError>([&] { tril(zeros({3})); }, "[tril/triu]", "[3]");
}

TEST(Index, NonzeroListsCoordinatesInOrder) {
  const Tensor x = tensor_from<float>({0, 1, 2, 0, 0, 3}, {2, 3});
  EXPECT_EQ(values(nonzero(x)), (std::vector<double>{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(values(nonzero(x.t())), (std::vector<double>{1, 0, 2, 0, 2, 1}));
  EXPECT_EQ(nonzero(full({}, 2)).shape(), "[1, 0]");
  EXPECT_EQ(nonzero(zeros({0, 2})).shape(), "[0, 2]");
}

TEST(Index, MaskedSelectAndScatterBroadcast) {
  const Tensor x = arange(6).reshape({2, 3});
  const Tensor mask = tensor_from<int64_t>({1, 0, 1}, {3}).to(DType::kBool);
  EXPECT_EQ(values(masked_select(x, mask)), (std::vector<double>{0, 2, 3, 5}));
  const Tensor source = arange(10, 15);
  EXPECT_EQ(values(masked_scatter(x, mask, source)), (std::vector<double>{10, 1, 11, 12, 4, 13}));
  expect_error<ShapeError>([&] { masked_scatter(x, mask, arange(3)); }, "[masked_scatter]", "3");
}

TEST(Index, MasksOfManyBlocksGiveTheSameInAnyLayoutAndOnAnyNumberOfThreads) {
  const Tensor x = random_tensor({300, 5, 101});
  const Tensor mask = gt(random_tensor({300, 1, 101}, DType::kF32, 2), 0);
  std::vector<double> wanted;
  const std::vector<double> elements = values(x);
  const std::vector<double> flags = values(mask.expand({300, 5, 101}).contiguous());
  for (size_t i = 0; i < elements.size(); ++i) {
    if (flags[i] != 0) wanted.push_back(elements[i]);
  }
  const Tensor turned = x.transpose(0, 2).contiguous().transpose(0, 2);
  const int threads = num_threads();
  for (const int count : {1, 4}) {
    set_num_threads(count);
    for (const Tensor& self : {x, turned}) {
      const Tensor chosen = masked_select(self, mask);
      EXPECT_EQ(values(chosen), wanted);
      EXPECT_TRUE(
          equal(masked_scatter(zeros_like(x), mask, chosen), masked_fill(x, logical_not(mask), 0)));
      const Tensor kept = masked_fill(self, logical_not(mask), 0);
      const std::vector<Tensor> found = unbind(nonzero(kept), 1);
      EXPECT_EQ(values(index(kept, OptionalTensorList(found.data(), found.size()))), wanted);
    }
  }
  set_num_threads(threads);
}

TEST(Index, TrianglesCutAtTheDiagonal) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_EQ(values(tril(x).select(0, 1)),
            (std::vector<double>{1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(values(triu(x, 1).select(0, 0)),
            (std::vector<double>{0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1}));
  for (const int64_t diagonal : {-4, -1, 0, 2, 9}) {
    expect_near(tril(x, diagonal) + triu(x, diagonal + 1), x, 0, 0);
  }
}

}  // namespace
}  // namespace lockstep

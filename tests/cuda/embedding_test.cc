#include <gtest/gtest.h>

#include "core/ops/index/index.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

TEST(CudaEmbedding, CopiesRowsOfAnyWidth) {
  for (const DType dtype : kFloating) {
    for (const int64_t width : {1, 3, 4, 8, 33}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << width << " wide");
      expect_same_bits(
          {random_tensor({50, width}, dtype), repeated_indices({7, 9}, 50)},
          [](const std::vector<Tensor>& t) { return std::vector<Tensor>{embedding(t[0], t[1])}; });
    }
  }
}

TEST(CudaEmbedding, GradientsAreAddedInTheOrderOfTheIndices) {
  for (const DType dtype : kFloating) {
    for (const int64_t width : {1, 8, 200}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << width << " wide");
      expect_same_bits({random_tensor({77, width}, dtype), repeated_indices({77}, 30)},
                       [](const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{
                             embedding_dense_backward(t[0], t[1], 30),
                             embedding_dense_backward(t[0], t[1], 40, 15, true)};
                       });
    }
  }
}

TEST(CudaEmbedding, GradientsAreAddedToWhatArrivedBefore) {
  for (const DType dtype : kFloating) {
    for (const int64_t width : {1, 8, 200}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << width << " wide");
      expect_same_bits({random_tensor({77, width}, dtype), repeated_indices({77}, 30),
                        random_tensor({40, width}, dtype)},
                       [](const std::vector<Tensor>& t) {
                         const Tensor place = t[2].clone();
                         _embedding_gradient_added_(place, t[0], t[1], 15, true);
                         return std::vector<Tensor>{
                             place, _embedding_gradient_added(t[2], t[0], t[1], -1, false)};
                       });
    }
  }
}

TEST(CudaEmbedding, ManyIndicesAndManyRowsKeepTheirOrder) {
  // Work units of several warps, and row numbers of one, two and three radix digits.
  for (const int64_t rows : {3, 300, 70000}) {
    expect_same_bits({random_tensor({6000, 2}), repeated_indices({6000}, rows).to(DType::kI32)},
                     [rows](const std::vector<Tensor>& t) {
                       return std::vector<Tensor>{embedding_dense_backward(t[0], t[1], rows)};
                     });
  }
}

TEST(CudaEmbedding, NothingIsTheGradientOfNothing) {
  expect_same_bits({zeros({0, 3}), zeros({0}, DType::kI64)}, [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{embedding_dense_backward(t[0], t[1], 4)};
  });
}

}  // namespace
}  // namespace lockstep

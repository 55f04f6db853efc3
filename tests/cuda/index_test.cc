#include "core/ops/index/index.h"

#include <gtest/gtest.h>

#include "core/ops/index/advanced_index.h"
#include "core/ops/index/scatter.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/cuda/same_bits.h"

namespace lockstep {
namespace {

Tensor elements(IntList sizes, DType dtype, uint64_t seed = 1) {
  return is_floating(dtype) ? random_tensor(sizes, dtype, seed)
                            : (random_tensor(sizes, DType::kF32, seed) * 9).to(dtype);
}
/// Elements whose sums are exact, so that any order of additions gives the same bits.
Tensor small_integers(IntList sizes, DType dtype, uint64_t seed = 1) {
  return repeated_indices(sizes, 7, seed).to(dtype);
}

TEST(CudaIndexSelect, AlongAnyDimension) {
  for (const DType dtype : kDtypesOfEveryKind) {
    for (const int64_t dim : {0, 1, -1}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", dimension " << dim);
      expect_same_bits({elements({6, 5, 8}, dtype), repeated_indices({11}, 5)},
                       [dim](const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{index_select(t[0], dim, t[1])};
                       });
    }
  }
}

TEST(CudaGather, AlongAnyDimensionWithASmallerIndex) {
  for (const DType dtype : kDtypesOfEveryKind) {
    for (const int64_t dim : {0, 1, 2}) {
      expect_same_bits({elements({6, 5, 8}, dtype), repeated_indices({4, 5, 3}, 5)},
                       [dim](const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{gather(t[0], dim, t[1])};
                       });
    }
  }
}

TEST(CudaTriangle, OfAnyDiagonal) {
  for (const int64_t diagonal : {-7, -1, 0, 2, 9}) {
    expect_same_bits({random_tensor({3, 5, 8})}, [diagonal](const std::vector<Tensor>& t) {
      return std::vector<Tensor>{tril(t[0], diagonal), triu(t[0], diagonal)};
    });
  }
}

TEST(CudaIndexAdd, AddsInTheOrderOfTheIndex) {
  for (const DType dtype : kDtypesOfEveryKind) {
    for (const int64_t dim : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", dimension " << dim);
      Dims sizes{6, 5, 8};
      sizes[static_cast<size_t>(dim)] = 23;
      const bool exact = dtype == DType::kF32 || dtype == DType::kF64;
      expect_same_bits({exact ? elements({6, 5, 8}, dtype) : small_integers({6, 5, 8}, dtype),
                        exact ? elements(sizes, dtype, 2) : small_integers(sizes, dtype, 2),
                        repeated_indices({23}, 5)},
                       [dim](const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{index_add(t[0], dim, t[2], t[1], 2)};
                       });
    }
  }
}

TEST(CudaScatterAdd, AddsInTheOrderOfTheIndex) {
  for (const int64_t dim : {0, 1, 2}) {
    expect_same_bits({elements({6, 5, 8}, DType::kF32), elements({9, 9, 9}, DType::kF32, 2),
                      repeated_indices({5, 4, 7}, 5)},
                     [dim](const std::vector<Tensor>& t) {
                       return std::vector<Tensor>{scatter_add(t[0], dim, t[2], t[1])};
                     });
  }
}

TEST(CudaScatter, TheLastOfSeveralStays) {
  for (const DType dtype : kDtypesOfEveryKind) {
    for (const int64_t dim : {0, 1, 2}) {
      expect_same_bits({elements({6, 5, 8}, dtype), elements({9, 9, 9}, dtype, 2),
                        repeated_indices({5, 4, 7}, 5)},
                       [dim](const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{scatter(t[0], dim, t[2], t[1]),
                                                    scatter(t[0], dim, t[2], Scalar(3))};
                       });
    }
  }
}

TEST(CudaScatterReduce, JoinsInTheOrderOfTheIndex) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kI16}) {
    for (const char* const reduce : {"sum", "prod", "mean", "amax", "amin"}) {
      for (const bool include_self : {false, true}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << reduce << include_self);
        expect_same_bits(
            {elements({6, 8}, dtype), elements({9, 30}, dtype, 2), repeated_indices({5, 30}, 8)},
            [&](const std::vector<Tensor>& t) {
              return std::vector<Tensor>{scatter_reduce(t[0], 1, t[2], t[1], reduce, include_self)};
            });
      }
    }
  }
}

TEST(CudaIndexCopy, TheLastOfSeveralStays) {
  expect_same_bits({random_tensor({6, 5, 8}), random_tensor({6, 12, 8}, DType::kF32, 2),
                    repeated_indices({12}, 5)},
                   [](const std::vector<Tensor>& t) {
                     return std::vector<Tensor>{index_copy(t[0], 1, t[2], t[1])};
                   });
}

TEST(CudaIndexFill, NegativeIndicesCountFromTheEnd) {
  for (const DType dtype : kDtypesOfEveryKind) {
    expect_same_bits({elements({6, 5, 8}, dtype), tensor_from<int64_t>({-1, 2, 2}, {3})},
                     [](const std::vector<Tensor>& t) {
                       return std::vector<Tensor>{index_fill(t[0], 1, t[1], Scalar(4)),
                                                  index_fill(t[0], -1, t[1], Scalar(1.5))};
                     });
  }
}

/// Indices of a tensor [5, 6, 4, 3]: in adjacent dimensions at the front, in the middle and at the
/// end, and in separate dimensions.
std::vector<std::vector<Tensor>> index_lists() {
  const Tensor a = tensor_from<int64_t>({0, -1, 2, 0, 0, 2}, {2, 3});
  const Tensor b = tensor_from<int64_t>({1, -3, 1}, {3});
  const Tensor none;
  return {{a},          {none, a},          {none, none, none, b}, {none, a, b},
          {a, none, b}, {b, none, none, b}, {a, b, b, b}};
}

TEST(CudaIndex, ReadsAndWritesWhereverTheIndicesStand) {
  for (const std::vector<Tensor>& indices : index_lists()) {
    std::vector<Tensor> arguments{random_tensor({5, 6, 4, 3})};
    arguments.insert(arguments.end(), indices.begin(), indices.end());
    const Tensor read = index(arguments[0], indices);
    arguments.push_back(random_tensor(read.sizes(), DType::kF32, 2));
    arguments.push_back(random_tensor({}, DType::kF32, 3));
    const auto there = [](const Tensor& t, Device device) {
      return t.defined() ? t.to(device) : t;
    };
    const auto results = [&](Device device) {
      std::vector<Tensor> t;
      for (const Tensor& argument : arguments) t.push_back(there(argument, device));
      const std::vector<Tensor> list(t.begin() + 1, t.end() - 2);
      const Tensor &values = t[t.size() - 2], &number = t.back();
      return std::vector<Tensor>{index(t[0], list), index_put(t[0], list, values),
                                 index_put(t[0], list, values, true),
                                 index_put(t[0], list, number, true)};
    };
    const std::vector<Tensor> got = results(kGpu), want = results(kCPU);
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE("result " + std::to_string(i));
      expect_equal_bits(got[i], want[i]);
    }
  }
}

TEST(CudaIndex, OneOutOfRangeIsThrownWhenTheDeviceIsWaitedFor) {
  const Tensor self = random_tensor({5, 3}).to(kGpu);
  const Tensor bad = tensor_from<int64_t>({1, 5}, {2}).to(kGpu);
  const Tensor read = index_select(self, 0, bad);
  expect_error<Error>([&] { read.to(kCPU); },
                      "[index_select] index out of range: expected at least 0 and less than 5, got "
                      "5");
  // Valid indices were read, and the device still works.
  expect_equal_bits(read.select(0, 0), self.select(0, 1));
}

}  // namespace
}  // namespace lockstep

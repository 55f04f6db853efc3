#include <cmath>

#include "autograd/autograd.h"
#include "core/ops/forms/index.h"
#include "core/ops/index/scatter.h"
#include "core/ops/reduce/reduce.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Reduces rows of 2, 3 and 5, 4 into row 1 of three, and 1, 7 into row 0.
Tensor reduced(std::string_view how, bool include_self) {
  const Tensor self = tensor_of({10, 20, 30, 40, 50, 60}).reshape({3, 2});
  const Tensor source = tensor_of({2, 3, 1, 7, 5, 4}).reshape({3, 2});
  const Tensor index = tensor_from<int64_t>({1, 0, 1}, {3});
  return index_reduce(self, 0, index, source, how, include_self);
}

TEST(IndexReduce, ReducesSlicesIntoThoseAtTheIndex) {
  EXPECT_EQ(values(reduced("prod", true)), (Numbers{10, 140, 300, 480, 50, 60}));
  EXPECT_EQ(values(reduced("prod", false)), (Numbers{1, 7, 10, 12, 50, 60}));
  EXPECT_EQ(values(reduced("amax", true)), (Numbers{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(values(reduced("amax", false)), (Numbers{1, 7, 5, 4, 50, 60}));
  EXPECT_EQ(values(reduced("amin", true)), (Numbers{1, 7, 2, 3, 50, 60}));
  EXPECT_EQ(values(reduced("mean", false)), (Numbers{1, 7, 3.5, 3.5, 50, 60}));
  expect_values(reduced("mean", true).select(0, 0), {5.5, 13.5});
  expect_error<Error>([] { reduced("sum", true); }, "[index_reduce]", "sum");
}

TEST(IndexReduce, WorksAlongAnyDimensionAndInPlace) {
  const Tensor self = counting({2, 3});
  const Tensor source = tensor_of({7, 1, 2, 9}).reshape({2, 2});
  const Tensor index = tensor_from<int32_t>({2, 2}, {2});
  const Tensor wanted = index_reduce(self, 1, index, source, "amax");
  EXPECT_EQ(values(wanted), (Numbers{0, 1, 7, 3, 4, 9}));
  index_reduce_(self, -1, index, source, "amax");
  EXPECT_EQ(values(self), values(wanted));
}

TEST(IndexReduce, InPlaceHasTheGradientsOfTheOtherForm) {
  const Tensor start = tensor_of({3, 5}, DType::kF64).set_requires_grad();
  const Tensor source = tensor_of({2, 4}, DType::kF64).set_requires_grad();
  const Tensor index = tensor_from<int64_t>({0, 0}, {2});
  const Tensor changed = start.clone();
  index_reduce_(changed, 0, index, source, "prod");
  const std::vector<Tensor> got = grad({sum(changed)}, {start, source});
  EXPECT_EQ(values(got[0]), (Numbers{8, 1}));
  EXPECT_EQ(values(got[1]), (Numbers{12, 6}));
}

}  // namespace
}  // namespace lockstep

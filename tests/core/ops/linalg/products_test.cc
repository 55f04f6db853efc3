#include "core/ops/linalg/matrix_functions.h"
#include "tests/core/expect_error.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Kron, MultipliesEachElementByTheWholeOther) {
  const Tensor product = kron(tensor_of({1, 2}), tensor_of({10, 20, 30}));
  EXPECT_EQ(values(product), (Numbers{10, 20, 30, 20, 40, 60}));
  const Tensor matrix = kron(counting({2, 2}), counting({1, 2}));
  EXPECT_EQ(matrix.shape(), "[2, 4]");
  EXPECT_EQ(values(matrix), (Numbers{0, 0, 0, 1, 0, 2, 0, 3}));
  // The one of fewer dimensions has further ones of size 1 in front.
  const Tensor wide = kron(tensor_of({1, 10}), counting({2, 2}));
  EXPECT_EQ(wide.shape(), "[2, 4]");
  EXPECT_EQ(values(wide), (Numbers{0, 1, 0, 10, 2, 3, 20, 30}));
}

TEST(Inner, SumsOverTheLastDimensions) {
  EXPECT_EQ(values(inner(tensor_of({1, 2}), tensor_of({3, 4}))), Numbers{11});
  const Tensor products = inner(counting({2, 1, 2}), counting({3, 2}));
  EXPECT_EQ(products.shape(), "[2, 1, 3]");
  EXPECT_EQ(values(products), (Numbers{1, 3, 5, 3, 13, 23}));
  EXPECT_EQ(values(vdot(tensor_of({1, 2}), tensor_of({3, 4}))), Numbers{11});
  expect_error<ShapeError>([] { vdot(counting({2}), counting({3})); }, "[vdot]");
}

}  // namespace
}  // namespace lockstep

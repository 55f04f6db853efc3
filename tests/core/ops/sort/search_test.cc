#include "core/ops/forms/sort.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Search, FindsThePlaceOfANumberThatTheSequenceCannotHold) {
  const Tensor bytes = tensor_of({10, 50, 200}, DType::kU8);
  EXPECT_EQ(searchsorted(bytes, 300).item<int64_t>(), 3);  // as uint8 it would be 44
  EXPECT_EQ(searchsorted(bytes, -1).item<int64_t>(), 0);   // and this 255
  EXPECT_EQ(bucketize(300, bytes).item<int64_t>(), 3);
  EXPECT_EQ(searchsorted(bytes, 50).item<int64_t>(), 1);
}

}  // namespace
}  // namespace lockstep

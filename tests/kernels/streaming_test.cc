// Non-temporal stores, which bypass the caches, give the same results as plain stores.

#include "kernels/cpu/streaming.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/ops/factory/copy.h"
#include "core/ops/loss/loss.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

TEST(Streaming, CopiesAnyLengthToAnyAddress) {
  std::vector<uint8_t> from(700);
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (size_t offset = 0; offset < 70; ++offset) {
    for (const size_t n : {0, 1, 31, 63, 64, 65, 128, 200, 511}) {
      std::vector<uint8_t> to(700, 0);
      cpu::stream(to.data() + offset, from.data() + offset / 2, static_cast<int64_t>(n));
      cpu::finish_streaming();
      std::vector<uint8_t> expected(700, 0);
      std::copy_n(from.begin() + static_cast<int64_t>(offset / 2), n,
                  expected.begin() + static_cast<int64_t>(offset));
      EXPECT_EQ(to, expected) << offset << ", " << n;
    }
  }
}

TEST(Streaming, IsForWhatNoCacheHolds) {
  EXPECT_FALSE(cpu::worth_streaming(1 << 20));
  EXPECT_EQ(cpu::worth_streaming(int64_t{1} << 30), cpu::worth_streaming(int64_t{1} << 40));
}

// 104 MB, enough for streamed results; results for copies of its parts are not streamed.
constexpr int64_t kRows = 5201;
constexpr int64_t kColumns = 5003;

Tensor large() {
  const Tensor x = empty({kRows, kColumns});
  float* const data = x.data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = static_cast<float>(i * 7919 % 10007) / 1024;
  return x;
}

/// Expects that `op` of the whole tensor equals `op` of some of its rows or columns alone.
template <class Op>
void expect_parts(int64_t dim, Op op) {
  const Tensor x = large();
  const Tensor whole = op(x);
  for (const int64_t first : {int64_t{0}, x.size(dim) - 37}) {
    const Tensor part = op(x.slice(dim, first, first + 37).contiguous());
    EXPECT_EQ(values(whole.slice(dim, first, first + 37)), values(part)) << first;
  }
}

TEST(Streaming, OfPointwiseResultsChangesNoElement) {
  expect_parts(0, [](const Tensor& x) { return exp(x); });
  expect_parts(1, [](const Tensor& x) { return x + x; });
}

TEST(Streaming, OfSoftmaxChangesNoElement) {
  for (const int64_t dim : {0, 1}) {
    expect_parts(1 - dim, [&](const Tensor& x) { return softmax(x, dim); });
    expect_parts(1 - dim, [&](const Tensor& x) { return log_softmax(x, dim); });
  }
}

TEST(Streaming, OfTransposedOperandsChangesNoElement) {
  const Tensor x = large();
  const Tensor row = x.slice(1, 0, 1).contiguous().view({kRows});
  const Tensor turned = x.t().contiguous(), sum = empty({kColumns, kRows});
  add_out(sum, x.t(), row);
  const float *from = x.data<float>(), *to = turned.data<float>(), *sums = sum.data<float>();
  int64_t wrong = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const float element = from[r * kColumns + c];
      const int64_t at = c * kRows + r;
      if (to[at] != element || sums[at] != element + from[r * kColumns]) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lockstep

// The fused attention of the cpu, block by block: against plain operators in f64, at the edges of
// blocks, and in memory that does not grow with the number of keys.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "autograd/autograd.h"
#include "core/ops/attention/attention.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "kernels/cpu/block_product.h"
#include "tests/core/non_finite.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr float kHidden = -kInfinityF32;

/// One call: query [2, heads, rows, width], key and value [2, key_heads, columns, width].
struct Call {
  int64_t heads, key_heads, rows, columns, width;
  bool causal = false;
  Tensor mask = {};
};

/// Output and gradients of query, key and value; `fused` or from plain operators.
std::vector<Tensor> results_of(const Call& call, DType dtype, bool fused) {
  // Drawn in bf16, so that every dtype has the same numbers.
  const auto drawn = [&](IntList sizes, uint64_t seed) {
    return random_tensor(sizes, DType::kBF16, seed).to(dtype);
  };
  std::vector<Tensor> leaves = {drawn({2, call.heads, call.rows, call.width}, 1),
                                drawn({2, call.key_heads, call.columns, call.width}, 2),
                                drawn({2, call.key_heads, call.columns, call.width}, 3)};
  for (Tensor& leaf : leaves) leaf.set_requires_grad();
  OptionalTensor mask;
  const Tensor cast = call.mask.defined() ? call.mask.to(fused ? DType::kF32 : dtype) : Tensor();
  if (cast.defined()) mask = cast;
  const Tensor out =
      fused ? scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], mask, 0, call.causal,
                                           std::nullopt, true)
            : std::get<0>(_scaled_dot_product_attention_math(
                  leaves[0], leaves[1], leaves[2], mask, 0, call.causal, {}, std::nullopt, true));
  std::vector<Tensor> results =
      grad({out}, leaves, {drawn({2, call.heads, call.rows, call.width}, 4)});
  results.push_back(out.detach());
  return results;
}

/// Checks the fused results of `dtype` against f64: `tolerance` is relative to the largest element.
void expect_f64(const Call& call, DType dtype, double tolerance) {
  const std::vector<Tensor> got = results_of(call, dtype, true);
  const std::vector<Tensor> want = results_of(call, DType::kF64, false);
  const char* const names[] = {"query", "key", "value", "output"};
  for (size_t i = 0; i < 4; ++i) {
    const double size = max(abs(want[i])).item<double>();
    const double apart = max(abs(got[i].to(DType::kF64) - want[i])).item<double>();
    // The gradients of a single key and its queries are 0.
    EXPECT_LE(apart, tolerance * std::max(size, 1e-3)) << names[i];
  }
}

TEST(AttentionBlocks, AgreeWithF64AtEverySize) {
  for (const int64_t rows : {1, 17, 64, 65, 200}) {
    for (const int64_t columns : {1, 63, 128, 190}) {
      for (const int64_t width : {3, 16, 72}) {
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", width " << width
                                          << (causal ? ", causal" : ""));
          expect_f64({2, 1, rows, columns, width, causal}, DType::kF32, 4e-6);
          expect_f64({2, 2, rows, columns, width, causal}, DType::kBF16, 2e-2);
        }
      }
    }
  }
}

TEST(AttentionBlocks, AgreeWithF64WithAMask) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const double tolerance = dtype == DType::kF32 ? 4e-6 : 2e-2;
    expect_f64({4, 2, 70, 150, 16, false, random_tensor({70, 150})}, dtype, tolerance);
    expect_f64({4, 4, 130, 65, 16, false, random_tensor({2, 1, 130, 65})}, dtype, tolerance);
  }
}

TEST(AttentionBlocks, KeysThatAreHiddenAsWholeBlocksDoNotCount) {
  // Queries 3 to 69 see only keys of the third block, query 5 sees none.
  Tensor mask = zeros({70, 150});
  mask.slice(0, 3).slice(1, 0, 130).fill_(kHidden);
  mask.select(0, 5).fill_(kHidden);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Call call{2, 1, 70, 150, 16, false, mask};
    expect_f64(call, dtype, dtype == DType::kF32 ? 4e-6 : 2e-2);
    const std::vector<Tensor> results = results_of(call, dtype, true);
    for (const size_t i : {0, 3}) {
      EXPECT_TRUE(equal(results[i].select(2, 5), zeros({2, 2, 16}, {dtype})));
    }
  }
}

TEST(AttentionBlocks, ALaterKeyWithAMuchLargerScoreTakesOver) {
  const Tensor query = full({1, 1, 70, 16}, 4.0);
  Tensor key = zeros({1, 1, 200, 16});
  key.select(2, 190).fill_(40.0);
  const Tensor value = random_tensor({1, 1, 200, 16});
  const Tensor out = scaled_dot_product_attention(query, key, value);
  EXPECT_TRUE(equal(out, value.slice(2, 190, 191).expand({1, 1, 70, 16})));
}

TEST(AttentionBlocks, NaNReachesOnlyTheQueriesThatSeeIt) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Tensor key = random_tensor({1, 1, 150, 16}, dtype);
    key.select(2, 100).fill_(kNaNF32);
    const Tensor query = random_tensor({1, 1, 150, 16}, dtype, 2);
    const Tensor out = scaled_dot_product_attention(query, key, query, {}, 0, true);
    EXPECT_TRUE(all(isfinite(out.slice(2, 0, 100))).item<bool>());
    EXPECT_TRUE(all(isnan(out.slice(2, 100))).item<bool>());
  }
}

TEST(AttentionBlocks, SumsOfBF16AreF32) {
  // 4096 equal weights: a sum in bf16 would stop at 256.
  const Tensor query = zeros({1, 1, 2, 16}, {DType::kBF16});
  const Tensor key = zeros({1, 1, 4096, 16}, {DType::kBF16});
  const Tensor value = full({1, 1, 4096, 16}, 1.5, {DType::kBF16});
  EXPECT_TRUE(equal(scaled_dot_product_attention(query, key, value),
                    full({1, 1, 2, 16}, 1.5, {DType::kBF16})));
}

/// Peak of the resident memory since the last call, in bytes, or nothing if it cannot be measured.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << "5";
    before_ = field("VmRSS:");
  }
  bool measures() const { return before_ > 0 && field("VmHWM:") < before_ + (8 << 20); }
  int64_t growth() const { return field("VmHWM:") - before_; }

 private:
  static int64_t field(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      int64_t kib = 0;
      if (word == name && status >> kib) return kib << 10;
    }
    return -1;
  }
  int64_t before_;
};

TEST(AttentionBlocks, NoMemoryGrowsWithTheNumberOfKeys) {
  // Scores of 64 queries with all keys would be 64 MiB, and those of a backward pass twice that.
  constexpr int64_t kKeys = 1 << 18;
  const Tensor query = random_tensor({1, 1, 64, 8});
  const Tensor key = random_tensor({1, 1, kKeys, 8}, DType::kF32, 2);
  const PeakMemory peak;
  if (!peak.measures()) GTEST_SKIP() << "this system does not say how much memory is in use";
  const auto [out, logsumexp] = _scaled_dot_product_flash_attention_for_cpu(query, key, key);
  EXPECT_LT(peak.growth(), 8 << 20);
  _scaled_dot_product_flash_attention_for_cpu_backward(query, query, key, key, out, logsumexp, 0.0,
                                                       false);
  EXPECT_LT(peak.growth(), 2 * key.nbytes() + (8 << 20));
}

#if LS_HAVE_WIDE_VECTORS

TEST(AttentionBlocks, ProductsHaveTheSameBitsWithWideVectors) {
  if (!cpu::has_wide_vectors()) GTEST_SKIP() << "this processor has none";
  const int64_t side = 48;
  const Tensor a = random_tensor({side, side}), b = random_tensor({side, side}, DType::kF32, 2);
  const Tensor keep = random_tensor({side}, DType::kF32, 3);
  Tensor narrow = ones({side, side}), wide = ones({side, side});
  const auto compute = [&]<class P>(Tensor& to) {
    // Parts of the sums and of the columns; 48 columns are one and a half tiles of wide vectors.
    cpu::multiply<P>({a.data<float>(), 1, side, b.data<float>(), side, to.data<float>(), side},
                     side, keep.data<float>(), [&](int64_t row) {
                       return cpu::Span{row / 2, side - 1, row / 16 * 16, side};
                     });
  };
  compute.operator()<cpu::F32Arithmetic>(narrow);
  cpu::run_wide([&]<class P>() { compute.operator()<P>(wide); });
  EXPECT_TRUE(equal(narrow, wide));
}

#endif

}  // namespace
}  // namespace lockstep

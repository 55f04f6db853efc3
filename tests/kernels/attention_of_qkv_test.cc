#include "core/ops/attention/attention_of_qkv.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "core/device/copies.h"
#include "core/dispatch/observer.h"
#include "core/ops/pointwise/pointwise.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

struct Heads {
  int64_t heads, key_heads;
};

/// Result and gradient of a joint projection with heads of 16 elements.
std::vector<Tensor> results_of(bool fused, Heads h, int64_t rows, DType dtype, bool causal) {
  const Tensor qkv =
      random_tensor({2, rows, (h.heads + 2 * h.key_heads) * 16}, dtype).set_requires_grad();
  const auto attend = fused ? attention_of_qkv : attention_of_qkv_reference;
  const Tensor out = attend(qkv, h.heads, h.key_heads, causal, std::nullopt);
  const Tensor gradient = grad({out}, {qkv}, {random_tensor(out.sizes(), dtype, 2)})[0];
  return {out.detach(), gradient};
}

TEST(AttentionOfQkv, HasTheBitsOfItsReference) {
  for (const Heads h : {Heads{3, 3}, Heads{4, 2}, Heads{4, 1}}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << h.heads << " and " << h.key_heads << " heads, "
                                        << name(dtype) << (causal ? ", causal" : ""));
        const auto got = results_of(true, h, 70, dtype, causal);
        const auto want = results_of(false, h, 70, dtype, causal);
        for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
      }
    }
  }
}

TEST(AttentionOfQkv, ScaleReplacesTheDefault) {
  const Tensor qkv = random_tensor({1, 5, 24});
  EXPECT_TRUE(equal(attention_of_qkv(qkv, 1, 1, false, 0.7),
                    attention_of_qkv_reference(qkv, 1, 1, false, 0.7)));
}

/// Names of the operators that are called.
class Names final : public CallObserver {
 public:
  void enter(const Operator& op, KeySet, const Stack&) override { names.emplace_back(op.name()); }
  void exit(const Operator&, const Stack&) noexcept override {}
  std::vector<std::string> names;
};

TEST(AttentionOfQkv, TheGradientIsWrittenByOneOperatorWithoutCopies) {
  const Tensor qkv = random_tensor({2, 70, 96}).set_requires_grad();
  const Tensor out = attention_of_qkv(qkv, 2, 2, true);
  EXPECT_TRUE(out.is_contiguous());
  const Tensor weights = random_tensor(out.sizes());
  const int64_t before = hidden_copies().copies;
  Names observed;
  {
    const ObserverGuard guard(observed);
    EXPECT_TRUE(grad({out}, {qkv}, {weights})[0].is_contiguous());
  }
  EXPECT_EQ(hidden_copies().copies, before);
  EXPECT_EQ(observed.names, std::vector<std::string>{"_flash_attention_of_qkv_backward"});
}

TEST(AttentionOfQkv, AProjectionMayBeASliceOfMore) {
  const Tensor more = random_tensor({2, 70, 100});
  const Tensor slice = more.slice(2, 2, 98);
  EXPECT_TRUE(
      equal(attention_of_qkv(slice, 2, 2, true), attention_of_qkv(slice.contiguous(), 2, 2, true)));
}

TEST(AttentionOfQkv, ABatchMayBeEmpty) {
  EXPECT_EQ(attention_of_qkv(zeros({0, 3, 24}), 2, 2).shape(), "[0, 3, 8]");
  EXPECT_EQ(attention_of_qkv(zeros({2, 0, 24}), 2, 2).shape(), "[2, 0, 8]");
}

TEST(AttentionOfQkv, HeadsThatDoNotFillTheRowsAreRefused) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Tensor qkv = zeros({2, 3, 24}, {dtype});
    for (const Heads h : {Heads{0, 0}, Heads{2, 0}, Heads{3, 2}, Heads{2, 3}, Heads{25, 25},
                          Heads{5, 5}, Heads{-2, -2}}) {
      EXPECT_THROW(attention_of_qkv(qkv, h.heads, h.key_heads), ShapeError);
    }
    EXPECT_THROW(attention_of_qkv(qkv.select(0, 0), 2, 2), ShapeError);
  }
}

TEST(AttentionOfQkv, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      const auto results = results_of(true, {4, 2}, 150, dtype, true);
      if (first.empty()) first = results;
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(results[i], first[i])) << threads;
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace lockstep

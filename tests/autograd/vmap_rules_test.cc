// What vmap makes of batching rules, and of their mistakes.

#include <gtest/gtest.h>

#include <vector>

#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using List = std::vector<Tensor>;
using Numbers = std::vector<double>;

LS_OP(vmap_lost, Tensor(const Tensor&), "vmap_test_lost(Tensor self) -> Tensor")
    .composite([](const Tensor& x) { return x * 2; })
    .batching([](const Operator&, uint64_t, Stack& stack) {
      stack.results().emplace_back(stack.arguments()[0].tensor().select(0, 0) * 2);
    });

TEST(VmapRules, MustReturnTheBatchInFront) {
  EXPECT_THROWS(
      vmap([](const Tensor& x) { return op_vmap_lost(x); })(sample::matrix(3, 2, false)),
      DispatchError,
      "[vmap_test_lost] its batching rule returned float64[2] on cpu: expected the batch of 3 in "
      "front. Correct the rule; opcheck tests it.");
}

LS_OP(halves, List(const Tensor&), "vmap_test_halves(Tensor self) -> Tensor[]")
    .composite([](const Tensor& x) {
      return List{x * 0.5, x * 0.25};
    })
    .batching([](const Operator&, uint64_t, Stack& stack) {
      const Tensor x = stack.arguments()[0].tensor();
      stack.results().emplace_back(List{x * 0.5, x * 0.25, x * 8});
    });

TEST(VmapRules, MayReturnLists) {
  const Tensor x = sample::matrix(2, 2, false);
  size_t parts = 0;
  const List got = vmap([&](const Tensor& sample) {
    const List list = op_halves(sample);
    parts = list.size();
    EXPECT_EQ(list[0].shape(), "[2]");
    return list;
  })(x);
  EXPECT_EQ(parts, 3u) << "the rule ran";
  EXPECT_EQ(elements(got[1]), elements(x * 0.25));
  EXPECT_EQ(elements(got[2]), elements(x * 8));
}

Outputs shaped_like(const Tensor& x) { return one(to_dims(x.sizes()), x.dtype()); }
void copy_numbers(const Out& out, const In& x) {
  for (int64_t i = 0; i < x.numel; ++i) out.data<double>()[i] = x.data<double>()[i];
}

LS_OP(tenfold, Tensor(const Tensor&), "vmap_test_tenfold(Tensor self) -> Tensor")
    .structured(shaped_like)
    .in_place()
    .not_differentiable("nobody needs it")
    .batching([](const Operator&, uint64_t batched, Stack& stack) {
      EXPECT_EQ(batched, 1u);
      stack.results().emplace_back(stack.arguments()[0].tensor() * 10);
    });
LS_KERNEL(CPU, "vmap_test_tenfold", copy_numbers, Strides::kContiguous);

TEST(VmapRules, ANewResultOfAnInPlaceFormIsCopiedIntoTheBatch) {
  const Tensor x = sample::matrix(2, 2, false);
  const Numbers before = elements(x);
  const Tensor got = vmap([](const Tensor& sample) {
    const Tensor& result = op_tenfold.in_place(sample);
    EXPECT_TRUE(result.is_same(sample));
    return result * 1;
  })(x);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(elements(x)[i], 10 * before[i]);
  EXPECT_EQ(elements(got), elements(x));
}

TEST(VmapRules, RefusedWritesNameOperatorArgumentAndTensor) {
  const Tensor shared = zeros({2}, DType::kF64), x = sample::matrix(3, 2, false);
  EXPECT_THROWS(vmap([&](const Tensor& sample) { return shared.add_(sample); })(x), AutogradError,
                "would write every sample of a batch into one tensor: self is float64[2]",
                "which is not batched by the same vmap. Use the form that returns a new tensor, or "
                "make the destination from a batched tensor (zeros_like, clone).");
}

}  // namespace
}  // namespace lockstep

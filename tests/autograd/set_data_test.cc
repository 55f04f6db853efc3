// set_data: a leaf that takes over the elements of another tensor.

#include "autograd/set_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/accumulate_grad.h"
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/hooks.h"
#include "autograd/meta.h"
#include "autograd/vmap.h"
#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/autograd/sample_operators.h"
#include "tests/autograd/throws.h"

namespace lockstep {
namespace {

using sample::elements;
using sample::leaf;
using ::testing::ElementsAre;

TEST(SetData, ALeafGetsTheElementsAndTheGeometryOfTheSource) {
  const Tensor x = leaf({1, 2});
  const Tensor source = sample::matrix(3, 4, false).t().slice(0, 1, 3);
  set_data(x, source);
  EXPECT_EQ(x.shape(), "[2, 3]");
  EXPECT_THAT(x.strides(), ElementsAre(1, 4));
  EXPECT_EQ(x.storage_offset(), 1);
  EXPECT_EQ(x.data(), source.data());
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ(x.numel(), 6);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());
  (x * x).sum().backward();
  EXPECT_EQ(elements(x.grad()), elements(source * 2));
}

TEST(SetData, ALeafOfAnotherDtypeOrDeviceHasGradientsOfThatKind) {
  const Tensor x = leaf({1, 2});
  (x * 3).sum().backward();
  const Node* const sink = gradient_edge(x).node.get();
  const Tensor before = x * 2;
  set_data(x, tensor_from<float>({5, 6}, {2}));
  EXPECT_EQ(x.dtype(), DType::kF32);
  EXPECT_EQ(x.grad().dtype(), DType::kF32);
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 3));
  EXPECT_FALSE(x.grad().requires_grad());
  EXPECT_NE(gradient_edge(x).node.get(), sink) << "which knows the old dtype";
  before.sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(3, 3)) << "a graph of the old elements is cut off";
  (x * 4).sum().backward();
  EXPECT_THAT(elements(x.grad()), ElementsAre(7, 7));
  set_data(x, empty({2}, {DType::kF32, kMeta}));
  EXPECT_EQ(x.device(), kMeta);
  EXPECT_TRUE(x.key_set().has(Key::kMeta));
  EXPECT_FALSE(x.key_set().has(Key::kCPU));
  EXPECT_TRUE(x.key_set().has(Key::kAutograd));
}

TEST(SetData, CountsAsAChangeOfTheLeafButNotOfTheSource) {
  const Tensor x = leaf({1, 2}), source = sample::vector({3, 4}), w = leaf({1, 1});
  const uint32_t version = x.version();
  const Tensor saves_leaf = x * w, saves_source = source * w;
  set_data(x, source);
  EXPECT_EQ(x.version(), version + 1);
  EXPECT_THROWS(saves_leaf.sum().backward(), AutogradError, "changed in place");
  saves_source.sum().backward();
  EXPECT_THAT(elements(w.grad()), ElementsAre(3, 4));
  const uint32_t now = x.version();
  set_data(x, x);
  EXPECT_EQ(x.version(), now) << "nothing changes";
  source.add_(source);
  EXPECT_EQ(x.version(), now + 1) << "the elements are shared";
}

TEST(SetData, APreparedCastIsDropped) {
  const Tensor x = leaf({1, 2}).to(DType::kF32).detach().set_requires_grad();
  set_prepared_cast(x, tensor_from<float>({7, 8}, {2}).to(DType::kBF16));
  set_data(x, tensor_from<float>({3, 4}, {2}));
  EXPECT_FALSE(find_meta(x)->prepared_cast.defined());
}

TEST(SetData, ATensorWithoutAutogradsStateMayBeSetToo) {
  const Tensor x = sample::vector({1, 2});
  set_data(x, tensor_from<int64_t>({5, 6, 7}, {3}));
  EXPECT_EQ(x.dtype(), DType::kI64);
  EXPECT_EQ(x.grad_fn(), nullptr);
  {
    const InferenceModeGuard guard;
    const Tensor y = sample::vector({3});
    set_data(x, y);
  }
  EXPECT_TRUE(x.is_inference());
}

TEST(SetData, WhatIsNoLeafOfItsOwnMemoryIsRefused) {
  const Tensor x = leaf({1, 2}), source = sample::vector({3, 4});
  EXPECT_THROWS(set_data(x * 2, source), AutogradError,
                "[set_data] expected a leaf with memory of its own, got a computed tensor, a view",
                "Use to().");
  EXPECT_THROWS(set_data(source.slice(0, 0, 1), source), AutogradError, "a view");
  EXPECT_THROWS(vmap([&](const Tensor& sample) {
                  set_data(sample, source);
                  return sample;
                })(sample::matrix(2, 2, false)),
                AutogradError, "sample of a batch");
  EXPECT_THROWS(set_data(x, tensor_from<int64_t>({5, 6}, {2})), AutogradError,
                "requires grad: expected floating elements, got int64.");
  EXPECT_THAT(elements(x), ElementsAre(1, 2));
  const std::string busy = " has hooks or a place for its gradient: expected neither.";
  {
    const Tensor hooked = leaf({1, 2});
    hooked.register_hook([](const Tensor&) { return Tensor(); });
    EXPECT_THROWS(set_data(hooked, source), AutogradError, busy.c_str());
  }
  const Tensor placed = leaf({1, 2});
  set_grad_destination(placed, zeros({2}, DType::kF64));
  EXPECT_THROWS(set_data(placed, source), AutogradError, busy.c_str());
}

}  // namespace
}  // namespace lockstep

// Whatever is exported comes back the same, and is let go of once.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <vector>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/dlpack.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"

namespace lockstep {
namespace {

/// A view of any dtype with permuted, skipped and repeated elements.
Tensor any_view() {
  const auto dtype = static_cast<DType>(*rc::gen::inRange(0, kDTypeCount));
  const auto rank = *rc::gen::inRange<size_t>(0, 5);
  const auto sizes = *rc::gen::container<std::vector<int64_t>>(rank, rc::gen::inRange(0, 5));
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  Tensor view = arange(count).to(dtype).view(sizes);
  for (int64_t dim = 0; dim < view.dim(); ++dim) {
    if (*rc::gen::arbitrary<bool>()) {
      view = view.slice(dim, *rc::gen::inRange(0, 3), std::nullopt, *rc::gen::inRange(1, 4));
    }
    const int64_t other = *rc::gen::inRange<int64_t>(0, view.dim());
    view = view.transpose(dim, other);
  }
  if (*rc::gen::arbitrary<bool>()) {
    Dims expanded = to_dims(view.sizes());
    expanded.insert(0, *rc::gen::inRange(0, 4));
    view = view.expand(expanded);
  }
  return view;
}

void expect_same(const Tensor& back, const Tensor& sent) {
  RC_ASSERT(back.dtype() == sent.dtype());
  RC_ASSERT(same(back.sizes(), sent.sizes()));
  if (sent.numel() == 0) return;
  const bool same_memory = back.data() == sent.data();
  RC_ASSERT(same_memory);
  for (size_t i = 0; i < sent.sizes().size(); ++i) {
    RC_ASSERT(sent.sizes()[i] == 1 || back.strides()[i] == sent.strides()[i]);
  }
}

RC_GTEST_PROP(DlpackProperty, WhatIsExportedComesBackTheSame, ()) {
  const Tensor view = any_view();
  const uint32_t owners = view.storage()->use_count();
  {
    const bool versioned = *rc::gen::arbitrary<bool>();
    const Tensor back = versioned ? from_dlpack(to_dlpack(view).release())
                                  : from_dlpack(to_dlpack_unversioned(view).release());
    expect_same(back, view);
  }
  RC_ASSERT(view.storage()->use_count() == owners);
}

RC_GTEST_PROP(DlpackProperty, ACopyHasTheSameElements, ()) {
  const Tensor view = any_view();
  const Tensor back = from_dlpack(to_dlpack(view, {.copy = true}).release());
  RC_ASSERT(same(back.sizes(), view.sizes()));
  const bool other_memory = view.numel() == 0 || back.data() != view.data();
  RC_ASSERT(other_memory);
  const Tensor sent = view.to(DType::kF64).contiguous();
  const Tensor received = back.to(DType::kF64).contiguous();
  for (int64_t i = 0; i < view.numel(); ++i) {
    RC_ASSERT(received.data<double>()[i] == sent.data<double>()[i]);
  }
}

}  // namespace
}  // namespace lockstep

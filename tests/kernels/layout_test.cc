// Results are in channels-last format or keep the order of an input's dimensions where ATen's are,
// with the same elements as row-major results.

#include <gtest/gtest.h>

#include <functional>

#include "core/ops/attention/attention.h"
#include "core/ops/factory/copy.h"
#include "core/ops/image/pad.h"
#include "core/ops/image/pool.h"
#include "core/ops/image/upsample.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/norm/norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/sort/sort.h"
#include "core/ops/view/rearrange.h"
#include "core/ops/view/shape.h"
#include "core/ops/view/view.h"
#include "core/tensor/memory_format.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

constexpr double kOtherOrderOfSums = 1e-6;

using Function = std::function<Tensor(const Tensor&)>;
using Functions = std::vector<std::pair<const char*, Function>>;

Tensor last(const Tensor& tensor) {
  return clone(tensor,
               tensor.dim() == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d);
}

/// Checks that row-major images give row-major results and channels-last images channels-last ones.
void expect_kept(const Functions& functions, const Tensor& images) {
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    const Tensor rows = function(images);
    EXPECT_TRUE(rows.is_contiguous());
    const Tensor turned = last(images);
    const Tensor gapped = cat({turned, turned}, 1).slice(1, 0, images.size(1));
    for (const Tensor& given : {turned, gapped}) {
      const Tensor got = function(given);
      EXPECT_TRUE(same(got.strides(), channels_last_strides(rows.sizes())))
          << to_string(got.strides());
      expect_near(got, rows, kOtherOrderOfSums, kOtherOrderOfSums);
    }
  }
}

TEST(Layout, ImagesKeepTheirChannelsInnermost) {
  const Tensor two = random_tensor({3}), other = random_tensor({2, 3, 6, 8});
  const Functions functions = {
      {"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, {2}, {2}, {1}); }},
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, {3}, {2}, {1}); }},
      {"adaptive",
       [](const Tensor& x) {
         return adaptive_avg_pool2d(x, {4, 3});
       }},
      {"batch_norm",
       [&](const Tensor& x) { return batch_norm(x, two, two, {}, {}, true, 0.1, 1e-5); }},
      {"batch_norm_eval",
       [&](const Tensor& x) { return batch_norm(x, two, {}, two, square(two), false, 0.1, 1e-5); }},
      {"batch_norm_backward",
       [&](const Tensor& x) {
         return std::get<0>(native_batch_norm_backward(other, x, two, {}, {}, two, two, true, 1e-5,
                                                       {true, true, true}));
       }},
      {"group_norm", [](const Tensor& x) { return group_norm(x, 3); }},
      {"upsample",
       [](const Tensor& x) {
         return upsample_bilinear2d(x, {9, 5}, false);
       }},
      {"reflection_pad",
       [](const Tensor& x) {
         return reflection_pad(x, {1, 2, 0, 1});
       }},
      {"cat",
       [](const Tensor& x) {
         return cat({x, x}, 1);
       }},
      {"pad",
       [](const Tensor& x) {
         return constant_pad_nd(x, {1, 2, -1, 1}, 1);
       }},
      {"pixel_shuffle",
       [](const Tensor& x) {
         return pixel_shuffle(cat({x, x, x, x}, 1), 2);
       }},
      {"pixel_unshuffle", [](const Tensor& x) { return pixel_unshuffle(x, 2); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"flip",
       [](const Tensor& x) {
         return flip(x, {1, 3});
       }},
      {"sort", [](const Tensor& x) { return std::get<0>(sort(x, 1)); }},
  };
  expect_kept(functions, random_tensor({2, 3, 6, 8}));
}

TEST(Layout, AttentionLiesAsItsQuery) {
  const Tensor heads = random_tensor({2, 5, 3, 8}).transpose(1, 2);
  const Tensor joint = random_tensor({2, 5, 3, 24}).transpose(1, 2).slice(3, 0, 8);
  const Tensor rows = heads.contiguous(), turned = random_tensor({2, 3, 8, 5}).transpose(2, 3);
  const auto strides = [&](const Tensor& query) {
    return to_dims(scaled_dot_product_attention(query, heads, rows).strides());
  };
  EXPECT_EQ(strides(heads), to_dims(heads.strides()));
  EXPECT_EQ(strides(joint), to_dims(heads.strides())) << "gaps are closed";
  EXPECT_EQ(strides(rows), to_dims(rows.strides()));
  EXPECT_EQ(strides(turned), to_dims(rows.strides()));
  expect_near(scaled_dot_product_attention(rows, heads, rows),
              scaled_dot_product_attention(heads, heads, rows), 0, 0);
}

}  // namespace
}  // namespace lockstep

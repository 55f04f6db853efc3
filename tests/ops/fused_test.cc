// Fused operators compared with references made of simple operators: values, gradients, and second
// derivatives, in float32, the dtype that fused kernels compute in.

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/rotary.h"
#include "core/ops/factory/copy.h"
#include "core/ops/loss/linear_cross_entropy.h"
#include "core/ops/matmul/fused_linear.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/stream_norm.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "tests/ops/operator_call.h"

namespace lockstep {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// Value, gradients of sum(value * weights), and gradients of a weighted sum of those.
Results derivatives(const Function& function, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    leaves.push_back(cast_copy(input, input.dtype()));
    leaves.back().set_requires_grad();
  }
  const Tensor value = function(leaves);
  GradOptions options;
  options.create_graph = true;
  const std::vector<Tensor> first = grad({value}, leaves, {floats(value.sizes(), 11)}, options);
  Tensor total;
  for (size_t i = 0; i < first.size(); ++i) {
    const Tensor part = sum(first[i] * floats(first[i].sizes(), 20 + static_cast<int>(i)));
    total = total.defined() ? total + part : part;
  }
  GradOptions unused;
  unused.allow_unused = true;
  Results results{{value}};
  results.tensors.insert(results.tensors.end(), first.begin(), first.end());
  size_t i = 0;
  for (const Tensor& second : grad({total}, leaves, {}, unused)) {
    // An independent input has a zero gradient.
    results.tensors.push_back(second.defined() ? second : leaves[i] * 0);
    ++i;
  }
  return results;
}

void expect_agreement(const Function& fused, const Function& reference,
                      const std::vector<Tensor>& inputs) {
  EXPECT_EQ(difference(derivatives(fused, inputs), derivatives(reference, inputs), 1e-4), "");
}

TEST(FusedOperators, GradientsOfLinearParametersHaveTheBitsOfAProductAndASum) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    Generator generator(5);
    const Tensor grad = randn({200, 70}, DType::kF32, &generator).to(dtype);
    const Tensor input = randn({200, 33}, DType::kF32, &generator).to(dtype);
    const LinearParameters got = linear_parameters_backward(grad, input);
    EXPECT_TRUE(equal(got.weight, mm(grad.t(), input))) << to_string(dtype);
    EXPECT_TRUE(equal(got.bias, sum(grad, {0}))) << to_string(dtype);
  }
}

TEST(FusedOperators, LayerNormAgreesWithItsReference) {
  const Dims shape{3, 4};
  const Dims row{12};
  expect_agreement([&](auto& in) { return layer_norm(in[0], shape, in[1], in[2]); },
                   [&](auto& in) { return layer_norm_reference(in[0], shape, in[1], in[2]); },
                   {floats({2, 3, 4}), positives(shape), floats(shape, 2)});
  expect_agreement([&](auto& in) { return layer_norm(in[0], row); },
                   [&](auto& in) { return layer_norm_reference(in[0], row); }, {floats({5, 12})});
}

TEST(FusedOperators, RmsNormAgreesWithItsReference) {
  const Dims row{12};
  expect_agreement([&](auto& in) { return rms_norm(in[0], row, in[1], 1e-5); },
                   [&](auto& in) { return rms_norm_reference(in[0], row, in[1], 1e-5); },
                   {floats({5, 12}), positives(row)});
  expect_agreement([&](auto& in) { return rms_norm(in[0], row); },
                   [&](auto& in) { return rms_norm_reference(in[0], row); }, {floats({5, 12})});
}

TEST(FusedOperators, RotaryEmbeddingAgreesWithItsReference) {
  const Tensor angles = floats({5, 3}, 6);
  // A slice of a joint projection, whose heads have gaps between them.
  const auto slice = [](const Tensor& joint) { return joint.slice(2, 1, 3).transpose(1, 2); };
  for (const bool inverse : {false, true}) {
    expect_agreement(
        [&](auto& in) { return rotary_embedding(slice(in[0]), in[1], in[2], inverse); },
        [&](auto& in) { return rotary_embedding_reference(slice(in[0]), in[1], in[2], inverse); },
        {floats({2, 5, 4, 6}), cos(angles), sin(angles)});
  }
}

TEST(FusedOperators, RotaryEmbeddingAndItsInverseGiveTheInputBack) {
  const Tensor angles = floats({5, 3}, 6);
  const Tensor x = floats({2, 2, 5, 6});
  const Tensor turned = rotary_embedding(x, cos(angles), sin(angles));
  EXPECT_EQ(difference({{rotary_embedding(turned, cos(angles), sin(angles), true)}}, {{x}}, 1e-5),
            "");
  const Tensor in_place = cast_copy(x, x.dtype());
  rotary_embedding_(in_place, cos(angles), sin(angles));
  EXPECT_TRUE(equal(in_place, turned));
}

TEST(FusedOperators, SwigluAgreesWithSiluAndAProduct) {
  expect_agreement([](auto& in) { return swiglu(in[0], in[1]); },
                   [](auto& in) { return silu(in[0]) * in[1]; },
                   {floats({6, 5}), floats({6, 5}, 2)});
}

TEST(FusedOperators, NormsOfAStreamAgreeWithTheirReference) {
  const Dims row{12};
  const std::vector<Tensor> inputs = {floats({5, 12}), positives(row), floats(row, 2)};
  expect_agreement(
      [&](auto& in) { return layer_norm_of_stream(in[0], row, in[1], in[2], 1e-5, DType::kF32); },
      [&](auto& in) {
        return stream_norm_reference(in[0], row, in[1], in[2], 1e-5, true, DType::kF32);
      },
      inputs);
  expect_agreement(
      [&](auto& in) { return rms_norm_of_stream(in[0], row, in[1], 1e-5, DType::kF32); },
      [&](auto& in) {
        return stream_norm_reference(in[0], row, in[1], {}, 1e-5, false, DType::kF32);
      },
      {inputs[0], inputs[1]});
}

/// Both results, so that each receives a gradient.
Tensor both(const NormedSum& results) { return results.normed * 2 + results.sum; }

TEST(FusedOperators, NormsOfASumAgreeWithTheirReference) {
  const Dims row{12};
  const std::vector<Tensor> inputs = {floats({5, 12}), floats({5, 12}, 3), positives(row),
                                      floats(row, 2)};
  expect_agreement(
      [&](auto& in) {
        return both(layer_norm_of_sum(in[0], in[1], row, in[2], in[3], 1e-5, DType::kF32));
      },
      [&](auto& in) {
        return both(
            stream_sum_norm_reference(in[0], in[1], row, in[2], in[3], 1e-5, true, DType::kF32));
      },
      inputs);
  for (const bool sum_alone : {true, false}) {
    const auto part = [=](const NormedSum& results) {
      return sum_alone ? results.sum : results.normed;
    };
    expect_agreement(
        [&](auto& in) {
          return part(rms_norm_of_sum(in[0], in[1], row, in[2], 1e-5, DType::kF32)) * in[2];
        },
        [&](auto& in) {
          return part(stream_sum_norm_reference(in[0], in[1], row, in[2], {}, 1e-5, false,
                                                DType::kF32)) *
                 in[2];
        },
        {inputs[0], inputs[1], inputs[2]});
  }
}

TEST(FusedOperators, CrossEntropyAgreesWithItsReference) {
  const Tensor target = integers({6}, 0, 5);
  for (Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
    for (int64_t ignored : {-100, 2}) {
      expect_agreement(
          [&](auto& in) { return cross_entropy_loss(in[0], target, {}, reduction, ignored); },
          [&](auto& in) {
            return cross_entropy_loss_reference(in[0], target, {}, reduction, ignored);
          },
          {floats({6, 5})});
    }
  }
}

TEST(FusedOperators, LinearCrossEntropyAgreesWithItsReference) {
  const Tensor target = integers({2, 3}, 0, 5);
  const std::vector<Tensor> inputs = {floats({2, 3, 4}), floats({5, 4}, 2)};
  for (Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
    for (int64_t ignored : {-100, 2}) {
      expect_agreement(
          [&](auto& in) { return linear_cross_entropy(in[0], in[1], target, reduction, ignored); },
          [&](auto& in) {
            return linear_cross_entropy_reference(in[0], in[1], target, reduction, ignored);
          },
          inputs);
    }
  }
}

/// A sum of both results, so that each receives a gradient.
Tensor both(const Gelu& gelu) { return gelu.value * 2 + gelu.of; }

TEST(FusedOperators, LinearAndGeluAgreeWithTheirReference) {
  const std::vector<Tensor> inputs = {floats({2, 3, 4}), floats({8, 4}, 2), floats({8}, 3)};
  expect_agreement([](auto& in) { return both(linear_gelu(in[0], in[1], in[2])); },
                   [](auto& in) { return both(linear_gelu_reference(in[0], in[1], in[2])); },
                   inputs);
  expect_agreement([](auto& in) { return linear_gelu(in[0], in[1]).value; },
                   [](auto& in) { return linear_gelu_reference(in[0], in[1]).value; },
                   {inputs[0], inputs[1]});
}

TEST(FusedOperators, AResidualAndALinearAgreeWithTheirReference) {
  expect_agreement([](auto& in) { return linear_add(in[0], in[1], in[2], in[3]); },
                   [](auto& in) { return linear_add_reference(in[0], in[1], in[2], in[3]); },
                   {floats({2, 3, 8}), floats({2, 3, 4}, 2), floats({8, 4}, 3), floats({8}, 4)});
}

TEST(FusedOperators, BothLinearsAroundAGeluAgreeWithTheirReference) {
  for (const bool with_residual : {true, false}) {
    const auto residual = [&](const Tensor& x) { return with_residual ? x : Tensor(); };
    expect_agreement(
        [&](auto& in) {
          return linear_of_gelu(linear_gelu(in[0], in[1], in[2]), in[3], in[4], residual(in[0]));
        },
        [&](auto& in) {
          const Tensor of = linear(in[0], in[1], in[2]);
          return linear_of_gelu_reference(of, in[3], in[4], residual(in[0]));
        },
        {floats({2, 3, 4}), floats({8, 4}, 2), floats({8}, 3), floats({4, 8}, 4), floats({4}, 5)});
  }
}

TEST(FusedOperators, AResidualOfAnotherDTypePromotesAsInASum) {
  const Tensor input = floats({3, 4}), weight = floats({8, 4}, 2), bias = floats({8}, 3);
  const Tensor down = floats({8, 8}, 5), residual = floats({3, 8}, 4, DType::kBF16);
  EXPECT_EQ(difference({{linear_add(residual, input, weight, bias)}},
                       {{linear_add_reference(residual, input, weight, bias)}}, 0),
            "");
  const Gelu gelu = linear_gelu(input, weight, bias);
  EXPECT_EQ(difference({{linear_of_gelu(gelu, down, bias, residual)}},
                       {{linear_of_gelu_reference(gelu.of, down, bias, residual)}}, 0),
            "");
}

TEST(FusedOperators, LinearsHaveTheBitsOfTheirReferenceOnTheCpu) {
  // Large enough for many tiles of the product.
  const Tensor input = floats({300, 96}), up = floats({384, 96}, 2), down = floats({96, 384}, 3);
  const Tensor up_bias = floats({384}, 4), down_bias = floats({96}, 5);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    SCOPED_TRACE(name(dtype));
    const auto in = [&](const Tensor& tensor) { return cast_copy(tensor, dtype); };
    const Gelu gelu = linear_gelu(in(input), in(up), in(up_bias));
    const Gelu expected = linear_gelu_reference(in(input), in(up), in(up_bias));
    EXPECT_EQ(difference({{gelu.value, gelu.of}}, {{expected.value, expected.of}}, 0), "");
    // An f32 residual with half operands, and an f32 bias as in a training run.
    EXPECT_EQ(difference({{linear_of_gelu(gelu, in(down), down_bias, input)}},
                         {{linear_of_gelu_reference(gelu.of, in(down), in(down_bias), input)}}, 0),
              "");
    const Tensor grad = in(floats({300, 96}, 6));
    EXPECT_EQ(difference({{linear_of_gelu_backward(grad, in(down), gelu.of)}},
                         {{gelu_backward(mm(grad, in(down)), gelu.of, "tanh")}}, 0),
              "");
  }
}

Tensor math(const Tensor& query, const Tensor& key, const Tensor& value, bool is_causal,
            bool enable_gqa) {
  return std::get<0>(_scaled_dot_product_attention_math(query, key, value, {}, 0.0, is_causal, {},
                                                        std::nullopt, enable_gqa));
}

TEST(FusedOperators, AttentionAgreesWithTheMathForm) {
  const std::vector<Tensor> inputs = {floats({2, 2, 5, 8}), floats({2, 2, 5, 8}, 2),
                                      floats({2, 2, 5, 8}, 3)};
  for (bool causal : {false, true}) {
    expect_agreement(
        [&](auto& in) {
          return std::get<0>(
              _scaled_dot_product_flash_attention_for_cpu(in[0], in[1], in[2], 0.0, causal));
        },
        [&](auto& in) { return math(in[0], in[1], in[2], causal, false); }, inputs);
  }
}

TEST(FusedOperators, AttentionSharesHeadsAsTheMathFormDoes) {
  const std::vector<Tensor> inputs = {floats({1, 4, 5, 8}), floats({1, 2, 7, 8}, 2),
                                      floats({1, 2, 7, 8}, 3)};
  expect_agreement(
      [&](auto& in) {
        return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, false, std::nullopt,
                                            true);
      },
      [&](auto& in) { return math(in[0], in[1], in[2], false, true); }, inputs);
}

TEST(FusedOperators, AttentionAgreesOverManyBlocksOfKeys) {
  const std::vector<Tensor> inputs = {floats({1, 1, 150, 16}), floats({1, 1, 150, 16}, 2),
                                      floats({1, 1, 150, 16}, 3)};
  expect_agreement(
      [&](auto& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, true); },
      [&](auto& in) { return math(in[0], in[1], in[2], true, false); }, inputs);
}

}  // namespace
}  // namespace lockstep

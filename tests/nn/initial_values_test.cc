#include "nn/initial_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "core/ops/factory/factory.h"
#include "core/tensor/allocator.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "nn/models/mlp.h"
#include "nn/models/resnet.h"
#include "tests/core/expect_error.h"

namespace lockstep::nn {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data(), b.data(), a.nbytes()) == 0;
}

/// Expects that `make` gives a model the same values, and leaves the generator in the same state,
/// whether they are deferred or not.
template <class Make>
void expect_same_values(const Make& make) {
  manual_seed(7);
  const auto whole = make();
  const RandomKey after = default_generator().state();
  manual_seed(7);
  std::optional<DeferValuesGuard> guard;
  guard.emplace();
  const auto later = make();
  guard.reset();
  EXPECT_EQ(default_generator().state(), after);
  const auto expected = whole->named_parameters(), got = later->named_parameters();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = got.size(); i-- > 0;) {  // in any order
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_TRUE(got[i].tensor.requires_grad());
    const Tensor values = empty(got[i].tensor.sizes());
    later->fill_parameter(got[i].tensor, values);
    EXPECT_TRUE(same_bits(values, expected[i].tensor)) << got[i].name;
  }
  EXPECT_EQ(default_generator().state(), after);
}

TEST(InitialValues, DeferredValuesHaveTheBitsOfAWholeModel) {
  expect_same_values([] {
    return std::make_unique<Gpt2>(
        Gpt2Options{.vocabulary = 50, .context_length = 8, .layers = 2, .heads = 2, .width = 16});
  });
  expect_same_values([] {
    LlamaOptions options;
    options.vocabulary = 40;
    options.context_length = 8;
    options.layers = 2;
    options.heads = 2;
    options.kv_heads = 1;
    options.width = 16;
    options.hidden_width = 24;
    return std::make_unique<Llama>(options);
  });
  expect_same_values([] {
    MlpOptions options;
    options.inputs = 5;
    options.hidden_widths = {7};
    options.classes = 3;
    return std::make_unique<Mlp>(options);
  });
  expect_same_values([] {
    ResnetOptions options;
    options.height = options.width = 8;
    options.classes = 3;
    options.base_width = 4;
    return std::make_unique<Resnet>(options);
  });
}

TEST(InitialValues, DeferredParametersTakeNoMemory) {
  const int64_t before = allocator(kCPU).stats().allocated;
  const DeferValuesGuard later;
  const Linear layer(1000, 1000, true);
  EXPECT_LT(allocator(kCPU).stats().allocated - before, 4096);
  EXPECT_EQ(layer.weight.shape(), "[1000, 1000]");
  expect_error<DeviceError>([&] { (void)layer.weight.data(); }, "has no values yet");
}

TEST(InitialValues, DeferredValuesAreThoseThatWereGivenLast) {
  const DeferValuesGuard later;
  Mlp model({.inputs = 5, .hidden_widths = {7}, .classes = 3});
  const Tensor parameter = model.parameters()[1];
  EXPECT_TRUE(model.fill_later(parameter, fill_with(3)));
  const Tensor values = empty(parameter.sizes());
  model.fill_parameter(parameter, values);
  EXPECT_TRUE(same_bits(values, full(parameter.sizes(), 3.0)));
  EXPECT_FALSE(model.fill_later(empty({7}), fill_with(3)));
}

TEST(InitialValues, AParameterThatHasItsValuesIsNotFilledAgain) {
  const Linear layer(2, 3, true);
  expect_error<Error>(
      [&] {
        layer.fill_parameter(layer.weight, empty({3, 2}));
      },
      "DeferValuesGuard");
}

}  // namespace
}  // namespace lockstep::nn

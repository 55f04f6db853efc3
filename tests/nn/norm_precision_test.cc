// Norms at the edge of precision: what a region of bfloat16 makes of them in the models.

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "core/dispatch/mode.h"
#include "core/dispatch/op_counter.h"
#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factory.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kVocabulary = 17;
constexpr int64_t kWidth = 32;
constexpr int64_t kLength = 16;

Gpt2Options gpt2_of(int64_t layers) {
  Gpt2Options options;
  options.vocabulary = kVocabulary;
  options.context_length = kLength;
  options.layers = layers;
  options.heads = 2;
  options.width = kWidth;
  options.dropout = 0;
  return options;
}

LlamaOptions llama_of(int64_t layers) {
  LlamaOptions options;
  options.vocabulary = kVocabulary;
  options.context_length = kLength;
  options.layers = layers;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = kWidth;
  options.hidden_width = 2 * kWidth;
  return options;
}

Tensor tokens() { return randint(0, kVocabulary, {4, kLength}); }

/// Counts the norms of a model, and the casts of their results.
class NormReaders final : public DispatchMode {
 public:
  int norms = 0;
  int casts = 0;
  std::set<DType> dtypes;  ///< of the results

  void call(const Operator& op, KeySet keys, Stack& stack) override {
    const std::string& name = op.schema().name;
    if (name == "_to_copy") {
      casts += static_cast<int>(results_.count(stack.arguments()[0].tensor().data()));
    }
    pass_on(op, keys, stack);
    if (name != "stream_norm" && name != "stream_sum_norm") return;
    const Tensor result = stack.results()[0].tensor();
    ++norms;
    dtypes.insert(result.dtype());
    results_.insert(result.data());
    kept_.push_back(result);  // no other tensor gets its address
  }

 private:
  std::set<const void*> results_;
  std::vector<Tensor> kept_;
};

template <class Model>
void expect_no_casts_of_norms(Model& model, int norms) {
  NormReaders readers;
  {
    const ModeGuard on(readers);
    const AutocastGuard region(DeviceType::kCPU);
    const Tensor logits = model.forward(tokens());
    EXPECT_EQ(logits.dtype(), DType::kBF16);
    logits.sum().backward();
  }
  EXPECT_EQ(readers.norms, norms);
  EXPECT_EQ(readers.casts, 0);
  EXPECT_EQ(readers.dtypes, std::set<DType>{DType::kBF16});
}

TEST(NormPrecision, NoResultOfANormIsCastInGpt2) {
  Gpt2 model(gpt2_of(2));
  expect_no_casts_of_norms(model, 5);
}

TEST(NormPrecision, NoResultOfANormIsCastInLlama) {
  Llama model(llama_of(2));
  expect_no_casts_of_norms(model, 5);
}

TEST(NormPrecision, OutsideOfARegionTheResultHasTheDTypeOfTheStream) {
  const LayerNorm norm(kWidth, 1e-5);
  const RMSNorm root(kWidth, 1e-5);
  const Tensor x = randn({3, kWidth});
  EXPECT_EQ(norm.forward(x).dtype(), DType::kF32);
  EXPECT_EQ(root.forward_onto(x, x).normed.dtype(), DType::kF32);
  const AutocastGuard region(DeviceType::kCPU, true, DType::kF16);
  EXPECT_EQ(norm.forward(x).dtype(), DType::kF16);
  EXPECT_EQ(root.forward(x.to(DType::kF64)).dtype(), DType::kF64);
  const NormedSum both = root.forward_onto(x, x.to(DType::kF16));
  EXPECT_EQ(both.normed.dtype(), DType::kF16);
  EXPECT_EQ(both.sum.dtype(), DType::kF32);
}

/// Operators that move elements, and the bytes they move, in a step of bfloat16.
OpCount cost(const std::function<Tensor()>& forward) {
  OpCounter counter;
  {
    const ModeGuard on(counter);
    Tensor loss;
    {
      const AutocastGuard region(DeviceType::kCPU);
      loss = forward().sum();
    }
    loss.backward();
  }
  OpCount total;
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    for (const auto& [name, count] : counter.counts(phase)) {
      if (count.bytes > 0) total += count;
    }
  }
  return total;
}

/// What one more layer adds.
OpCount cost_of_a_layer() {
  Gpt2 one(gpt2_of(1)), two(gpt2_of(2));
  const Tensor ids = tokens();
  const OpCount less = cost([&] { return one.forward(ids); });
  OpCount more = cost([&] { return two.forward(ids); });
  more.calls -= less.calls;
  more.bytes -= less.bytes;
  return more;
}

TEST(NormPrecision, ALayerOfGpt2InBFloat16IsSoManyOperatorsAndBytes) {
  const OpCount layer = cost_of_a_layer();
  EXPECT_LE(layer.calls, 39);
  // Each element of the stream; weights and scores are large beside the few elements of this test.
  EXPECT_LE(layer.bytes / (4 * kLength * kWidth), 346);
}

}  // namespace
}  // namespace lockstep::nn

// Attention within documents: each is computed as if it stood alone.

#include "nn/documents.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "autograd/autograd.h"
#include "core/base/error.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_of_qkv.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/pointwise/pointwise_logic.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kTokens = 24;
const std::vector<int64_t> kSizes = {7, 1, 16, 24, 10, 14};  // of three rows

double largest_difference(const Tensor& a, const Tensor& b) {
  return max(abs(a.detach().to(DType::kF64) - b.detach().to(DType::kF64))).item<double>();
}

bool are_equal(const Tensor& a, const Tensor& b) {
  return equal(a.detach().contiguous(), b.detach().contiguous());
}

std::unique_ptr<LanguageModel> new_gpt2() {
  manual_seed(3);
  return std::make_unique<Gpt2>(Gpt2Options{
      .vocabulary = 50, .context_length = kTokens, .layers = 2, .heads = 2, .width = 16});
}

std::unique_ptr<LanguageModel> new_llama() {
  manual_seed(3);
  LlamaOptions options;
  options.vocabulary = 50;
  options.context_length = kTokens;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 32;
  options.hidden_width = 48;
  return std::make_unique<Llama>(options);
}

Tensor drawn_tokens() { return randint(0, 50, {3, kTokens}); }

TEST(ByDocuments, AttentionHasTheBitsOfEachDocumentAlone) {
  const Tensor qkv = randn({3, kTokens, 4 * 8}).set_requires_grad(true);
  const auto attend = [](const Tensor& of) { return attention_of_qkv(of, 2, 1, true); };
  const Tensor all = by_documents(qkv, kSizes, attend);
  const Tensor weights = randn(all.sizes());
  const Tensor gradient = grad({sum(all * weights)}, {qkv})[0];
  int64_t first = 0;
  for (const int64_t size : kSizes) {
    const auto part = [&](const Tensor& of) {
      return of.flatten(0, 1).narrow(0, first, size).unsqueeze(0);
    };
    const Tensor document = part(qkv.detach()).clone().set_requires_grad(true);
    const Tensor alone = attend(document);
    EXPECT_TRUE(are_equal(part(all), alone));
    EXPECT_TRUE(are_equal(part(gradient), grad({sum(alone * part(weights))}, {document})[0]));
    first += size;
  }
}

TEST(ByDocuments, IsAttentionWithAMaskOfBlocks) {
  const Tensor qkv = randn({3, kTokens, 3 * 2 * 8});
  const Tensor all =
      by_documents(qkv, kSizes, [](const Tensor& of) { return attention_of_qkv(of, 2, 2, true); });
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    numbers.insert(numbers.end(), static_cast<size_t>(kSizes[i]), static_cast<int64_t>(i));
  }
  const Tensor document = tensor_from(numbers, {3, kTokens});
  const Tensor place = arange(kTokens, DType::kI64);
  const Tensor mask =
      logical_and(eq(document.unsqueeze(2), document.unsqueeze(1)), ge(place.unsqueeze(1), place));
  const std::vector<Tensor> parts = qkv.split(16, 2);
  const auto heads = [](const Tensor& x) { return x.view({3, kTokens, 2, 8}).transpose(1, 2); };
  const Tensor masked = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]),
                                                     heads(parts[2]), mask.unsqueeze(1))
                            .transpose(1, 2)
                            .flatten(2);
  EXPECT_LT(largest_difference(all, masked), 1e-6);
}

class ModelsOfDocuments : public testing::TestWithParam<std::unique_ptr<LanguageModel> (*)()> {
 protected:
  const std::unique_ptr<LanguageModel> model_ = GetParam()();
};

INSTANTIATE_TEST_SUITE_P(Documents, ModelsOfDocuments, testing::Values(&new_gpt2, &new_llama));

TEST_P(ModelsOfDocuments, ADocumentInARowIsComputedAsAlone) {
  const Tensor tokens = drawn_tokens();
  const Tensor all = model_->features_of_documents(tokens, kSizes).flatten(0, 1);
  const Tensor across = model_->features(tokens).flatten(0, 1);
  int64_t first = 0;
  for (const int64_t size : kSizes) {
    const Tensor alone = tokens.flatten().narrow(0, first, size).unsqueeze(0);
    const Tensor found = all.narrow(0, first, size).unsqueeze(0);
    EXPECT_LT(largest_difference(found, model_->features(alone)), 1e-5);
    if (first % kTokens > 0) {
      EXPECT_GT(largest_difference(found, across.narrow(0, first, size).unsqueeze(0)), 1e-3);
    }
    first += size;
  }
}

TEST_P(ModelsOfDocuments, NoBitOfADocumentDependsOnItsNeighbours) {
  const Tensor tokens = drawn_tokens();
  const Tensor before = model_->features_of_documents(tokens, kSizes).flatten(0, 1);
  tokens.flatten().narrow(0, 7, 1).fill_(49);
  tokens.flatten().narrow(0, 0, 3).fill_(48);
  const Tensor after = model_->features_of_documents(tokens, kSizes).flatten(0, 1);
  EXPECT_TRUE(are_equal(before.narrow(0, 8, 64), after.narrow(0, 8, 64)));
  EXPECT_FALSE(are_equal(before.narrow(0, 0, 8), after.narrow(0, 0, 8)));
}

TEST_P(ModelsOfDocuments, GradientsAreTheSumsOfThoseOfDocumentsAlone) {
  const Tensor tokens = drawn_tokens(), targets = drawn_tokens();
  const std::vector<Tensor> parameters = model_->parameters();
  const std::vector<Tensor> packed =
      grad({sum_of_losses(*model_, tokens, targets, {}, kSizes)}, parameters);
  Tensor sum;
  int64_t first = 0;
  for (const int64_t size : kSizes) {
    const auto part = [&](const Tensor& of) {
      return of.flatten().narrow(0, first, size).unsqueeze(0);
    };
    const Tensor loss = sum_of_losses(*model_, part(tokens), part(targets));
    sum = sum.defined() ? sum + loss : loss;
    first += size;
  }
  const std::vector<Tensor> alone = grad({sum}, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_LT(largest_difference(packed[i], alone[i]), 1e-3) << i;
  }
}

TEST_P(ModelsOfDocuments, RecomputationChangesNoBit) {
  const Tensor tokens = drawn_tokens(), targets = drawn_tokens();
  const auto gradients = [&](Recompute what) {
    model_->set_recompute({.what = what});
    return grad({sum_of_losses(*model_, tokens, targets, {}, kSizes)}, model_->parameters());
  };
  const std::vector<Tensor> kept = gradients(Recompute::kNone);
  for (const Recompute what : {Recompute::kCheap, Recompute::kBlock}) {
    const std::vector<Tensor> again = gradients(what);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(are_equal(kept[i], again[i]));
  }
}

TEST_P(ModelsOfDocuments, SizesThatDoNotFillTheRowsAreRefused) {
  const Tensor tokens = drawn_tokens();
  const auto complaint = [&](const std::vector<int64_t>& sizes) {
    try {
      model_->features_of_documents(tokens, sizes);
    } catch (const ShapeError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint({24, 24, 23}),
            "[documents] the documents have 71 tokens: expected those of 3 rows of 24, 72.");
  EXPECT_EQ(complaint({20, 5, 47}),
            "[documents] a document of 5 tokens begins at token 20 of a row of 24: expected 1 to 4 "
            "tokens.");
  EXPECT_EQ(complaint({24, 0, 24, 24}),
            "[documents] a document of 0 tokens begins at token 0 of a row of 24: expected 1 to 24 "
            "tokens.");
}

}  // namespace
}  // namespace lockstep::nn

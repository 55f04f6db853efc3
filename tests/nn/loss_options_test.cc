// Label smoothing and z-loss of language models.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "core/ops/factory/factory.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/random/random.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"

namespace lockstep::nn {
namespace {

double apart(const Tensor& a, const Tensor& b) {
  return max(abs(a.detach().to(DType::kF64) - b.detach().to(DType::kF64))).item<double>();
}

/// The formula of LossOptions from plain operators, in f64.
Tensor loss_by_formula(const Tensor& logits, const std::vector<int64_t>& targets,
                       const LossOptions& options) {
  const Tensor wide = logits.to(DType::kF64);
  const Tensor log_z = log(sum(exp(wide), {1}));
  Tensor total = zeros({}, DType::kF64);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == -100) continue;
    const auto row = static_cast<int64_t>(i);
    const Tensor minus_log_p = log_z.select(0, row) - wide.select(0, row);
    total = total + minus_log_p.select(0, targets[i]) * (1 - options.label_smoothing) +
            mean(minus_log_p) * options.label_smoothing +
            square(log_z.select(0, row)) * options.z_loss;
  }
  return total;
}

const LossOptions kOptions[] = {
    {}, {.label_smoothing = 0.1}, {.z_loss = 1e-2}, {.label_smoothing = 0.3, .z_loss = 0.1}};

TEST(LossOptions, FollowTheFormulaForwardAndBackward) {
  manual_seed(1);
  const std::vector<int64_t> targets = {3, 0, -100, 12, 5, -100};
  const Tensor ids = empty({6}, DType::kI64);
  std::ranges::copy(targets, ids.data<int64_t>());
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const Tensor values = (randn({6, 13}) * 2).to(dtype);
    for (const LossOptions& options : kOptions) {
      const Tensor logits = values.clone().set_requires_grad();
      const Tensor loss = sum_of_losses(logits, ids, options);
      loss.backward();
      const Tensor wide = values.clone().to(DType::kF64).set_requires_grad();
      const Tensor want = loss_by_formula(wide, targets, options);
      want.backward();
      const double bound = dtype == DType::kF64 ? 1e-12 : dtype == DType::kF32 ? 1e-5 : 2e-2;
      const double rounded = dtype == DType::kBF16 && options.is_plain() ? 0.1 : bound;
      EXPECT_LT(apart(loss, want), rounded * (1 + std::abs(want.item<double>()) * 0.1));
      EXPECT_LT(apart(logits.grad(), wide.grad()), bound);
      EXPECT_EQ(max(abs(logits.grad().select(0, 2))).to(DType::kF64).item<double>(), 0)
          << "an ignored target";
    }
  }
}

/// Loss and gradients of a model, whose logits are in chunks if the vocabulary is large.
struct Computed {
  Tensor loss;
  std::vector<Tensor> gradients;
};

template <class Model>
Computed loss_and_gradients(Model& model, const Tensor& inputs, const Tensor& targets,
                            const LossOptions& options, bool whole) {
  model.zero_grad();
  const Tensor loss = [&] {
    if (!whole) return sum_of_losses(model, inputs, targets, options);
    const Tensor logits = model.forward(inputs);
    return sum_of_losses(logits.reshape({-1, logits.size(-1)}), targets.reshape({-1}), options);
  }();
  loss.backward();
  Computed computed{loss, {}};
  for (const Tensor& each : model.parameters()) computed.gradients.push_back(each.grad().clone());
  return computed;
}

template <class Model>
void expect_chunks_agree(Model& model, bool bf16) {
  const Tensor inputs = randint(0, model.vocabulary(), {2, 20}, DType::kI64);
  const Tensor targets = randint(0, model.vocabulary(), {2, 20}, DType::kI64);
  targets.data<int64_t>()[3] = -100;
  for (const LossOptions& options : kOptions) {
    const AutocastGuard region(DeviceType::kCPU, bf16, DType::kBF16);
    const Computed chunks = loss_and_gradients(model, inputs, targets, options, false);
    const Computed whole = loss_and_gradients(model, inputs, targets, options, true);
    const double bound = bf16 ? 2e-2 : 2e-5;
    EXPECT_LT(apart(chunks.loss, whole.loss), bound * whole.loss.template item<double>());
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      const double scale = max(abs(whole.gradients[i])).template item<double>();
      EXPECT_LT(apart(chunks.gradients[i], whole.gradients[i]), bound * (scale + 1e-3)) << i;
    }
  }
}

TEST(LossOptions, ALargeVocabularyGivesTheSameInChunks) {
  manual_seed(2);
  Gpt2 tied(
      Gpt2Options{.vocabulary = 16384, .context_length = 20, .layers = 1, .heads = 2, .width = 8});
  expect_chunks_agree(tied, false);
  expect_chunks_agree(tied, true);
  Llama untied(LlamaOptions{.vocabulary = 16384,
                            .context_length = 20,
                            .layers = 1,
                            .heads = 2,
                            .kv_heads = 1,
                            .width = 8,
                            .hidden_width = 16});
  expect_chunks_agree(untied, false);
}

TEST(LossOptions, ChunksOfAnyNumberOfRowsGiveTheSame) {
  manual_seed(3);
  const Tensor rows = randn({10, 6}), weight = randn({13, 6});
  const Tensor targets = randint(0, 13, {10}, DType::kI64);
  targets.data<int64_t>()[4] = -100;
  for (const LossOptions& options : kOptions) {
    const Tensor x = rows.clone().set_requires_grad(), w = weight.clone().set_requires_grad();
    const Tensor whole = sum_of_losses(linear(x, w), targets, options);
    whole.backward();
    for (const int64_t chunk : {1, 3, 4, 10, 99}) {
      const Tensor a = rows.clone().set_requires_grad(), b = weight.clone().set_requires_grad();
      const Tensor loss = sum_of_losses_by_chunks(a, b, targets, options, chunk);
      loss.backward();
      EXPECT_LT(apart(loss, whole), 1e-4);
      EXPECT_LT(apart(a.grad(), x.grad()), 1e-5) << chunk;
      EXPECT_LT(apart(b.grad(), w.grad()), 1e-5) << chunk;
    }
  }
}

}  // namespace
}  // namespace lockstep::nn

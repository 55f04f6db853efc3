#include "train/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/philox.h"
#include "core/ops/factory/factory.h"
#include "train/evaluating.h"
#include "train/non_finite_layer.h"

namespace lockstep::train {

namespace {

/// Draws a token from softmax(logits / temperature) over the k likeliest; `uniform` in [0, 1).
int64_t draw(const float* logits, int64_t count, const GenerateOptions& options, double uniform) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int64_t a, int64_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (options.temperature <= 0) return *std::min_element(order.begin(), order.end(), likelier);
  const int64_t kept = options.top_k > 0 ? std::min(options.top_k, count) : count;
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), likelier);
  std::vector<double> cumulative;
  double sum = 0;
  for (int64_t i = 0; i < kept; ++i) {
    sum += std::exp((logits[order[i]] - logits[order[0]]) / options.temperature);
    cumulative.push_back(sum);
  }
  const auto place = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * sum);
  return order[std::min<int64_t>(place - cumulative.begin(), kept - 1)];
}

/// Number of logits that no token can be drawn from: NaN and infinities. -inf, which rules a token
/// out, counts only if it rules out all.
int64_t unusable(const float* logits, int64_t count) {
  int64_t lowest = 0, unusable = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (logits[i] == -std::numeric_limits<float>::infinity()) {
      ++lowest;
    } else if (!std::isfinite(logits[i])) {
      ++unusable;
    }
  }
  return lowest == count ? count : unusable;
}

/// Throws NonFiniteError for logits that no token can be drawn from. `tokens` gave them.
void check_logits(nn::LanguageModel& model, const float* logits, std::span<const int64_t> tokens) {
  const int64_t bad = unusable(logits, model.vocabulary());
  if (bad == 0) return;
  const std::span<const int64_t> window =
      tokens.last(std::min(tokens.size(), static_cast<size_t>(model.context_length())));
  const std::string origin = origin_of_non_finite(model, [&] {
    const std::vector<int64_t> fed(window.begin(), window.end());
    (void)model.forward(tensor_from<int64_t>(fed, {1, std::ssize(fed)}).to(model.device()));
  });
  throw NonFiniteError(fmt::format(
      "[generate] no token can be drawn after {} tokens: expected finite logits, got {} "
      "of {} that are NaN or infinite. It began here: {}. Use an earlier checkpoint.",
      tokens.size(), bad, model.vocabulary(), origin));
}

}  // namespace

std::vector<int64_t> generate(nn::LanguageModel& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options,
                              const std::function<void(int64_t)>& on_token) {
  LS_CHECK(!prompt.empty(), DataError, "[generate] the prompt is empty: expected a token or more.");
  for (int64_t token : prompt) {
    LS_CHECK(
        token >= 0 && token < model.vocabulary(), DataError,
        "[generate] a prompt token lies outside the vocabulary: expected one in [0, {}), got {}.",
        model.vocabulary(), token);
  }
  const int64_t drawn = options.vocabulary > 0 ? std::min(options.vocabulary, model.vocabulary())
                                               : model.vocabulary();
  const NoGradGuard no_grad;
  LS_CHECK(std::isfinite(options.temperature), ConfigError,
           "[generate] the temperature must be a finite number, got {}.", options.temperature);
  const Evaluating evaluating(model);
  const Device device = model.device();
  const DefaultDeviceGuard on_device(device);
  const int64_t context = model.context_length();
  nn::KvCache cache(model.layers(), context);
  std::vector<int64_t> tokens = prompt;
  std::vector<int64_t> fed(tokens.end() - std::min<int64_t>(context, std::ssize(tokens)),
                           tokens.end());
  for (int64_t i = 0; i < options.max_new_tokens; ++i) {
    if (options.stop && options.stop()) break;
    const Tensor input = tensor_from<int64_t>(fed, {1, std::ssize(fed)}).to(device);
    const Tensor logits = model.forward(input, &cache);
    const Tensor row = logits.select(1, -1).contiguous().to(DType::kF32);
    const Tensor last = row.to(kCPU);
    check_logits(model, last.data<float>(), tokens);
    const auto random =
        philox({static_cast<uint32_t>(i), 0, 0, 0},
               {static_cast<uint32_t>(options.seed), static_cast<uint32_t>(options.seed >> 32)});
    const int64_t next = draw(last.data<float>(), drawn, options, random[0] * 0x1p-32);
    tokens.push_back(next);
    if (options.log_probabilities != nullptr) {
      const Tensor target = tensor_from<int64_t>({next}, {1}).to(device);
      options.log_probabilities->push_back(
          nn::log_probabilities(row, target).to(kCPU).item<float>());
    }
    if (next == options.end) break;
    if (on_token) on_token(next);
    fed = {next};
    if (cache.length() == context) {
      // Positions are absolute, so a full window cannot slide: its last half is fed again.
      cache.clear();
      fed.assign(tokens.end() - std::max<int64_t>(context / 2, 1), tokens.end());
    }
  }
  return {tokens.begin() + std::ssize(prompt), tokens.end()};
}

}  // namespace lockstep::train

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "nn/language_model.h"

namespace lockstep::train {

struct GenerateOptions {
  int64_t max_new_tokens = 500;
  double temperature = 0.8;  ///< 0: always the likeliest token
  int64_t top_k = 200;       ///< tokens are drawn from the k likeliest; 0: from all
  uint64_t seed = 1337;      ///< the same seed gives the same tokens on any number of threads
  /// Only tokens below this are drawn: those of a tokenizer whose vocabulary is smaller than the
  /// model's, which is often rounded up. 0: all of the model's.
  int64_t vocabulary = 0;
  /// The token that ends a text, as Tokenizer::end_of_text: where it is drawn, it is the last of
  /// the result. Without it a text has `max_new_tokens`.
  std::optional<int64_t> end = {};
  /// If not null, gets the logarithm of the probability that the model gave each new token, at
  /// temperature 1 and among all tokens: nn::log_probabilities.
  std::vector<float>* log_probabilities = nullptr;
  std::function<bool()> stop = {};  ///< called before every token; true ends the text
};

/// Continues `prompt` (at least one token) and returns the new tokens; `on_token`, if given, is
/// called with each as it is drawn, except `end`. Keys and values are cached; when the context is
/// full, its last half is fed again. Throws DataError for an empty prompt or a token outside the
/// vocabulary, and NonFiniteError, which names the layer where it began, for logits that are NaN or
/// infinite.
std::vector<int64_t> generate(nn::LanguageModel& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options,
                              const std::function<void(int64_t)>& on_token = {});

}  // namespace lockstep::train

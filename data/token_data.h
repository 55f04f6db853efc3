#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/token_array.h"
#include "data/token_source.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// Tokens that stand together in one file or text; `name` is for messages.
struct TokenPart {
  std::string name;
  TokenArray tokens;
};

/// Which windows of the training tokens become sequences.
enum class WindowOrder {
  kRandom,    ///< any window, drawn uniformly with repetition, as nanoGPT does
  kShuffled,  ///< windows side by side, each once per epoch, in another random order each epoch
};

struct TokenDataOptions {
  int64_t vocabulary = 0;  ///< of the model: a token from here on is an error
  uint64_t seed = 0;
  WindowOrder order = WindowOrder::kRandom;
  /// Sequences of one step over all ranks, so that kShuffled knows where a step begins. The order
  /// does not depend on how ranks share them.
  int64_t sequences_per_step = 1;
  /// What wrote the tokens; null if that is not known.
  std::shared_ptr<const Tokenizer> tokenizer;
};

/// Sequences out of tokens that exist already: shards, or text that went through a tokenizer.
/// A sequence never spans two parts.
class TokenData : public TokenSource {
 public:
  /// The first token of each held-out part is context only; each further one is a target.
  /// Throws DataError if there are no training tokens.
  TokenData(std::vector<TokenPart> training, std::vector<TokenPart> held_out,
            TokenDataOptions options);

  int64_t vocabulary() const override { return options_.vocabulary; }
  /// Throws DataError naming part and position for a token outside the vocabulary, or if no part
  /// holds length + 1 tokens.
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  int64_t validation_windows(int64_t length) const override;
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;
  /// Of every part: its size and up to 16 stretches of 4096 tokens spread evenly over it.
  ContentHash fingerprint() const override;
  const Tokenizer* tokenizer() const override { return options_.tokenizer.get(); }
  /// The bytes of all held-out targets over their number; 0 without tokenizer.
  double held_out_bytes_per_token() const override { return bytes_per_token_; }

  /// Tokens to train on, and held-out tokens that are targets.
  int64_t training_tokens() const;
  int64_t held_out_tokens() const;

 private:
  struct Window {
    const TokenPart* part;
    int64_t first;
  };
  Window training_window(int64_t step, int64_t index, int64_t length) const;
  /// Reads inputs.size() + 1 tokens and checks them.
  void read(const Window& window, std::span<int64_t> inputs, std::span<int64_t> targets) const;

  std::vector<TokenPart> training_;
  std::vector<TokenPart> held_out_;
  TokenDataOptions options_;
  double bytes_per_token_ = 0;
};

}  // namespace lockstep::train

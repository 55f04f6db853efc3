#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_array.h"
#include "data/token_source.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

class Documents;

/// Consecutive tokens of one file or text; `name` is for messages.
struct TokenPart {
  std::string name;
  TokenArray tokens;
  /// What the tokens were made of, from their first on; null for files of tokens.
  std::shared_ptr<const Documents> documents = {};
};

/// Chooses the windows of the training tokens that become sequences.
enum class WindowOrder {
  kRandom,    ///< any window, drawn uniformly with repetition, as nanoGPT does
  kShuffled,  ///< adjacent windows without overlap, each once per epoch, reshuffled every epoch
};

struct TokenDataOptions {
  int64_t vocabulary = 0;  ///< the model's; a token of this value or above is an error
  uint64_t seed = 0;
  WindowOrder order = WindowOrder::kRandom;
  /// Sequences of one step over all ranks, so that kShuffled knows where a step begins. The order
  /// does not depend on how ranks share them.
  int64_t sequences_per_step = 1;
  /// The tokenizer that made the tokens; null if unknown.
  std::shared_ptr<const Tokenizer> tokenizer = {};
  std::vector<std::string> notes = {};  ///< what `notes` returns
};

/// Sequences from existing tokens: shards or tokenized text. A sequence never spans two parts.
class TokenData : public TokenSource {
 public:
  /// The first token of each held-out part is only context; each later one is a target.
  /// Throws DataError if there are no training tokens.
  TokenData(std::vector<TokenPart> training, std::vector<TokenPart> held_out,
            TokenDataOptions options);

  int64_t vocabulary() const override { return options_.vocabulary; }
  /// Throws DataError naming part and position for a token outside the vocabulary, or if no part
  /// holds length + 1 tokens.
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  /// In the bytes of documents, or in the tokens of files of tokens.
  std::vector<SampleOrigin> origins_at(std::span<const Place> places,
                                       int64_t length) const override;
  int64_t validation_windows(int64_t length) const override;
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;
  /// Hash of every part's size and of up to 16 evenly spaced runs of 4096 tokens in it.
  ContentHash fingerprint() const override;
  /// Hash of all training and held-out tokens; of files of more than 1 GiB together, of 1,024
  /// evenly spaced runs of 4096 tokens in each part.
  ContentHash identity() const override;
  const Tokenizer* tokenizer() const override { return options_.tokenizer.get(); }
  /// Bytes of all held-out targets, divided by their number; 0 without a tokenizer.
  double held_out_bytes_per_token() const override { return bytes_per_token_; }
  std::vector<std::string> notes() const override { return options_.notes; }

  /// Number of training tokens, and of held-out tokens that are targets.
  int64_t training_tokens() const;
  int64_t held_out_tokens() const override;

 private:
  struct Window {
    const TokenPart* part;
    int64_t first;
  };
  Window training_window(int64_t step, int64_t index, int64_t length) const;
  /// Reads inputs.size() + 1 tokens and checks that they are in the vocabulary.
  void read(const Window& window, std::span<int64_t> inputs, std::span<int64_t> targets) const;

  std::vector<TokenPart> training_;
  std::vector<TokenPart> held_out_;
  TokenDataOptions options_;
  double bytes_per_token_ = 0;
};

}  // namespace lockstep::train

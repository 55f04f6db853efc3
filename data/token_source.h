#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "data/sample_origin.h"

namespace lockstep::train {

class Tokenizer;

/// A target of this value is excluded from the loss and from the number of targets (as PyTorch's
/// ignore_index).
inline constexpr int64_t kIgnoredTarget = -100;

/// A source of training sequences. Sequence `index` of `step` is a pure function of (source, step,
/// index): it does not depend on how a step is divided into micro-batches or shared among ranks.
/// Implementations are immutable, so all members are safe to call from many threads.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  /// Size of the vocabulary: tokens lie in [0, vocabulary()).
  virtual int64_t vocabulary() const = 0;

  /// Fills one training sequence of inputs.size() tokens; targets[t] is the token that follows
  /// inputs[t]. Both spans have the same, positive length. Throws DataError if the source is too
  /// short for one.
  virtual void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                        std::span<int64_t> targets) const = 0;

  /// Sizes of the documents in a sequence of `length` tokens, which add up to it. A document begins
  /// with the token that stands between two, the tokenizer's end_of_text: without a tokenizer, or
  /// such a token, a sequence is one document.
  virtual std::vector<int64_t> documents(int64_t step, int64_t index, int64_t length) const;
  /// Returns the same for a validation window.
  virtual std::vector<int64_t> validation_documents(int64_t index, int64_t length) const;

  /// A sequence by its step and its index there.
  struct Place {
    int64_t step;
    int64_t index;
  };
  /// Where sequences of `length` tokens begin in files, in about the time that one of them takes;
  /// empty if they come from none.
  virtual std::vector<SampleOrigin> origins_at([[maybe_unused]] std::span<const Place> places,
                                               [[maybe_unused]] int64_t length) const {
    return {};
  }
  /// Where the first `count` sequences of `step` begin.
  std::vector<SampleOrigin> origins(int64_t step, int64_t count, int64_t length) const;

  /// Number of windows of `length` targets that cover the held-out tokens; 0 if none are held out.
  virtual int64_t validation_windows(int64_t length) const = 0;

  /// Fills validation window `index`. Windows follow each other without overlap and every held-out
  /// token is the target of exactly one of them. The last may be shorter: its tail is padded with
  /// input 0 and target kIgnoredTarget. Returns the number of real targets.
  virtual int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                                    std::span<int64_t> targets) const = 0;

  /// Hash of the training tokens; large sources may hash a sample of them.
  virtual ContentHash fingerprint() const = 0;
  /// Hash by which ranks compare their data: of training and held-out tokens.
  virtual ContentHash identity() const { return fingerprint(); }

  /// The tokenizer that decodes the tokens; null if unknown.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  /// Number of held-out targets; 0 if unknown.
  virtual int64_t held_out_tokens() const { return 0; }
  /// Mean bytes of text per held-out target: a loss in nats / ln 2 / this is in bits per byte. 0 if
  /// unknown.
  virtual double held_out_bytes_per_token() const { return 0; }

  /// What a sample of the model's text should continue and show, chosen by `seed`; empty if
  /// anything does.
  virtual std::vector<uint32_t> sample_start([[maybe_unused]] uint64_t seed) const { return {}; }

  /// What a person should know of how the data was read, such as lines that were skipped.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// Fills validation windows first, first + 1, ... into row-major [count, length] buffers, where
/// count = inputs.size() / length, and returns the number of real targets. Rows past the last
/// window are all padding. Throws DataError unless both buffers hold the same whole number of rows.
int64_t fill_validation(const TokenSource& source, int64_t first, int64_t length,
                        std::span<int64_t> inputs, std::span<int64_t> targets);
/// Sizes of the documents in `count` of these windows, one window behind the other; rows past the
/// last window are one document.
std::vector<int64_t> documents_of_validation(const TokenSource& source, int64_t first,
                                             int64_t count, int64_t length);

}  // namespace lockstep::train

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/example_set.h"
#include "data/token_data.h"
#include "data/token_source.h"

namespace lockstep::train {

/// Rows of examples: the indices of the examples that each row holds, in their order there.
using ExampleRows = std::vector<std::vector<int64_t>>;

/// Deals examples of these sizes into rows of at most `capacity` tokens: the largest first, each
/// into the fullest row that has room for it (best fit decreasing; Johnson 1974). Equal ones follow
/// each other in an order drawn from `seed`. No size may exceed the capacity.
ExampleRows pack_rows(std::span<const int64_t> sizes, int64_t capacity, uint64_t seed);

struct ExampleDataOptions {
  int64_t vocabulary = 0;  ///< the model's
  int64_t length = 0;      ///< of every sequence and window
  bool packed = true;      ///< several examples in a row; false: one, and padding behind it
  uint64_t seed = 0;
  WindowOrder order = WindowOrder::kRandom;  ///< of rows
  int64_t sequences_per_step = 1;            ///< over all ranks
  std::shared_ptr<const Tokenizer> tokenizer = {};
};

/// Sequences of examples to fine-tune on. Only tokens that count are targets; all others are
/// kIgnoredTarget. A row has length + 1 tokens, examples without overlap and padding (0) behind
/// them, so that each target follows what precedes it in its own example.
class ExampleData : public TokenSource {
 public:
  /// Every example must fit into length + 1 tokens. `held_out` may be empty.
  ExampleData(ExampleSet training, ExampleSet held_out, ExampleDataOptions options);

  int64_t vocabulary() const override { return options_.vocabulary; }
  /// One row. Lengths other than that of the options are a bug.
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  /// Examples, and the padding behind them.
  std::vector<int64_t> documents(int64_t step, int64_t index, int64_t length) const override;
  std::vector<int64_t> validation_documents(int64_t index, int64_t length) const override;
  /// The first example of each row, with the number of others.
  std::vector<SampleOrigin> origins_at(std::span<const Place> places,
                                       int64_t length) const override;
  int64_t validation_windows(int64_t length) const override;
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;
  ContentHash fingerprint() const override { return training_.hash(); }
  ContentHash identity() const override;
  const Tokenizer* tokenizer() const override { return options_.tokenizer.get(); }
  int64_t held_out_tokens() const override { return held_out_.counted_tokens(); }
  double held_out_bytes_per_token() const override { return bytes_per_token_; }
  /// What precedes the first token that counts in a held-out example, or in one to train on.
  std::vector<uint32_t> sample_start(uint64_t seed) const override;
  std::vector<std::string> notes() const override;

 private:
  const std::vector<int64_t>& training_row(int64_t step, int64_t index) const;

  ExampleSet training_;
  ExampleSet held_out_;
  ExampleDataOptions options_;
  ExampleRows training_rows_;
  ExampleRows held_out_rows_;
  double bytes_per_token_ = 0;
};

}  // namespace lockstep::train

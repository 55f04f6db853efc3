#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/token_source.h"
#include "data/weighted_turns.h"

namespace lockstep::train {

/// Sequences from several sources of one vocabulary and tokenizer, in proportion to weights. Which
/// source a sequence comes from, and its place there, are functions of the seed and the sequence's
/// number, step * sequences_per_step + index, so that a resumed run needs no state.
class TokenMixture : public TokenSource {
 public:
  struct Source {
    /// With one sequence per step: its step n is the n-th sequence that is taken from it.
    std::unique_ptr<TokenSource> data;
    double weight = 1;
  };
  /// The seed for a source's data, so that each draws numbers of its own.
  static uint64_t seed_of_source(uint64_t seed, size_t source);
  /// Throws ConfigError for weights that WeightedTurns refuses.
  TokenMixture(std::vector<Source> sources, uint64_t seed, int64_t sequences_per_step);

  int64_t vocabulary() const override { return sources_.front().data->vocabulary(); }
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  std::vector<int64_t> documents(int64_t step, int64_t index, int64_t length) const override;
  std::vector<int64_t> validation_documents(int64_t index, int64_t length) const override;
  std::vector<SampleOrigin> origins_at(std::span<const Place> places,
                                       int64_t length) const override;
  /// The held-out tokens of all sources, one behind the other.
  int64_t validation_windows(int64_t length) const override;
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;
  ContentHash fingerprint() const override;
  ContentHash identity() const override;
  const Tokenizer* tokenizer() const override { return sources_.front().data->tokenizer(); }
  int64_t held_out_tokens() const override;
  double held_out_bytes_per_token() const override;
  /// That of the first source which has one.
  std::vector<uint32_t> sample_start(uint64_t seed) const override;
  std::vector<std::string> notes() const override;

 private:
  /// A window of one of the sources.
  struct Window {
    const TokenSource* source;
    int64_t index;
  };
  WeightedTurns::Turn turn_of(const Place& place) const {
    return turns_.turn(place.step * sequences_per_step_ + place.index);
  }
  Window held_out_window(int64_t index, int64_t length) const;

  std::vector<Source> sources_;
  WeightedTurns turns_;
  int64_t sequences_per_step_;
};

}  // namespace lockstep::train

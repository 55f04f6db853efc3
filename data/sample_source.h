#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/content_hash.h"
#include "data/sample_origin.h"

namespace lockstep::train {

/// A source of labelled samples. Sample `index` of `step` is a pure function of (source, step,
/// index): it does not depend on how a step is divided into micro-batches or shared among ranks.
/// Implementations are immutable, so all members are safe to call from many threads.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// Number of features in a sample.
  virtual int64_t features() const = 0;
  /// Number of classes: labels lie in [0, classes()).
  virtual int64_t classes() const = 0;

  /// Fills `features`, features() of them, with one training sample and returns its label.
  virtual int64_t sample(int64_t step, int64_t index, std::span<float> features) const = 0;

  /// Where the first `count` samples of `step` are in files; empty if they come from none.
  virtual std::vector<SampleOrigin> origins([[maybe_unused]] int64_t step,
                                            [[maybe_unused]] int64_t count) const {
    return {};
  }

  /// Number of samples held out from training.
  virtual int64_t held_out_samples() const = 0;
  /// Fills `features` with held-out sample `index` and returns its label.
  virtual int64_t held_out_sample(int64_t index, std::span<float> features) const = 0;

  /// Hash of the training samples.
  virtual ContentHash fingerprint() const = 0;
  /// Hash by which ranks compare their data: of training and held-out samples.
  virtual ContentHash identity() const { return fingerprint(); }
};

/// Fills samples first, first + 1, ... of `step` into row-major [labels.size(), features].
void fill_samples(const SampleSource& source, int64_t step, int64_t first, std::span<float> inputs,
                  std::span<int64_t> labels);

/// Fills held-out samples first, first + 1, ... likewise and returns their number. Rows past the
/// last one are zeros with the label kIgnoredTarget (data/token_source.h).
int64_t fill_held_out(const SampleSource& source, int64_t first, std::span<float> inputs,
                      std::span<int64_t> labels);

}  // namespace lockstep::train

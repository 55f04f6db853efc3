#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep::nn {

/// Position interpolation: every frequency is divided by `factor` (Chen et al. 2023, arXiv
/// 2306.15595).
struct LinearRopeScaling {
  double factor = 1;  ///< at least 1
  friend bool operator==(const LinearRopeScaling&, const LinearRopeScaling&) = default;
};

/// The scaling published with Llama 3.1, by a pair's wavelength in positions: longer than
/// original_context_length / low_freq_factor, its frequency is divided by `factor`; shorter than
/// original_context_length / high_freq_factor, it is kept; between, it is a weighted mean of both.
struct Llama3RopeScaling {
  double factor = 8;  ///< at least 1
  double low_freq_factor = 1;
  double high_freq_factor = 4;  ///< above low_freq_factor
  int64_t original_context_length = 8192;
  friend bool operator==(const Llama3RopeScaling&, const Llama3RopeScaling&) = default;
};

/// YaRN (Peng et al. 2023, arXiv 2309.00071): pairs that rotate more than `beta_fast` times within
/// the original context keep their frequency, those that rotate less than `beta_slow` times have it
/// divided by `factor`, with a linear ramp over the pairs between.
struct YarnRopeScaling {
  double factor = 1;  ///< at least 1
  int64_t original_context_length = 0;
  double beta_fast = 32;  ///< above beta_slow
  double beta_slow = 1;
  /// Factor of cosines and sines. Default: 0.1 ln(factor) + 1, as in the paper.
  std::optional<double> attention_factor;
  friend bool operator==(const YarnRopeScaling&, const YarnRopeScaling&) = default;
};

/// How rotary positions are scaled for a longer context; not at all by default.
using RopeScaling =
    std::variant<std::monostate, LinearRopeScaling, Llama3RopeScaling, YarnRopeScaling>;

struct RotaryFrequencies {
  std::vector<double> per_pair;  ///< radians per position of pair i: theta^(-2i / depth), scaled
  double attention_factor = 1;   ///< factor of cosines and sines
};

/// The frequencies of a head of `depth` elements, an even number. Throws ConfigError unless theta
/// is above 1 and the scaling is within the bounds above.
RotaryFrequencies rotary_frequencies(int64_t depth, double theta, const RopeScaling& scaling = {});

/// Cosines and sines of the angles position * frequency of each pair, [positions, depth / 2] in
/// float32, for rotary_embedding (core/ops/attention/rotary.h). Throws as rotary_frequencies does.
std::pair<Tensor, Tensor> rotary_tables(int64_t positions, int64_t depth, double theta,
                                        const RopeScaling& scaling = {});

}  // namespace lockstep::nn

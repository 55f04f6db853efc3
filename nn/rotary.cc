#include "nn/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/check.h"
#include "core/ops/factory/factory.h"

namespace lockstep::nn {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

void check_factor(double factor) {
  LS_CHECK(std::isfinite(factor) && factor >= 1, ConfigError,
           "[rope] factor is {}: expected at least 1.", factor);
}

void check_original(int64_t length) {
  LS_CHECK(length >= 1, ConfigError,
           "[rope] the original context length is {}: expected at least 1.", length);
}

void check_bounds(const char* low_name, double low, const char* high_name, double high) {
  LS_CHECK(low > 0 && high > low && std::isfinite(high), ConfigError,
           "[rope] expected 0 < {} < {}, got {} and {}.", low_name, high_name, low, high);
}

void scale(RotaryFrequencies&, double, const std::monostate&) {}

void scale(RotaryFrequencies& frequencies, double, const LinearRopeScaling& by) {
  check_factor(by.factor);
  for (double& frequency : frequencies.per_pair) frequency /= by.factor;
}

void scale(RotaryFrequencies& frequencies, double, const Llama3RopeScaling& by) {
  check_factor(by.factor);
  check_original(by.original_context_length);
  check_bounds("low_freq_factor", by.low_freq_factor, "high_freq_factor", by.high_freq_factor);
  for (double& frequency : frequencies.per_pair) {
    const double turns = static_cast<double>(by.original_context_length) * frequency / kTurn;
    const double kept = std::clamp(
        (turns - by.low_freq_factor) / (by.high_freq_factor - by.low_freq_factor), 0.0, 1.0);
    frequency = (1 - kept) * frequency / by.factor + kept * frequency;
  }
}

void scale(RotaryFrequencies& frequencies, double theta, const YarnRopeScaling& by) {
  check_factor(by.factor);
  check_original(by.original_context_length);
  check_bounds("beta_slow", by.beta_slow, "beta_fast", by.beta_fast);
  const double depth = 2 * static_cast<double>(frequencies.per_pair.size());
  // The index, as a real number, of the pair that rotates `turns` times within the original
  // context.
  const auto pair_turning = [&](double turns) {
    const double wavelength = static_cast<double>(by.original_context_length) / turns;
    return depth * std::log(wavelength / kTurn) / (2 * std::log(theta));
  };
  const double first = std::max(std::floor(pair_turning(by.beta_fast)), 0.0);
  double last = std::min(std::ceil(pair_turning(by.beta_slow)), depth - 1);
  if (last == first) last += 0.001;  // avoids a division by 0: the ramp becomes a step
  for (size_t i = 0; i < frequencies.per_pair.size(); ++i) {
    const double divided = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    double& frequency = frequencies.per_pair[i];
    frequency = divided * frequency / by.factor + (1 - divided) * frequency;
  }
  frequencies.attention_factor = by.attention_factor.value_or(0.1 * std::log(by.factor) + 1);
  LS_CHECK(std::isfinite(frequencies.attention_factor) && frequencies.attention_factor > 0,
           ConfigError, "[rope] attention_factor is {}: expected a number above 0.",
           frequencies.attention_factor);
}

}  // namespace

RotaryFrequencies rotary_frequencies(int64_t depth, double theta, const RopeScaling& scaling) {
  LS_CHECK(depth >= 2 && depth % 2 == 0, ConfigError,
           "[rope] rotary positions turn pairs of elements: expected heads of an even width, got "
           "{}.",
           depth);
  LS_CHECK(std::isfinite(theta) && theta > 1, ConfigError,
           "[rope] theta is {}: expected a number above 1.", theta);
  RotaryFrequencies frequencies;
  for (int64_t i = 0; i < depth / 2; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(depth);
    frequencies.per_pair.push_back(std::pow(theta, -exponent));
  }
  std::visit([&](const auto& by) { scale(frequencies, theta, by); }, scaling);
  return frequencies;
}

std::pair<Tensor, Tensor> rotary_tables(int64_t positions, int64_t depth, double theta,
                                        const RopeScaling& scaling) {
  const RotaryFrequencies frequencies = rotary_frequencies(depth, theta, scaling);
  std::vector<float> cosine;
  std::vector<float> sine;
  for (int64_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies.per_pair) {
      const double angle = static_cast<double>(position) * frequency;
      cosine.push_back(static_cast<float>(frequencies.attention_factor * std::cos(angle)));
      sine.push_back(static_cast<float>(frequencies.attention_factor * std::sin(angle)));
    }
  }
  const Device device = default_device();
  const Dims sizes{positions, depth / 2};
  return {tensor_from<float>(cosine, sizes).to(device), tensor_from<float>(sine, sizes).to(device)};
}

}  // namespace lockstep::nn

#include "train/loss_spike.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "configs/run.pb.h"

namespace lockstep::train {
namespace {

struct Spread {
  double mean = 0;
  double deviation = 0;  ///< of the population
};

Spread spread_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Spread spread;
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double each : values) squares += (each - spread.mean) * (each - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  return spread;
}

double limit_of(std::span<const double> values, double z) {
  const Spread spread = spread_of(values);
  // The mean of equal values has a rounding error, which must not count as a deviation.
  if (spread.deviation <= 1e-12 * std::abs(spread.mean)) return SpikeLimits().loss;
  return spread.mean + z * spread.deviation;
}

std::string describe(const char* what, double value, std::span<const double> window) {
  const Spread spread = spread_of(window);
  return fmt::format("{} {:.4g} is {:.1f} deviations above the mean {:.4g} of the last {} steps",
                     what, value, (value - spread.mean) / spread.deviation, spread.mean,
                     window.size());
}

void keep_newest(std::vector<double>& values, int64_t count) {
  const auto kept = std::min(values.size(), static_cast<size_t>(count));
  values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(kept));
}

}  // namespace

SpikeRule spike_rule_of(const config::RunConfig& config) {
  using Config = config::LossSpikeConfig;
  const Config& spike = config.train().loss_spike();
  SpikeRule rule{.z = spike.z(), .window = spike.window(), .limit = spike.limit()};
  if (spike.action() == Config::NOTE) rule.action = SpikeAction::kNote;
  if (spike.action() == Config::SKIP) rule.action = SpikeAction::kSkip;
  if (spike.action() == Config::ROLLBACK) rule.action = SpikeAction::kRollback;
  return rule;
}

SpikeLimits SpikeWatch::limits() const {
  if (rule_.action == SpikeAction::kKeep || memory_.row.count >= rule_.limit ||
      std::ssize(memory_.losses) < rule_.window) {
    return {};
  }
  return {.loss = limit_of(memory_.losses, rule_.z),
          .grad_norm = limit_of(memory_.grad_norms, rule_.z)};
}

bool SpikeWatch::add(int64_t step, double loss, double grad_norm) {
  if (rule_.action == SpikeAction::kKeep) return false;
  const SpikeLimits most = limits();
  if (loss > most.loss || grad_norm > most.grad_norm) {
    ++memory_.row.count;
    memory_.row.furthest = std::max(memory_.row.furthest, step);
    return true;
  }
  if (memory_.row.count >= rule_.limit) memory_ = {};
  if (step > memory_.row.furthest) memory_.row.count = 0;
  memory_.losses.push_back(loss);
  memory_.grad_norms.push_back(grad_norm);
  keep_newest(memory_.losses, rule_.window);
  keep_newest(memory_.grad_norms, rule_.window);
  return false;
}

std::string SpikeWatch::describe(double loss, double grad_norm) const {
  return loss > limits().loss ? train::describe("loss", loss, memory_.losses)
                              : train::describe("gradient norm", grad_norm, memory_.grad_norms);
}

void SpikeWatch::remember(SpikeMemory memory) {
  memory_ = std::move(memory);
  keep_newest(memory_.losses, rule_.window);
  keep_newest(memory_.grad_norms, rule_.window);
}

}  // namespace lockstep::train

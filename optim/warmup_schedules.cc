#include "optim/warmup_schedules.h"

#include "core/base/check.h"

namespace lockstep::optim {

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options)
    : Scheduler("ConstantLR", optimizer), options_(options) {
  LS_CHECK(options.factor >= 0 && options.factor <= 1, ConfigError,
           "[optim.ConstantLR] factor is out of range: expected from 0 to 1, got {}.",
           options.factor);
  begin();
}

double ConstantLR::next_rate(size_t group) const {
  if (is_initial()) return current(group) * options_.factor;
  return last_step() == options_.total_iters ? current(group) * (1 / options_.factor)
                                             : current(group);
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options)
    : Scheduler("LinearLR", optimizer), options_(options) {
  LS_CHECK(options.start_factor > 0 && options.start_factor <= 1, ConfigError,
           "[optim.LinearLR] start_factor is out of range: expected above 0 and at most 1, got {}.",
           options.start_factor);
  LS_CHECK(options.end_factor >= 0 && options.end_factor <= 1, ConfigError,
           "[optim.LinearLR] end_factor is out of range: expected from 0 to 1, got {}.",
           options.end_factor);
  begin();
}

double LinearLR::next_rate(size_t group) const {
  if (is_initial()) return current(group) * options_.start_factor;
  if (last_step() > options_.total_iters) return current(group);
  // From the factor of the step before to the next one, as a ratio.
  const double rise = options_.end_factor - options_.start_factor;
  const auto total = static_cast<double>(options_.total_iters);
  const auto before = static_cast<double>(last_step() - 1);
  return current(group) * (1 + rise / (total * options_.start_factor + before * rise));
}

}  // namespace lockstep::optim

#include "dist/simulate/step_work.h"

#include <algorithm>
#include <utility>

namespace lockstep::dist {

namespace {

void scale(UnitWork& unit, double forward, double backward) {
  unit.forward *= forward;
  unit.backward *= backward;
  for (ParameterWork& each : unit.parameters) each.ready *= backward;
}

}  // namespace

double StepWork::forward() const {
  double sum = forward_before + root.forward;
  for (const UnitWork& unit : units) sum += unit.forward;
  return sum;
}

double StepWork::backward() const {
  double sum = backward_before + root.backward;
  for (const UnitWork& unit : units) sum += unit.backward;
  return sum;
}

double StepWork::seconds(double shards) const {
  return static_cast<double>(micro_batches) * (forward() + backward()) + update / shards;
}

std::vector<ParameterWork> StepWork::parameters() const {
  std::vector<ParameterWork> all = root.parameters;
  for (const UnitWork& unit : units) {
    all.insert(all.end(), unit.parameters.begin(), unit.parameters.end());
  }
  return all;
}

double StepWork::first_ready() const {
  double first = backward();
  const auto look_at = [&](const UnitWork& unit) {
    for (const ParameterWork& each : unit.parameters) first = std::min(first, each.ready);
  };
  look_at(root);
  for (const UnitWork& unit : units) look_at(unit);
  return first;
}

StepWork scaled(StepWork work, double factor) {
  work.update *= factor;
  return scaled_passes(std::move(work), factor, factor);
}

StepWork scaled_passes(StepWork work, double forward, double backward) {
  scale(work.root, forward, backward);
  for (UnitWork& unit : work.units) scale(unit, forward, backward);
  work.forward_before *= forward;
  work.backward_before *= backward;
  return work;
}

}  // namespace lockstep::dist

#include "dist/simulate/step_work.h"

#include <utility>

namespace lockstep::dist {

namespace {

void scale(UnitWork& unit, double factor) {
  unit.forward *= factor;
  unit.backward *= factor;
  for (ParameterWork& each : unit.parameters) each.ready *= factor;
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

StepWork scaled(StepWork work, double factor) {
  scale(work.root, factor);
  for (UnitWork& unit : work.units) scale(unit, factor);
  work.forward_before *= factor;
  work.backward_before *= factor;
  work.update *= factor;
  return work;
}

}  // namespace lockstep::dist

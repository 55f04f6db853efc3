#include "train/bisect/tolerance.h"

#include <cmath>

#include "core/ops/factory/copy.h"

namespace lockstep::train {
namespace {

/// The largest distance between two tensors, by the largest number in either.
struct Distance {
  int64_t element = 0;
  double relative = 0;
};
Distance distance_between(const Tensor& a, const Tensor& b) {
  const Tensor wide_a = a.to(DType::kF64), wide_b = b.to(DType::kF64);
  const double* const x = wide_a.data<double>();
  const double* const y = wide_b.data<double>();
  double largest = 0, furthest = 0;
  Distance found;
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
      largest = std::max(largest, std::isfinite(x[i]) ? std::abs(x[i]) : 0);
      continue;
    }
    const double distance = std::abs(x[i] - y[i]);
    if (!std::isfinite(distance)) return {i, HUGE_VAL};
    largest = std::max({largest, std::abs(x[i]), std::abs(y[i])});
    if (distance <= furthest) continue;
    furthest = distance;
    found.element = i;
  }
  found.relative = furthest > 0 ? furthest / largest : 0;
  return found;
}

}  // namespace

void ValueStore::after(const Call& call, const std::vector<Tensor>& written) {
  const size_t number = number_++;
  if (number < first_ || next_) return;
  size_t bytes = 0;
  for (const Tensor& each : written) bytes += each.nbytes();
  if (taken_ + bytes > bytes_ && number > first_) {
    next_ = number;
    return;
  }
  taken_ += bytes;
  values_[{part().micro_batch, call.op.name(), call.call}] = copies_of(written);
}

const std::vector<Tensor>* ValueStore::find(const CallName& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void ToleranceCheck::after(const Call& call, const std::vector<Tensor>& written) {
  modules_.wrote(written);
  if (found_) return;
  CallName name{part().micro_batch, call.op.name(), call.call};
  const std::vector<Tensor>* const other = store_.find(name);
  if (other == nullptr || other->size() != written.size()) return;
  const std::vector<Tensor> here = copies_of(written);
  for (size_t i = 0; i < here.size(); ++i) {
    // Devices may keep other things beside a result, such as what backward needs.
    if (here[i].shape() != (*other)[i].shape() || here[i].dtype() != (*other)[i].dtype()) return;
  }
  ++compared_;
  for (size_t i = 0; i < here.size(); ++i) {
    const Distance distance = distance_between((*other)[i], here[i]);
    const double allowed = is_floating(here[i].dtype()) ? tolerance_ : 0;
    if (distance.relative <= allowed) continue;
    ElementDifference element = describe_element((*other)[i], here[i], distance.element);
    element.tensor = i;
    found_ = {std::move(name), current_phase(), module_, std::move(element), distance.relative};
    return;
  }
}

}  // namespace lockstep::train

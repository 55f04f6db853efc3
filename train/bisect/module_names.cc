#include "train/bisect/module_names.h"

#include <map>

#include "core/base/current_scope.h"
#include "core/base/phase.h"
#include "core/dispatch/value_tensors.h"

namespace lockstep::train {

void ModuleNames::begin() {
  module_of_.clear();
  last_.clear();
}

std::string ModuleNames::of(const Stack& stack) {
  const std::string running(current_module());
  if (current_phase() == Phase::kForward || !running.empty()) {
    if (running.empty()) return running;
    for (const Value& argument : stack.arguments()) {
      each_defined_tensor(
          argument, [&](const Tensor& tensor) { module_of_[tensor.storage().get()] = running; });
    }
    return running;
  }
  if (current_phase() != Phase::kBackward) return "";
  std::map<std::string, int> votes;
  for (const Value& argument : stack.arguments()) {
    each_defined_tensor(argument, [&](const Tensor& tensor) {
      const auto found = module_of_.find(tensor.storage().get());
      if (found != module_of_.end()) ++votes[found->second];
    });
  }
  int most = 0;
  for (const auto& [module, count] : votes) {
    // Of two with as many the later path is deeper, or of a later layer, which backward meets
    // first.
    if (count < most) continue;
    most = count;
    last_ = module;
  }
  return last_;
}

void ModuleNames::wrote(const std::vector<Tensor>& tensors) {
  const std::string_view running = current_module();
  for (const Tensor& each : tensors) {
    if (running.empty()) {
      module_of_.erase(each.storage().get());
    } else {
      module_of_[each.storage().get()] = running;
    }
  }
}

}  // namespace lockstep::train

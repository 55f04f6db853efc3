#include "optim/state_reader.h"

#include <utility>

#include "core/base/check.h"

namespace lockstep::optim {

StateReader::StateReader(std::string kind, const StateDict& state)
    : kind_(std::move(kind)), state_(state) {}

std::optional<double> StateReader::find_number(const std::string& name) {
  asked_.insert(name);
  const auto found = state_.numbers.find(name);
  return found == state_.numbers.end() ? std::nullopt : std::optional(found->second);
}

double StateReader::number(const std::string& name) {
  const std::optional<double> found = find_number(name);
  LS_CHECK(found.has_value(), CheckpointError,
           "[optim.{}] the state does not fit: expected a number \"{}\", got none. Load the state "
           "of a {} with the same groups.",
           kind_, name, kind_);
  return *found;
}

double StateReader::number_or(const std::string& name, double otherwise) {
  return find_number(name).value_or(otherwise);
}

Tensor StateReader::find_tensor(const std::string& name) {
  asked_.insert(name);
  const auto found = state_.tensors.find(name);
  return found == state_.tensors.end() ? Tensor() : found->second;
}

void StateReader::expect_end() const {
  const auto check = [&](const std::string& name) {
    LS_CHECK(asked_.contains(name), CheckpointError,
             "[optim.{}] the state does not fit: \"{}\" belongs to no parameter and no option. "
             "Load the state of a {} with the same groups and names.",
             kind_, name, kind_);
  };
  for (const auto& [name, tensor] : state_.tensors) check(name);
  for (const auto& [name, number] : state_.numbers) check(name);
}

}  // namespace lockstep::optim

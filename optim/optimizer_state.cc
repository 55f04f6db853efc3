// Saving and loading an optimizer's state.

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "optim/optimizer.h"
#include "optim/state_reader.h"

namespace lockstep::optim {

namespace {

std::string group_prefix(size_t group) { return "group." + std::to_string(group) + "."; }

}  // namespace

StateDict Optimizer::state_dict() const {
  StateDict state;
  state.numbers["groups"] = static_cast<double>(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::string prefix = group_prefix(g);
    state.numbers[prefix + "parameters"] = static_cast<double>(groups_[g].parameters.size());
    if (groups_[g].initial_learning_rate) {
      state.numbers[prefix + "initial_learning_rate"] = *groups_[g].initial_learning_rate;
    }
    for (const OptionValue& option : option_values(g)) {
      state.numbers[prefix + option.name] = option.value;
    }
    for (const ParameterState& each : groups_[g].parameters) {
      if (each.steps == 0) continue;
      state.numbers["step." + each.name] = static_cast<double>(each.steps);
      for (size_t i = 0; i < kind_.numbers.size(); ++i) {
        state.numbers[kind_.numbers[i] + "." + each.name] = each.numbers[i];
      }
      for (size_t i = 0; i < kind_.tensors.size(); ++i) {
        if (each.tensors[i].defined()) {
          state.tensors[kind_.tensors[i] + "." + each.name] = each.tensors[i];
        }
      }
    }
  }
  save_extra(state);
  return state;
}

ParameterState Optimizer::read_state(const ParameterState& current, StateReader& reader) const {
  ParameterState loaded{.name = current.name,
                        .description = current.description,
                        .parameter = current.parameter,
                        .tensors = std::vector<Tensor>(kind_.tensors.size()),
                        .numbers = std::vector<double>(kind_.numbers.size(), 1.0)};
  loaded.steps = static_cast<int64_t>(reader.number_or("step." + current.name, 0));
  if (loaded.steps == 0) return loaded;
  for (size_t i = 0; i < kind_.numbers.size(); ++i) {
    loaded.numbers[i] = reader.number(kind_.numbers[i] + "." + current.name);
  }
  for (size_t i = 0; i < kind_.tensors.size(); ++i) {
    const std::string name = kind_.tensors[i] + "." + current.name;
    const Tensor tensor = reader.find_tensor(name);
    if (!tensor.defined()) continue;
    const Dims sizes = state_sizes(current.parameter, i);
    LS_CHECK(same(tensor.sizes(), sizes), CheckpointError,
             "[optim.{}] \"{}\" in the state has another shape than {} needs: expected {}, got {}.",
             kind(), name, current.description, to_string(IntList(sizes)), tensor.shape());
    loaded.tensors[i] = zeros(sizes, current.parameter.options());
    loaded.tensors[i].copy_(tensor);
  }
  return loaded;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const NoGradGuard no_grad;
  StateReader reader(kind(), state);
  const auto expect_count = [&](const std::string& name, size_t expected) {
    const double found = reader.number(name);
    LS_CHECK(found == static_cast<double>(expected), CheckpointError,
             "[optim.{}] the state does not fit: expected {} = {}, got {}. Add the same groups "
             "before loading.",
             kind(), name, expected, found);
  };
  expect_count("groups", groups_.size());
  std::vector<Group> loaded(groups_.size());
  std::vector<std::vector<double>> options(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::string prefix = group_prefix(g);
    expect_count(prefix + "parameters", groups_[g].parameters.size());
    loaded[g].initial_learning_rate = reader.find_number(prefix + "initial_learning_rate");
    for (const OptionValue& option : option_values(g)) {
      options[g].push_back(reader.number(prefix + option.name));
    }
    for (const ParameterState& each : groups_[g].parameters) {
      loaded[g].parameters.push_back(read_state(each, reader));
    }
  }
  const std::function<void()> put_extra = load_extra(reader);
  reader.expect_end();

  // Nothing fails from here on.
  groups_ = std::move(loaded);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<OptionField> group_fields = fields(g);
    for (size_t i = 0; i < group_fields.size(); ++i) group_fields[i].set(options[g][i]);
  }
  put_extra();
}

}  // namespace lockstep::optim

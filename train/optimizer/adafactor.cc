#include "train/optimizer/adafactor.h"

#include "core/ops/factory/factory.h"

namespace lockstep::train {

Adafactor::Adafactor(const std::vector<nn::NamedParameter>& parameters, AdafactorRule rule)
    : Optimizer(parameters), rule_(rule) {
  for (const auto& [name, tensor] : parameters) {
    Item item{name, tensor, {zeros(adafactor_row_sizes(tensor.sizes()), tensor.options()), {}}};
    if (tensor.dim() >= 2) {
      item.state.column = zeros(adafactor_column_sizes(tensor.sizes()), tensor.options());
    }
    items_.push_back(std::move(item));
  }
}

void Adafactor::update(std::span<const uint32_t> parameters, const Update& update) {
  AdafactorRule rule = rule_;
  rule.learning_rate = update.learning_rate;
  for (const uint32_t each : parameters) {
    const Item& item = items_[each];
    rule.weight_decay = item.parameter.dim() >= 2 ? update.decay_or(rule_.weight_decay) : 0;
    adafactor_(item.parameter, update.gradients[each], item.state, step_count(), rule,
               update.grad_scale, update.known_there.grad_factor, update.known_there.found_inf);
  }
}

std::vector<nn::StoredParameter> Adafactor::rule_state() const {
  std::vector<nn::StoredParameter> state;
  for (const Item& each : items_) {
    if (each.state.column.defined())
      state.push_back({"exp_avg_sq_row." + each.name, each.state.row});
  }
  for (const Item& each : items_) {
    if (each.state.column.defined()) {
      state.push_back({"exp_avg_sq_col." + each.name, each.state.column});
    }
  }
  for (const Item& each : items_) {
    if (!each.state.column.defined()) state.push_back({"exp_avg_sq." + each.name, each.state.row});
  }
  return state;
}

}  // namespace lockstep::train

#include "train/optimizer/adafactor.h"

#include <numeric>

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/optimizer/optimizer.h"
#include "core/ops/view/view.h"
#include "dist/fsdp/sharded_model.h"
#include "train/optimizer/grad_norm.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kRow = "exp_avg_sq_row", kColumn = "exp_avg_sq_col",
                           kVector = "exp_avg_sq";

double elements_of(const MatrixSize& size) { return static_cast<double>(size.elements()); }

/// What is known on another device as well.
Tensor on(const Tensor& scalar, Device device) {
  return scalar.defined() ? scalar.to(device) : scalar;
}

}  // namespace

Adafactor::Adafactor(const std::vector<nn::NamedParameter>& parameters, AdafactorRule rule)
    : Optimizer(parameters), rule_(rule) {
  for (const auto& [name, tensor] : parameters) {
    parameters_.push_back(tensor);
    keep_state(name, tensor.sizes(), tensor.options());
  }
}

void Adafactor::keep_state(const std::string& name, IntList sizes, TensorOptions options) {
  Item item{name, {zeros(adafactor_row_sizes(sizes), options), {}}};
  if (sizes.size() >= 2) item.state.column = zeros(adafactor_column_sizes(sizes), options);
  items_.push_back(std::move(item));
}

void Adafactor::keep_parts_of(const dist::ShardedModel& model) {
  std::vector<size_t> all(model.trained_count());
  std::iota(all.begin(), all.end(), size_t{0});
  Spread& spread =
      spread_.emplace(Spread{model, MatrixExchange(model, all, elements_of), {}, {}, {}});
  spread.number_of.resize(parameters_.size());
  spread.item_of.resize(all.size());
  items_.clear();
  int64_t blocks = 0;
  for (const size_t number : all) {
    const auto& [name, whole] = model.trained(number);
    blocks += (whole.numel() + kNormBlock - 1) / kNormBlock;
    spread.blocks_end.push_back(blocks);
    const int64_t part = model.part_of(number);
    if (part >= 0) spread.number_of[static_cast<size_t>(part)] = number;
    if (spread.exchange.owner(number) != model.shards().rank()) continue;
    spread.item_of[number] = items_.size();
    keep_state(name, whole.sizes(), {whole.dtype(), step_count().device()});
  }
}

AdafactorRule Adafactor::rule_of(size_t parameter, const Update& update) const {
  AdafactorRule rule = rule_;
  rule.learning_rate = update.learning_rate;
  rule.weight_decay = parameters_[parameter].dim() >= 2 ? update.decay_or(rule_.weight_decay) : 0;
  return rule;
}

void Adafactor::update(std::span<const uint32_t> parameters, const Update& update) {
  if (spread_) return;  // update_parts has moved them
  for (const uint32_t each : parameters) {
    adafactor_(parameters_[each], update.gradients[each], items_[each].state, step_count(),
               rule_of(each, update), update.grad_scale, update.known_there.grad_factor,
               update.known_there.found_inf);
  }
}

// Only a gradient and the direction that it becomes are ever whole.
void Adafactor::update_parts(const Update& update) {
  if (!spread_) return;
  const std::vector<Tensor> rms = whole_rms();
  spread_->exchange.run(
      {.give = [&](size_t part) { return update.gradients[part]; },
       .compute =
           [&](std::span<const size_t> numbers, const std::vector<Tensor>& wholes) {
             std::vector<Tensor> directions;
             for (size_t i = 0; i < wholes.size(); ++i) {
               const Tensor& parameter = spread_->model.trained(numbers[i]).tensor;
               directions.push_back(
                   whole_direction(numbers[i], wholes[i].view(parameter.sizes()), update));
             }
             return directions;
           },
       .take =
           [&](size_t part, const Tensor& direction, const MatrixSize&) {
             const Tensor& parameter = parameters_[part];
             adafactor_move_(parameter, direction.view(parameter.sizes()).to(parameter.options()),
                             rms[part], step_count(),
                             rule_of(part, of_group(static_cast<uint32_t>(part), update)),
                             update.known_there.found_inf);
           }});
}

// State may be on the host, with parallel.cpu_offload, and gradients are put together on the
// device.
Tensor Adafactor::whole_direction(size_t number, const Tensor& gradient,
                                  const Update& update) const {
  const AdafactorState& state = items_[spread_->item_of[number]].state;
  const Device device = gradient.device();
  const AdafactorState there{on(state.row, device), on(state.column, device)};
  const Tensor direction = adafactor_direction_(
      gradient, there, on(step_count(), device), rule_, update.grad_scale,
      on(update.known_there.grad_factor, device), on(update.known_there.found_inf, device));
  if (!there.row.is_same(state.row)) {
    state.row.copy_(there.row);
    if (state.column.defined()) state.column.copy_(there.column);
  }
  return direction;
}

std::vector<Tensor> Adafactor::whole_rms() const {
  const Device device = step_count().device();
  const Tensor sums = spread_->model.blocks_of_all(block_square_sums(parameters_, device));
  std::vector<Tensor> rms;
  for (const size_t number : spread_->number_of) {
    const int64_t first = number == 0 ? 0 : spread_->blocks_end[number - 1];
    const Tensor of_whole = slice(sums, 0, first, spread_->blocks_end[number]);
    rms.push_back(
        on(adafactor_rms(of_whole, spread_->model.trained(number).tensor.numel()), device));
  }
  return rms;
}

bool Adafactor::rule_keeps(std::string_view name, const nn::NamedParameter& parameter) const {
  return (parameter.tensor.dim() >= 2) == (name != kVector);
}

Dims Adafactor::rule_state_sizes(std::string_view name, const nn::NamedParameter& parameter) const {
  const IntList sizes = parameter.tensor.sizes();
  return name == kColumn ? adafactor_column_sizes(sizes) : adafactor_row_sizes(sizes);
}

std::optional<int> Adafactor::rule_state_owner(size_t number) const {
  return spread_->exchange.owner(number);
}

std::vector<nn::StoredParameter> Adafactor::rule_state() const {
  std::vector<nn::StoredParameter> state;
  const auto add = [&](std::string_view prefix, const Item& item, const Tensor& tensor) {
    state.push_back({std::string(prefix) + "." + item.name, tensor});
  };
  for (const Item& each : items_) {
    if (each.state.column.defined()) add(kRow, each, each.state.row);
  }
  for (const Item& each : items_) {
    if (each.state.column.defined()) add(kColumn, each, each.state.column);
  }
  for (const Item& each : items_) {
    if (!each.state.column.defined()) add(kVector, each, each.state.row);
  }
  return state;
}

}  // namespace lockstep::train

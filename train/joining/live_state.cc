#include "train/joining/live_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "train/gradient_options.h"
#include "train/joining/step_bytes.h"

namespace lockstep::train {

namespace {

constexpr size_t kPartBytes = size_t{128} << 10;
/// Where values are cut: a multiple of every element's size.
constexpr size_t kCut = 64;
constexpr size_t kHeadBytes =
    sizeof(StateRecord::Kind) + 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t);

template <class T>
void put_value(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string_view take_bytes(std::string_view& left, uint64_t size) {
  LS_CHECK(size <= left.size(), DataError,
           "[join] a part of the state ends too early: expected {} more bytes, got {}. Start all "
           "ranks with the same program.",
           size, left.size());
  const std::string_view bytes = left.substr(0, size);
  left.remove_prefix(size);
  return bytes;
}

template <class T>
T take_value(std::string_view& left) {
  T value;
  std::memcpy(&value, take_bytes(left, sizeof value).data(), sizeof value);
  return value;
}

void put_text(std::string& bytes, std::string_view text) {
  put_value(bytes, static_cast<uint64_t>(text.size()));
  bytes += text;
}

void put_list(std::string& bytes, const std::vector<double>& values) {
  put_text(bytes,
           {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values.front()});
}

std::vector<double> take_list(std::string_view& left) {
  const std::string_view bytes = take_bytes(left, take_value<uint64_t>(left));
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

std::string bytes_of_facts(const StepFacts& facts) {
  std::string bytes;
  put_text(bytes, to_bytes(facts.step));
  put_value(bytes, facts.gradient_mean);
  put_value(bytes, static_cast<uint8_t>(facts.clip_factor ? 1 : 0));
  put_value(bytes, facts.clip_factor.value_or(0));
  put_value(bytes, facts.updates);
  put_value(bytes, facts.position);
  put_value(bytes, facts.scale);
  put_value(bytes, facts.spikes.row);
  put_list(bytes, facts.spikes.losses);
  put_list(bytes, facts.spikes.grad_norms);
  put_value(bytes, facts.early_end.value_or(ScheduleEnd()));
  return bytes;
}

size_t sum_of_bytes(const std::vector<Tensor>& tensors) {
  size_t sum = 0;
  for (const Tensor& each : tensors) sum += each.nbytes();
  return sum;
}

bool is_dense(const Tensor& tensor) { return tensor.device() == kCPU && tensor.is_contiguous(); }

/// Adds buffers and, to the units of these names, what the optimizer keeps for them.
std::optional<LiveState> completed(LiveState state,
                                   const std::unordered_map<std::string, size_t>& unit_of,
                                   const nn::Module& model, const Optimizer& optimizer) {
  for (const nn::StoredParameter& each : optimizer.state()) {
    // "exp_avg.h.0.ln_1.bias"
    const auto unit = unit_of.find(each.name.substr(each.name.find('.') + 1));
    if (unit == unit_of.end()) return std::nullopt;
    state.units[unit->second].tensors.push_back(each.tensor);
  }
  for (const nn::NamedParameter& each : model.named_buffers()) {
    state.buffers.push_back(each.tensor);
  }
  const bool all_dense = std::ranges::all_of(state.buffers, is_dense) &&
                         std::ranges::all_of(state.units, [](const StateUnit& unit) {
                           return std::ranges::all_of(unit.tensors, is_dense);
                         });
  if (!all_dense) return std::nullopt;
  return state;
}

}  // namespace

size_t StateUnit::bytes() const { return sum_of_bytes(tensors); }

size_t LiveState::bytes() const {
  size_t sum = 0;
  for (const StateUnit& each : units) sum += each.bytes();
  return sum;
}

size_t LiveState::gradient_bytes() const { return sum_of_bytes(trained); }

std::optional<LiveState> live_state(const nn::Module& model, const Optimizer& optimizer) {
  LiveState state;
  std::unordered_map<const TensorImpl*, uint32_t> number_of;
  for (const nn::NamedParameter& each : updated_parameters(model, nullptr)) {
    number_of.emplace(each.tensor.impl(), static_cast<uint32_t>(state.trained.size()));
    state.trained.push_back(each.tensor);
  }
  std::unordered_map<std::string, size_t> unit_of;
  for (const nn::NamedParameter& each : model.named_parameters()) {
    unit_of.emplace(each.name, state.units.size());
    const auto number = number_of.find(each.tensor.impl());
    state.units.push_back({.trained = std::nullopt, .tensors = {each.tensor}});
    if (number != number_of.end()) state.units.back().trained = number->second;
  }
  return completed(std::move(state), unit_of, model, optimizer);
}

std::optional<LiveState> live_part(Trainer& trainer) {
  if (!trainer.is_sharded()) return std::nullopt;
  // Other rules need whole tensors, which no rank has.
  constexpr std::array<std::string_view, 3> kByElement = {"adamw", "sgd", "lion"};
  const Optimizer& optimizer = trainer.optimizer();
  if (std::ranges::find(kByElement, optimizer.kind()) == kByElement.end()) return std::nullopt;
  LiveState state;
  std::unordered_map<std::string, uint32_t> number_of;
  for (const dist::NamedTensor& each : trainer.sharded()->parameters()) {
    number_of.emplace(each.name, static_cast<uint32_t>(state.trained.size()));
    state.trained.push_back(each.tensor);
  }
  std::unordered_map<std::string, size_t> unit_of;
  for (const dist::ShardRun& each : trainer.own_runs()) {
    unit_of.emplace(each.parameter.name, state.units.size());
    const auto number = number_of.find(each.parameter.name);
    state.units.push_back({.trained = std::nullopt, .tensors = {each.values}});
    if (number != number_of.end()) state.units.back().trained = number->second;
  }
  return completed(std::move(state), unit_of, trainer.task().model(), optimizer);
}

StepFacts facts_of(const Trainer& trainer, const StepResult& step) {
  StepFacts facts{.step = step,
                  .gradient_mean = trainer.gradient_factors().mean,
                  .clip_factor = std::nullopt,
                  .updates = trainer.optimizer().steps(),
                  .position = trainer.position(),
                  .scale = trainer.scaler().state(),
                  .spikes = trainer.spikes().memory(),
                  .early_end = trainer.early_end()};
  if (const Tensor& clip = trainer.gradient_factors().clip; clip.defined()) {
    facts.clip_factor = *clip.data<double>();
  }
  return facts;
}

std::string& StateWriter::part_for(size_t bytes) {
  if (parts_.empty() || parts_.back().size() + kHeadBytes + bytes > kPartBytes) {
    parts_.emplace_back();
  }
  return parts_.back();
}

void StateWriter::add(const StateRecord& record) {
  std::string& part = part_for(record.bytes.size());
  put_value(part, record.kind);
  put_value(part, record.number);
  put_value(part, record.tensor);
  put_value(part, record.offset);
  put_text(part, record.bytes);
}

void StateWriter::add_tensor(StateRecord::Kind kind, size_t number, size_t index,
                             const Tensor& tensor) {
  const std::string_view all(static_cast<const char*>(tensor.data()), tensor.nbytes());
  for (size_t offset = 0; offset < all.size();) {
    std::string& part = part_for(kCut);
    const size_t room = (kPartBytes - part.size() - kHeadBytes) / kCut * kCut;
    const std::string_view bytes = all.substr(offset, room);
    if (part.capacity() < part.size() + kHeadBytes + bytes.size()) {
      part.reserve(std::min(kPartBytes, part.size() + kHeadBytes + (all.size() - offset)));
    }
    add({kind, static_cast<uint32_t>(number), static_cast<uint32_t>(index), offset, bytes});
    offset += bytes.size();
  }
}

void StateWriter::add_step(const StepFacts& facts) {
  add({.kind = StateRecord::Kind::kStep, .bytes = bytes_of_facts(facts)});
}

std::vector<std::string> StateWriter::take() { return std::exchange(parts_, {}); }

StateRecord take_record(std::string_view& part) {
  StateRecord record;
  record.kind = take_value<StateRecord::Kind>(part);
  LS_CHECK(record.kind <= StateRecord::Kind::kStep, DataError,
           "[join] a part of the state has a record of kind {}: expected at most {}. Start all "
           "ranks with the same program.",
           static_cast<int>(record.kind), static_cast<int>(StateRecord::Kind::kStep));
  record.number = take_value<uint32_t>(part);
  record.tensor = take_value<uint32_t>(part);
  record.offset = take_value<uint64_t>(part);
  record.bytes = take_bytes(part, take_value<uint64_t>(part));
  return record;
}

StepFacts step_facts_of(std::string_view bytes) {
  StepFacts facts;
  facts.step = step_of_bytes(std::string(take_bytes(bytes, take_value<uint64_t>(bytes))));
  facts.gradient_mean = take_value<double>(bytes);
  const bool has_factor = take_value<uint8_t>(bytes) != 0;
  const auto factor = take_value<double>(bytes);
  if (has_factor) facts.clip_factor = factor;
  facts.updates = take_value<int64_t>(bytes);
  facts.position = take_value<Position>(bytes);
  facts.scale = take_value<GradScalerState>(bytes);
  facts.spikes.row = take_value<SpikeRow>(bytes);
  facts.spikes.losses = take_list(bytes);
  facts.spikes.grad_norms = take_list(bytes);
  if (const auto end = take_value<ScheduleEnd>(bytes); end.steps > 0) facts.early_end = end;
  return facts;
}

}  // namespace lockstep::train

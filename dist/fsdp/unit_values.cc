#include "dist/fsdp/unit_values.h"

#include <fmt/format.h>

#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "dist/ddp/gradient_arena.h"

namespace lockstep::dist {

namespace {

std::vector<int64_t> elements_of(const std::vector<NamedTensor>& parameters) {
  std::vector<int64_t> elements;
  for (const NamedTensor& each : parameters) elements.push_back(each.tensor.numel());
  return elements;
}

/// Makes `parameter` refer to a window of `arena` that begins at `element`.
void move_into(const Tensor& parameter, const Tensor& arena, int64_t element) {
  TensorImpl& impl = *parameter.impl();
  const uint32_t version = impl.version();
  impl.storage = window_like(arena, element, parameter).storage();
  impl.offset = 0;
  impl.version_offset = version + 1;  // its memory is another
}

std::string why_away(const std::string& unit, const std::string& parameter) {
  return fmt::format(
      "[fully_shard] parameter {} is not here: the values of its unit \"{}\" are spread over the "
      "ranks and gathered during the forward and backward of its module. Use it there, or "
      "summon_full_parameters() on all ranks first.",
      parameter, unit);
}

}  // namespace

bool has_no_memory(const Tensor& parameter) {
  const Storage& storage = *parameter.storage();
  return parameter.numel() > 0 && !storage.owns_memory() && storage.parent() == nullptr &&
         storage.data() == nullptr;
}

UnitValues::UnitValues(std::string name, std::vector<NamedTensor> parameters,
                       const TensorOptions& options, int rank, int ranks, bool stays_whole,
                       const FillParameter& fill)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      layout_(elements_of(parameters_), ranks),
      rank_(rank),
      stays_whole_(stays_whole) {
  const NoGradGuard no_grad;
  arena_ = empty({layout_.elements()}, options);
  for (const ShardLayout::Gap& gap : layout_.gaps()) slice(arena_, 0, gap.first, gap.end).zero_();
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    const int64_t first = layout_.offset(i);
    const Tensor place = slice(arena_, 0, first, first + parameter.numel());
    if (!has_no_memory(parameter)) {
      place.copy_(parameter.detach().view({-1}));
    } else if (fill) {
      fill(parameter, window_like(arena_, first, parameter));
    } else {
      place.zero_();
      without_values_.push_back(i);
    }
    move_into(parameter, arena_, first);
    why_away_.push_back(why_away(name_, parameters_[i].name));
  }
  shard_ = stays_whole_ ? own_part() : own_part().clone();
}

size_t UnitValues::first_without_values() const {
  return without_values_.empty() ? parameters_.size() : without_values_.front();
}

Tensor UnitValues::own_part() const {
  const int64_t own = rank_ * layout_.shard_elements();
  return slice(arena_, 0, own, own + layout_.shard_elements());
}

int64_t UnitValues::bytes() const {
  return layout_.elements() * static_cast<int64_t>(size_of(shard_.dtype()));
}

bool UnitValues::start_gather(ProcessGroup& group) {
  const bool is_there = gather_under_way_ || (arena_.defined() && !out_of_date_);
  if (parameters_.empty() || is_there) return false;
  const NoGradGuard no_grad;
  if (!arena_.defined()) arena_ = empty({layout_.elements()}, shard_.options());
  gather_ = group.all_gather(arena_, shard_);
  gather_under_way_ = true;
  out_of_date_ = false;
  return true;
}

void UnitValues::finish_gather() {
  if (!gather_under_way_) return;
  std::exchange(gather_, {}).wait();
  gather_under_way_ = false;
  const size_t element = size_of(shard_.dtype());
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    Storage& storage = *parameters_[i].tensor.storage();
    storage.place_window(arena_.storage(), static_cast<size_t>(layout_.offset(i)) * element);
    if (new_values_) storage.bump_version();
  }
  new_values_ = false;
}

void UnitValues::release() {
  if (stays_whole_ || !arena_.defined()) return;
  if (gather_under_way_) std::exchange(gather_, {}).wait();
  gather_under_way_ = false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.storage()->take_window_away(why_away_[i]);
  }
  arena_ = {};
}

void UnitValues::mark_changed() {
  out_of_date_ = stays_whole_;
  new_values_ = true;
}

void UnitValues::take_from_parameters() {
  if (stays_whole_) return;  // the shard is a part of the arena
  const NoGradGuard no_grad;
  shard_.copy_(own_part());
}

}  // namespace lockstep::dist

#include "dist/fsdp/unit_values.h"

#include <fmt/format.h>

#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/view/view.h"
#include "dist/collectives/operation_label.h"
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

std::string why_cast(const std::string& unit, const std::string& parameter, DType dtype) {
  return fmt::format(
      "[fully_shard] parameter {} is not here: the values of its unit \"{}\" are spread over the "
      "ranks and gathered in {}, for products under autocast alone. Use it there, let it be "
      "gathered "
      "as it is (parallel.gather_dtype: PARAMETER, ShardOptions::gather_dtype), or "
      "summon_full_parameters() on all ranks first.",
      parameter, unit, lockstep::name(dtype));
}

/// The cast that autocast takes of `parameter` while it has memory.
Tensor cast_of(const Tensor& parameter, DType dtype, const std::string& why_away) {
  const auto bytes = static_cast<size_t>(parameter.numel()) * size_of(dtype);
  auto storage = make_ref<Storage>(nullptr, bytes, parameter.device());
  storage->take_window_away(why_away);
  Tensor cast(make_ref<TensorImpl>(std::move(storage), parameter.sizes(), parameter.strides(),
                                   int64_t{0}, dtype));
  set_prepared_cast(parameter, cast);
  return cast;
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
                       const UnitValuesOptions& options)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      layout_(elements_of(parameters_), options.ranks),
      options_(options) {
  const NoGradGuard no_grad;
  arena_ = new_arena(*options_.tensors.dtype, options_.stays_whole);
  for (const ShardLayout::Gap& gap : layout_.gaps()) slice(arena_, 0, gap.first, gap.end).zero_();
  while (vectors_ < parameters_.size() && parameters_[vectors_].tensor.dim() < 2) ++vectors_;
  gathers_casts_ = options_.gather_dtype && !options_.stays_whole &&
                   vectors_ < parameters_.size() &&
                   layout_.offset(static_cast<uint32_t>(vectors_)) <= layout_.shard_elements();
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i].tensor;
    const int64_t first = layout_.offset(i);
    const Tensor place = slice(arena_, 0, first, first + parameter.numel());
    if (!has_no_memory(parameter)) {
      place.copy_(parameter.detach().view({-1}));
    } else if (options_.fill) {
      options_.fill(parameter, window_like(arena_, first, parameter));
    } else {
      place.zero_();
      without_values_.push_back(i);
    }
    move_into(parameter, arena_, first);
    why_away_.push_back(is_cast(i) ? why_cast(name_, parameters_[i].name, *options_.gather_dtype)
                                   : why_away(name_, parameters_[i].name));
    casts_.push_back(is_cast(i) ? cast_of(parameter, *options_.gather_dtype, why_away_.back())
                                : Tensor());
  }
  const Tensor own = own_part(arena_);
  if (options_.host_copies) {
    shard_ = empty_pinned(own.sizes(), own.dtype(), own.device());
    shard_.copy_(own);
  } else {
    shard_ = options_.stays_whole ? own : own.clone();
  }
}

UnitValues::~UnitValues() {
  for (size_t i = 0; i < casts_.size(); ++i) {
    if (casts_[i].defined()) set_prepared_cast(parameters_[i].tensor, {});
  }
}

size_t UnitValues::first_without_values() const {
  return without_values_.empty() ? parameters_.size() : without_values_.front();
}

Tensor UnitValues::new_arena(DType dtype, bool is_registered) const {
  if (is_registered && options_.arenas != nullptr) {
    Tensor arena = options_.arenas->take(layout_.elements(), dtype);
    if (arena.defined()) return arena;
  }
  return empty({layout_.elements()}, {dtype, *options_.tensors.device});
}

Tensor UnitValues::own_part(const Tensor& arena) const {
  const int64_t own = options_.rank * layout_.shard_elements();
  return slice(arena, 0, own, own + layout_.shard_elements());
}

int64_t UnitValues::bytes() const {
  return layout_.elements() * static_cast<int64_t>(size_of(shard_.dtype()));
}

bool UnitValues::start_gather(ProcessGroup& group, const GatherOptions& options) {
  const bool is_there = gather_under_way_ || (has_arena() && !out_of_date_);
  if (parameters_.empty() || is_there) return false;
  const NoGradGuard no_grad;
  const bool casts = gathers_casts_ && !options.as_they_are;
  const Device device = *options_.tensors.device;
  Tensor& arena = casts ? cast_arena_ : arena_;
  const DType dtype = casts ? *options_.gather_dtype : shard_.dtype();
  if (!arena.defined()) arena = new_arena(dtype, !options.to_stay);
  if (casts && vectors_ > 0) {
    // The arena up to the first matrix.
    vector_arena_ =
        empty({layout_.offset(static_cast<uint32_t>(vectors_))}, {shard_.dtype(), device});
  }

  // Memory belongs to the stream that computes; what comes from the host is queued beside it.
  std::optional<StreamGuard> on_side;
  if (options_.host_copies) {
    options_.host_copies->wait_stream(current_stream(device));
    on_side.emplace(*options_.host_copies);
  }
  // Of registered memory the library must have both what it reads and what it writes.
  const bool is_registered = options_.arenas != nullptr && options_.arenas->has(arena);
  const bool moves = casts || options_.host_copies || (is_registered && !shares_arena());
  const Tensor own = moves ? own_part(arena) : shard_;
  if (moves) copy_(own, casts ? cast_shard() : shard_, /*non_blocking=*/true);
  const OperationLabel label = OperationLabel::unit(name_);
  gather_ = group.all_gather(arena, own);
  if (vector_arena_.defined()) {
    if (options_.rank == 0) {
      copy_(vector_arena_, slice(shard_, 0, 0, vector_arena_.numel()), /*non_blocking=*/true);
    }
    vector_gather_ = group.broadcast(vector_arena_, 0);
  }
  gather_under_way_ = true;
  out_of_date_ = false;
  return true;
}

const Tensor& UnitValues::cast_shard() {
  if (!options_.host_copies) return shard_;
  if (!host_cast_.defined()) {
    host_cast_ = empty_pinned(shard_.sizes(), *options_.gather_dtype, *options_.tensors.device);
    host_cast_.copy_(shard_);
  }
  return host_cast_;
}

void UnitValues::finish_gather() {
  if (!gather_under_way_) return;
  std::exchange(gather_, {}).wait();
  std::exchange(vector_gather_, {}).wait();
  gather_under_way_ = false;
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    Storage& storage = *parameters_[i].tensor.storage();
    const bool is_cast_now = cast_arena_.defined() && is_cast(i);
    const Tensor& arena = is_cast_now             ? cast_arena_
                          : cast_arena_.defined() ? vector_arena_
                                                  : arena_;
    Storage& placed = is_cast_now ? *casts_[i].storage() : storage;
    placed.place_window(arena.storage(),
                        static_cast<size_t>(layout_.offset(i)) * size_of(arena.dtype()));
    if (!new_values_) continue;
    storage.bump_version();
    if (casts_[i].defined()) casts_[i].storage()->bump_version();
  }
  new_values_ = false;
}

void UnitValues::release() {
  if (options_.stays_whole || !has_arena()) return;
  if (gather_under_way_) {
    std::exchange(gather_, {}).wait();
    std::exchange(vector_gather_, {}).wait();
  }
  gather_under_way_ = false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.storage()->take_window_away(why_away_[i]);
    if (casts_[i].defined()) casts_[i].storage()->take_window_away(why_away_[i]);
  }
  for (Tensor* each : {&arena_, &cast_arena_}) {
    if (options_.arenas != nullptr) options_.arenas->give_back(*each);
    *each = {};
  }
  vector_arena_ = {};
}

void UnitValues::abandon() noexcept {
  for (Work* each : {&gather_, &vector_gather_}) {
    try {
      std::exchange(*each, {}).wait();
    } catch (const std::exception&) {
      // The group has failed; what is there of the values is not used.
    }
  }
  gather_under_way_ = false;
  release();
}

void UnitValues::mark_changed() {
  out_of_date_ = options_.stays_whole;
  new_values_ = true;
  host_cast_ = {};
}

void UnitValues::take_from_parameters() {
  if (shares_arena()) return;
  const NoGradGuard no_grad;
  shard_.copy_(own_part(arena_));
  host_cast_ = {};
}

}  // namespace lockstep::dist

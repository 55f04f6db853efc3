#include "core/dispatch/result_places.h"

#include <utility>

namespace lockstep {

ResultPlaces::ResultPlaces(const Operator& op, std::span<Ref<Storage>> memory) noexcept
    : op_(op), memory_(memory), outer_(std::exchange(current_, this)) {}

ResultPlaces::~ResultPlaces() { current_ = outer_; }

Ref<Storage> ResultPlaces::take(const Operator& op, size_t bytes, Device device) {
  if (current_ == nullptr || &current_->op_ != &op) return {};
  if (current_->next_ == current_->memory_.size()) return {};
  Ref<Storage> memory = std::move(current_->memory_[current_->next_++]);
  const bool fits = memory && memory->bytes() >= bytes && memory->device() == device;
  return fits ? std::move(memory) : Ref<Storage>();
}

}  // namespace lockstep

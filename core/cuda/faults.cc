#include "core/cuda/faults.h"

#include <algorithm>
#include <optional>

#include "core/check.h"

namespace lockstep::cuda {

Faults::~Faults() {
  if (faults_ != nullptr) memory_.release_pinned(faults_, kPlaces * sizeof(Fault));
}

Fault* Faults::place(const std::string& op, const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find({op, what}); found != places_.end()) return found->second;
  if (faults_ == nullptr) {
    faults_ = static_cast<Fault*>(memory_.allocate_pinned(kPlaces * sizeof(Fault)));
    LS_CHECK(faults_ != nullptr, OutOfMemoryError,
             "[{}] expected {} bytes of pinned memory for what kernels on {} note, got none.", op,
             kPlaces * sizeof(Fault), to_string(device_));
    std::fill_n(faults_, kPlaces, Fault{});
  }
  LS_CHECK(places_.size() < kPlaces, InternalError, "[{}] more than {} kinds of faults.", op,
           kPlaces);
  Fault* const place = faults_ + places_.size();
  places_.emplace(std::pair(op, what), place);
  used_.store(places_.size(), std::memory_order_release);
  return place;
}

void Faults::check() {
  const size_t used = used_.load(std::memory_order_acquire);
  if (used == 0) [[likely]]
    return;
  const std::lock_guard lock(mutex_);
  std::optional<std::string> text;
  for (const auto& [names, fault] : places_) {
    if (std::atomic_ref(fault->hit).load(std::memory_order_relaxed) == 0) continue;
    const auto& [op, what] = names;
    if (!text) {
      text = fmt::format("[{}] {}", op, what);
      if (fault->low < fault->high) {
        *text += fmt::format(": expected at least {} and less than {}, got {}", fault->low,
                             fault->high, fault->value);
      }
      *text += fmt::format(" (found by a kernel on {}, after the call had returned).",
                           to_string(device_));
    }
    *fault = {};
  }
  if (text) throw Error(*text);
}

}  // namespace lockstep::cuda

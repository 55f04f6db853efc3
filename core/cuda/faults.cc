#include "core/cuda/faults.h"

#include <algorithm>
#include <optional>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace lockstep::cuda {

namespace {
constexpr size_t kBytes = FaultKind::kMost * sizeof(Fault);
}  // namespace

Faults::~Faults() {
  if (faults_ != nullptr) memory_.release_pinned(faults_, kBytes);
}

Fault* Faults::make_place(const FaultKind& kind) {
  const MutexLock lock(mutex_);
  std::atomic<Fault*>& place = places_[kind.number()];
  if (Fault* const made = place.load(std::memory_order_relaxed)) return made;
  if (faults_ == nullptr) {
    faults_ = static_cast<Fault*>(memory_.allocate_pinned(kBytes));
    LS_CHECK(faults_ != nullptr, OutOfMemoryError,
             "[{}] expected {} bytes of pinned memory for what kernels on {} note, got none.",
             kind.op(), kBytes, to_string(device_));
    std::fill_n(faults_, FaultKind::kMost, Fault{});
  }
  Fault* const made = faults_ + names_.size();
  names_.emplace_back(kind.op(), kind.what());
  used_.store(names_.size(), std::memory_order_release);
  place.store(made, std::memory_order_release);
  return made;
}

void Faults::check() {
  const size_t used = used_.load(std::memory_order_acquire);
  if (used == 0) [[likely]]
    return;
  const MutexLock lock(mutex_);
  std::optional<std::string> text;
  for (size_t i = 0; i < used; ++i) {
    Fault& fault = faults_[i];
    if (std::atomic_ref(fault.hit).load(std::memory_order_relaxed) == 0) continue;
    if (!text) {
      const auto& [op, what] = names_[i];
      text = fmt::format("[{}] {}", op, what);
      if (fault.low < fault.high) {
        *text += fmt::format(": expected at least {} and less than {}, got {}", fault.low,
                             fault.high, fault.value);
      }
      *text += fmt::format(" (found by a kernel on {}, after the call had returned).",
                           to_string(device_));
    }
    fault = {};
  }
  if (text) throw Error(*text);
}

}  // namespace lockstep::cuda

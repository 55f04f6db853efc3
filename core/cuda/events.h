#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "core/cuda/context.h"

namespace lockstep::cuda {

/// What a runtime's event handle points to.
struct EventHandle {
  CUevent native = nullptr;
  int device = 0;
  bool timing = false;
  bool recorded = false;  ///< since it was taken
  bool captured = false;  ///< recorded last in a graph, where nothing can wait for it
};

/// The events of one device. The driver makes each once; given back, they serve again, with the
/// marks that streams already wait for unharmed. Thread-safe.
class Events {
 public:
  /// `context` must outlive it.
  explicit Events(Context& context) : context_(context) {}
  /// Those that were not given back are lost.
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Throws DeviceError.
  EventHandle* take(bool timing);
  void give_back(EventHandle* event) noexcept;

 private:
  using Free = std::vector<EventHandle*>;

  Context& context_;
  std::mutex mutex_;
  std::array<Free, 2> free_;  ///< without and with timing
  std::array<size_t, 2> made_{};
};

}  // namespace lockstep::cuda

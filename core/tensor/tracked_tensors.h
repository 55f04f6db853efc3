#pragma once

#include <atomic>

#include "core/base/function_ref.h"

namespace lockstep {

struct TensorImpl;

/// While at least one guard is alive, every tensor object that any thread makes is registered until
/// it is destroyed, also after the guard. Without a guard, making a tensor costs one relaxed load.
/// See storages_pinned_by_views (core/memory/pinned_storages.h).
class TrackViews {
 public:
  TrackViews() noexcept;
  ~TrackViews();
  TrackViews(const TrackViews&) = delete;
  TrackViews& operator=(const TrackViews&) = delete;
};

/// Calls `visit` for each registered live tensor, in no particular order. The registry is locked
/// meanwhile: `visit` must not make or destroy tensors. No other thread may change the geometry of
/// a registered tensor (resize_, set_) during the call.
void each_tracked_tensor(FunctionRef<void(const TensorImpl&)> visit);

namespace detail {
inline constinit std::atomic<int> view_trackers = 0;  ///< number of TrackViews guards alive
void track(TensorImpl& tensor);
}  // namespace detail

}  // namespace lockstep

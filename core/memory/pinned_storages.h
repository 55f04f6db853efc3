#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace lockstep {

/// A storage that is kept alive although its tensors reach only a part of it.
struct PinnedStorage {
  struct View {
    Dims sizes;
    Dims strides;            ///< in elements
    size_t byte_offset = 0;  ///< of the first element, from the start of the storage
    DType dtype = DType::kF32;
  };

  size_t bytes = 0;
  /// Upper bound of the bytes that the views reach: of each view, the smaller of its elements'
  /// bytes and its extent; of all, at most the union of their extents.
  size_t used_bytes = 0;
  Device device;
  std::vector<View> views;  ///< by offset
  /// References to the storage that are not of these views: of tensors made before tracking began,
  /// or of queued work.
  int64_t other_references = 0;
  std::string op;      ///< operator that allocated it; "" if unknown
  std::string module;  ///< module that allocated it; "" outside modules
  std::string site;    ///< call site of the allocation; "" unless it was recorded
};

/// Lists the live storages of at least `min_bytes` bytes whose tensors together reach less than
/// `max_used_fraction` of them, those with most unused bytes first: candidates for a clone() of the
/// small view. Counts only tensors made while a TrackViews guard was alive
/// (core/tensor/tracked_tensors.h), so `other_references` should be 0 before a storage is called
/// unused. A window of an arena counts as a view of the arena. The allocation is known for devices
/// with a caching allocator, its site if history or record_call_sites was on. No other thread may
/// change the geometry of a tensor (resize_, set_) during the call.
std::vector<PinnedStorage> storages_pinned_by_views(size_t min_bytes, double max_used_fraction);

}  // namespace lockstep

#include "core/memory/pinned_storages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/memory/caching_allocator.h"
#include "core/tensor/byte_range.h"
#include "core/tensor/tensor.h"
#include "core/tensor/tracked_tensors.h"

namespace lockstep {

namespace {

using Extent = std::pair<size_t, size_t>;  // bytes [begin, end) of the storage

/// What is known of a storage that owns memory.
struct Found {
  PinnedStorage pinned;
  uintptr_t address = 0;
  std::vector<Extent> extents;
  size_t element_bytes = 0;          ///< sum over the views
  std::set<const Storage*> windows;  ///< made directly of it
  int64_t references = 0;            ///< to it, of tensors and windows that were found
};

void add(std::map<const Storage*, Found>& all, const TensorImpl& tensor, size_t min_bytes) {
  const Storage* root = tensor.storage.get();
  const Storage* window = nullptr;
  while (root->parent() != nullptr) {
    window = root;
    root = root->parent();
  }
  if (root->bytes() < min_bytes) return;
  Found& found = all[root];
  found.address = reinterpret_cast<uintptr_t>(root->data());
  found.pinned.bytes = root->bytes();
  found.pinned.device = root->device();
  if (window == nullptr || found.windows.insert(window).second) ++found.references;
  found.pinned.other_references = static_cast<int64_t>(root->use_count()) - found.references;

  const auto size = static_cast<int64_t>(size_of(tensor.dtype));
  const auto moved = static_cast<const std::byte*>(tensor.storage->data()) -
                     static_cast<const std::byte*>(root->data());
  const int64_t start = moved + tensor.offset * size;
  found.pinned.views.push_back(
      {tensor.sizes, tensor.strides, static_cast<size_t>(start), tensor.dtype});
  if (tensor.numel == 0) return;
  const ByteRange range = byte_range(tensor);
  const Extent extent{static_cast<size_t>(moved + range.begin),
                      static_cast<size_t>(moved + range.end)};
  found.extents.push_back(extent);
  found.element_bytes +=
      std::min(extent.second - extent.first, static_cast<size_t>(tensor.numel * size));
}

size_t union_of(std::vector<Extent> extents) {
  std::ranges::sort(extents);
  size_t bytes = 0;
  size_t end = 0;
  for (const auto& [first, last] : extents) {
    if (last <= end) continue;
    bytes += last - std::max(first, end);
    end = last;
  }
  return bytes;
}

/// Fills in the allocation of each storage of a device with a caching allocator.
void add_allocations(std::vector<Found>& all) {
  std::map<std::pair<DeviceType, int>, std::map<uintptr_t, Found*>> by_device;
  for (Found& each : all) {
    const Device device = each.pinned.device;
    if (each.address != 0) by_device[{device.type, device.index}][each.address] = &each;
  }
  for (auto& [key, wanted] : by_device) {
    const auto* const caching =
        dynamic_cast<CachingAllocator*>(&allocator(wanted.begin()->second->pinned.device));
    if (caching == nullptr) continue;
    for (const SegmentInfo& segment : caching->snapshot().segments) {
      for (const BlockInfo& block : segment.blocks) {
        const auto found = wanted.find(block.address);
        if (found == wanted.end() || block.state != BlockInfo::State::kActiveAllocated) continue;
        PinnedStorage& pinned = found->second->pinned;
        if (block.context.op != nullptr) pinned.op = block.context.op;
        pinned.module = block.context.module;
        pinned.site = block.context.stack.call_site();
      }
    }
  }
}

}  // namespace

std::vector<PinnedStorage> storages_pinned_by_views(size_t min_bytes, double max_used_fraction) {
  std::map<const Storage*, Found> storages;
  each_tracked_tensor([&](const TensorImpl& tensor) { add(storages, tensor, min_bytes); });

  std::vector<Found> chosen;
  for (auto& [storage, found] : storages) {
    PinnedStorage& pinned = found.pinned;
    pinned.used_bytes = std::min(union_of(found.extents), found.element_bytes);
    const double limit = max_used_fraction * static_cast<double>(pinned.bytes);
    if (static_cast<double>(pinned.used_bytes) >= limit) continue;
    std::ranges::sort(pinned.views, {}, &PinnedStorage::View::byte_offset);
    chosen.push_back(std::move(found));
  }
  add_allocations(chosen);
  std::ranges::stable_sort(chosen, std::greater{}, [](const Found& each) {
    return each.pinned.bytes - each.pinned.used_bytes;
  });
  std::vector<PinnedStorage> pinned;
  for (Found& each : chosen) pinned.push_back(std::move(each.pinned));
  return pinned;
}

}  // namespace lockstep

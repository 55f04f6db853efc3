#include "core/memory/pinned_storages.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/current_scope.h"
#include "core/memory/caching_allocator.h"
#include "core/ops/factory/factory.h"
#include "core/tensor/tensor.h"
#include "core/tensor/tracked_tensors.h"

namespace lockstep {
namespace {

constexpr size_t kBytes = size_t{4} << 20;  // larger than storages of other tests that are alive
constexpr int64_t kRows = 1024;
constexpr int64_t kColumns = 1024;

Tensor make_matrix() {
  return Tensor(make_ref<TensorImpl>(make_ref<Storage>(kBytes, Device{DeviceType::kCPU, 0}),
                                     IntList({kRows, kColumns}), IntList({kColumns, 1}), 0,
                                     DType::kF32));
}
Tensor view_of(const Tensor& tensor, IntList sizes, IntList strides, int64_t offset) {
  return Tensor(make_ref<TensorImpl>(tensor.storage(), sizes, strides, offset, tensor.dtype()));
}
/// The entry of this storage, among those of which less than half is used.
std::optional<PinnedStorage> entry_of(const Storage& storage) {
  for (PinnedStorage& each : storages_pinned_by_views(kBytes, 0.5)) {
    if (each.bytes == storage.bytes()) return std::move(each);
  }
  return std::nullopt;
}

TEST(StoragesPinnedByViews, ListsAStorageThatOnlyASmallViewHolds) {
  const TrackViews tracking;
  Tensor matrix = make_matrix();
  const Tensor row = view_of(matrix, {kColumns}, {1}, 3 * kColumns);
  EXPECT_FALSE(entry_of(*row.storage())) << "the matrix uses it all";
  matrix = Tensor();
  const auto entry = entry_of(*row.storage());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->bytes, kBytes);
  EXPECT_EQ(entry->used_bytes, size_t{kColumns} * 4);
  EXPECT_EQ(entry->device.type, DeviceType::kCPU);
  EXPECT_EQ(entry->other_references, 0);
  ASSERT_EQ(entry->views.size(), 1u);
  EXPECT_EQ(entry->views[0].sizes, to_dims({kColumns}));
  EXPECT_EQ(entry->views[0].byte_offset, size_t{3 * kColumns * 4});
}

TEST(StoragesPinnedByViews, CountsAStridedViewByItsElementsAndOverlapsOnce) {
  const TrackViews tracking;
  Tensor matrix = make_matrix();
  const Tensor column = view_of(matrix, {kRows}, {kColumns}, 0);
  matrix = Tensor();
  EXPECT_EQ(entry_of(*column.storage())->used_bytes, size_t{kRows} * 4);
  const Tensor expanded = view_of(column, {kRows, kColumns}, {0, 0}, 0);
  EXPECT_EQ(entry_of(*column.storage())->used_bytes, size_t{kRows} * 4 + 4);
}

TEST(StoragesPinnedByViews, CountsAWindowAsAViewOfItsArena) {
  const TrackViews tracking;
  Ref<Storage> arena = make_ref<Storage>(kBytes, Device{DeviceType::kCPU, 0});
  const Tensor slot(make_ref<TensorImpl>(make_ref<Storage>(arena, 4096, 512), IntList({128}),
                                         IntList({1}), 0, DType::kF32));
  EXPECT_EQ(entry_of(*arena)->other_references, 1) << "the local variable";
  const Storage& storage = *std::exchange(arena, nullptr);
  const auto entry = entry_of(storage);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->used_bytes, 512u);
  EXPECT_EQ(entry->views[0].byte_offset, 4096u);
  EXPECT_EQ(entry->other_references, 0);
}

TEST(StoragesPinnedByViews, OmitsTensorsThatWereMadeWithoutAGuard) {
  const Tensor matrix = make_matrix();
  const Tensor row = view_of(matrix, {kColumns}, {1}, 0);
  EXPECT_FALSE(entry_of(*row.storage()));
  const TrackViews tracking;
  const Tensor other = view_of(matrix, {kColumns}, {1}, 0);
  EXPECT_EQ(entry_of(*row.storage())->other_references, 2);
}

TEST(StoragesPinnedByViews, ForgetsTensorsThatAreDestroyedAfterTheGuard) {
  std::optional<TrackViews> tracking(std::in_place);
  Tensor matrix = make_matrix();
  Tensor row = view_of(matrix, {kColumns}, {1}, 0);
  matrix = Tensor();
  tracking.reset();
  EXPECT_TRUE(entry_of(*row.storage()));
  row = Tensor();
  EXPECT_TRUE(storages_pinned_by_views(kBytes, 1.0).empty());
}

TEST(StoragesPinnedByViews, OmitsStoragesBelowTheSizeOrAboveTheFraction) {
  const TrackViews tracking;
  Tensor matrix = make_matrix();
  const Tensor quarter = view_of(matrix, {kRows / 4, kColumns}, {kColumns, 1}, 0);
  matrix = Tensor();
  EXPECT_EQ(storages_pinned_by_views(kBytes, 0.26).size(), 1u);
  EXPECT_TRUE(storages_pinned_by_views(kBytes, 0.25).empty());
  EXPECT_TRUE(storages_pinned_by_views(kBytes + 1, 0.26).empty());
}

TEST(StoragesPinnedByViews, ListsThoseWithMostUnusedBytesFirstAndTheirViewsByOffset) {
  const TrackViews tracking;
  const auto made = [](size_t bytes) {
    return make_ref<Storage>(bytes, Device{DeviceType::kCPU, 0});
  };
  const auto part = [](const Ref<Storage>& storage, IntList sizes, IntList strides, int64_t offset,
                       DType dtype) {
    return Tensor(make_ref<TensorImpl>(storage, sizes, strides, offset, dtype));
  };
  Ref<Storage> large = made(2 * kBytes), small = made(kBytes);
  const Tensor second = part(small, {4}, {1}, 100, DType::kF64);
  const Tensor first = part(small, {2, 3}, {8, 2}, 10, DType::kF32);
  const Tensor empty_one = part(small, {0}, {1}, 0, DType::kF32);
  const Tensor half = part(large, {static_cast<int64_t>(kBytes)}, {1}, 0, DType::kU8);
  const Storage* const large_storage = large.get();
  large = nullptr;
  small = nullptr;
  const std::vector<PinnedStorage> found = storages_pinned_by_views(kBytes, 0.75);
  ASSERT_EQ(found.size(), 2u) << "half of the large one is unused: as many bytes";
  EXPECT_EQ(found[0].bytes + found[1].bytes, 3 * kBytes);
  const PinnedStorage& of_small = found[found[0].bytes == kBytes ? 0 : 1];
  const PinnedStorage& of_large = found[found[0].bytes == kBytes ? 1 : 0];
  EXPECT_EQ(of_large.bytes, large_storage->bytes());
  EXPECT_EQ(of_large.used_bytes, kBytes);
  EXPECT_EQ(&of_large, &found[0]) << "4 MiB are unused, and fewer of the small one";
  EXPECT_EQ(of_small.used_bytes, 4 * 8u + 6 * 4u)
      << "the elements, which are fewer than the extents";
  EXPECT_EQ(of_small.other_references, 0);
  ASSERT_EQ(of_small.views.size(), 3u);
  EXPECT_EQ(of_small.views[0].byte_offset, 0u);
  EXPECT_EQ(of_small.views[1].byte_offset, 40u);
  EXPECT_EQ(of_small.views[1].sizes, to_dims({2, 3}));
  EXPECT_EQ(of_small.views[1].strides, to_dims({8, 2}));
  EXPECT_EQ(of_small.views[1].dtype, DType::kF32);
  EXPECT_EQ(of_small.views[2].byte_offset, 800u);
  EXPECT_EQ(of_small.views[2].dtype, DType::kF64);
}

TEST(StoragesPinnedByViews, CountsBytesOfOverlappingExtentsOnce) {
  const TrackViews tracking;
  Tensor matrix = make_matrix();
  const Tensor a = view_of(matrix, {100}, {1}, 0), b = view_of(matrix, {100}, {1}, 50),
               c = view_of(matrix, {10}, {1}, 60), d = view_of(matrix, {10}, {1}, 200);
  matrix = Tensor();
  EXPECT_EQ(entry_of(*a.storage())->used_bytes, (150 + 10) * 4u);
}

TEST(StoragesPinnedByViews, CountsAWindowOnceHoweverManyTensorsItHas) {
  const TrackViews tracking;
  Ref<Storage> arena = make_ref<Storage>(kBytes, Device{DeviceType::kCPU, 0});
  const Ref<Storage> window = make_ref<Storage>(arena, 4096, 512);
  const auto in_window = [&](int64_t offset) {
    return Tensor(make_ref<TensorImpl>(window, IntList({16}), IntList({1}), offset, DType::kF32));
  };
  const Tensor first = in_window(0), second = in_window(32);
  const Storage& storage = *std::exchange(arena, nullptr);
  const auto entry = entry_of(storage);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->other_references, 0);
  EXPECT_EQ(entry->used_bytes, 128u);
  EXPECT_EQ(entry->views[1].byte_offset, 4096u + 128);
}

TEST(StoragesPinnedByViews, TellsWhichOperatorAndModuleAllocated) {
  const TrackViews tracking;
  const std::string module = "h.5";
  Tensor matrix;
  {
    const ModuleScope scope(module);
    matrix = empty({kRows, kColumns}, {DType::kF32, kCPU});
  }
  const Tensor row = view_of(matrix, {kColumns}, {1}, 0);
  matrix = Tensor();
  const auto entry = entry_of(*row.storage());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->module, "h.5");
  EXPECT_EQ(entry->op, "empty.memory_format");
  EXPECT_EQ(entry->site, "");
}

TEST(StoragesPinnedByViews, TellsWhereTheStorageWasAllocatedIfThatWasRecorded) {
  const TrackViews tracking;
  CachingAllocator& caching = caching_allocator({DeviceType::kCPU, 0});
  const AllocatorOptions before = caching.options();
  AllocatorOptions options = before;
  options.record_call_sites = true;
  caching.set_options(options);
  Tensor matrix = make_matrix();
  caching.set_options(before);
  const Tensor row = view_of(matrix, {kColumns}, {1}, 0);
  matrix = Tensor();
  EXPECT_FALSE(entry_of(*row.storage())->site.empty());
}

TEST(StoragesPinnedByViews, TracksTensorsOfEveryThread) {
  const TrackViews tracking;
  Tensor row;
  std::thread([&] { row = view_of(make_matrix(), {kColumns}, {1}, 0); }).join();
  EXPECT_TRUE(entry_of(*row.storage()));
}

}  // namespace
}  // namespace lockstep

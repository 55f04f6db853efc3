#include "core/memory/pinned_storages.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "core/memory/caching_allocator.h"
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

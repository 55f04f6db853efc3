#include "core/cuda/activity.h"

#include "core/cuda/cupti.h"

#ifdef LS_HAS_CUPTI

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/core/base/environment_variable.h"
#include "tests/emulation/cupti_records.h"

namespace lockstep::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// A CUPTI that returns records of the test's, and fails where the test says.
struct Scripted {
  std::vector<RecordBytes> records;
  std::vector<CUpti_ActivityKind> enabled;
  CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;
  CUpti_BuffersCallbackRequestFunc lend = nullptr;
  CUpti_BuffersCallbackCompleteFunc take = nullptr;
  size_t dropped = 0;
};
Scripted scripted;

template <class Record>
Record record_of(CUpti_ActivityKind kind, uint32_t call, uint64_t start, uint64_t end) {
  Record record{};
  record.kind = kind;
  record.correlationId = call;
  record.start = start;
  record.end = end;
  return record;
}
template <class Record>
void add(const Record& record) {
  scripted.records.push_back(bytes_of_record(record));
}
void add_call(uint32_t number, CUpti_ActivityKind kind, uint32_t callback, uint64_t start,
              uint64_t end) {
  auto call = record_of<CUpti_ActivityAPI>(kind, number, start, end);
  call.cbid = callback;
  call.threadId = 77;
  add(call);
}

CUptiResult flush_all(uint32_t) {
  scripted.dropped += deliver(scripted.records, scripted.lend, scripted.take);
  return CUPTI_SUCCESS;
}

Cupti scripted_table() {
  return {.cuptiActivityRegisterCallbacks =
              [](CUpti_BuffersCallbackRequestFunc lend, CUpti_BuffersCallbackCompleteFunc take) {
                scripted.lend = lend;
                scripted.take = take;
                return CUPTI_SUCCESS;
              },
          .cuptiActivityRegisterTimestampCallback =
              [](CUpti_TimestampCallbackFunc) { return CUPTI_SUCCESS; },
          .cuptiActivityEnable =
              [](CUpti_ActivityKind kind) {
                if (kind == scripted.refused) return CUPTI_ERROR_NOT_COMPATIBLE;
                scripted.enabled.push_back(kind);
                return CUPTI_SUCCESS;
              },
          .cuptiActivityDisable =
              [](CUpti_ActivityKind kind) {
                std::erase(scripted.enabled, kind);
                return CUPTI_SUCCESS;
              },
          .cuptiActivityFlushAll = &flush_all,
          .cuptiActivityGetNextRecord = &next_record,
          .cuptiActivityGetNumDroppedRecords =
              [](CUcontext, uint32_t, size_t* count) {
                *count = scripted.dropped;
                return CUPTI_SUCCESS;
              },
          .cuptiSetThreadIdType = [](CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; },
          .cuptiGetCallbackName =
              [](CUpti_CallbackDomain domain, uint32_t callback, const char** name) {
                if (callback == 0) return CUPTI_ERROR_INVALID_PARAMETER;
                *name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? "cuLaunch" : "cudaLaunch";
                return CUPTI_SUCCESS;
              },
          .cuptiGetResultString =
              [](CUptiResult, const char** text) {
                *text = "NOT_COMPATIBLE";
                return CUPTI_SUCCESS;
              }};
}

/// Makes `cupti()` the scripted one, or none, while it is alive.
class CuptiScope {
 public:
  explicit CuptiScope(LoadedCupti library)
      : library_([library] { return library; }), before_(set_cupti(library_)) {
    scripted = {};
  }
  ~CuptiScope() { set_cupti(before_); }
  CuptiScope(const CuptiScope&) = delete;
  CuptiScope& operator=(const CuptiScope&) = delete;

 private:
  CuptiLibrary library_;
  CuptiLibrary& before_;
};
LoadedCupti scripted_cupti() {
  LoadedCupti library;
  library.functions = scripted_table();
  return library;
}

TEST(Activities, AreWorkOfDevicesAndTheCallsThatQueuedIt) {
  const CuptiScope scope(scripted_cupti());
  ASSERT_EQ(start_activities(), "");
  EXPECT_THAT(scripted.enabled, SizeIs(6));
  add_call(7, CUPTI_ACTIVITY_KIND_DRIVER, 1, 100, 110);
  add_call(8, CUPTI_ACTIVITY_KIND_DRIVER, 1, 111, 112);  // asks for something
  auto kernel =
      record_of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 7, 150, 170);
  kernel.name = "_ZN8lockstep6kernelEi";
  kernel.deviceId = 1;
  kernel.streamId = 13;
  add(kernel);
  auto copy = record_of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 9, 180, 190);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  add(copy);
  auto fill = record_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 10, 191, 192);
  fill.bytes = 64;
  add(fill);
  auto between = record_of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 11, 193, 199);
  between.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  between.bytes = 512;
  between.deviceId = 1;
  add(between);
  const DeviceActivities found = stop_activities();
  EXPECT_TRUE(scripted.enabled.empty());
  ASSERT_THAT(found.work, SizeIs(4));
  EXPECT_EQ(found.work[0].name, "lockstep::kernel(int)");
  EXPECT_EQ(found.work[0].device, 1);
  EXPECT_EQ(found.work[0].stream, 13);
  EXPECT_EQ(found.work[0].begin_ns, 150);
  EXPECT_EQ(found.work[0].end_ns, 170);
  EXPECT_EQ(found.work[0].call, 7u);
  EXPECT_EQ(found.work[1].name, "copy host to device");
  EXPECT_EQ(found.work[1].bytes, 4096);
  EXPECT_EQ(found.work[2].name, "fill");
  EXPECT_EQ(found.work[2].bytes, 64);
  EXPECT_EQ(found.work[3].name, "copy between devices");
  EXPECT_EQ(found.work[3].bytes, 512);
  EXPECT_EQ(found.work[3].device, 1);
  ASSERT_THAT(found.calls, SizeIs(1));
  EXPECT_EQ(found.calls[0].name, "cuLaunch");
  EXPECT_EQ(found.calls[0].thread, 77u);
  EXPECT_EQ(found.calls[0].begin_ns, 100);
  EXPECT_EQ(found.calls[0].end_ns, 110);
  EXPECT_EQ(found.calls[0].number, 7u);
  EXPECT_EQ(found.lost, 0u);
}

TEST(Activities, OfARuntimeFunctionAndTheDriversInsideItTheOuterCallStays) {
  const CuptiScope scope(scripted_cupti());
  ASSERT_EQ(start_activities(), "");
  add_call(7, CUPTI_ACTIVITY_KIND_DRIVER, 1, 102, 108);
  add_call(7, CUPTI_ACTIVITY_KIND_RUNTIME, 1, 100, 110);
  add(record_of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 7, 150, 170));
  const DeviceActivities found = stop_activities();
  ASSERT_THAT(found.calls, SizeIs(1));
  EXPECT_EQ(found.calls[0].name, "cudaLaunch");
  EXPECT_EQ(found.calls[0].begin_ns, 100);
}

TEST(Activities, WhatDoesNotFitIsCounted) {
  const CuptiScope scope(scripted_cupti());
  ASSERT_EQ(start_activities({.buffers = 2, .bytes = 2 * sizeof(CUpti_ActivityKernel10)}), "");
  for (uint32_t i = 1; i <= 7; ++i) {
    add(record_of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, i, i, i + 1));
  }
  const DeviceActivities found = stop_activities();
  EXPECT_THAT(found.work, SizeIs(4));
  EXPECT_EQ(found.lost, 3u);
}

TEST(Activities, ARefusedKindIsTheReasonAndNothingStaysEnabled) {
  const CuptiScope scope(scripted_cupti());
  scripted.refused = CUPTI_ACTIVITY_KIND_MEMSET;
  EXPECT_EQ(start_activities(), "CUPTI's cuptiActivityEnable failed: NOT_COMPATIBLE");
  EXPECT_TRUE(scripted.enabled.empty());
}

TEST(Activities, WithoutCuptiTheReasonIsGiven) {
  const CuptiScope scope(LoadedCupti::none("CUPTI was not found"));
  EXPECT_EQ(start_activities(), "CUPTI was not found");
  EXPECT_TRUE(stop_activities().work.empty());
}

TEST(Cupti, ALibraryWithoutAFunctionIsNamedWithTheFunction) {
  EXPECT_EQ(read_cupti("/a/b.so", [](const char*) -> void* { return nullptr; }).reason,
            "/a/b.so has no cuptiActivityRegisterCallbacks: expected CUPTI of CUDA 12 or 13");
}

TEST(Cupti, IsLookedForInNamedFoldersFirst) {
  const EnvironmentVariable named("LOCKSTEP_CUDA_LIBRARIES", "/first");
  EXPECT_THAT(cupti_files().front(), "/first/libcupti.so.13");
  EXPECT_THAT(cupti_files(),
              ::testing::Contains("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"));
}

/// The real library reads records where this code expects their fields; it needs no device for
/// that.
TEST(Cupti, TheRealLibraryReadsRecordsOfTheSizesThatAreExpected) {
  const LoadedCupti library = load_cupti();
  if (!library.reason.empty()) GTEST_SKIP() << "there is no CUPTI: " << library.reason;
  auto kernel = record_of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 7, 1, 2);
  const auto call = record_of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER, 7, 3, 4);
  std::vector<uint8_t> buffer(sizeof(kernel) + sizeof(call));
  std::memcpy(buffer.data(), &kernel, sizeof(kernel));
  std::memcpy(buffer.data() + sizeof(kernel), &call, sizeof(call));
  CUpti_Activity* record = nullptr;
  const auto next = [&] {
    return library.functions.cuptiActivityGetNextRecord(buffer.data(), buffer.size(), &record);
  };
  ASSERT_EQ(next(), CUPTI_SUCCESS);
  ASSERT_EQ(next(), CUPTI_SUCCESS);
  EXPECT_EQ(record->kind, CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_EQ(next(), CUPTI_ERROR_MAX_LIMIT_REACHED);
  const char* name = nullptr;
  ASSERT_EQ(library.functions.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 307, &name),
            CUPTI_SUCCESS);
  EXPECT_THAT(name, StartsWith("cu"));
}

}  // namespace
}  // namespace lockstep::cuda

#endif

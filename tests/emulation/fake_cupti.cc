#include "tests/emulation/fake_cupti.h"

#include "core/cuda/cupti.h"

#ifdef LS_HAS_CUPTI

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulation/cupti_records.h"

namespace lockstep::cuda {

namespace {

using Kernel = CUpti_ActivityKernel10;
using Copy = CUpti_ActivityMemcpy6;

/// The library's state; never destroyed, since work may run while the process ends.
struct Fake {
  std::mutex mutex;
  std::set<CUpti_ActivityKind> kinds;
  CUpti_TimestampCallbackFunc clock = nullptr;
  CUpti_BuffersCallbackRequestFunc lend = nullptr;
  CUpti_BuffersCallbackCompleteFunc take = nullptr;
  std::vector<RecordBytes> records;
  size_t dropped = 0;
  uint32_t next = 1;
};
Fake& fake() {
  static Fake* const fake = new Fake;
  return *fake;
}

CUptiResult register_callbacks(CUpti_BuffersCallbackRequestFunc lend,
                               CUpti_BuffersCallbackCompleteFunc take) {
  fake().lend = lend;
  fake().take = take;
  return CUPTI_SUCCESS;
}
CUptiResult register_clock(CUpti_TimestampCallbackFunc clock) {
  fake().clock = clock;
  return CUPTI_SUCCESS;
}
CUptiResult enable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(fake().mutex);
  fake().kinds.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult disable(CUpti_ActivityKind kind) {
  const std::lock_guard lock(fake().mutex);
  fake().kinds.erase(kind);
  return CUPTI_SUCCESS;
}
CUptiResult flush(uint32_t) {
  const std::lock_guard lock(fake().mutex);
  fake().dropped += deliver(fake().records, fake().lend, fake().take);
  fake().records.clear();
  return CUPTI_SUCCESS;
}
CUptiResult dropped(CUcontext, uint32_t, size_t* count) {
  const std::lock_guard lock(fake().mutex);
  *count = std::exchange(fake().dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult set_thread_id(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
/// Numbers of functions are places in this list.
constexpr std::array kFunctions = {"cuLaunchKernel", "cuMemcpyAsync"};
CUptiResult callback_name(CUpti_CallbackDomain, uint32_t callback, const char** name) {
  *name = kFunctions.at(callback);
  return CUPTI_SUCCESS;
}
CUptiResult result_text(CUptiResult, const char** text) {
  *text = "what CUPTI says";
  return CUPTI_SUCCESS;
}

/// Keeps a record if records of its kind are wanted.
template <class Made>
void keep(const Made& record) {
  const std::lock_guard lock(fake().mutex);
  if (fake().kinds.contains(record.kind)) fake().records.push_back(bytes_of_record(record));
}
uint64_t now() { return fake().clock != nullptr ? fake().clock() : 0; }

}  // namespace

void install_fake_cupti() {
  static auto* const library = new CuptiLibrary([] {
    LoadedCupti loaded;
    loaded.file = "the fake CUPTI";
    loaded.functions = {.cuptiActivityRegisterCallbacks = &register_callbacks,
                        .cuptiActivityRegisterTimestampCallback = &register_clock,
                        .cuptiActivityEnable = &enable,
                        .cuptiActivityDisable = &disable,
                        .cuptiActivityFlushAll = &flush,
                        .cuptiActivityGetNextRecord = &next_record,
                        .cuptiActivityGetNumDroppedRecords = &dropped,
                        .cuptiSetThreadIdType = &set_thread_id,
                        .cuptiGetCallbackName = &callback_name,
                        .cuptiGetResultString = &result_text};
    return loaded;
  });
  set_cupti(*library);
}

}  // namespace lockstep::cuda

namespace lockstep::emulation {

namespace cuda = lockstep::cuda;

NotedCall::NotedCall(const char* function) : function_(function), begin_(cuda::now()) {
  const std::lock_guard lock(cuda::fake().mutex);
  number_ = cuda::fake().next++;
}

NotedCall::~NotedCall() {
  CUpti_ActivityAPI record{};
  record.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  const auto* const found = std::ranges::find(cuda::kFunctions, std::string_view(function_));
  record.cbid = static_cast<uint32_t>(found - cuda::kFunctions.begin());
  record.start = begin_;
  record.end = cuda::now();
  record.threadId = static_cast<uint32_t>(syscall(SYS_gettid));
  record.correlationId = number_;
  cuda::keep(record);
}

NotedWork::NotedWork(const QueuedPiece& piece) : piece_(piece), begin_(cuda::now()) {}

NotedWork::~NotedWork() {
  const auto noted = [&](auto record, CUpti_ActivityKind kind) {
    record.kind = kind;
    record.start = begin_;
    record.end = cuda::now();
    record.deviceId = static_cast<uint32_t>(piece_.device);
    record.correlationId = piece_.call;
    return record;
  };
  switch (piece_.kind) {
    case WorkKind::kKernel: {
      auto record = noted(cuda::Kernel{}, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      record.name = piece_.name;
      cuda::keep(record);
      break;
    }
    case WorkKind::kCopyOnDevice: {
      auto record = noted(cuda::Copy{}, CUPTI_ACTIVITY_KIND_MEMCPY);
      record.bytes = piece_.bytes;
      record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
      cuda::keep(record);
      break;
    }
  }
}

}  // namespace lockstep::emulation

#else

namespace lockstep {

void cuda::install_fake_cupti() {}

namespace emulation {
NotedCall::NotedCall(const char* function) : function_(function) {}
NotedCall::~NotedCall() = default;
NotedWork::NotedWork(const QueuedPiece& piece) : piece_(piece) {}
NotedWork::~NotedWork() = default;
}  // namespace emulation

}  // namespace lockstep

#endif

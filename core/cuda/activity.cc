#include "core/cuda/activity.h"

#include "core/cuda/cupti.h"

#ifdef LS_HAS_CUPTI

#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace lockstep::cuda {

namespace {

// Fields that are read lie at the same places in the records of CUDA 12 and 13.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using FillRecord = CUpti_ActivityMemset3;

constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                               CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMCPY2,
                               CUPTI_ACTIVITY_KIND_MEMSET,
                               CUPTI_ACTIVITY_KIND_DRIVER,
                               CUPTI_ACTIVITY_KIND_RUNTIME};

/// The buffers of a recording. CUPTI takes and returns them from a thread of its own.
class ActivityBuffers {
 public:
  void reserve(const ActivityLimits& limits) {
    const MutexLock lock(mutex_);
    bytes_ = limits.bytes;
    free_.clear();
    filled_.clear();
    for (size_t i = 0; i < limits.buffers; ++i) {
      free_.push_back(std::make_unique_for_overwrite<uint8_t[]>(bytes_));
    }
  }
  /// A free one, or null with size 0: CUPTI then drops records, and counts them.
  std::pair<uint8_t*, size_t> lend() {
    const MutexLock lock(mutex_);
    if (free_.empty()) return {nullptr, 0};
    lent_.push_back(std::move(free_.back()));
    free_.pop_back();
    return {lent_.back().get(), bytes_};
  }
  void give_back(const uint8_t* buffer, size_t valid) {
    const MutexLock lock(mutex_);
    for (auto& each : lent_) {
      if (each.get() != buffer) continue;
      filled_.emplace_back(std::move(each), valid);
      std::swap(each, lent_.back());
      lent_.pop_back();
      return;
    }
  }
  using Filled = std::vector<std::pair<std::unique_ptr<uint8_t[]>, size_t>>;
  Filled take_filled() {
    const MutexLock lock(mutex_);
    free_.clear();
    return std::exchange(filled_, {});
  }

 private:
  Mutex mutex_;
  size_t bytes_ LS_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<uint8_t[]>> free_ LS_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<uint8_t[]>> lent_ LS_GUARDED_BY(mutex_);
  Filled filled_ LS_GUARDED_BY(mutex_);
};

ActivityBuffers& buffers() {
  // Never destroyed: CUPTI may return one while the process ends.
  static ActivityBuffers* const all = new ActivityBuffers;
  return *all;
}

void CUPTIAPI lend_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  std::tie(*buffer, *size) = buffers().lend();
  *most_records = 0;  // as many as fit
}
void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  buffers().give_back(buffer, valid);
}
uint64_t CUPTIAPI steady_time() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string failure(const Cupti& table, CUptiResult result, const char* function) {
  const char* text = nullptr;
  if (table.cuptiGetResultString(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "?";
  return fmt::format("CUPTI's {} failed: {}", function, text);
}

std::string readable(const char* name) {
  if (name == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? plain.get() : name;
}

const char* copy_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "copy on device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "copy between devices";
    default:
      return "copy";
  }
}

/// Reads the records of buffers.
class ActivityReader {
 public:
  explicit ActivityReader(const Cupti& table) : table_(table) {}

  void read(uint8_t* buffer, size_t valid) {
    CUpti_Activity* record = nullptr;
    while (table_.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(*record);
  }

  DeviceActivities finish() {
    // Only calls that queued something are of interest: most others ask for a state.
    for (const DeviceActivities::Work& work : activities_.work) {
      const auto call = calls_.find(work.call);
      if (call == calls_.end()) continue;
      activities_.calls.push_back(std::move(call->second));
      calls_.erase(call);
    }
    return std::move(activities_);
  }

 private:
  template <class Record>
  DeviceActivities::Work& add_work(const Record& record, std::string name) {
    return activities_.work.emplace_back(
        DeviceActivities::Work{.name = std::move(name),
                               .device = static_cast<int>(record.deviceId),
                               .stream = static_cast<int>(record.streamId),
                               .begin_ns = static_cast<int64_t>(record.start),
                               .end_ns = static_cast<int64_t>(record.end),
                               .bytes = 0,
                               .call = record.correlationId});
  }

  void add(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
        add_work(kernel, readable(kernel.name));
        return;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CopyRecord&>(record);
        add_work(copy, copy_name(copy.copyKind)).bytes = static_cast<int64_t>(copy.bytes);
        return;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = reinterpret_cast<const PeerCopyRecord&>(record);
        add_work(copy, copy_name(copy.copyKind)).bytes = static_cast<int64_t>(copy.bytes);
        return;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const FillRecord&>(record);
        add_work(fill, "fill").bytes = static_cast<int64_t>(fill.bytes);
        return;
      }
      case CUPTI_ACTIVITY_KIND_DRIVER:
      case CUPTI_ACTIVITY_KIND_RUNTIME:
        return add_call(reinterpret_cast<const CUpti_ActivityAPI&>(record));
      default:
        return;
    }
  }

  /// A function of the runtime and the driver's that it calls have one number: the outer one stays.
  void add_call(const CUpti_ActivityAPI& record) {
    DeviceActivities::Call& call = calls_[record.correlationId];
    const auto begin = static_cast<int64_t>(record.start);
    if (call.number != 0 && call.begin_ns <= begin) return;
    const char* name = nullptr;
    const CUpti_CallbackDomain domain = record.kind == CUPTI_ACTIVITY_KIND_DRIVER
                                            ? CUPTI_CB_DOMAIN_DRIVER_API
                                            : CUPTI_CB_DOMAIN_RUNTIME_API;
    if (table_.cuptiGetCallbackName(domain, record.cbid, &name) != CUPTI_SUCCESS) name = nullptr;
    call = {.name = name != nullptr ? name : "launch",
            .thread = record.threadId,
            .begin_ns = begin,
            .end_ns = static_cast<int64_t>(record.end),
            .number = record.correlationId};
  }

  const Cupti& table_;
  DeviceActivities activities_;
  std::unordered_map<uint64_t, DeviceActivities::Call> calls_;
};

[[maybe_unused]] const bool kActivitiesRegistered = [] {
  register_activity_recorder(
      DeviceType::kCUDA, {.start = [] { return start_activities(); }, .stop = &stop_activities});
  return true;
}();

}  // namespace

std::string start_activities(const ActivityLimits& limits) {
  const LoadedCupti& library = cupti().loaded();
  if (!library.reason.empty()) return library.reason;
  const Cupti& table = library.functions;
  buffers().reserve(limits);
  CUptiResult result = table.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  if (result != CUPTI_SUCCESS) return failure(table, result, "cuptiSetThreadIdType");
  result = table.cuptiActivityRegisterTimestampCallback(&steady_time);
  if (result != CUPTI_SUCCESS) {
    return failure(table, result, "cuptiActivityRegisterTimestampCallback");
  }
  result = table.cuptiActivityRegisterCallbacks(&lend_buffer, &take_buffer);
  if (result != CUPTI_SUCCESS) return failure(table, result, "cuptiActivityRegisterCallbacks");
  for (size_t i = 0; i < kKinds.size(); ++i) {
    result = table.cuptiActivityEnable(kKinds[i]);
    if (result == CUPTI_SUCCESS) continue;
    while (i > 0) (void)table.cuptiActivityDisable(kKinds[--i]);
    return failure(table, result, "cuptiActivityEnable");
  }
  return "";
}

DeviceActivities stop_activities() {
  const LoadedCupti& library = cupti().loaded();
  if (!library.reason.empty()) return {};
  const Cupti& table = library.functions;
  for (const CUpti_ActivityKind kind : kKinds) (void)table.cuptiActivityDisable(kind);
  (void)table.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  ActivityReader reader(table);
  for (const auto& [buffer, valid] : buffers().take_filled()) reader.read(buffer.get(), valid);
  DeviceActivities activities = reader.finish();
  size_t lost = 0;
  if (table.cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost) == CUPTI_SUCCESS) {
    activities.lost = lost;
  }
  return activities;
}

}  // namespace lockstep::cuda

#endif

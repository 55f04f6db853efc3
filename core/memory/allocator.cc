#include "core/tensor/allocator.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstring>

#include "core/base/check.h"
#include "core/base/environment_flag.h"
#include "core/base/mutex.h"
#include "core/base/spin_lock.h"
#include "core/device/device_runtime.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/cpu_memory.h"
#include "core/memory/null_memory.h"

namespace lockstep {

namespace {

/// Allocators set by the program for all devices of a type.
constinit std::array<std::atomic<Allocator*>, kDeviceTypes> g_allocators{};
/// Caching allocators of single devices. Leaked on purpose: tensors with static storage duration
/// may be freed after any static destructor.
constinit std::array<std::atomic<CachingAllocator*>, kDeviceTypes * kMaxDevices> g_caching{};
constinit SpinLock g_making;  ///< held to add to g_caching

std::atomic<CachingAllocator*>& slot(Device device) {
  return g_caching[static_cast<size_t>(device.type) * kMaxDevices +
                   static_cast<size_t>(device.index)];
}

/// Locks all allocators, so that no other thread holds one of their locks in the child. Returns
/// with the locks held.
void before_fork() LS_ACQUIRE(g_making) {
  g_making.lock();
  for (const auto& each : g_caching) {
    if (CachingAllocator* const made = each.load()) made->lock_all();
  }
}
void after_fork() LS_RELEASE(g_making) {
  for (const auto& each : g_caching) {
    if (CachingAllocator* const made = each.load()) made->unlock_all();
  }
  g_making.unlock();
}
[[maybe_unused]] const bool kPreparedForFork =
    pthread_atfork(&before_fork, &after_fork, &after_fork) == 0;

DeviceMemory& memory_of(Device device) {
  if (device.type == DeviceType::kCPU) {
    static CpuMemory& memory = *new CpuMemory(cpu_memory_total());
    return memory;
  }
  if (device.type == DeviceType::kMeta) {
    static NullMemory& memory = *new NullMemory;
    return memory;
  }
  return require_runtime(device).memory(device.index);
}

/// Whether work on the device is finished when its call returns.
bool is_done_at_once(Device device) {
  return device.type == DeviceType::kCPU ||
         (device.type == DeviceType::kCUDA && environment_flag("CUDA_LAUNCH_BLOCKING"));
}

CachingAllocator& make_caching_allocator(Device device) {
  // Outside the lock: a runtime may ask for other devices' memory while it creates its own.
  DeviceMemory& memory = memory_of(device);
  const AllocatorOptions& options = allocator_options_from_environment(device.type);
  const MutexLock guard(g_making);
  std::atomic<CachingAllocator*>& made = slot(device);
  if (made.load() == nullptr) {
    auto* const fresh = new CachingAllocator(device, memory, options);
    if (is_done_at_once(device)) fresh->forbid_idle_memory();
    made = fresh;
  }
  return *made;
}

bool has_index(Device device) {
  const bool single = device.type == DeviceType::kCPU || device.type == DeviceType::kMeta;
  return device.index >= 0 && device.index < (single ? 1 : kMaxDevices);
}

}  // namespace

void Allocator::copy(void* to, const void* from, size_t bytes, Transfer) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

Allocator& allocator(Device device) {
  Allocator* const chosen =
      g_allocators[static_cast<size_t>(device.type)].load(std::memory_order_acquire);
  if (chosen != nullptr) [[unlikely]]
    return *chosen;
  LS_CHECK(has_index(device), DeviceError, "[allocator] there is no device {}.", to_string(device));
  CachingAllocator* const made = slot(device).load(std::memory_order_acquire);
  if (made != nullptr) [[likely]]
    return *made;
  return make_caching_allocator(device);
}

CachingAllocator& caching_allocator(Device device) {
  auto* const caching = dynamic_cast<CachingAllocator*>(&allocator(device));
  LS_CHECK(
      caching != nullptr, DeviceError,
      "[allocator] the memory of {} comes from a custom allocator (set_allocator): expected the "
      "caching allocator.",
      to_string(device));
  return *caching;
}

void notify_stream_destroyed(const Stream& stream) noexcept {
  const Device device = stream.device;
  if (Allocator* const chosen = g_allocators[static_cast<size_t>(device.type)].load()) {
    chosen->stream_destroyed(stream);
  } else if (CachingAllocator* const made = slot(device).load()) {
    made->stream_destroyed(stream);
  }
}

Allocator* set_allocator(DeviceType type, Allocator* allocator) {
  return g_allocators[static_cast<size_t>(type)].exchange(allocator, std::memory_order_acq_rel);
}

}  // namespace lockstep

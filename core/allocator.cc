#include "core/allocator.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "core/check.h"
#include "core/free_list_allocator.h"
#include "core/meta_allocator.h"

namespace lockstep {

namespace {

size_t cpu_capacity() {
  // Twice the machine's memory leaves room for fragmentation; a lower `ulimit -v` is respected.
  size_t bytes =
      2 * static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<size_t>(bytes, limit.rlim_cur / 2);
  }
  return bytes;
}

constinit std::atomic<FreeListAllocator*> g_cpu = nullptr;

// Leaked on purpose: tensors with static storage duration are freed after any static destructor.
Allocator* cpu_allocator() {
  static Allocator* const instance = [] {
    auto* const made = new FreeListAllocator(cpu_capacity());
    g_cpu = made;
    return made;
  }();
  return instance;
}

/// Locks or unlocks the cpu allocator, if there is one yet.
template <void (FreeListAllocator::*change)()>
void around_fork() {
  if (FreeListAllocator* const cpu = g_cpu) (cpu->*change)();
}
[[maybe_unused]] const bool kPreparedForFork =
    pthread_atfork(&around_fork<&FreeListAllocator::lock>, &around_fork<&FreeListAllocator::unlock>,
                   &around_fork<&FreeListAllocator::unlock>) == 0;

Allocator* meta_allocator() {
  static Allocator* const instance = new MetaAllocator();
  return instance;
}

constinit std::array<std::atomic<Allocator*>, kDeviceTypes> g_allocators{};

}  // namespace

void Allocator::copy(void* to, const void* from, size_t bytes, Transfer) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

Allocator& allocator(Device device) {
  Allocator* found = g_allocators[static_cast<int>(device.type)].load(std::memory_order_acquire);
  if (found != nullptr) [[likely]]
    return *found;
  if (device.type == DeviceType::kCPU) {
    found = cpu_allocator();
  } else if (device.type == DeviceType::kMeta) {
    found = meta_allocator();
  }
  LS_CHECK(found != nullptr, DeviceError,
           "[allocator] no memory is registered for device {}: this build has cpu and meta.",
           to_string(device));
  g_allocators[static_cast<int>(device.type)].store(found, std::memory_order_release);
  return *found;
}

Allocator* set_allocator(DeviceType type, Allocator* allocator) {
  return g_allocators[static_cast<int>(type)].exchange(allocator, std::memory_order_acq_rel);
}

}  // namespace lockstep

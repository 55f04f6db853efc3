#include "core/device/rank_waits.h"

#include <array>
#include <atomic>

namespace lockstep {

namespace {

constinit std::array<std::atomic<uint64_t>, kDeviceTypes * kMaxDevices> g_rank_waits{};

std::atomic<uint64_t>& rank_waits_of(Device device) noexcept {
  return g_rank_waits[static_cast<size_t>(device.type) * kMaxDevices +
                      static_cast<size_t>(device.index)];
}

}  // namespace

void note_wait_for_ranks(Device device) noexcept {
  rank_waits_of(device).fetch_add(1, std::memory_order_relaxed);
}

uint64_t waits_for_ranks(Device device) noexcept {
  return rank_waits_of(device).load(std::memory_order_relaxed);
}

}  // namespace lockstep

#include "core/device/spared_processors.h"

#include <atomic>

namespace lockstep {

namespace {

std::atomic<int> g_spared_processors = 0;

}  // namespace

void spare_processors(int count) noexcept {
  g_spared_processors.store(count, std::memory_order_relaxed);
}

int spared_processors() noexcept { return g_spared_processors.load(std::memory_order_relaxed); }

}  // namespace lockstep

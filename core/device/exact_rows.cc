#include "core/device/exact_rows.h"

#include <atomic>

namespace lockstep {

namespace {

constinit std::atomic<int> g_exact_rows = 0;

}  // namespace

ExactRows::ExactRows() noexcept { g_exact_rows.fetch_add(1, std::memory_order_relaxed); }
ExactRows::~ExactRows() { g_exact_rows.fetch_sub(1, std::memory_order_relaxed); }

bool wants_exact_rows() noexcept { return g_exact_rows.load(std::memory_order_relaxed) > 0; }

}  // namespace lockstep

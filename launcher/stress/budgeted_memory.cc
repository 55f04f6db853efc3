#include "launcher/stress/budgeted_memory.h"

namespace lockstep {

bool BudgetedMemory::take(size_t bytes) noexcept {
  size_t left = left_.load();
  do {
    if (bytes > left) return false;
  } while (!left_.compare_exchange_weak(left, left - bytes));
  return true;
}

void* BudgetedMemory::allocate(size_t bytes) noexcept {
  if (!take(bytes)) return nullptr;
  void* address = memory_.allocate(bytes);
  if (address == nullptr) left_ += bytes;
  return address;
}

void BudgetedMemory::release(void* address, size_t bytes) noexcept {
  memory_.release(address, bytes);
  left_ += bytes;
}

bool BudgetedMemory::create(std::span<Granule> granules) noexcept {
  const size_t bytes = granules.size() * granularity();
  if (!take(bytes)) return false;
  if (memory_.create(granules)) return true;
  left_ += bytes;
  return false;
}

void BudgetedMemory::destroy(std::span<const Granule> granules) noexcept {
  memory_.destroy(granules);
  left_ += granules.size() * granularity();
}

}  // namespace lockstep

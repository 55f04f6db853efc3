#include "vault_allocator.h"

#include <cstdlib>
#include <cstring>

namespace vault {

using namespace lockstep;

namespace {

// Offset between the device's addresses and those of this process. No valid address of a 64-bit
// process has only bit 62 set, so dereferencing a device address without `local` crashes.
constexpr intptr_t kDistance = intptr_t{1} << 62;
constexpr size_t kAlignment = 512;
constexpr int kPoison = 0xff;

void* device_address(const void* local) {
  return reinterpret_cast<void*>(reinterpret_cast<intptr_t>(local) + kDistance);
}

}  // namespace

void* VaultAllocator::local(const void* device_address) {
  return reinterpret_cast<void*>(reinterpret_cast<intptr_t>(device_address) - kDistance);
}

Block VaultAllocator::allocate(size_t bytes, const Stream&) {
  if (bytes == 0) return {nullptr, 0, nullptr, this};
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) {
    throw OutOfMemoryError("[vault] no memory left for " + std::to_string(bytes) +
                           " bytes. Use smaller batches.");
  }
  std::memset(memory, kPoison, rounded);
  const int64_t now = allocated_ += static_cast<int64_t>(rounded);
  for (int64_t peak = peak_; peak < now && !peak_.compare_exchange_weak(peak, now);) continue;
  ++allocations_;
  return {device_address(memory), rounded, nullptr, this};
}

void VaultAllocator::free(const Block& block) noexcept {
  if (block.data == nullptr) return;
  std::memset(local(block.data), kPoison, block.bytes);
  std::free(local(block.data));
  allocated_ -= static_cast<int64_t>(block.bytes);
}

void VaultAllocator::copy(void* to, const void* from, size_t bytes, Transfer direction) {
  if (direction != Transfer::kToCpu) to = local(to);
  if (direction != Transfer::kFromCpu) from = local(from);
  std::memcpy(to, from, bytes);
}

MemoryStats VaultAllocator::stats() const {
  const int64_t calls = allocations_;
  return {allocated_, peak_, allocated_, calls, calls};
}

}  // namespace vault

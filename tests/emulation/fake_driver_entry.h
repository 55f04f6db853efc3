#pragma once

#include "tests/emulation/fake_driver.h"

// Entry of a function of FakeDriver's table: takes the lock as `fake`, and fails where a test asked
// for it. LS_FAKE_DEVICE also fails if the device is poisoned or no context is current.

#define LS_FAKE(name)                      \
  FakeDriver& fake = *the_one_;            \
  const std::lock_guard lock(fake.mutex_); \
  if (const CUresult failed = fake.enter(name); failed != CUDA_SUCCESS) return failed
#define LS_FAKE_DEVICE(name)               \
  FakeDriver& fake = *the_one_;            \
  const std::lock_guard lock(fake.mutex_); \
  if (const CUresult failed = fake.enter_device(name); failed != CUDA_SUCCESS) return failed

/// Also gives the lock a name, for calls that wait.
#define LS_FAKE_WAIT(name)            \
  FakeDriver& fake = *the_one_;       \
  std::unique_lock lock(fake.mutex_); \
  if (const CUresult failed = fake.enter_device(name); failed != CUDA_SUCCESS) return failed

namespace lockstep::cuda {

inline void* pointer_to(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace lockstep::cuda

#pragma once

#include <cstdint>

#include "core/tensor/allocator.h"
#include "core/tensor/device.h"
#include "core/tensor/stream.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Peak of the memory of host:0, the device of `config`, in the second step.
inline int64_t measured_peak(const config::RunConfig& config) {
  Allocator& memory = allocator(parse_device("host:0"));
  const int64_t before = memory.stats().allocated;
  Trainer trainer = Trainer::create(config);
  trainer.step();
  synchronize(parse_device("host:0"));
  memory.reset_peak();
  trainer.step();
  synchronize(parse_device("host:0"));
  return memory.stats().peak_allocated - before;
}

}  // namespace lockstep::train

#pragma once

#include "core/tensor/generator.h"

namespace lockstep {

/// Restores the state of the calling thread's default generator at the end of the scope: what is
/// drawn meanwhile does not change the numbers drawn afterwards. Must be destroyed on the thread
/// that made it. Guards nest.
class RandomStateGuard {
 public:
  [[nodiscard]] RandomStateGuard() : saved_(default_generator().state()) {}
  ~RandomStateGuard() { default_generator().set_state(saved_); }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  RandomKey saved_;
};

}  // namespace lockstep

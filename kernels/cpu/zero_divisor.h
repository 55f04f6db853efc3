#pragma once

#include "core/tensor/kernel_arguments.h"
#include "kernels/common/error_flag.h"

namespace lockstep::cpu {

/// Name of the dividing operator.
using ZeroDivision = const char*;
/// Detects integer divisions by zero in one loop. It keeps references to its arguments.
class ZeroDivisor {
 public:
  ZeroDivisor(ZeroDivision op, const Out& out, const In& self, const In& other)
      : op_(op), out_(out), self_(self), other_(other) {}

  functors::ErrorFlag flag() { return {&found_}; }
  /// Throws Error if the loop divided by zero. Call it after the loop.
  void check() const {
    if (found_ != 0) fail();
  }

 private:
  [[noreturn]] void fail() const;

  ZeroDivision op_;
  const Out& out_;
  const In& self_;
  const In& other_;
  uint32_t found_ = 0;
};

}  // namespace lockstep::cpu

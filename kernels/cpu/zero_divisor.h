#pragma once

#include "core/tensor/kernel_arguments.h"
#include "kernels/common/integer_division.h"

namespace lockstep::cpu {

/// The operator that divides.
using ZeroDivision = const char*;
/// Looks out for integer divisions by zero while one loop runs. It refers to what it is given.
class ZeroDivisor {
 public:
  ZeroDivisor(ZeroDivision op, const Out& out, const In& self, const In& other)
      : op_(op), out_(out), self_(self), other_(other) {}

  functors::Note note() { return {&found_}; }
  /// After the loop: throws Error if there was one.
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

#pragma once

#include "core/check.h"
#include "core/kernel_arguments.h"
#include "kernels/integer_division.h"

namespace lockstep::cpu {

/// Looks out for integer divisions by zero while one loop runs. It refers to what it is given.
class ZeroDivisor {
 public:
  ZeroDivisor(const char* op, const Out& out, const In& self, const In& other)
      : op_(op), out_(out), self_(self), other_(other) {}

  functors::Note note() { return {&found_}; }
  /// After the loop: throws Error if there was one.
  void check() const {
    LS_CHECK(
        found_ == 0, Error,
        "[{}] integer division by zero: expected divisors other than 0 for a result of {}, got "
        "shapes {} ({}) and {} ({}) with a 0 in the second. Cast to a floating dtype for inf "
        "or NaN.",
        op_, to_string(out_.dtype), to_string(self_.sizes()), to_string(self_.dtype),
        to_string(other_.sizes()), to_string(other_.dtype));
  }

 private:
  const char* op_;
  const Out& out_;
  const In& self_;
  const In& other_;
  uint32_t found_ = 0;
};

}  // namespace lockstep::cpu

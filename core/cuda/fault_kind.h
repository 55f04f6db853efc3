#pragma once

#include <cstdint>
#include <string>

namespace lockstep::cuda {

/// A kind of invalid element in a kernel's arguments, which the next synchronisation throws: "[op]
/// what: expected ..., got ...". Constructed once, at namespace scope; kernels refer to it by its
/// number.
class FaultKind {
 public:
  static constexpr uint32_t kMost = 1024;  ///< size of each device's tables, by number

  /// `what` is "index out of range", say, without a full stop. Throws InternalError if there are
  /// more than kMost. Thread-safe.
  FaultKind(std::string op, std::string what);

  uint32_t number() const noexcept { return number_; }
  const std::string& op() const noexcept { return op_; }
  const std::string& what() const noexcept { return what_; }

 private:
  uint32_t number_;
  std::string op_;
  std::string what_;
};

}  // namespace lockstep::cuda

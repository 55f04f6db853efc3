#pragma once

#include <span>

#include "core/dispatch/operator.h"
#include "core/tensor/storage.h"

namespace lockstep {

/// While alive, gives the results of the calling thread's next call of `op`, a functional form of a
/// structured operator, memory that is there: `memory` has one entry for each result, null for one
/// to be allocated as usual. So is a result that needs more bytes than its entry has, or is made on
/// another device. Guards nest; the innermost counts. `op` and `memory` must outlive it.
class ResultPlaces {
 public:
  [[nodiscard]] ResultPlaces(const Operator& op, std::span<Ref<Storage>> memory) noexcept;
  ~ResultPlaces();
  ResultPlaces(const ResultPlaces&) = delete;
  ResultPlaces& operator=(const ResultPlaces&) = delete;

  /// Whether a guard is alive on this thread.
  static bool are_given() noexcept { return current_ != nullptr; }
  /// The memory for the next result of `op`; null if it is to be allocated.
  static Ref<Storage> take(const Operator& op, size_t bytes, Device device);

 private:
  static inline thread_local constinit ResultPlaces* current_ = nullptr;

  const Operator& op_;
  std::span<Ref<Storage>> memory_;
  size_t next_ = 0;
  ResultPlaces* outer_;
};

}  // namespace lockstep

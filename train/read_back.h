#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Numbers that the program wants to see, on their way from a device: copies are queued as they are
/// added, and one wait serves all of them. On `cpu` they are read at once. Not thread-safe.
class ReadBack {
 public:
  /// Adds the elements of `tensor`, which must be contiguous and f64 or f32; queued on its device's
  /// current stream. Returns its number for `values`.
  size_t add(const Tensor& tensor);
  /// Waits for everything added since the last call, not for what was queued after it.
  void wait();
  /// The elements of the i-th tensor, in order. Call after `wait`.
  std::span<const double> values(size_t i) const { return values_[i]; }

 private:
  struct Pending {
    size_t number;
    Tensor copy;  ///< pinned
  };
  std::vector<std::vector<double>> values_;
  std::vector<Pending> pending_;
  std::vector<Event> copied_;  ///< of each stream, behind its last copy
};

/// The one element of such a tensor. Waits for it.
double read_number(const Tensor& number);

}  // namespace lockstep::train

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Copies numbers from a device to the host: `add` queues an asynchronous copy, and one `wait`
/// serves all of them. On `cpu` they are read at once. Not thread-safe.
class ReadBack {
 public:
  /// Queues a copy of `tensor`, which must be contiguous and f64 or f32, on its device's current
  /// stream. Returns its index for `values`.
  size_t add(const Tensor& tensor);
  /// Waits for the copies queued since the last call, but not for device work queued after them.
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
  std::vector<Event> copied_;  ///< one per stream, recorded after its last copy
};

/// Reads the only element of an f64 or f32 tensor. Waits for its device.
double read_number(const Tensor& number);

}  // namespace lockstep::train

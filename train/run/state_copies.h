#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Copies of tensors in memory of the cpu, pinned where they come from a device with streams, that
/// are written to files while training goes on. The memory is taken by the first copies and used
/// again by all later ones of the same sizes.
///
/// One thread calls `begin`, `add` and `end`, changes none of the tensors until `wait_to_change`
/// has returned, and does not call `begin` before the other is done with the copies. The other
/// thread calls `finish` and then reads them.
class StateCopies {
 public:
  /// Takes memory for the copies of the next lists, in their order, in place of its own; pinned
  /// where it is to be. What was copied before is void.
  void use(std::vector<Tensor> memory) { copies_ = std::move(memory); }
  /// Begins copies of a list of tensors: what was copied before is void.
  void begin();
  /// Copies a tensor, dense, on the cpu or on the one device of the others. On a device with
  /// streams that is queued behind the work of its current stream; on the cpu it is left to
  /// `finish`, or done `now`.
  void add(const Tensor& tensor, bool now);
  /// After the last tensor of a list.
  void end();
  /// Blocks until work that is begun from now on may change the tensors. Returns the seconds that
  /// took.
  double wait_to_change() const;

  /// Makes the copies that were left, and waits for all of them. Throws nothing but what the device
  /// reports.
  void finish();
  /// In the order of `add`.
  const std::vector<Tensor>& tensors() const { return copies_; }

 private:
  void copy_those_left();

  std::vector<Tensor> copies_;
  std::vector<Tensor> left_;  ///< by copy: what it is to be made of, or undefined
  size_t next_ = 0;
  Device device_ = kCPU;  ///< of the tensors that are not on the cpu
  bool leaves_some_ = false;
  Event arrived_;
  std::atomic<bool> may_change_ = true;
};

}  // namespace lockstep::train

#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Copies micro-batches from the cpu to the device that trains on them. They are filled in pinned
/// memory and copied on a separate stream, so that the next one is copied while the model computes
/// on the current one (double buffering). On `cpu` they are filled in place and nothing is copied.
/// Not thread-safe.
class StagedBatches {
 public:
  /// One tensor of every micro-batch.
  struct Part {
    Dims sizes;
    DType dtype;
  };
  /// Fills cpu tensors of these parts with samples [first, ...) of training batch `batch`; returns
  /// the number of targets.
  using Fill = std::function<int64_t(int64_t batch, int64_t first, std::span<const Tensor> into)>;

  StagedBatches(Device device, std::vector<Part> parts, Fill fill);

  struct MicroBatch {
    std::vector<Tensor> tensors;  ///< on the device, ready for use on its current stream
    int64_t targets = 0;
  };
  /// Returns the micro-batch; fills it now unless it was prefetched. Valid until the call after the
  /// next.
  MicroBatch get(int64_t batch, int64_t first);
  /// Fills the micro-batch expected after this one of `count` samples and starts its copy. If
  /// samples [begin, end) of each batch are used, that is the next of this batch or else the first
  /// of the next batch, provided batches came in order so far. Does nothing on `cpu`.
  void prefetch_after(int64_t batch, int64_t first, int64_t count, int64_t begin, int64_t end);

 private:
  struct Slot {
    std::vector<Tensor> source;  ///< pinned
    std::vector<Tensor> tensors;
    Event copied;
    int64_t batch = -1;  ///< -1: empty, or returned by `get` already
    int64_t first = 0;
    int64_t targets = 0;
  };
  Slot& send(int64_t batch, int64_t first);

  Device device_;
  Fill fill_;
  Stream copy_stream_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
  int64_t last_batch_ = -1;  ///< batch of the last `prefetch_after`
  bool in_order_ = true;
};

}  // namespace lockstep::train

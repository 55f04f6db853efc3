#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor/event.h"
#include "core/tensor/tensor.h"

namespace lockstep::train {

/// Micro-batches on their way from the cpu to the device that trains on them. They are filled in
/// pinned memory and copied on a stream of their own, so that the next one travels while the model
/// computes on this one; two are under way at most. On `cpu` they are filled in place and nothing
/// is copied. Not thread-safe.
class StagedBatches {
 public:
  /// One tensor of every micro-batch.
  struct Part {
    Dims sizes;
    DType dtype;
  };
  /// Fills cpu tensors of these parts with samples [first, ...) of training batch `batch`; returns
  /// how many targets they hold.
  using Fill = std::function<int64_t(int64_t batch, int64_t first, std::span<const Tensor> into)>;

  StagedBatches(Device device, std::vector<Part> parts, Fill fill);

  struct MicroBatch {
    std::vector<Tensor> tensors;  ///< on the device, for its current stream
    int64_t targets = 0;
  };
  /// The micro-batch, filled now unless it travels already. Valid until the next but one call.
  MicroBatch get(int64_t batch, int64_t first);
  /// Fills the micro-batch that will be asked for after this one of `count` samples, where samples
  /// [begin, end) of each batch are asked for, and lets it travel: the next of the batch, else the
  /// first of the next batch where batches have come in order. Nothing to do on `cpu`.
  void prefetch_after(int64_t batch, int64_t first, int64_t count, int64_t begin, int64_t end);

 private:
  struct Slot {
    std::vector<Tensor> source;  ///< pinned
    std::vector<Tensor> tensors;
    Event copied;
    int64_t batch = -1;  ///< -1: empty, or taken
    int64_t first = 0;
    int64_t targets = 0;
  };
  Slot& send(int64_t batch, int64_t first);

  Device device_;
  Fill fill_;
  Stream copy_stream_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
  int64_t last_batch_ = -1;  ///< of the last `prefetch_after`
  bool in_order_ = true;
};

}  // namespace lockstep::train

#pragma once

#include <vector>

#include "core/device/queued_kernel.h"
#include "core/dispatch/element_loop.h"

namespace lockstep {

/// A program of the cpu's loops, queued on a stream of the host device. Its operator is "fused".
class QueuedProgram final : public QueuedKernel {
 public:
  /// As LoopBackend::run takes them; all is copied.
  QueuedProgram(const LoopProgram& program, int64_t count, std::span<void* const> memory,
                std::span<const RandomKey> draws, LoopKernel kernel);

  void run() override;
  void each_access(FunctionRef<void(const TensorArg&, bool)> visit) const override;
  /// Takes the next random numbers of this thread for slots that are drawn.
  void draw_anew();

 private:
  /// The memory of a slot, as a row of elements.
  struct Access {
    size_t slot;
    TensorArg tensor;
  };

  LoopProgram program_;
  int64_t count_;
  std::vector<int64_t> lengths_;  ///< by slot
  std::vector<Access> accesses_;
  std::vector<RandomKey> draws_;
  LoopKernel kernel_;
};

}  // namespace lockstep

#pragma once

#include <cstdint>

#include "nn/module.h"

namespace lockstep::nn {

/// A model that sends its input through blocks, one after the other (nn/run_blocks.h).
class BlockModel : public Module {
 public:
  /// Every so many blocks keep for backward their input only, and compute the rest again
  /// (autograd/checkpoint.h): the same gradients in less memory. 0, the default: none do.
  void set_checkpoint_every(int64_t blocks) { checkpoint_every_ = blocks; }
  int64_t checkpoint_every() const { return checkpoint_every_; }

 private:
  int64_t checkpoint_every_ = 0;
};

}  // namespace lockstep::nn

#pragma once

#include <cstdint>

#include "nn/module.h"

namespace lockstep::nn {

/// A model that runs a sequence of blocks in its forward pass (nn/run_blocks.h).
class BlockModel : public Module {
 public:
  /// Activation checkpointing (autograd/checkpoint.h): each group of `blocks` blocks keeps only its
  /// input for backward and recomputes the rest, which gives the same gradients in less memory. 0,
  /// the default, turns it off.
  void set_checkpoint_every(int64_t blocks) { checkpoint_every_ = blocks; }
  int64_t checkpoint_every() const { return checkpoint_every_; }

 private:
  int64_t checkpoint_every_ = 0;
};

}  // namespace lockstep::nn

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nn/module.h"

namespace lockstep::nn {

/// A model that runs a sequence of blocks in its forward pass (nn/run_blocks.h).
class BlockModel : public Module {
 public:
  /// The blocks in the order of forward: the units in which the model can be sharded
  /// (dist/fsdp/fully_shard.h).
  virtual std::vector<Module*> sequence() const = 0;

  /// Activation checkpointing (autograd/checkpoint.h): each group of `blocks` blocks keeps only its
  /// input for backward and recomputes the rest, which gives the same gradients in less memory. 0,
  /// the default, turns it off.
  void set_checkpoint_every(int64_t blocks) { checkpoint_every_ = blocks; }
  int64_t checkpoint_every() const { return checkpoint_every_; }

 protected:
  template <class Block>
  static std::vector<Module*> modules_of(const std::vector<std::unique_ptr<Block>>& blocks) {
    std::vector<Module*> modules;
    for (const std::unique_ptr<Block>& each : blocks) modules.push_back(each.get());
    return modules;
  }

 private:
  int64_t checkpoint_every_ = 0;
};

}  // namespace lockstep::nn

#pragma once

#include <memory>
#include <vector>

#include "nn/module.h"
#include "nn/recompute.h"

namespace lockstep::nn {

/// A model that runs a sequence of blocks in its forward pass (nn/run_blocks.h).
class BlockModel : public Module {
 public:
  /// The blocks in the order of forward: the units in which the model can be sharded
  /// (dist/fsdp/fully_shard.h).
  virtual std::vector<Module*> sequence() const = 0;

  /// What of the blocks backward computes again instead of keeping it. Default: nothing.
  void set_recompute(const RecomputeOptions& options) { recompute_ = options; }
  const RecomputeOptions& recompute() const { return recompute_; }

  /// Lets `runner` run the forward passes of the blocks; null turns that off. A block takes part
  /// whose class calls `run_block`.
  void set_runner(const std::shared_ptr<BlockRunner>& runner) {
    for (Module* const block : sequence()) block->set_runner(runner);
  }

 protected:
  template <class Block>
  static std::vector<Module*> modules_of(const std::vector<std::unique_ptr<Block>>& blocks) {
    std::vector<Module*> modules;
    for (const std::unique_ptr<Block>& each : blocks) modules.push_back(each.get());
    return modules;
  }

 private:
  RecomputeOptions recompute_;
};

}  // namespace lockstep::nn

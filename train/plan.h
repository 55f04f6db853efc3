#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "nn/module.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// What a run needs, known before it starts. Bytes are those of one rank; all ranks are alike, and
/// each holds all parameters, gradients and optimizer state (plain data parallelism).
struct RunPlan {
  int64_t parameters = 0;      ///< elements
  double flops_per_token = 0;  ///< floating-point operations of forward and backward
  int64_t tokens_per_sample = 1;
  int64_t batch_size = 0;  ///< samples of a step, over all ranks
  int64_t steps = 0;

  int64_t ranks = 1;
  int64_t micro_batch_size = 0;  ///< samples of a forward pass
  int64_t micro_batches = 0;     ///< of a step on one rank
  int64_t leaves = 0;            ///< of a step on one rank
  int64_t gradient_arenas = 0;   ///< sums of leaves side by side: at most log2(leaves) + 1

  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;  ///< all arenas, with the gaps between their slots
  int64_t optimizer_bytes = 0;
  /// Everything else at the worst moment: activations, temporaries, the batch, the model's tables,
  /// and what the allocator adds to a block.
  int64_t activation_bytes = 0;
  /// The sum: the highest `allocated` of the cpu allocator while the run trains, evaluates and
  /// saves. Scratch memory of kernels, which grows with the threads, is not the allocator's.
  int64_t peak_bytes = 0;
  /// Tensors in one checkpoint's files.
  int64_t checkpoint_bytes = 0;

  int64_t tokens_per_step() const { return batch_size * tokens_per_sample; }
  int64_t total_tokens() const { return steps * tokens_per_step(); }
  double flops_per_step() const { return flops_per_token * static_cast<double>(tokens_per_step()); }
  double total_flops() const { return flops_per_step() * static_cast<double>(steps); }
};

/// A model and what one of its micro-batches does, for any kind of model. The functions may be
/// called while the model lives.
struct PlannedModel {
  std::unique_ptr<nn::Module> model;
  /// What a forward pass reads of the data: fresh tensors on default_device().
  std::function<std::vector<Tensor>()> make_inputs;
  /// The loss of such inputs, 0-d. Must not ask for an element's value.
  std::function<Tensor(const std::vector<Tensor>&)> loss;
  int64_t tokens_per_sample = 1;  ///< 1 where a sample is one thing
  double flops_per_token = 0;
};

/// The model of a resolved config, on default_device(), with fresh weights, and its micro-batches
/// of `rows` samples.
PlannedModel planned_model(const config::RunConfig& config, int64_t rows);

/// Plans a resolved config for `ranks` processes. Runs training steps, an evaluation and a
/// checkpoint on the meta device: no tensor has memory, and no file is read, weights and data
/// included. Throws ConfigError when so many ranks cannot share a step.
///
/// Counts all that the process allocates on meta meanwhile, so nobody else should. The calling
/// thread's default generator is left as it was.
RunPlan plan_run(const config::RunConfig& config, int64_t ranks = 1);
/// The same for the model that `build` makes on default_device() for micro-batches of `rows`
/// samples, whatever model the config names.
RunPlan plan_run(const config::RunConfig& config, int64_t ranks,
                 const std::function<PlannedModel(int64_t rows)>& build);

}  // namespace lockstep::train

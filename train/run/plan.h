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

/// Memory, operations and communication that a run needs, known before it starts. Bytes are per
/// rank, under the config's parallel.strategy.
struct RunPlan {
  int64_t parameters = 0;      ///< elements
  double flops_per_token = 0;  ///< floating-point operations of forward and backward
  int64_t tokens_per_sample = 1;
  int64_t batch_size = 0;  ///< samples of a step, over all ranks
  int64_t steps = 0;

  int64_t ranks = 1;
  int64_t micro_batch_size = 0;  ///< samples of a forward pass
  int64_t micro_batches = 0;     ///< micro-batches per step on one rank
  int64_t leaves = 0;            ///< leaves per step on one rank
  /// Whether parallel.balance: SPEED may give a rank other leaves. The plan is then that of a rank
  /// whose sums take the most memory (rank_with_most_sums).
  bool is_balanced = false;
  int64_t gradient_arenas = 0;  ///< partial gradient sums held at once: at most log2(leaves) + 1

  int64_t parameter_bytes = 0;
  /// All arenas, with the gaps between their slots; of a sharded model this rank's part of the
  /// sums.
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;
  /// Everything else at the peak: activations, temporaries, the batch, the model's tables, what of
  /// a sharded model is gathered, and the allocator's rounding of block sizes.
  int64_t activation_bytes = 0;
  /// The sum: peak of the cpu allocator's `allocated` while the run trains, evaluates and saves.
  /// Excludes the scratch memory of kernels, which grows with the number of threads and does not
  /// come from the allocator.
  int64_t peak_bytes = 0;
  /// What a rank keeps in the host's memory, beside a device: copies as copy_bytes tells, with
  /// parallel.cpu_offload parameters, gradients and optimizer state, with train.offload_activations
  /// what a micro-batch saves for backward. The peak is the device's then, without them.
  int64_t host_bytes = 0;
  /// With checkpoint.asynchronous the copies of weights and optimizer state that are written beside
  /// training, from the first save on, and with checkpoint.memory_every those in the ranks' memory:
  /// in the peak on a cpu, in host_bytes elsewhere.
  int64_t copy_bytes = 0;
  /// Bytes that a rank sends to others in a step, by kind of operation.
  struct Communication {
    int64_t all_reduce = 0;
    int64_t all_gather = 0;
    int64_t reduce_scatter = 0;
    int64_t all_to_all = 0;
    int64_t broadcast = 0;

    int64_t sum() const {
      return all_reduce + all_gather + reduce_scatter + all_to_all + broadcast;
    }
  };
  Communication communication;
  /// Tensors in one checkpoint's files.
  int64_t checkpoint_bytes = 0;

  int64_t tokens_per_step() const { return batch_size * tokens_per_sample; }
  int64_t total_tokens() const { return steps * tokens_per_step(); }
  double flops_per_step() const { return flops_per_token * static_cast<double>(tokens_per_step()); }
  double total_flops() const { return flops_per_step() * static_cast<double>(steps); }
};

/// A model of any kind and the computation of one of its micro-batches. The functions may be called
/// as long as the model exists.
struct PlannedModel {
  std::unique_ptr<nn::Module> model;
  /// Creates the inputs of a forward pass: new tensors on default_device().
  std::function<std::vector<Tensor>()> make_inputs;
  /// Computes the 0-d loss of such inputs. Must not read an element's value.
  std::function<Tensor(const std::vector<Tensor>&)> loss;
  int64_t tokens_per_sample = 1;  ///< 1 for classifiers
  double flops_per_token = 0;
};

/// Builds the model of a resolved config on default_device(), with fresh weights, for micro-batches
/// of `rows` samples.
PlannedModel planned_model(const config::RunConfig& config, int64_t rows);

/// Plans a resolved config for `ranks` processes. Runs training steps, an evaluation and a
/// checkpoint on the meta device: tensors have no memory, and no file is read, not even weights or
/// data. Throws ConfigError if so many ranks cannot share a step.
///
/// Measures the process's allocations on meta, so no other thread may use that device meanwhile.
/// Restores the calling thread's default generator.
RunPlan plan_run(const config::RunConfig& config, int64_t ranks = 1);
/// As above, but for the model that `build` makes on default_device() for micro-batches of `rows`
/// samples instead of the config's model.
RunPlan plan_run(const config::RunConfig& config, int64_t ranks,
                 const std::function<PlannedModel(int64_t rows)>& build);

}  // namespace lockstep::train

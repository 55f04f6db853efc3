#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/content_hash.h"
#include "data/sample_origin.h"
#include "nn/module.h"
#include "train/evaluate.h"

namespace lockstep::train {

/// Returns true once training should stop. An empty function never does.
using StopRequest = std::function<bool()>;

/// Result of a forward pass: the losses summed, not averaged, so that gradients do not depend on
/// how a batch is divided into micro-batches.
struct SummedLoss {
  Tensor sum;           ///< 0-d
  int64_t targets = 0;  ///< number of losses in the sum
};

/// What a run trains: a model, its data, and the computation of the loss. The trainer's only
/// interface to both. Not thread-safe.
class Task {
 public:
  virtual ~Task() = default;

  virtual nn::Module& model() = 0;

  /// Runs the model on samples [first, first + count) of training batch `batch`. The choice of
  /// samples is a function of the data, the seed and the three arguments. Throws DataError.
  virtual SummedLoss forward(int64_t batch, int64_t first, int64_t count) = 0;

  // `forward` in two parts, for passes that a CUDA graph repeats on other samples.

  /// What a pass reads besides the model.
  struct Samples {
    std::vector<Tensor> tensors;  ///< on the model's device, ready for its current stream
    int64_t targets = 0;
  };
  /// Why `forward` cannot be repeated so; empty if it can: then the sum of losses depends on the
  /// elements of `samples` alone, whose types are the same for all passes of as many samples.
  virtual std::string why_not_repeatable() const { return "the task has no samples apart"; }
  /// The samples that `forward(batch, first, count)` reads. Throws DataError.
  virtual Samples samples([[maybe_unused]] int64_t batch, [[maybe_unused]] int64_t first,
                          [[maybe_unused]] int64_t count) {
    return {};
  }
  /// Returns the SummedLoss::sum of samples at these addresses.
  virtual Tensor sum_of_losses([[maybe_unused]] TensorList samples) { return {}; }

  /// From now on this rank trains on samples [first, end) of each batch, a hint of what to prepare.
  virtual void train_on([[maybe_unused]] int64_t first, [[maybe_unused]] int64_t end) {}
  /// Loss of each sample of [first, first + count), summed over its targets, [count] in f64 on the
  /// model's device, in the model's present mode and without gradients; undefined if the task
  /// cannot tell. Throws DataError.
  virtual Tensor losses([[maybe_unused]] int64_t batch, [[maybe_unused]] int64_t first,
                        [[maybe_unused]] int64_t count) {
    return {};
  }
  /// Where the first `count` samples of a batch are in files; empty if they come from none.
  virtual std::vector<SampleOrigin> origins([[maybe_unused]] int64_t batch,
                                            [[maybe_unused]] int64_t count) const {
    return {};
  }
  /// Milliseconds that the last `forward` waited for its batch.
  virtual double data_wait_ms() const = 0;

  /// Whether there is data to evaluate on.
  virtual bool holds_out() const = 0;
  /// Evaluates on `part` of the held-out data, in batches of the config's micro-batch size. Returns
  /// nothing if `part.stop` returned true.
  virtual std::optional<Evaluation> evaluate(const HeldOutPart& part) = 0;

  /// Tokens per sample as throughput counts them: the length of a sequence; 1 for classifiers.
  virtual int64_t tokens_per_sample() const = 0;
  /// Floating-point operations of forward and backward, per token.
  virtual double flops_per_token() const = 0;

  /// Hash of the training data; for large data, of a sample of it.
  virtual ContentHash data_fingerprint() const = 0;
  /// Hash by which ranks compare their data, the held-out part included.
  virtual ContentHash data_identity() const { return data_fingerprint(); }
  /// What a person should know of how the data was read.
  virtual std::vector<std::string> data_notes() const { return {}; }
  /// Writes the files that other programs need besides the weights, config.json and the tokenizer,
  /// and returns their names.
  virtual std::vector<std::string> describe(const std::filesystem::path& folder) const = 0;
  /// Generates about `bytes` of text; empty if the model does not generate text. `stop`, if given,
  /// is called before every token; true ends the text.
  virtual std::string sample_text(int64_t bytes, uint64_t seed, const StopRequest& stop = {}) = 0;
};

}  // namespace lockstep::train

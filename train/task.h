#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/base/content_hash.h"
#include "nn/module.h"
#include "train/evaluate.h"

namespace lockstep::train {

/// True once training is asked to stop. An empty one never asks.
using StopRequest = std::function<bool()>;

/// What a forward pass gives: losses summed, not averaged, so that no gradient depends on how a
/// batch was cut.
struct SummedLoss {
  Tensor sum;           ///< 0-d
  int64_t targets = 0;  ///< losses in it
};

/// What a run trains: a model, the data it learns from, and how the two meet. The trainer knows
/// nothing more of either. Not thread-safe.
class Task {
 public:
  virtual ~Task() = default;

  virtual nn::Module& model() = 0;

  /// Runs the model on samples [first, first + count) of training batch `batch`. Which samples
  /// those are is a function of the data, the seed and the three numbers. Throws DataError.
  virtual SummedLoss forward(int64_t batch, int64_t first, int64_t count) = 0;
  /// How long the batch of the last `forward` was waited for, in milliseconds.
  virtual double data_wait_ms() const = 0;

  /// Whether there is data to evaluate on.
  virtual bool holds_out() const = 0;
  /// Over that part of the held-out data, in batches of the config's micro-batch size. Nothing if
  /// asked for an end meanwhile.
  virtual std::optional<Evaluation> evaluate(const HeldOutPart& part) = 0;

  /// What throughput counts: tokens of a sequence; 1 where a sample is one thing.
  virtual int64_t tokens_per_sample() const = 0;
  /// Floating-point operations of forward and backward.
  virtual double flops_per_token() const = 0;

  /// Differs when the training data does; for large data a sample of it decides.
  virtual ContentHash data_fingerprint() const = 0;
  /// Writes what other programs need beside the weights: config.json and the tokenizer's files.
  virtual void describe(const std::filesystem::path& folder) const = 0;
  /// About `bytes` of text made by the model; empty where it makes none.
  virtual std::string sample_text(int64_t bytes, uint64_t seed) = 0;
};

}  // namespace lockstep::train

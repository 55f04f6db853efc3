#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "data/token_source.h"
#include "nn/language_model.h"

namespace lockstep::dist {
class ProcessGroup;
}

namespace lockstep::train {

/// How well a model predicts held-out data.
struct Evaluation {
  double loss = 0;  ///< mean over the targets, in nats
  int64_t targets = 0;
  double bytes_per_target = 0;  ///< mean bytes of text per target; 0 if unknown
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< classifiers only, else NaN

  /// Bits per byte of text that an arithmetic coder driven by the model would need; NaN if
  /// bytes_per_target is unknown.
  double bits_per_byte() const;
};

/// How much of the held-out data is evaluated, and by which ranks.
struct HeldOutPart {
  int64_t max_batches = 0;     ///< 0: all batches; else so many, evenly spaced
  std::function<bool()> stop;  ///< called before every batch; true ends the evaluation
  /// The batches are dealt out to the ranks of this group, which all call with the same arguments;
  /// null: this process evaluates all of them.
  dist::ProcessGroup* group = nullptr;
  /// All ranks score as many batches, the last ones again where there are too few, because a
  /// forward pass needs every rank: of a sharded model. Changes no result.
  bool in_step = false;
};

/// Sums over held-out batches.
struct BatchScore {
  double loss = 0;  ///< summed over the targets
  int64_t targets = 0;
  int64_t correct = 0;  ///< right predictions; classifiers only
};

/// Returns the sum of `score(batch)` over the batches that `part` selects, added in batch order, so
/// that its bits are the same on all ranks and for any number of ranks. Returns nothing if
/// `part.stop` returned true on any rank.
std::optional<BatchScore> sum_of_batches(int64_t batches, const HeldOutPart& part,
                                         const std::function<BatchScore(int64_t batch)>& score);

struct EvaluationOptions {
  int64_t length = 0;             ///< tokens of a window
  int64_t rows = 1;               ///< windows per batch
  bool within_documents = false;  ///< no token attends beyond its document
  HeldOutPart part = {};
};

/// Runs `model` over the held-out windows in evaluation mode, without recording a graph. Losses are
/// added in window order, so the result depends neither on threads nor on ranks. Returns nothing if
/// `part.stop` returned true.
std::optional<Evaluation> evaluate(nn::LanguageModel& model, const TokenSource& source,
                                   const EvaluationOptions& options);

}  // namespace lockstep::train

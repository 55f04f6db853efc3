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
  double bytes_per_target = 0;  ///< of text, on average; 0 where it is not known
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< of classifiers, else NaN

  /// What an arithmetic coder driven by the model would need for the text; NaN where its bytes are
  /// not known.
  double bits_per_byte() const;
};

/// How much of the held-out data is looked at, and by whom.
struct HeldOutPart {
  int64_t max_batches = 0;     ///< 0: all batches; else so many, spread evenly over them
  std::function<bool()> stop;  ///< asked before every batch; empty: never
  /// Whose ranks take the batches in turn, and all call with the same numbers; null: this one
  /// alone.
  dist::ProcessGroup* group = nullptr;
};

/// What held-out batches give.
struct BatchScore {
  double loss = 0;  ///< summed over the targets
  int64_t targets = 0;
  int64_t correct = 0;  ///< of classifiers
};

/// The sum of `score(batch)` over that part of `batches`, added in the order of the batches: its
/// bits are the same on all ranks and for any number of them. Nothing if `stop` said so on some
/// rank.
std::optional<BatchScore> sum_of_batches(int64_t batches, const HeldOutPart& part,
                                         const std::function<BatchScore(int64_t batch)>& score);

struct EvaluationOptions {
  int64_t length = 0;  ///< positions of a window
  int64_t rows = 1;    ///< windows per batch
  HeldOutPart part;
};

/// Runs `model` over the held-out windows without recording a graph; dropout is off while it runs.
/// The sum is made in window order, so the result depends neither on threads nor on ranks. Nothing
/// if `part.stop` said so.
std::optional<Evaluation> evaluate(nn::LanguageModel& model, const TokenSource& source,
                                   const EvaluationOptions& options);

}  // namespace lockstep::train

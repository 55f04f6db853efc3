#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "nn/language_model.h"
#include "train/token_source.h"

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

struct EvaluationOptions {
  int64_t length = 0;          ///< positions of a window
  int64_t rows = 1;            ///< windows per batch
  int64_t max_batches = 0;     ///< 0: all held-out tokens; else batches spread evenly over them
  std::function<bool()> stop;  ///< asked before every batch; empty: never
};

/// Runs `model` over the held-out windows without recording a graph; dropout is off while it runs.
/// The sum is made in window order, so the result does not depend on threads. Nothing
/// if `stop` said so.
std::optional<Evaluation> evaluate(nn::LanguageModel& model, const TokenSource& source,
                                   const EvaluationOptions& options);

}  // namespace lockstep::train

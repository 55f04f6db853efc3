#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "train/evaluate.h"
#include "train/run_directory.h"
#include "train/step_line.h"
#include "train/step_times.h"
#include "train/trainer.h"

namespace lockstep::train {

/// What a whole run came to.
struct RunSummary {
  int64_t steps = 0;
  int64_t tokens = 0;
  double seconds = 0;     ///< of training steps, validation not counted
  double final_loss = 0;  ///< of the last step
  bool stopped_by_time = false;
  StepTimes step_times;
  Evaluation held_out;  ///< over all held-out tokens; no targets when none are held out
};

/// Trains as `config` says and leaves everything in `directory`: config.txtpb (resolved, enough to
/// repeat the run), environment.json, metrics.jsonl (one line a step), a TensorBoard event file,
/// model.safetensors, config.json and the tokenizer's files at the end.
///
/// metrics.jsonl: what step_record writes, and val_loss and val_bits_per_byte on the lines after
/// which the model was evaluated.
class TrainingRun {
 public:
  /// Writes config and environment. `environment` is the text of environment.json.
  TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
              const std::string& environment);

  /// Runs to the end; progress goes to `terminal`. Throws what Trainer and the writers throw.
  RunSummary run(std::FILE* terminal, LogFormat format = LogFormat::kText);

  Trainer& trainer() { return trainer_; }
  const RunDirectory& directory() const { return directory_; }

 private:
  void save();

  RunDirectory directory_;
  Trainer trainer_;
  int64_t steps_;
  int64_t log_every_;
  int64_t eval_every_;
  int64_t eval_batches_;
  double time_limit_;
  double peak_tflops_;
};

}  // namespace lockstep::train

#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/non_finite.h"
#include "train/replicas.h"
#include "train/report/run_directory.h"
#include "train/report/run_log.h"
#include "train/report/step_times.h"
#include "train/run_lock.h"
#include "train/run_memory.h"
#include "train/trainer.h"

namespace lockstep::train {

/// Why a run ended.
enum class RunEnd {
  kFinished,    ///< all steps done
  kTimeBudget,  ///< the config's train.time_limit_seconds; counts as finished
  kStopped,     ///< asked to stop; everything is saved, and training goes on when started again
};

/// What a run came to in this process.
struct RunSummary {
  RunEnd end = RunEnd::kFinished;
  int64_t first_step = 0;  ///< steps done before this process
  int64_t steps = 0;       ///< steps done in all
  int64_t tokens = 0;      ///< trained on by this process
  double seconds = 0;      ///< of training steps, validation not counted
  double final_loss = 0;   ///< of the last step; NaN if this process made none
  StepTimes step_times;
  /// Of runs of several ranks, where it is known.
  std::optional<OverlapReport> overlap;
  Evaluation held_out;  ///< over all held-out data; no targets when there is none or it was stopped
};

struct RunOptions {
  std::FILE* terminal = stderr;  ///< for progress; must outlive the run
  LogFormat format = LogFormat::kText;
  StopRequest stop;       ///< asked after every step
  double time_limit = 0;  ///< seconds after which the run stops to be continued; 0: none
  std::function<void(int64_t step)> before_step;  ///< called as each step begins
};

/// Trains as `config` says and leaves everything in `directory`: config.txtpb (resolved, enough to
/// repeat the run), environment.json, metrics.jsonl (one line a step), a TensorBoard event file,
/// checkpoints/, samples.jsonl where samples are wanted, memory.json and memory.pickle where
/// memory is recorded (train/run_memory.h), overlap.json and overlap.svg of runs of several ranks
/// (train/report/overlap_report.h), and at the end model.safetensors, config.json and the
/// tokenizer's files.
///
/// In a directory that holds checkpoints it goes on from the newest one that is whole; damaged ones
/// are set aside as step-%08d.damaged. The losses are those of a run that was never interrupted.
///
/// metrics.jsonl: what step_record writes, and val_loss with add_scores' members on the lines after
/// which the model was evaluated.
class TrainingRun {
 public:
  /// Locks the directory, restores a checkpoint if there is one, writes config and environment.
  /// `environment` is the text of environment.json. Throws CheckpointError if there are checkpoints
  /// and none is whole, or the newest whole one does not fit the config.
  TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
              const std::string& environment);
  /// The same for a model and data that the config does not describe.
  /// As the leader of `group`, which may be null; its other ranks call `follow_training`.
  TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
              const std::string& environment, std::unique_ptr<Task> task,
              dist::ProcessGroup* group = nullptr);

  /// What a user should know about where training starts: a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Runs to the end; call once. Throws NonFiniteError as train.non_finite says, and what Trainer
  /// and the writers throw.
  RunSummary run(const RunOptions& options);

  Trainer& trainer() { return trainer_; }
  const RunDirectory& directory() const { return directory_; }

 private:
  /// What the loop reads of the config.
  struct Settings {
    int64_t steps = 0;
    int64_t log_every = 0;
    int64_t eval_every = 0;
    int64_t eval_batches = 0;
    int64_t sample_every = 0;
    int64_t sample_bytes = 0;
    uint64_t seed = 0;
    double time_budget = 0;
    double peak_tflops = 0;
    int64_t checkpoint_every = 0;
    Retention retention;
  };
  static Settings settings_of(const config::RunConfig& config);

  /// Whether nothing is known to come between the next step and the one after it.
  bool goes_on_after_next() const;
  StepReport report_of(const StepResult& step) const;
  /// Nothing if some rank was asked to stop meanwhile.
  std::optional<EvaluationReport> evaluate(const StepReport& step, bool whole, RunSummary& summary);
  void checkpoint(RunLog& log);
  /// Returns with the trainer where training goes on, or throws.
  void handle_non_finite(const StepResult& step, NonFinite action, RunLog& log);
  void tell_buckets(RunLog& log);
  void show_sample(RunLog& log);
  std::optional<OverlapReport> report_overlap();
  void export_model();

  RunDirectory directory_;
  RunLock lock_;
  Settings settings_;
  std::string name_;
  std::string config_text_;
  RunMemory memory_;  // before the model
  Replicas replicas_;
  Trainer trainer_;
  NonFiniteGuard guard_;
  bool can_roll_back_;
  bool told_buckets_ = false;
  std::vector<std::string> notes_;
  int64_t saved_step_ = -1;  ///< steps done in the newest checkpoint
  double save_seconds_ = 0;  ///< what the last one took
};

/// What the other ranks of a TrainingRun's group do: the leader's steps and evaluations, each with
/// its share of the data, until the leader's run ends. Nothing is written. `stop` is asked in every
/// step and evaluation: it ends the run of all ranks.
void follow_training(const config::RunConfig& config, dist::ProcessGroup& group,
                     const StopRequest& stop);

}  // namespace lockstep::train

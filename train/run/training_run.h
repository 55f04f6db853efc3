#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/joining/state_giver.h"
#include "train/report/run_directory.h"
#include "train/report/run_lock.h"
#include "train/report/run_log.h"
#include "train/report/run_memory.h"
#include "train/report/run_start.h"
#include "train/report/step_durations.h"
#include "train/report/time_account.h"
#include "train/run/balance.h"
#include "train/run/checkpoint.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/elastic.h"
#include "train/run/held_out_watch.h"
#include "train/run/memory_copies.h"
#include "train/run/non_finite.h"
#include "train/run/replicas.h"
#include "train/run/slow_rank.h"
#include "train/run/stop_rule.h"
#include "train/run/time_fit.h"
#include "train/trainer.h"

namespace lockstep::train {

/// What a run came to in this process.
struct RunSummary {
  RunEnd end = RunEnd::kFinished;
  int64_t first_step = 0;    ///< steps done before this process
  int64_t steps = 0;         ///< steps done in all
  bool ended_early = false;  ///< the schedule, within the time limit (schedule.fit_time_limit)
  int64_t tokens = 0;        ///< trained on by this process
  double seconds = 0;        ///< of training steps, validation not counted
  RunTimes times;            ///< of the run's wall time, over all its starts; none without a step
  double final_loss = 0;     ///< of the last step; NaN if this process made none
  StepDurations step_durations;
  /// Present for runs of several ranks in which backward overlapped communication.
  std::optional<OverlapReport> overlap;
  bool told_lost_log = false;       ///< metrics.jsonl says that messages were lost
  std::optional<SaveCounts> saves;  ///< of runs that save beside training
  Evaluation held_out;  ///< over all held-out data; no targets when there is none or it was stopped
  std::optional<std::string> sample;  ///< of a sharded model, where RunOptions asks for it
};

struct RunOptions {
  std::FILE* terminal = stderr;  ///< for progress; must outlive the run
  LogFormat format = LogFormat::kText;
  int log_error = 0;      ///< errno of a message before the run that was lost; 0: none
  StopRequest stop = {};  ///< called after every step
  /// Called with what a stop has to wait for from now on: "this step", "the checkpoint", ... The
  /// text lives as long as the process.
  std::function<void(const char* what)> waiting_for = {};
  /// When this process began, from which its wall time counts; nothing: with the constructor.
  std::optional<std::chrono::steady_clock::time_point> begun = {};
  double time_limit = 0;  ///< seconds after which the run stops resumably; 0: no limit
  /// Generates RunSummary::sample at the end, while the other ranks are still there, of which a
  /// sharded model needs the weights.
  bool final_sample = false;
  std::function<void(int64_t step)> before_step = {};  ///< called as each step begins
  bool keep_slow_ranks = false;                        ///< whatever parallel.leave_out_slower says
};

/// Trains as `config` says and writes everything to `directory`: config.txtpb (resolved, enough to
/// repeat the run), environment.json, metrics.jsonl (one line per step), goodput.json, a
/// TensorBoard event file, checkpoints/, samples.jsonl if samples are enabled, memory.json and
/// memory.pickle if memory is recorded (train/report/run_memory.h), overlap.json and overlap.svg
/// for runs of several ranks (train/report/overlap_report.h), and at the end model.safetensors,
/// config.json and the tokenizer's files.
///
/// After an error the steps since the newest checkpoint are saved, if this process has all state
/// (Trainer::keeps_steps_done): on the cpu it has in data-parallel runs, also where another rank is
/// lost. If this process is killed, another rank does so (train/run/successor.h).
///
/// In a directory with checkpoints it resumes from the newest whole one (train/run/resume.h). The
/// losses are those of a run that was never interrupted.
///
/// A line of metrics.jsonl holds what step_record writes, the sums of TimeAccount and, if the model
/// was evaluated after the step, val_loss and the members of add_scores.
class TrainingRun {
 public:
  /// Locks the directory, restores a checkpoint if there is one, writes config and environment.
  /// `environment` is the text of environment.json. Throws CheckpointError as `resume`, and if
  /// the newest whole checkpoint does not fit the config.
  TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
              const std::string& environment);
  /// As above, for a model and data that the config does not describe. This process leads `group`,
  /// which may be null; the other ranks call `follow_training`. `elastic`, which may be null, must
  /// outlive the run: if it has a CarriedRun this one goes on with that, and takes it.
  TrainingRun(const config::RunConfig& config, const RunDirectory& directory,
              const std::string& environment, std::unique_ptr<Task> task,
              dist::ProcessGroup* group = nullptr, ElasticRun* elastic = nullptr);

  /// Whether all steps were done before: then `run` evaluates, and changes no file but what a
  /// process that was killed left unfinished: weights that are missing or damaged, temporary files.
  bool has_nothing_to_train() const { return nothing_to_train_; }

  /// Messages for the user about where training starts, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Runs to the end; call once. After RunEnd::kRegrouped nothing of this object may be used.
  /// Throws NonFiniteError as train.non_finite demands, SlowRankError as parallel.leave_out_slower
  /// does, and the errors of Trainer and of the writers.
  RunSummary run(const RunOptions& options);

  Trainer& trainer() { return trainer_; }
  const RunDirectory& directory() const { return directory_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// The values of the config that the training loop reads.
  struct Settings {
    StopRule stop;  ///< without the limit that RunOptions gives
    int64_t log_every = 0;
    int64_t eval_every = 0;
    int64_t eval_batches = 0;
    int64_t sample_every = 0;
    int64_t sample_bytes = 0;
    uint64_t seed = 0;
    double peak_tflops = 0;
    int64_t checkpoint_every = 0;
    bool balances = false;  ///< parallel.balance SPEED, with several ranks
    Retention retention;    ///< without the best
    HeldOutRule held_out;
    bool exports_averages = false;
    bool fits_time = false;  ///< schedule.fit_time_limit
  };
  static Settings settings_of(const config::RunConfig& config);

  void take_steps(RunLog& log, const RunOptions& options, RunSummary& summary);
  StepResult take_step(RunLog& log, const RunOptions& options);
  void fit_to_time(RunLog& log, const RunPace& pace);
  /// Goes by the trainer's early end, if it has one.
  void take_early_end();
  /// The end of a run whose steps are done.
  void end_run(const RunOptions& options, RunSummary& summary);
  // Of a run that goes on with other ranks than before:
  static bool carries(const ElasticRun* elastic) { return elastic != nullptr && elastic->carried; }
  /// Takes what was carried besides the trainer, which goes on where the state of all ranks is.
  void take_carried();
  /// Gives all ranks one state. Returns false if ranks are lost meanwhile, and the others go on.
  bool takes_over();
  /// The last step of the trainer, if what follows a step is still to be done.
  std::optional<StepResult> unfinished_step() const;
  /// Lets processes knock that want to join this run, until close_door.
  void open_door();
  void close_door(RunEnd end);
  /// After a step: gives the state to processes that wait to join, or throws JoinRequest on all
  /// ranks if they are to join now.
  void let_in(const StepResult& step, RunLog& log);
  /// Begins to give the state to `count` of them. Returns whether they can be given it while the
  /// ranks train.
  bool begin_giving(int count, RunLog& log);
  bool begin_giving_parts(int count, RunLog& log);
  /// Goes on with that after a step.
  StateGiver::Standing go_on_giving(const StepResult& step);
  /// Ends it: what the processes have taken is of no use.
  void end_giving();
  /// Whether nothing that follows a step changes the state that it left.
  bool is_usual(const StepResult& step) const;
  /// Whether the ranks that are left go on; then ElasticRun has what they go on with.
  bool goes_on_after(const std::exception& error) noexcept;
  /// Tells once how long these ranks needed for their first step.
  void tell_change(std::optional<double> seconds);
  /// After an error: saves the steps since the newest checkpoint, where this rank alone has all
  /// state. Says so, also where that fails.
  void keep_steps_done(RunLog& log, const std::exception& why) noexcept;
  /// Where the state is spread: saves the newest copies in the ranks' memory.
  void keep_copies(RunLog& log, const std::exception& why);
  /// Whether the step after the next may be begun ahead: no evaluation, sample, checkpoint or
  /// memory record is due between the two.
  bool may_begin_next_ahead() const;
  StepReport report_of(const StepResult& step);
  /// Evaluates on all ranks. Returns nothing if any rank was asked to stop during it.
  std::optional<EvaluationReport> evaluate(const StepReport& step, bool whole, RunSummary& summary);
  /// Saves the state, unless the newest checkpoint is of this step already; asynchronously it is
  /// only begun.
  void checkpoint(RunLog& log, const RunOptions& options);
  /// What a checkpoint of the present state says besides tensors.
  CheckpointRecord checkpoint_record();
  /// What follows once the checkpoint of `step` has its name.
  void after_save(int64_t step, const Retention& retention);
  Retention retention() const;
  /// Tells the watch of an evaluation; returns whether its checkpoint is to be written.
  bool compare(const EvaluationReport& evaluated);
  /// Tells the other ranks what the watch knows.
  void tell_held_out();
  /// How the run ends that is over after so many steps.
  RunEnd end_after(int64_t steps) const;
  /// Waits for the save that is under way, if one is. Throws its error.
  void finish_save(RunLog& log);
  /// Restores the newest checkpoint on all ranks; the batches since are left out.
  void go_back(RunLog& log);
  /// Tells of a step that is a spike, and goes back where the config says so.
  void handle_spike(const StepResult& step, RunLog& log);
  /// Tells of a step that an audit found wrong, which is done again. Throws DeviceError where that
  /// has not helped.
  void handle_audit(const StepResult& step, RunLog& log);
  /// Applies `action` to a non-finite step: returns with the trainer ready for its next step, or
  /// throws NonFiniteError.
  void handle_non_finite(const StepResult& step, NonFinite action, RunLog& log,
                         const RunOptions& options);
  void log_buckets(RunLog& log);
  /// Tells what was not told before: from which step on steps are CUDA graphs, why blocks of the
  /// model were recorded again or called.
  void log_compiled(const StepResult& step, RunLog& log);
  /// Whether the ranks compare their times after the next step.
  bool compares_next() const;
  /// Deals leaves out as the newest comparison asked for.
  void deal_out(RunLog& log);
  /// Adds what is known of the ranks since the step before.
  void add_ranks(StepReport& report);
  /// Shows no sample if a stop was requested before its end.
  void show_sample(RunLog& log, const RunOptions& options);
  RunSummary run_without_steps(const RunOptions& options);
  /// Evaluates on all held-out data if that was not done yet, and writes the weights.
  void finish(RunSummary& summary, RunEnd end, const RunOptions& options);
  std::optional<OverlapReport> report_overlap();
  /// Begins the account of the wall time, before any line of the metrics is dropped.
  void begin_account(const RunOptions& options);
  void spent_on(TimeUse use);
  /// Whether all steps are done and the run's directory holds the model of their end.
  bool is_finished() const;
  std::function<Tensor(size_t)> collect_state();
  /// Reads the weights of the run's model: those of the trainer, or their averages. May be empty,
  /// as save_weights takes it.
  std::function<Tensor(size_t)> final_weights();
  void export_model();

  Clock::time_point constructed_ = Clock::now();
  const config::RunConfig& config_;
  RunDirectory directory_;
  ElasticRun* elastic_;
  std::unique_ptr<RunLock> lock_;
  RunStart start_;
  Settings settings_;
  std::string name_;
  std::string config_text_;
  RunMemory memory_;  // constructed before the model: see RunMemory's constructor
  Replicas replicas_;
  Trainer trainer_;
  std::vector<std::string> save_problems_;  ///< checkpoints that could not be removed
  CheckpointSaver saver_;                   // its thread uses what is above
  MemoryCopies copies_;                     // as does this one
  std::optional<StateGiver> giver_;         ///< while processes take the state
  PartGiving parts_;                        ///< the same of a model that is spread over ranks
  int givings_ = 0;                         ///< of parts, that have been begun
  bool stands_still_ = false;               ///< for those that could not take it meanwhile
  NonFiniteGuard guard_;
  HeldOutWatch held_out_;
  bool can_roll_back_;
  std::string audit_found_;    ///< for the next line of metrics, of the step that is done again
  int64_t failed_audits_ = 0;  ///< in a row
  bool logged_buckets_ = false;
  CompileCounts compiled_before_;           ///< passes of blocks up to the last report
  std::set<std::string> told_of_compiled_;  ///< reasons
  Balance balance_;
  std::optional<dist::LeafDeal> next_deal_;  ///< for the next step
  SlowRankWatch slow_ranks_;
  std::optional<SlowRank> slow_;  ///< without which the job is to go on
  bool told_deal_ = false;        ///< metrics.jsonl has the present one
  std::vector<std::string> notes_;
  bool nothing_to_train_ = false;
  std::optional<FileDigest> restored_weights_;  ///< model.safetensors of the checkpoint
  int64_t saved_step_ = -1;                     ///< steps done in the newest checkpoint
  int64_t saving_step_ = -1;                    ///< the same of the one under way
  int64_t recorded_ = 0;                        ///< steps that metrics.jsonl has
  bool goes_back_ = false;                      ///< the state is being replaced
  double save_seconds_ = 0;                     ///< time that writing the last checkpoint took
  double stall_seconds_ = -1;  ///< of training, for checkpoints since the last line of metrics
  SaveCounts save_counts_;
  std::optional<TimeAccount> times_;  ///< of `run`, unless nothing is left to train
  std::optional<StepResult> last_step_;
  Clock::time_point training_began_;
  std::optional<HeldOutMemory> recorded_held_out_;  ///< when the last step was recorded
  CarriedRun carried_;                              ///< with which this run goes on
  std::optional<WorldChange> change_;               ///< after which it does; nothing: it does not
  bool has_state_ = true;                           ///< that of a whole step
  int64_t step_lost_ = 0;                           ///< the last step recorded before the change
  bool told_change_ = false;
};

/// Runs the other ranks of a TrainingRun's group: performs the leader's steps and evaluations on
/// this rank's share of the data until the leader's run ends. Writes no files. `stop` is called in
/// every step and evaluation; true ends the run on all ranks. `begin`, if given, is called before
/// the first step, when model and data are there, and `before_step` as each step begins. `elastic`
/// as TrainingRun has it. Returns how the leader's run ended.
RunEnd follow_training(const config::RunConfig& config, dist::ProcessGroup& group,
                       const StopRequest& stop, const std::function<void()>& begin = {},
                       const std::function<void(int64_t step)>& before_step = {},
                       ElasticRun* elastic = nullptr);

}  // namespace lockstep::train

#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dist/group/process_group.h"
#include "train/report/overlap_report.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/elastic.h"
#include "train/run/held_out_watch.h"
#include "train/run/memory_copies.h"
#include "train/run/part_giving.h"
#include "train/run/rank_speed.h"
#include "train/run/stop_rule.h"
#include "train/trainer.h"

namespace lockstep::train {

/// The ranks that train copies of one model. Rank 0 leads: it decides what is done next and writes
/// all files; the others follow. Without a group, or with a single rank, all functions do nothing.
/// Not thread-safe.
class Replicas {
 public:
  /// `group` may be null, and must outlive this object.
  explicit Replicas(dist::ProcessGroup* group);

  bool leads() const { return group_ == nullptr || group_->rank() == 0; }
  dist::ProcessGroup* group() const { return group_; }

  /// Throws MismatchError on all ranks if any rank's text differs from the others', quoting the
  /// first differing line of both. `what` names the text in the message: "config".
  void require_same(const char* what, const std::string& text);
  /// Names, shapes and dtypes of parameters and buffers.
  static std::string text_of(const nn::Module& model);
  /// Throws MismatchError on all ranks if names, shapes or dtypes of parameters or buffers differ.
  void require_same_model(const nn::Module& model);
  /// Throws MismatchError on all ranks if their data differ, by its hash (Task::data_identity).
  void require_same_data(const Task& task);

  /// For all ranks of a run that goes on without some: gives them one training state, and the last
  /// step of the rank that had it.
  void share_carried(Trainer& trainer, CarriedRun& carried);

  // The leader calls these before it performs the action; the other ranks are in `follow`.
  /// A step, as Trainer::step, after which all ranks call `end_step`. `compares`: they exchange
  /// their times then.
  void announce_step(bool another, bool compares);
  /// Trainer::deal_out, on all ranks.
  void announce_deal(Trainer& trainer, const dist::LeafDeal& deal);
  void announce_evaluation(int64_t max_batches);
  /// What the leader knows of the evaluations, which is part of checkpoints.
  void announce_held_out(const std::optional<HeldOutMemory>& memory);
  /// Broadcasts the leader's training state: weights, buffers, optimizer, loss scale, position. The
  /// ranks of a sharded model read their parts of what the leader has restored.
  void announce_state(Trainer& trainer, MemoryCopies& copies);
  /// Trainer::sample_text, which needs the other ranks where the model is sharded.
  std::string announce_sample(Trainer& trainer, int64_t bytes, uint64_t seed,
                              const StopRequest& stop);
  /// Trainer::collect_state of a sharded model.
  Tensor announce_collect(Trainer& trainer, size_t number);
  /// CheckpointSaver::begin and finish, which need the other ranks where it saves in shards.
  void announce_save(CheckpointSaver& saver, CheckpointSaver::Leader leader);
  double announce_end_of_save(CheckpointSaver& saver);
  /// MemoryCopies::begin, which may have to be made at once on the leader.
  void announce_copies(MemoryCopies& copies, const std::optional<HeldOutMemory>& held_out,
                       bool at_once);
  /// Trainer::end_early on all ranks.
  void announce_early_end(Trainer& trainer, ScheduleEnd end);
  void announce_end(RunEnd how);
  /// Ends the operations of all ranks with the words of an error of this rank, which ends the run.
  /// To be called before a sharded model is destroyed: its groups end without words. No effect
  /// where the group has failed.
  void end_with(const std::exception& error) noexcept;
  /// Ends a run whose state is saved, without rank `rank`: throws SlowRankError on all ranks. `why`
  /// follows the rank's number and host.
  [[noreturn]] void announce_leaving_out(int rank, const std::string& why);
  /// Throws JoinRequest on all ranks, with these places.
  [[noreturn]] void announce_join(const std::vector<std::string>& places);
  /// Gathers from all ranks how communication overlapped with backward in the last steps
  /// (train/report/overlap_report.h). Returns nothing without other ranks or recorded steps.
  std::optional<OverlapReport> announce_overlap(const Trainer& trainer, const std::string& name);

  /// Adds the step that was announced to this rank's times.
  void end_step(const StepResult& step);
  /// PartGiving::begin, add and end, on all ranks.
  std::vector<PartSource> announce_giving(PartGiving& giving, int processes);
  PartGiving::Standing announce_given(PartGiving& giving, const StepResult& step);
  void announce_end_of_giving(PartGiving& giving, bool calls);
  /// The times of all ranks, once after an exchange, when they are there. For the leader.
  std::optional<RankComparison> take_comparison() { return speed_.take(); }

  /// For the other ranks: performs what the leader announces, until announce_end, and returns how
  /// the run ended. Calls `before_step` as each step begins.
  RunEnd follow(Trainer& trainer, CheckpointSaver& saver, MemoryCopies& copies, PartGiving& giving,
                const std::function<void(int64_t step)>& before_step = {});
  /// For the other ranks, also after `follow` has thrown: whether the leader is done with the
  /// state that the last step left. It is not before it has told the first state, while it replaces
  /// it, and after a step that it may undo or end the run for.
  bool is_settled() const { return is_settled_; }
  /// Whether this rank's state is being replaced, or was when that failed.
  bool replaces_state() const { return replaces_state_; }
  /// The last step that `follow` has finished.
  const std::optional<StepResult>& last_step() const { return last_step_; }
  /// What the leader told last.
  const std::optional<HeldOutMemory>& held_out() const { return held_out_; }

 private:
  enum class Act : int64_t {
    kStep,
    kDeal,
    kEarlyEnd,
    kEvaluation,
    kHeldOut,
    kState,
    kSample,
    kCollect,
    kSave,
    kEndOfSave,
    kCopies,
    kOverlap,
    kLeaveOut,
    kBeginGiving,
    kGive,
    kEndGiving,
    kJoin,
    kEnd
  };
  struct Next {
    Act act;
    int64_t detail = 0;  ///< kEvaluation: max_batches; kStep: 1 if another step is to follow, plus
                         ///< 2 if the ranks compare their times;
                         ///< kCollect: the number of the tensor; kSample: bytes of text;
                         ///< kLeaveOut: the rank; kBeginGiving: processes for each part;
                         ///< kEndGiving: 1 if these are called; kJoin: the number of places; kEnd:
                         ///< the RunEnd
    uint64_t more = 0;   ///< kSample: the seed
  };
  Next agree(const Next& next);
  void share_deal(Trainer& trainer, const std::vector<int64_t>& counts);
  void share_state(Trainer& trainer, int root = 0);
  void share_held_out(const std::optional<HeldOutMemory>& memory);
  void share_numbers(Trainer& trainer, int root);
  void share_parts(Trainer& trainer);
  void move_parts(Trainer& trainer, const std::vector<int>& sources);
  [[noreturn]] void share_leaving_out(int rank, const std::string& why);
  [[noreturn]] void share_join(const std::vector<std::string>& places);

  dist::ProcessGroup* group_;
  RankSpeed speed_;
  bool compares_ = false;  ///< at the end of the step
  bool is_settled_ = false;
  bool replaces_state_ = false;
  std::optional<StepResult> last_step_;
  std::optional<HeldOutMemory> held_out_;
};

}  // namespace lockstep::train

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "dist/group/process_group.h"
#include "train/report/overlap_report.h"
#include "train/trainer.h"

namespace lockstep::train {

/// The ranks that train copies of one model. Rank 0 leads: it decides what is done next and writes
/// all files; the others follow. Where there is no group, rank 0 is alone and nothing here does
/// anything. Not thread-safe.
class Replicas {
 public:
  /// `group` may be null, and must outlive this object.
  explicit Replicas(dist::ProcessGroup* group);

  bool leads() const { return group_ == nullptr || group_->rank() == 0; }
  dist::ProcessGroup* group() const { return group_; }

  /// Throws MismatchError on all ranks where a rank's text is another one, naming the first line
  /// that differs, with both. `what` says what the text is: "config".
  void require_same(const char* what, const std::string& text);
  /// The same for what the ranks train: names, shapes and dtypes of parameters and buffers.
  void require_same_model(const nn::Module& model);

  // By the leader, before it does the same; the others are in `follow`.
  void announce_step(bool another);  ///< as Trainer::step
  void announce_evaluation(int64_t max_batches);
  /// All that training goes on from: weights, buffers, optimizer, loss scale, position.
  void announce_state(Trainer& trainer);
  void announce_end();
  /// How communication went in the run's last steps (train/report/overlap_report.h), put together
  /// by all ranks; nothing where that is not known.
  std::optional<OverlapReport> announce_overlap(const Trainer& trainer, const std::string& name);

  /// By the others: does what the leader announces, until the end. `after_step` is told each step.
  void follow(Trainer& trainer, const std::function<void(const StepResult&)>& after_step = {});

 private:
  enum class Act : int64_t { kStep, kEvaluation, kState, kOverlap, kEnd };
  struct Next {
    Act act;
    int64_t detail = 0;  ///< of an evaluation, max_batches; of a step, whether another is begun
  };
  Next agree(const Next& next);
  void share_state(Trainer& trainer);

  dist::ProcessGroup* group_;
};

}  // namespace lockstep::train

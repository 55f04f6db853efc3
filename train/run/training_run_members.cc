// The part of TrainingRun that goes on without ranks that were lost, and with those that join.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "configs/run.pb.h"
#include "core/base/files/folders.h"
#include "train/report/metrics_history.h"
#include "train/run/checkpoint.h"
#include "train/run/joining.h"
#include "train/run/run_waits.h"
#include "train/run/successor.h"
#include "train/run/training_run.h"

namespace lockstep::train {

namespace {

/// Of parameters, buffers and what the optimizer keeps; of a model that is spread over groups of
/// ranks, of the parts that have moved.
int64_t bytes_sent(Trainer& trainer, const std::vector<int>& part_sources) {
  size_t bytes = 0;
  if (!part_sources.empty()) {
    for (const Tensor& each : trainer.own_parts()) bytes += each.nbytes();
    return static_cast<int64_t>(bytes) *
           std::ranges::count_if(part_sources, [](int source) { return source >= 0; });
  }
  for (const nn::StoredParameter& each : trainer.task().model().stored_parameters()) {
    bytes += each.tensor.nbytes();
  }
  for (const nn::StoredParameter& each : trainer.optimizer().state()) bytes += each.tensor.nbytes();
  return static_cast<int64_t>(bytes);
}

}  // namespace

StateTold state_told(Trainer& trainer) {
  const bool is_whole = trainer.keeps_own_state();
  return {.steps = is_whole ? trainer.steps_done() : -1,
          .finishes = trainer.steps_if_finished(),
          .part = trainer.part()};
}

void wait_for_threads(CheckpointSaver& saver, MemoryCopies& copies) {
  try {
    if (saver.is_under_way()) (void)saver.finish();
  } catch (const std::exception&) {
    // It needed the ranks that are lost.
  }
  try {
    (void)copies.newest();
  } catch (const std::exception&) {
  }
}

void TrainingRun::take_carried() {
  carried_ = *std::exchange(elastic_->carried, std::nullopt);
  lock_ = std::move(carried_.lock);
  change_ = carried_.change;
  has_state_ = carried_.steps >= 0;
  training_began_ = carried_.began;
  last_step_ = carried_.last;
  take_early_end();
  held_out_.remember(carried_.held_out);
  recorded_held_out_ = carried_.held_out;
}

bool TrainingRun::takes_over() {
  try {
    const std::optional<CheckpointEntry> newest = newest_whole(directory_.checkpoints());
    saved_step_ = newest ? newest->step : -1;
    remove_stale_partials(directory_.path());
    step_lost_ = last_step(directory_.metrics());
    start_.begin();
    if (replicas_.group() != nullptr) {
      Successor::announce(*replicas_.group(), directory_, *lock_, trainer_.device());
    }
    replicas_.share_carried(trainer_, carried_);
    take_early_end();
    if (carried_.source >= 0) change_->state_sent = bytes_sent(trainer_, carried_.part_sources);
    has_state_ = true;
    last_step_ = carried_.last;
    recorded_ = std::min(step_lost_, trainer_.steps_done());
    tell_held_out();
    return true;
  } catch (const std::exception& error) {
    if (goes_on_after(error)) return false;
    replicas_.end_with(error);
    throw;
  }
}

std::optional<StepResult> TrainingRun::unfinished_step() const {
  if (!change_ || !last_step_ || last_step_->step + 1 != trainer_.steps_done()) return std::nullopt;
  if (is_usual(*last_step_) && recorded_ >= trainer_.steps_done()) return std::nullopt;
  return last_step_;
}

bool TrainingRun::is_usual(const StepResult& step) const {
  return step.outcome.finite &&
         !(step.outcome.spike && trainer_.spikes().rule().action == SpikeAction::kRollback);
}

void TrainingRun::open_door() {
  if (elastic_ == nullptr || elastic_->members == nullptr) return;
  const dist::Members::Start& start = elastic_->members->start();
  if (start.door.empty()) return;
  if (elastic_->door == nullptr) {
    elastic_->door = train::open_door(config_, start, trainer_, elastic_->most);
  }
  // What processes were given when ranks were lost did not go on from there.
  elastic_->door->end_giving();
  elastic_->door->tell(elastic_->members->size(), elastic_->most, elastic_->members->doors());
}

void TrainingRun::close_door(RunEnd end) {
  if (elastic_ == nullptr || elastic_->door == nullptr) return;
  // Ranks that these went on without hear how the run has ended, also where that is at once. Those
  // that were to stop as well do not come.
  constexpr std::chrono::seconds kOnTheirWay(5);
  if (change_ && end != RunEnd::kStopped) {
    elastic_->door->await(static_cast<int>(change_->waiting.size()), kOnTheirWay);
  }
  elastic_->door->close(slow_                     ? dist::JoinEnd::kFailed
                        : end == RunEnd::kStopped ? dist::JoinEnd::kStopped
                                                  : dist::JoinEnd::kFinished);
}

void TrainingRun::let_in(const StepResult& step, RunLog& log) {
  using Standing = StateGiver::Standing;
  if (elastic_ == nullptr || elastic_->door == nullptr) return;
  if (change_ && elastic_->door->ready() >= std::ssize(change_->waiting)) {
    change_->waiting.clear();  // they are here
  }
  const Standing standing = go_on_giving(step);
  const bool gives = giver_ || parts_.is_under_way();
  if (trainer_.steps_done() != step.step + 1 || !is_usual(step)) return;
  const int ranks = elastic_->members->size();
  const dist::Door::Given given = elastic_->door->given();
  const int waiting = gives ? given.processes : elastic_->door->ready();
  const int count =
      count_to_call(config_, ranks, elastic_->most, waiting, trainer_.share().micro_batch_size);
  if (count == 0) end_giving();  // with those that are left the ranks cannot share steps
  if (count == 0 || standing == Standing::kUnderWay) return;
  if (!gives && !stands_still_ && standing == Standing::kNobody && begin_giving(count, log)) return;
  // Those that are to keep a model together can only be called together.
  if (parts_.is_under_way() && given.answering < count) return;
  // They would wait for the files.
  if (standing == Standing::kWhole && saver_.is_under_way() && !saver_.has_ended()) return;
  if (standing == Standing::kTooSlow) {
    log.note("the state is not taken as fast as the ranks train: they stand still to give it");
    end_giving();  // what waits to be sent is of no use any more
    stands_still_ = true;
  }
  finish_save(log);
  replicas_.announce_end_of_giving(parts_, /*calls=*/true);
  const std::vector<std::string> places =
      elastic_->door->call(count, ranks, elastic_->members->invitation());
  if (!places.empty()) replicas_.announce_join(places);
  if (!giver_) elastic_->door->end_giving();  // all have just been lost
}

bool TrainingRun::begin_giving(int count, RunLog& log) {
  // Where parameters are updated during backward, their gradients do not say how they came about.
  if (config_.optimizer().optimizer_in_backward()) return false;
  if (trainer_.is_sharded()) return begin_giving_parts(count, log);
  std::optional<LiveState> state = live_state(trainer_.task().model(), trainer_.optimizer());
  if (!state) return false;
  giver_.emplace(trainer_, *elastic_->door, *std::move(state), count);
  if (const int taking = giver_->processes(); taking > 0) {
    log.note(fmt::format("{} process{} the state while the ranks train", taking,
                         taking == 1 ? " takes" : "es take"));
  }
  return true;
}

bool TrainingRun::begin_giving_parts(int count, RunLog& log) {
  // Processes that come again and again, and do not take their parts, are given them otherwise.
  constexpr int kMost = 5;
  if (givings_ == kMost) return false;
  const int together = trainer_.sharded()->shard_size();
  dist::Door& door = *elastic_->door;
  if (door.begin_giving(count) < count) {
    door.end_giving();  // one has just been lost
    return true;
  }
  const std::vector<PartSource> sources = replicas_.announce_giving(parts_, count / together);
  if (sources.empty()) {
    door.end_giving();
    return false;
  }
  ++givings_;
  std::vector<std::string> told;
  for (int i = 0; i < count; ++i) told.push_back(sources[static_cast<size_t>(i % together)].text());
  door.give_each(std::move(told));
  log.note(fmt::format("{} processes take the state while the ranks train", count));
  return true;
}

StateGiver::Standing TrainingRun::go_on_giving(const StepResult& step) {
  using Standing = StateGiver::Standing;
  Standing standing = Standing::kNobody;
  if (giver_) {
    standing = giver_->add(step);
    if (standing == Standing::kNobody) giver_.reset();
  } else if (parts_.is_under_way()) {
    standing = replicas_.announce_given(parts_, step);
    if (!parts_.is_under_way()) elastic_->door->end_giving();
  }
  return standing;
}

void TrainingRun::end_giving() {
  giver_.reset();
  if (!parts_.is_under_way()) return;
  replicas_.announce_end_of_giving(parts_, /*calls=*/false);
  elastic_->door->end_giving();
}

bool TrainingRun::goes_on_after(const std::exception& error) noexcept {
  const bool has_state = has_state_ && !goes_back_ && !replicas_.replaces_state();
  const Survivor survivor{.config = config_,
                          .state = has_state ? state_told(trainer_) : StateTold(),
                          .micro_batch_size = trainer_.share().micro_batch_size,
                          .finish_step = [this] { last_step_ = trainer_.finish_step(); },
                          .take_lead = [](int64_t) { return ""; }};  // it leads already
  CarriedRun carried;
  if (!meet_again(elastic_, survivor, error, carried)) return false;
  tell_change(std::nullopt);
  wait_for_threads(saver_, copies_);
  carried.directory = directory_.path();
  carried.lock = std::move(lock_);
  carried.trainer = trainer_.leave();
  carried.last = last_step_;
  carried.held_out = recorded_held_out_;
  carried.began = training_began_;
  elastic_->carried = std::move(carried);
  return true;
}

void TrainingRun::tell_change(std::optional<double> seconds) {
  if (!change_ || told_change_) return;
  told_change_ = true;
  // Steps that were done, and not yet recorded, are none to do again.
  note_change(directory_, *change_, step_lost_, std::min(step_lost_, trainer_.steps_done()),
              seconds);
}

}  // namespace lockstep::train

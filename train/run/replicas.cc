#include "train/run/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "dist/group/agreement.h"
#include "dist/group/failure.h"
#include "dist/rendezvous/socket.h"
#include "train/joining/step_bytes.h"
#include "train/run/slow_rank.h"

namespace lockstep::train {
namespace {

/// Timeout of followers: they wait while the leader writes checkpoints and samples, for however
/// long. A leader that exits is still noticed at once (PeerLostError).
constexpr std::chrono::hours kFollowerTimeout{24};

/// Copies a rank's values to all ranks. One by one, since a stored tensor may be a view.
void broadcast_each(dist::ProcessGroup& group, const std::vector<nn::StoredParameter>& tensors,
                    int root = 0) {
  for (const nn::StoredParameter& each : tensors) dist::broadcast_values(group, each.tensor, root);
}

void broadcast_spikes(dist::ProcessGroup& group, SpikeWatch& spikes, int root) {
  if (spikes.rule().action == SpikeAction::kKeep) return;
  const SpikeMemory& own = spikes.memory();
  const auto window = static_cast<size_t>(spikes.rule().window);
  std::vector<double> told = {static_cast<double>(own.row.count),
                              static_cast<double>(own.row.furthest),
                              static_cast<double>(own.losses.size())};
  told.resize(3 + 2 * window);
  std::ranges::copy(own.losses, told.begin() + 3);
  std::ranges::copy(own.grad_norms, told.begin() + 3 + std::ssize(own.losses));
  const Tensor numbers = tensor(told);
  group.broadcast(numbers, root).wait();
  const auto* const values = numbers.data<double>();
  const auto count = static_cast<size_t>(values[2]);
  spikes.remember({.losses = {values + 3, values + 3 + count},
                   .grad_norms = {values + 3 + count, values + 3 + 2 * count},
                   .row = {static_cast<int64_t>(values[0]), static_cast<int64_t>(values[1])}});
}

}  // namespace

Replicas::Replicas(dist::ProcessGroup* group)
    : group_(group != nullptr && group->size() > 1 ? group : nullptr), speed_(group_) {}

void Replicas::require_same(const char* what, const std::string& text) {
  if (group_ == nullptr) return;
  dist::require_same(*group_, "train", what, text, dist::at_start(*group_));
}

std::string Replicas::text_of(const nn::Module& model) {
  std::string text;
  for (const nn::StoredParameter& each : model.stored_parameters()) {
    text +=
        fmt::format("{} {} {}\n", each.name, to_string(each.tensor.dtype()), each.tensor.shape());
  }
  return text;
}

void Replicas::require_same_model(const nn::Module& model) {
  if (group_ != nullptr) require_same("model", text_of(model));
}

void Replicas::require_same_data(const Task& task) {
  if (group_ == nullptr) return;
  require_same("hash of its data", task.data_identity().hex());
}

Replicas::Next Replicas::agree(const Next& next) {
  const Tensor told = empty({3}, DType::kI64);
  auto* const words = told.data<int64_t>();
  words[0] = static_cast<int64_t>(next.act);
  words[1] = next.detail;
  words[2] = static_cast<int64_t>(next.more);
  group_->broadcast(told, 0, {.timeout = kFollowerTimeout}).wait();
  return {static_cast<Act>(words[0]), words[1], static_cast<uint64_t>(words[2])};
}

void Replicas::announce_step(bool another, bool compares) {
  compares_ = compares;
  if (group_ != nullptr) agree({Act::kStep, (another ? 1 : 0) + (compares ? 2 : 0)});
}

void Replicas::end_step(const StepResult& step) {
  speed_.add(step);
  if (std::exchange(compares_, false)) speed_.exchange();
}

void Replicas::announce_deal(Trainer& trainer, const dist::LeafDeal& deal) {
  if (group_ == nullptr) return;
  agree({Act::kDeal});
  share_deal(trainer, deal.counts());
}

/// Deals out by rank 0's counts.
void Replicas::share_deal(Trainer& trainer, const std::vector<int64_t>& counts) {
  const Tensor told = empty({group_->size()}, DType::kI64);
  std::ranges::copy(counts, told.data<int64_t>());
  group_->broadcast(told, 0).wait();
  const std::span<const int64_t> agreed(told.data<int64_t>(), static_cast<size_t>(group_->size()));
  trainer.deal_out(dist::LeafDeal::of_counts(agreed));
  speed_.restart();
}

void Replicas::announce_evaluation(int64_t max_batches) {
  if (group_ != nullptr) agree({Act::kEvaluation, max_batches});
}

void Replicas::announce_held_out(const std::optional<HeldOutMemory>& memory) {
  if (group_ == nullptr) return;
  agree({Act::kHeldOut});
  share_held_out(memory);
}

/// Keeps rank 0's.
void Replicas::share_held_out(const std::optional<HeldOutMemory>& memory) {
  const HeldOutMemory own = memory.value_or(HeldOutMemory());
  const Tensor told = tensor(std::vector<double>{memory ? 1.0 : 0.0, own.lowest,
                                                 static_cast<double>(own.lowest_step),
                                                 own.reference, static_cast<double>(own.since)});
  group_->broadcast(told, 0).wait();
  const auto* const values = told.data<double>();
  held_out_.reset();
  if (values[0] == 0) return;
  held_out_ = {.lowest = values[1],
               .lowest_step = static_cast<int64_t>(values[2]),
               .reference = values[3],
               .since = static_cast<int64_t>(values[4])};
}

void Replicas::announce_state(Trainer& trainer, MemoryCopies& copies) {
  if (group_ == nullptr) return;
  agree({Act::kState});
  copies.forget();
  share_state(trainer);
}

std::string Replicas::announce_sample(Trainer& trainer, int64_t bytes, uint64_t seed,
                                      const StopRequest& stop) {
  if (group_ != nullptr && trainer.is_sharded()) agree({Act::kSample, bytes, seed});
  return trainer.sample_text(bytes, seed, stop);
}

Tensor Replicas::announce_collect(Trainer& trainer, size_t number) {
  agree({Act::kCollect, static_cast<int64_t>(number)});
  return trainer.collect_state(number);
}

void Replicas::announce_save(CheckpointSaver& saver, CheckpointSaver::Leader leader) {
  if (group_ != nullptr && saver.in_shards()) agree({Act::kSave});
  saver.begin(std::move(leader));
}

double Replicas::announce_end_of_save(CheckpointSaver& saver) {
  if (group_ != nullptr && saver.in_shards()) agree({Act::kEndOfSave});
  return saver.finish();
}

void Replicas::announce_copies(MemoryCopies& copies, const std::optional<HeldOutMemory>& held_out,
                               bool at_once) {
  agree({Act::kCopies});
  copies.begin(held_out, at_once);
}

void Replicas::announce_early_end(Trainer& trainer, ScheduleEnd end) {
  if (group_ != nullptr) {
    agree({Act::kEarlyEnd, end.steps, static_cast<uint64_t>(end.cooldown_steps)});
  }
  trainer.end_early(end);
}

void Replicas::announce_end(RunEnd how) {
  if (group_ != nullptr) agree({Act::kEnd, static_cast<int64_t>(how)});
}

void Replicas::end_with(const std::exception& error) noexcept {
  const bool is_stop = dynamic_cast<const dist::StoppedError*>(&error) != nullptr;
  if (group_ == nullptr || is_stop) return;
  const auto* const ours = dynamic_cast<const Error*>(&error);
  group_->abort(fmt::format("{}: {}", ours == nullptr ? "Error" : ours->kind(), error.what()));
}

void Replicas::announce_leaving_out(int rank, const std::string& why) {
  agree({Act::kLeaveOut, rank});
  share_leaving_out(rank, why);
}

/// By rank 0's reason.
void Replicas::share_leaving_out(int rank, const std::string& why) {
  const dist::CollectiveOptions options = dist::at_start(*group_);
  const std::vector<std::string> hosts =
      dist::all_gather_texts(*group_, dist::host_name(), options);
  const std::string reason = dist::all_gather_texts(*group_, why, options).front();
  throw SlowRankError(
      fmt::format("[train] rank {} on {} {}. Everything is saved: go on without that host.", rank,
                  hosts[static_cast<size_t>(rank)], reason));
}

void Replicas::announce_join(const std::vector<std::string>& places) {
  if (group_ == nullptr) throw JoinRequest(places);
  agree({Act::kJoin, std::ssize(places)});
  share_join(places);
}

/// With rank 0's places.
void Replicas::share_join(const std::vector<std::string>& places) {
  std::vector<std::string> told;
  for (size_t i = 0; i < places.size(); ++i) {
    told.push_back(dist::all_gather_texts(*group_, places[i]).front());
  }
  throw JoinRequest(std::move(told));
}

std::vector<PartSource> Replicas::announce_giving(PartGiving& giving, int processes) {
  agree({Act::kBeginGiving, processes});
  return giving.begin(processes);
}

PartGiving::Standing Replicas::announce_given(PartGiving& giving, const StepResult& step) {
  agree({Act::kGive});
  return giving.add(step);
}

void Replicas::announce_end_of_giving(PartGiving& giving, bool calls) {
  if (!giving.is_under_way()) return;
  agree({Act::kEndGiving, calls ? 1 : 0});
  giving.end(calls);
}

std::optional<OverlapReport> Replicas::announce_overlap(const Trainer& trainer,
                                                        const std::string& name) {
  const std::vector<StepOverlap> steps = trainer.overlap().steps();
  if (group_ == nullptr || steps.empty()) return std::nullopt;
  agree({Act::kOverlap});
  OverlapReport report = overlap_report(*group_, steps, name);
  if (trainer.sharded() != nullptr) add_units(report, *trainer.sharded());
  if (trainer.reducer() != nullptr) {
    report.sizes = sizes_of_buckets(*trainer.reducer());
    // The plan may have changed since the last of these steps.
    std::vector<dist::BucketContent> contents = trainer.reducer()->contents();
    if (contents.size() == report.step.bytes.size()) report.contents = std::move(contents);
  }
  return report;
}

/// State that is spread over the ranks: from the files that the leader names; without any, of
/// weights that are whole on every rank, the leader's.
void Replicas::share_parts(Trainer& trainer) {
  const StateFiles& own = trainer.files_to_read();
  const std::vector<std::string> weights =
      dist::all_gather_texts(*group_, own.weights.string(), dist::at_start(*group_));
  const std::vector<std::string> optimizer =
      dist::all_gather_texts(*group_, own.optimizer.string(), dist::at_start(*group_));
  const std::vector<std::string> ranks =
      dist::all_gather_texts(*group_, std::to_string(own.ranks), dist::at_start(*group_));
  const StateFiles files{weights.front(), optimizer.front(), std::stoi(ranks.front())};
  if (!files.empty()) return trainer.read_state(files);
  const nn::Module& model = trainer.task().model();
  if (trainer.has_whole_weights()) {
    broadcast_each(*group_, model.stored_parameters());
    return trainer.begin_from_weights();
  }
  for (const nn::NamedParameter& each : model.named_buffers()) {
    dist::broadcast_values(*group_, each.tensor);
  }
}

/// Takes the state of rank `root`.
void Replicas::share_state(Trainer& trainer, int root) {
  replaces_state_ = group_->rank() != root;
  share_numbers(trainer, root);
  const NoGradGuard no_grad;
  if (trainer.spreads_state()) {
    share_parts(trainer);
  } else {
    broadcast_each(*group_, trainer.task().model().stored_parameters(), root);
    broadcast_each(*group_, trainer.optimizer().state(), root);
  }
  replaces_state_ = false;
}

/// Takes what of rank `root`'s state is no tensor of the model's or optimizer's.
void Replicas::share_numbers(Trainer& trainer, int root) {
  trainer.give_up_next();
  const NoGradGuard no_grad;
  GradScalerState scale = trainer.scaler().state();
  const ScheduleEnd end = trainer.early_end().value_or(ScheduleEnd());
  const Tensor numbers = empty({10}, DType::kF64);
  auto* const values = numbers.data<double>();
  const std::array<double, 10> told = {static_cast<double>(trainer.position().step),
                                       static_cast<double>(trainer.position().batch),
                                       static_cast<double>(trainer.optimizer().steps()),
                                       scale.scale,
                                       scale.growth_factor,
                                       scale.backoff_factor,
                                       static_cast<double>(scale.growth_interval),
                                       static_cast<double>(scale.growth_tracker),
                                       static_cast<double>(end.steps),
                                       static_cast<double>(end.cooldown_steps)};
  std::ranges::copy(told, values);
  group_->broadcast(numbers, root).wait();
  trainer.set_position({static_cast<int64_t>(values[0]), static_cast<int64_t>(values[1])});
  trainer.optimizer().set_steps(static_cast<int64_t>(values[2]));
  if (values[8] > 0) {
    trainer.end_early({static_cast<int64_t>(values[8]), static_cast<int64_t>(values[9])});
  }
  trainer.scaler().load_state({values[3], values[4], values[5], static_cast<int64_t>(values[6]),
                               static_cast<int64_t>(values[7])});
  broadcast_spikes(*group_, trainer.spikes(), root);
}

/// Of a model that is spread over groups of ranks: gives each rank that has not its part that of
/// the rank that `sources` names for it, and to all what is not spread.
void Replicas::move_parts(Trainer& trainer, const std::vector<int>& sources) {
  const int self = group_->rank();
  replaces_state_ = sources[static_cast<size_t>(self)] >= 0;
  share_numbers(trainer, 0);
  const NoGradGuard no_grad;
  for (const nn::NamedParameter& each : trainer.task().model().named_buffers()) {
    dist::broadcast_values(*group_, each.tensor);
  }
  const std::vector<Tensor> own = trainer.own_parts();
  for (int rank = 0; rank < group_->size(); ++rank) {
    const int source = sources[static_cast<size_t>(rank)];
    if (source < 0 || (rank != self && source != self)) continue;
    for (const Tensor& each : own) {
      if (each.numel() == 0) continue;
      (rank == self ? group_->recv(each, source) : group_->send(each, rank)).wait();
    }
  }
  trainer.parts_written();
  replaces_state_ = false;
}

void Replicas::share_carried(Trainer& trainer, CarriedRun& carried) {
  held_out_ = carried.held_out;
  last_step_ = carried.last;
  if (group_ != nullptr && carried.source >= 0) {
    if (carried.part_sources.empty()) {
      share_state(trainer, carried.source);
    } else {
      move_parts(trainer, carried.part_sources);
    }
    const std::string own =
        group_->rank() == carried.source && carried.last ? to_bytes(*carried.last) : "";
    const std::string told =
        dist::all_gather_texts(*group_, own)[static_cast<size_t>(carried.source)];
    if (!told.empty()) last_step_ = carried.last = step_of_bytes(told);
  }
  is_settled_ = true;
}

RunEnd Replicas::follow(Trainer& trainer, CheckpointSaver& saver, MemoryCopies& copies,
                        PartGiving& giving, const std::function<void(int64_t step)>& before_step) {
  for (;;) {
    const Next next = agree({Act::kEnd});
    switch (next.act) {
      case Act::kStep: {
        if (before_step) before_step(trainer.steps_done());
        compares_ = (next.detail & 2) != 0;
        const StepResult step = trainer.step((next.detail & 1) != 0);
        is_settled_ =
            step.outcome.finite && step.audit.empty() &&
            !(step.outcome.spike && trainer.spikes().rule().action == SpikeAction::kRollback);
        last_step_ = step;
        end_step(step);
        break;
      }
      case Act::kDeal:
        share_deal(trainer, {});
        break;
      case Act::kEarlyEnd:
        trainer.end_early({next.detail, static_cast<int64_t>(next.more)});
        break;
      case Act::kEvaluation:
        (void)trainer.evaluate(next.detail);
        break;
      case Act::kHeldOut:
        share_held_out(std::nullopt);
        break;
      case Act::kState:
        is_settled_ = false;
        copies.forget();
        share_state(trainer);
        is_settled_ = true;
        break;
      case Act::kSample:
        (void)trainer.sample_text(next.detail, next.more);
        break;
      case Act::kCollect:
        (void)trainer.collect_state(static_cast<size_t>(next.detail));
        break;
      case Act::kCopies:
        copies.begin(held_out_, saver.is_under_way());
        break;
      case Act::kSave:
        copies.wait_for_own();
        saver.begin(std::nullopt);
        break;
      case Act::kEndOfSave:
        (void)saver.finish();
        break;
      case Act::kOverlap:
        (void)overlap_report(*group_, trainer.overlap().steps(), "");
        break;
      case Act::kLeaveOut:
        share_leaving_out(static_cast<int>(next.detail), "");
      case Act::kBeginGiving:
        (void)giving.begin(static_cast<int>(next.detail));
        break;
      case Act::kGive:
        (void)giving.add(last_step_.value());
        break;
      case Act::kEndGiving:
        giving.end(next.detail != 0);
        break;
      case Act::kJoin:
        share_join(std::vector<std::string>(static_cast<size_t>(next.detail)));
      case Act::kEnd:
        return static_cast<RunEnd>(next.detail);
    }
  }
}

}  // namespace lockstep::train

#include "train/run/checkpoint_saver.h"

#include <chrono>
#include <unordered_set>
#include <utility>
#include <vector>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/base/spans/span.h"
#include "dist/rendezvous/rank_list.h"
#include "train/gradient_options.h"
#include "train/local_steps.h"
#include "train/run/shard_writing.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;

bool writes_shards(const config::RunConfig& config, const dist::ProcessGroup* group) {
  switch (config.checkpoint().files()) {
    case config::CheckpointConfig::WHOLE:
      return false;
    case config::CheckpointConfig::SHARDS:
      return group != nullptr && group->size() > 1;
    default:
      return is_sharded(config, group) || takes_local_steps(config, group);
  }
}

}  // namespace

CheckpointSaver::CheckpointSaver(const config::RunConfig& config, Trainer& trainer,
                                 dist::ProcessGroup* group)
    : trainer_(trainer),
      group_(group),
      strategy_(StateShards::strategy_of(config, trainer)),
      in_shards_(writes_shards(config, group)),
      asynchronous_(config.checkpoint().asynchronous()) {}

CheckpointSaver::~CheckpointSaver() { trainer_.before_next_update({}); }

void CheckpointSaver::begin(std::optional<Leader> leader) {
  LS_ASSERT(!under_way_);
  leader_ = std::move(leader);
  failure_ = nullptr;
  ended_ = false;
  if (in_shards_) {
    begin_shards();
  } else {
    begin_whole();
  }
  under_way_ = true;
  if (asynchronous_) {
    thread_.start("checkpoint", [this] { write(); });
  } else {
    write();
  }
}

void CheckpointSaver::begin_shards() {
  shards_.emplace(trainer_, group_->rank(), group_->size(), strategy_);
  if (!asynchronous_) return;
  if (own_group_ == nullptr) {
    own_group_ = group_->subgroup(dist::every_rank(group_->size()), group_->name() + ".checkpoint");
  }
  copies_.begin();
  const std::unordered_set<size_t> buffers = buffers_among(trainer_);
  for (const KeptRun& run : shards_->own()) {
    copies_.add(run.values, buffers.contains(run.tensor));
  }
  end_copies();
  shards_->replace(copies_.tensors());
}

void CheckpointSaver::begin_whole() {
  whole_ = whole_state(trainer_, leader_->collect);
  if (!asynchronous_) return;
  copies_.begin();
  const std::unordered_set<size_t> buffers = buffers_among(trainer_);
  const size_t weights = whole_.weights.size();
  for (size_t i = 0; i < weights + whole_.optimizer.size(); ++i) {
    const Tensor& own =
        i < weights ? whole_.weights[i].tensor : whole_.optimizer[i - weights].tensor;
    // Collected tensors are not kept: together they are the whole model.
    const bool collects = static_cast<bool>(leader_->collect);
    copies_.add(collects ? leader_->collect(i) : own, collects || buffers.contains(i));
  }
  end_copies();
  whole_.values = [this](size_t number) { return copies_.tensors()[number]; };
}

void CheckpointSaver::end_copies() {
  copies_.end();
  trainer_.before_next_update([this] { copy_wait_ += copies_.wait_to_change(); });
}

void CheckpointSaver::write() {
  const Span span(SpanKind::kCheckpoint, "write a checkpoint");
  const auto start = Clock::now();
  try {
    if (asynchronous_) copies_.finish();
    if (in_shards_) {
      write_shards(own_group_ ? own_group_.get() : group_, leader_ ? leader_->folder : "",
                   leader_ ? &leader_->record : nullptr, *shards_,
                   leader_ ? leader_->then : nullptr);
    } else {
      write_checkpoint(leader_->folder, leader_->record, whole_);
      if (leader_->then) leader_->then();
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  ended_ = true;
}

double CheckpointSaver::finish() {
  thread_.join();
  under_way_ = false;
  leader_.reset();
  shards_.reset();
  if (!failure_) return seconds_;
  if (in_shards_) dist::finish_together(*group_);
  std::rethrow_exception(failure_);
}

}  // namespace lockstep::train

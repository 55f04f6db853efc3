#include "train/run/memory_copies.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "core/base/error.h"
#include "core/base/spans/span.h"
#include "core/ops/factory/pinned.h"
#include "core/ops/view/view.h"
#include "dist/group/agreement.h"
#include "dist/rendezvous/rank_list.h"
#include "dist/rendezvous/socket.h"
#include "train/run/time_fit.h"

namespace lockstep::train {

namespace {

/// Ranks reach their exchange at different times, while they train.
const dist::CollectiveOptions kWhileTraining{.timeout = std::chrono::hours(24)};

/// How far the rank that keeps a rank's part is from it: the shortest way on which all ranks meet
/// another host, or to the next rank.
int distance_between_hosts(const std::vector<std::string>& hosts) {
  const size_t world = hosts.size();
  for (size_t distance = 1; distance < world; ++distance) {
    bool all_differ = true;
    for (size_t rank = 0; rank < world && all_differ; ++rank) {
      all_differ = hosts[rank] != hosts[(rank + distance) % world];
    }
    if (all_differ) return static_cast<int>(distance);
  }
  return 1;
}

/// Dense memory for pieces, one tensor for each dtype, and the pieces in it.
std::pair<std::vector<Tensor>, std::vector<Tensor>> memory_for(const std::vector<KeptRun>& pieces,
                                                               const std::vector<DType>& dtypes,
                                                               Device device) {
  std::map<DType, int64_t> elements;
  for (size_t i = 0; i < pieces.size(); ++i) {
    elements[dtypes[i]] += pieces[i].end - pieces[i].first;
  }
  std::map<DType, Tensor> dense;
  std::pair<std::vector<Tensor>, std::vector<Tensor>> memory;
  for (const auto& [dtype, count] : elements) {
    dense[dtype] = empty_pinned({count}, dtype, device);
    memory.first.push_back(dense[dtype]);
  }
  std::map<DType, int64_t> next;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t& begin = next[dtypes[i]];
    const int64_t end = begin + pieces[i].end - pieces[i].first;
    memory.second.push_back(slice(dense[dtypes[i]], 0, begin, end));
    begin = end;
  }
  return memory;
}

}  // namespace

MemoryCopies::MemoryCopies(const config::RunConfig& config, Trainer& trainer,
                           dist::ProcessGroup* group)
    : config_(config),
      trainer_(trainer),
      group_(group),
      every_(group == nullptr || group->size() == 1 ? 0 : config.checkpoint().memory_every()) {}

MemoryCopies::~MemoryCopies() {
  if (own_group_ == nullptr) return;
  trainer_.before_next_update({});
  thread_.join();
  try {
    // On a thread that does not unwind: the group would tell the other ranks that an error ended
    // it, before they are told which.
    thread_.start("memory copies", [this] { own_group_.reset(); });
  } catch (const OutOfMemoryError&) {
    return;
  }
  thread_.join();
}

/// Finds out who keeps whose part.
void MemoryCopies::meet() {
  const int distance = distance_between_hosts(dist::all_gather_texts(*group_, dist::host_name()));
  const int world = group_->size();
  to_ = (group_->rank() + distance) % world;
  from_ = (group_->rank() + world - distance) % world;
  own_group_ = group_->subgroup(dist::every_rank(world), group_->name() + ".memory");
}

std::vector<KeptRun> MemoryCopies::pieces_of(int rank) const {
  std::vector<KeptRun> pieces = trainer_.state_runs(rank);
  std::ranges::stable_sort(pieces, {}, &KeptRun::tensor);
  return pieces;
}

void MemoryCopies::take_memory(Generation& generation, const std::vector<KeptRun>& own) const {
  std::vector<nn::StoredParameter> tensors = trainer_.task().model().stored_parameters();
  for (nn::StoredParameter& each : trainer_.optimizer_state_shapes()) {
    tensors.push_back(std::move(each));
  }
  const auto dtypes_of = [&](const std::vector<KeptRun>& pieces) {
    std::vector<DType> dtypes;
    for (const KeptRun& each : pieces) dtypes.push_back(tensors[each.tensor].tensor.dtype());
    return dtypes;
  };
  Device device = kCPU;
  for (const KeptRun& each : own) {
    if (each.values.device() != kCPU) device = each.values.device();
  }
  const std::vector<KeptRun> other = pieces_of(from_);
  std::tie(generation.sent, generation.parts.own) = memory_for(own, dtypes_of(own), device);
  std::tie(generation.received, generation.parts.other) = memory_for(other, dtypes_of(other), kCPU);
  generation.copies.use(generation.parts.own);
}

void MemoryCopies::begin(const std::optional<HeldOutMemory>& held_out, bool at_once) {
  const NoGradGuard no_grad;
  (void)newest();
  if (failure_) std::rethrow_exception(failure_);
  if (own_group_ == nullptr) meet();
  trainer_.give_up_next();
  trainer_.scatter_weights();
  Generation& generation = generations_[next_];
  generation.step = -1;
  const std::vector<KeptRun> own = pieces_of(group_->rank());
  if (generation.parts.own.empty()) take_memory(generation, own);
  if (const auto end = trainer_.early_end(); !record_ || record_->manifest.early_end != end) {
    record_ = record_of(trainer_, text_of_run(config_, end));
  }
  update(*record_, trainer_);
  generation.parts.record = *record_;
  generation.parts.record.manifest.held_out = held_out;
  const std::unordered_set<size_t> buffers = buffers_among(trainer_);
  generation.copies.begin();
  for (const KeptRun& each : own) {
    generation.copies.add(each.values, at_once || buffers.contains(each.tensor));
  }
  generation.copies.end();
  if (!at_once) {
    trainer_.before_next_update([&generation] { (void)generation.copies.wait_to_change(); });
  }
  thread_.start("memory copies", [this, &generation] { exchange(generation); });
}

void MemoryCopies::exchange(Generation& generation) {
  const Span span(SpanKind::kCheckpoint, "copy the state to another rank");
  try {
    generation.copies.finish();
    std::vector<dist::Work> works;
    for (const Tensor& each : generation.received) {
      works.push_back(own_group_->recv(each, from_, 0, kWhileTraining));
    }
    for (const Tensor& each : generation.sent) {
      works.push_back(own_group_->send(each, to_, 0, kWhileTraining));
    }
    for (dist::Work& each : works) each.wait();
    generation.step = generation.parts.record.step();
    own_group_->barrier(kWhileTraining).wait();
    is_made_ = true;
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void MemoryCopies::wait_for_own() const {
  if (thread_.started()) (void)generations_[next_].copies.wait_to_change();
}

const MemoryCopies::Parts* MemoryCopies::newest() {
  if (thread_.started()) {
    thread_.join();
    if (is_made_) newest_ = std::exchange(next_, 1 - next_);
    is_made_ = false;
  }
  return newest_ ? &generations_[*newest_].parts : nullptr;
}

const MemoryCopies::Parts* MemoryCopies::of(int64_t step) {
  (void)newest();
  // Where another rank knows that all have them, the operation that would tell this one may have
  // been cut off.
  const auto found = std::ranges::find(generations_, step, &Generation::step);
  return found == generations_.end() ? nullptr : &found->parts;
}

void MemoryCopies::forget() {
  (void)newest();
  newest_.reset();
  for (Generation& each : generations_) each.step = -1;
}

StateShards MemoryCopies::division() const {
  return StateShards::without_values(trainer_, group_->rank(), group_->size(),
                                     StateShards::strategy_of(config_, trainer_));
}

}  // namespace lockstep::train

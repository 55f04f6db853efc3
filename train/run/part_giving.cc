#include "train/run/part_giving.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <utility>

#include "core/ops/factory/factory.h"
#include "dist/group/agreement.h"
#include "dist/rendezvous/secret.h"

namespace lockstep::train {

std::vector<PartSource> PartGiving::begin(int processes) {
  end(false);
  std::string own;
  if (group_->rank() < trainer_.sharded()->shard_size()) {
    try {
      own = open_door(processes);
    } catch (const std::exception&) {
      // All ranks hear that this one cannot give its part.
    }
  }
  std::vector<std::string> told = dist::all_gather_texts(*group_, own);
  told.resize(static_cast<size_t>(trainer_.sharded()->shard_size()));
  is_under_way_ = std::ranges::none_of(told, &std::string::empty);
  std::vector<PartSource> sources;
  if (!is_under_way_) {
    end(false);
    return sources;
  }
  for (const std::string& each : told) sources.push_back(PartSource::of(each));
  return sources;
}

/// Returns where this rank gives its part; empty: it cannot.
std::string PartGiving::open_door(int processes) {
  if (elastic_ == nullptr || elastic_->members == nullptr) return "";
  std::optional<LiveState> part = live_part(trainer_);
  if (!part) return "";
  const bool is_local = dist::Members::is_local(elastic_->members->start().door);
  dist::OpenPort port(is_local);
  // Known to those alone whom the leader tells it.
  PartSource source{.part = trainer_.part(), .secret = dist::random_secret(), .doors = {}};
  for (const dist::Endpoint& each : dist::endpoints_of(port.description(), is_local)) {
    source.doors.push_back(dist::to_string(each));
  }
  if (source.doors.empty()) return "";
  // Those of before are left to themselves: a process may be slow to hear that one is closed.
  std::vector<std::unique_ptr<dist::Door>>& doors = elastic_->part_doors;
  for (const auto& each : doors) each->close(dist::JoinEnd::kFailed);
  std::erase_if(doors, [](const auto& each) { return each->has_ended(); });
  doors.push_back(
      std::make_unique<dist::Door>(dist::DoorOptions{.secret = source.secret}, std::move(port)));
  giver_.emplace(trainer_, *doors.back(), *std::move(part), processes);
  return source.text();
}

PartGiving::Standing PartGiving::add(const StepResult& step) {
  const Standing own = giver_ ? giver_->add(step) : Standing::kWhole;
  const Tensor told = full({1}, static_cast<double>(own), {DType::kI64, kCPU});
  const Tensor all = empty({group_->size()}, DType::kI64);
  group_->all_gather(all, told).wait();
  const std::span<const int64_t> of_ranks(all.data<int64_t>(), static_cast<size_t>(group_->size()));
  for (const Standing each : {Standing::kNobody, Standing::kTooSlow, Standing::kUnderWay}) {
    if (std::ranges::find(of_ranks, static_cast<int64_t>(each)) == of_ranks.end()) continue;
    if (each != Standing::kUnderWay) end(false);
    return each;
  }
  return Standing::kWhole;
}

void PartGiving::end(bool calls) {
  is_under_way_ = false;
  if (!giver_) return;
  if (calls) {
    giver_->call();
  } else {
    elastic_->part_doors.back()->close(dist::JoinEnd::kFailed);
  }
  giver_.reset();
}

}  // namespace lockstep::train

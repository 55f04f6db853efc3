#include "dist/group/planning_group.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "dist/collectives/schedule.h"

namespace lockstep::dist {

PlanningGroup::PlanningGroup(int rank, int size, size_t under_way, std::string name)
    : PlanningGroup(rank, size, under_way, std::move(name), std::make_shared<Counts>()) {}

PlanningGroup::PlanningGroup(int rank, int size, size_t under_way, std::string name,
                             std::shared_ptr<Counts> sent)
    : ProcessGroup(rank, size, std::move(name)), under_way_(under_way), sent_(std::move(sent)) {}

std::unique_ptr<ProcessGroup> PlanningGroup::subgroup(std::vector<int> ranks, std::string name) {
  const auto own = std::ranges::find(ranks, rank());
  if (own == ranks.end()) return nullptr;
  return std::unique_ptr<ProcessGroup>(new PlanningGroup(static_cast<int>(own - ranks.begin()),
                                                         static_cast<int>(ranks.size()), under_way_,
                                                         std::move(name), sent_));
}

std::optional<uint64_t> PlanningGroup::bytes_sent() const noexcept {
  return std::accumulate(sent_->begin(), sent_->end(), uint64_t{0});
}

uint64_t PlanningGroup::bytes_of_plan(const Operation& operation) {
  const auto count = [&] { return dist::bytes_sent(plan(operation, rank(), size(), Cut())); };
  if (operation.kind == OpKind::kAllToAll) return count();
  const Key key(operation.kind, operation.dtype, operation.count, operation.reduction.leaves,
                operation.deal.identity(), operation.root);
  const auto found = sent_by_.find(key);
  return found != sent_by_.end() ? found->second : sent_by_.emplace(key, count()).first->second;
}

Work PlanningGroup::start(Launch launch) {
  for (const Operation& operation : launch.operations) {
    (*sent_)[static_cast<size_t>(operation.kind)] += bytes_of_plan(operation);
    if (operation.kind != OpKind::kAllGather || launch.device.type != DeviceType::kCPU) continue;
    const size_t part = bytes_of(operation);
    for (int each = 0; each < size() && part > 0; ++each) {
      std::memmove(static_cast<std::byte*>(operation.output) + static_cast<size_t>(each) * part,
                   operation.input, part);
    }
  }
  if (launch.operations.front().kind == OpKind::kReduceScatter) {
    kept_.push_back(std::move(launch.tensors));
    if (kept_.size() > under_way_) kept_.pop_front();
  }
  return {};
}

}  // namespace lockstep::dist

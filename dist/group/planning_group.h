#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// A group for plans: stands for one of `size` ranks, communicates nothing, and counts the bytes
/// that each kind of operation would send. Tensors may be on meta; those of the last
/// reduce_scatters are kept, as if these were still under way. On the cpu, gathered values are as
/// if all ranks gave the same; other results are left as they are. Not thread-safe.
class PlanningGroup final : public ProcessGroup {
 public:
  /// Keeps the tensors of `under_way` reduce_scatters.
  PlanningGroup(int rank, int size, size_t under_way = 0, std::string name = "world");

  const char* backend() const noexcept override { return "plan"; }
  bool plans() const noexcept override { return true; }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) override;
  std::optional<uint64_t> bytes_sent() const noexcept override;
  void abort(const std::string& reason) noexcept override { (void)reason; }

  /// Frees what is kept.
  void complete() { kept_.clear(); }
  /// Bytes that this rank would have sent in operations of one kind, of this group and its
  /// subgroups.
  uint64_t bytes_sent(OpKind kind) const { return (*sent_)[static_cast<size_t>(kind)]; }

 private:
  using Counts = std::array<uint64_t, static_cast<size_t>(OpKind::kReceive) + 1>;
  PlanningGroup(int rank, int size, size_t under_way, std::string name,
                std::shared_ptr<Counts> sent);
  Work start(Launch launch) override;
  uint64_t bytes_of_plan(const Operation& operation);

  /// What decides how many bytes an operation sends: kind, dtype, count, leaves and root.
  using Key = std::tuple<OpKind, DType, int64_t, int32_t, uint64_t, int>;
  std::map<Key, uint64_t> sent_by_;  ///< plans of many ranks are long, and steps repeat operations
  size_t under_way_;
  std::deque<std::vector<Tensor>> kept_;
  std::shared_ptr<Counts> sent_;
};

}  // namespace lockstep::dist

#pragma once

#include <string>
#include <vector>

#include "dist/flight/flight_log.h"

namespace lockstep::dist {

/// Makes up the logs of a job whose ranks begin an operation every second.
class FlightJob {
 public:
  static constexpr uint64_t kWorld = 1;
  static constexpr int64_t kSecond = 1'000'000'000;

  explicit FlightJob(int size) : logs_(static_cast<size_t>(size)), next_(logs_.size()) {
    std::vector<int> all;
    for (int rank = 0; rank < size; ++rank) {
      FlightLog& log = this->log(rank);
      log.rank = rank;
      log.world_size = size;
      log.host = "alpha";
      log.reason = "asked to";
      all.push_back(rank);
    }
    add_group(kWorld, "world", all);
  }

  FlightLog& log(int rank) { return logs_.at(static_cast<size_t>(rank)); }
  std::vector<FlightLog>& logs() { return logs_; }

  void add_group(uint64_t id, const std::string& name, const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      log(rank).groups.push_back({id, name, ranks, {}});
      log(rank).written_ns = 100 * kSecond;
    }
  }

  /// The rank comes to its next operation of the group; a collective unless it is told otherwise.
  FlightRecord& queue(int rank, uint64_t group, OpKind kind = OpKind::kAllReduce,
                      int64_t count = 1024) {
    FlightLog& log = this->log(rank);
    FlightRecord& record = log.records.emplace_back();
    record.signature.group = group;
    record.signature.kind = kind;
    record.signature.dtype = DType::kF32;
    record.signature.count = count;
    record.queued_ns = ++next_[static_cast<size_t>(rank)] * kSecond;
    for (FlightGroup& known : log.groups) {
      if (known.id != group) continue;
      set_group_name(record, known.name);
      if (!is_collective(kind)) continue;
      record.signature.sequence = known.newest ? *known.newest + 1 : 0;
      known.newest = record.signature.sequence;
    }
    ++log.recorded;
    return record;
  }
  FlightRecord& done(int rank, uint64_t group, OpKind kind = OpKind::kAllReduce) {
    FlightRecord& record = start(rank, group, kind);
    record.state = FlightRecord::State::kDone;
    record.ended_ns = record.queued_ns + kSecond / 2;
    return record;
  }
  FlightRecord& start(int rank, uint64_t group, OpKind kind = OpKind::kAllReduce,
                      int64_t count = 1024) {
    FlightRecord& record = queue(rank, group, kind, count);
    record.state = FlightRecord::State::kStarted;
    record.started_ns = record.queued_ns;
    return record;
  }
  /// Failed while messages of these ranks of the group, as bits, were outstanding.
  FlightRecord& fail(int rank, uint64_t group, uint64_t awaited) {
    FlightRecord& record = start(rank, group);
    record.state = FlightRecord::State::kFailed;
    record.awaited_ranks = awaited;
    record.ended_ns = record.queued_ns + 60 * kSecond;
    return record;
  }
  void lose(int rank) {
    std::erase_if(logs_, [&](const FlightLog& log) { return log.rank == rank; });
  }

 private:
  std::vector<FlightLog> logs_;
  std::vector<int64_t> next_;  ///< seconds at which each rank came to its last operation
};

}  // namespace lockstep::dist

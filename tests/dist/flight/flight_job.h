#pragma once

#include <string>
#include <vector>

#include "dist/flight/flight_log.h"

namespace lockstep::dist {

/// Makes up the flight logs of a job in which each rank queues one operation per second.
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

  /// Queues the rank's next operation of the group.
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
  /// A failed operation. `awaited` has a bit for each rank of the group with outstanding messages.
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
  std::vector<int64_t> next_;  ///< time in seconds of each rank's last operation
};

}  // namespace lockstep::dist

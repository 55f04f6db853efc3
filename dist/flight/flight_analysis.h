#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/flight/flight_log.h"

namespace lockstep::dist {

// Joint analysis of the flight logs of a job's ranks. All rank numbers here are those of the job,
// including roots of signatures.

/// A rank that called an operation which has not ended there.
struct WaitingRank {
  int rank = 0;
  FlightRecord record;
  /// The awaited ranks that have not called it; if all have, those whose data is missing.
  std::vector<int> on;
  double seconds = 0;  ///< from the call to its end or to the log
};

/// A rank that has not called an operation.
struct AbsentRank {
  int rank = 0;
  std::optional<FlightRecord> last;  ///< last collective of the group that it called
  double seconds = 0;                ///< from the end of `last` to the log
  /// Its oldest operation that has not ended, if any: where it is blocked instead.
  std::optional<FlightRecord> busy_with;
};

/// The first collective of a group that has not ended on all ranks, or on which the ranks differ.
struct StuckOperation {
  FlightGroup group;
  uint64_t sequence = 0;
  struct Version {
    Signature signature;
    std::vector<int> ranks;
  };
  std::vector<Version> versions;  ///< distinct calls: more than one if ranks differ
  std::vector<WaitingRank> waiting;
  std::vector<AbsentRank> absent;
  std::vector<int> done;
  std::vector<int> without_log;
};

/// A send or receive that has not ended.
struct PendingMessage {
  FlightGroup group;
  WaitingRank waiting;
  int peer = 0;
  enum class Peer : uint8_t { kCame, kNotCome, kWithoutLog };
  Peer peer_is = Peer::kCame;  ///< whether the peer called the matching receive or send
};

/// `rank` waits in `record` for `waits_for`, which has not called that operation.
struct WaitLink {
  int rank = 0;
  int waits_for = 0;
  FlightRecord record;
};

struct FlightAnalysis {
  std::string start;  ///< that the analysed logs belong to (FlightLog::start)
  int world_size = 0;
  std::vector<const FlightLog*> logs;  ///< the analysed ones, by rank; of analyse's argument
  std::vector<int> without_log;
  std::vector<int> other_starts;  ///< ranks that have a log of another start, which is ignored
  std::vector<int> other_worlds;  ///< ranks whose log has another world size and is ignored
  std::vector<StuckOperation> stuck_operations;  ///< in the order in which they began
  std::vector<PendingMessage> messages;          ///< in the order in which they began
  /// A cycle of ranks that wait for each other: a deadlock if each blocks on the operation it waits
  /// in. Empty if there is none.
  std::vector<WaitLink> cycle;
  /// Ranks that others wait for and that are in no operation themselves.
  std::vector<int> idle;
};

/// Analyses the logs. The newest log of all determines the start and the world size; of the logs
/// with the same ones the newest of each rank counts. The result refers to `logs`.
FlightAnalysis analyse(const std::vector<FlightLog>& logs);

}  // namespace lockstep::dist

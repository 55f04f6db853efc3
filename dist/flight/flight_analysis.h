#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/flight/flight_log.h"

namespace lockstep::dist {

// What the logs of a job's ranks tell together. All ranks here are the job's, roots of signatures
// too.

/// A rank that came to an operation which has not ended there.
struct WaitingRank {
  int rank = 0;
  FlightRecord record;
  /// The ranks it waits for that have not come to it; where all have, those with data outstanding.
  std::vector<int> on;
  double seconds = 0;  ///< from when it came to it to its end or to the log
};

/// A rank that has not come to an operation.
struct AbsentRank {
  int rank = 0;
  std::optional<FlightRecord> last;  ///< collective of the group that it did come to
  double seconds = 0;                ///< from the end of `last` to the log
  /// Its oldest operation that has not ended: what it does instead.
  std::optional<FlightRecord> busy_with;
};

/// The first collective of a group that has not ended on all ranks, or that they do not agree
/// about.
struct Standstill {
  FlightGroup group;
  uint64_t sequence = 0;
  struct Version {
    Signature signature;
    std::vector<int> ranks;
  };
  std::vector<Version> versions;  ///< as called: more than one where ranks disagree
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
  Peer peer_is = Peer::kCame;  ///< to the other side of it
};

/// `rank` waits in `record` for `waits_for`, which has not come to it.
struct WaitLink {
  int rank = 0;
  int waits_for = 0;
  FlightRecord record;
};

struct FlightAnalysis {
  int world_size = 0;
  std::vector<int> without_log;
  std::vector<int> other_worlds;         ///< ranks whose log says another world size: not looked at
  std::vector<Standstill> standstills;   ///< in the order in which they began
  std::vector<PendingMessage> messages;  ///< in the order in which they began
  /// Ranks that wait for each other in a circle, as far as they wait for what they began: then it
  /// is a deadlock.
  std::vector<WaitLink> circle;
  /// Ranks that others wait for and that are in no operation themselves.
  std::vector<int> idle;
};

/// Of two logs of one rank the newer counts, of different world sizes that of the newest log.
FlightAnalysis analyse(const std::vector<FlightLog>& logs);

}  // namespace lockstep::dist

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// Record of one operation on one rank. Times are nanoseconds of the system clock.
struct FlightRecord {
  enum class State : uint8_t { kQueued, kStarted, kDone, kFailed };
  Signature signature;
  char group_name[24] = {};  ///< cut to fit, ends in 0
  /// What it is for, as the caller said (dist/collectives/operation_label.h); cut, ends in 0.
  char label[40] = {};
  State state = State::kQueued;
  uint32_t tensors = 1;        ///< number of tensors of the coalesced call
  uint32_t user_tag = 0;       ///< tag of send and receive; the peer is signature.root
  uint64_t awaited_ranks = 0;  ///< bit r: message from rank r of the group outstanding; r < 64
  int64_t queued_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;

  friend bool operator==(const FlightRecord&, const FlightRecord&) = default;
};

/// Set the name and the label, truncated at a 0 byte and, to fit, between UTF-8 characters.
void set_group_name(FlightRecord& record, std::string_view name);
void set_label(FlightRecord& record, std::string_view label);
/// Returns "queued", "started", "done" or "failed".
const char* name(FlightRecord::State state);
/// Whether operations of this kind are ordered within their group: all but send and receive.
inline bool is_collective(OpKind kind) { return kind != OpKind::kSend && kind != OpKind::kReceive; }

/// A group that a rank belongs to.
struct FlightGroup {
  uint64_t id = 0;
  std::string name;
  std::vector<int> ranks;  ///< ranks of the job, in the group's order
  /// Sequence number of the last collective of the group that the rank called, even if its record
  /// was overwritten.
  std::optional<uint64_t> newest;

  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

/// Ring buffer of the last operations of one rank, always on. Recording takes well under 100 ns.
/// Thread-safe.
class FlightRecorder {
 public:
  static constexpr size_t kCapacity = 2048;
  /// Keeps the last `capacity` operations, a power of two. `start` identifies this start of the
  /// job, and is equal on all its ranks (FlightLog::start).
  FlightRecorder(int rank, int world_size, size_t capacity = kCapacity, std::string start = {});
  ~FlightRecorder();

  /// Registers a group; once, before its first operation. Otherwise the logs do not know which
  /// ranks of the job are in the group and take the group's ranks for the job's.
  void add_group(uint64_t group, std::string name, std::vector<int> ranks);

  /// Adds a record, with the calling thread's OperationLabel, and returns its number for the calls
  /// below, which do nothing once it is overwritten.
  uint64_t queued(const Signature& signature, const std::string& group_name, uint32_t tensors = 1,
                  uint32_t user_tag = 0);
  void started(uint64_t record);
  void awaits(uint64_t record, uint64_t ranks);
  void ended(uint64_t record, bool failed);

  /// Returns the record of a collective if it has not been overwritten.
  std::optional<FlightRecord> find(uint64_t group, uint64_t sequence) const;
  /// Returns the sequence number of the last collective of a group that this rank called.
  std::optional<uint64_t> newest(uint64_t group) const;
  /// Returns the first `most` collectives of a group that were called and have not ended, oldest
  /// first; without overwritten ones.
  std::vector<FlightRecord> unfinished(uint64_t group, size_t most) const;
  /// The records that have not been overwritten, oldest first.
  std::vector<FlightRecord> records() const;
  /// The groups, in the order added or first used.
  std::vector<FlightGroup> groups() const;
  /// Number of operations recorded so far, including overwritten ones.
  uint64_t recorded() const;

  /// Writes all records to `folder`/flight.rank<R>.json (dist/flight/flight_log.h), atomically
  /// replacing an existing file. Makes the folder. Throws DataError.
  void write(const std::string& folder, const std::string& reason) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist

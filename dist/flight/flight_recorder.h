#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// What became of one operation, as one rank saw it. Times are nanoseconds of the system's clock.
struct FlightRecord {
  enum class State : uint8_t { kQueued, kStarted, kDone, kFailed };
  Signature signature;
  char group_name[24] = {};  ///< cut to fit, ends in 0
  State state = State::kQueued;
  uint32_t tensors = 1;        ///< that one coalesced call brought
  uint32_t user_tag = 0;       ///< of send and receive; the other rank is signature.root
  uint64_t awaited_ranks = 0;  ///< bit r: message from rank r of the group outstanding; r < 64
  int64_t queued_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;

  friend bool operator==(const FlightRecord&, const FlightRecord&) = default;
};

/// Cuts the name to fit, before a 0 and between characters of UTF-8.
void set_group_name(FlightRecord& record, std::string_view name);
/// "queued", "started", "done" or "failed".
const char* name(FlightRecord::State state);
/// Whether it has a place in the order of its group's operations: all but send and receive.
inline bool is_collective(OpKind kind) { return kind != OpKind::kSend && kind != OpKind::kReceive; }

/// A group that a rank belongs to.
struct FlightGroup {
  uint64_t id = 0;
  std::string name;
  std::vector<int> ranks;  ///< of the job, in the group's order
  /// Of the newest collective of the group that the rank has come to, remembered or not.
  std::optional<uint64_t> newest;

  friend bool operator==(const FlightGroup&, const FlightGroup&) = default;
};

/// The last operations of one rank, always on, in memory of fixed size. Recording takes well under
/// 100 ns. Thread-safe.
class FlightRecorder {
 public:
  /// Remembers `capacity` operations, a power of two.
  FlightRecorder(int rank, int world_size, size_t capacity = 2048);
  ~FlightRecorder();

  /// Says who a group is; once, before its first operation. Without it the logs cannot tell which
  /// ranks of the job those of the group are, and take them to be the same.
  void add_group(uint64_t group, std::string name, std::vector<int> ranks);

  /// Number of the new record, for the calls below, which do nothing once it is overwritten.
  uint64_t queued(const Signature& signature, const std::string& group_name, uint32_t tensors = 1,
                  uint32_t user_tag = 0);
  void started(uint64_t record);
  void awaits(uint64_t record, uint64_t ranks);
  void ended(uint64_t record, bool failed);

  /// Of that collective, if it is still remembered.
  std::optional<FlightRecord> find(uint64_t group, uint64_t sequence) const;
  /// The number of the newest collective of a group that this rank has come to.
  std::optional<uint64_t> newest(uint64_t group) const;
  /// All that are remembered, oldest first.
  std::vector<FlightRecord> records() const;
  /// In the order added or first used.
  std::vector<FlightGroup> groups() const;
  /// Operations recorded so far, remembered or not.
  uint64_t recorded() const;

  /// Writes all that is remembered to `folder`/flight.rank<R>.json (dist/flight/flight_log.h),
  /// whole or not at all, over what was there. Makes the folder. Throws DataError.
  void write(const std::filesystem::path& folder, const std::string& reason) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist

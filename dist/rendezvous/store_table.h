#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "dist/rendezvous/job_control.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

/// State of the store's server: keys and values, states of ranks, waiting requests. Uses neither
/// clock nor sockets. Not thread-safe.
class StoreTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Called with the answer to a rank's request, at once or later.
  using Answer = std::function<void(int rank, StoreMessage answer)>;

  StoreTable(int world_size, Answer answer);

  enum class Standing : uint8_t { kNeverCame, kHere, kLeft, kLost };
  Standing standing(int rank) const { return member(rank).standing; }
  /// Returns the lowest rank, but not `except`, that never came.
  std::optional<int> free_rank(int except) const;
  /// Returns "rank 1 (host a, pid 123)", or "rank 1" before it has connected.
  std::string describe(int rank) const;
  void came(int rank, std::string host, int64_t pid);
  /// The rank ended normally.
  void left(int rank);
  /// The rank's connection ended, which makes the job fail. `why` is the predicate of a sentence,
  /// such as "is lost: ...".
  void lost(int rank, const std::string& why);
  /// Makes the job fail; only the first call has an effect. Waiting requests, now and later, are
  /// answered with the failure.
  void fail(Failure failure);
  const std::optional<Failure>& failure() const { return failure_; }
  /// Records a refused connection; timeout errors mention the last few.
  void refused(std::string text);
  bool all_left() const;

  /// Handles a request of a connected rank: kSet to kBarrier. A malformed one is answered with an
  /// error.
  void request(int rank, const StoreMessage& request, Time now);
  /// Earliest deadline of a waiting request, at which to call `expire`.
  std::optional<Time> next_deadline() const;
  void expire(Time now);

 private:
  struct Member {
    Standing standing = Standing::kNeverCame;
    std::string host;
    int64_t pid = 0;
  };
  /// A request that is not answered yet.
  struct Wait {
    int rank = 0;
    StoreMessage request;
    std::vector<std::string> missing;  ///< keys that are not set, without duplicates
    Time deadline;
  };
  using Waits = std::map<uint64_t, Wait>;

  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  const Member& member(int rank) const { return members_[static_cast<size_t>(rank)]; }

  void answer(int rank, uint64_t id, StoreStatus status, std::string text);
  void put(const std::string& key, std::string value);
  void add(int rank, const StoreMessage& request);
  void compare_set(int rank, const StoreMessage& request);
  void wait_for_keys(int rank, const StoreMessage& request, Time now);
  void join(int rank, const StoreMessage& request, Time now);
  void barrier(int rank, const StoreMessage& request, Time now);

  uint64_t wait(int rank, const StoreMessage& request, std::vector<std::string> missing, Time now);
  /// Removes a waiting request from all lists.
  Wait end(Waits::iterator wait);
  void succeed(Waits::iterator wait);
  std::string timeout_text(const Wait& wait) const;
  std::string absent_ranks(const std::string& barrier) const;

  Answer answer_;
  std::vector<Member> members_;
  std::optional<Failure> failure_;
  std::vector<std::string> refused_;
  std::unordered_map<std::string, std::string> values_;
  Waits waits_;
  uint64_t next_wait_ = 0;
  std::set<std::pair<Time, uint64_t>> deadlines_;
  std::unordered_map<std::string, std::set<uint64_t>> waits_for_key_;
  std::set<uint64_t> joins_;
  std::unordered_map<std::string, std::map<int, uint64_t>> barriers_;  ///< waits by name and rank
};

}  // namespace lockstep::dist

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dist/rendezvous/connection.h"
#include "dist/rendezvous/join_message.h"

namespace lockstep::dist {

struct NewcomerOptions {
  std::string address = {};             ///< where the job's ranks met at first: "host:port"
  std::vector<std::string> doors = {};  ///< where else there may be a leader (Newcomer::doors)
  std::string job = {};
  std::string secret = {};
  std::vector<JoinFact> facts = {};  ///< what is known before the model is built
  bool host_may_come = false;        ///< as StoreOptions has it
  /// How long to look for a leader there: there is none before training begins, and for
  /// a moment after it was lost.
  std::chrono::milliseconds limit = std::chrono::minutes(2);
  /// Asked before each knock, and some times a second while the process waits; if it says no, that
  /// is as if the limit had passed, and as if the job had failed. Empty: it goes on.
  std::function<bool()> goes_on = {};
};

/// A process that wants to join a job that trains: knocks at the Door of its leader, and waits
/// there until it is called. Not thread-safe.
class Newcomer {
 public:
  /// Knocks at each address in turn, until the job has compared `facts` with those of its ranks.
  /// Throws TimeoutError without a leader there in time, and for the first address UnknownHost, and
  /// DistError or MismatchError where this process is refused.
  explicit Newcomer(const NewcomerOptions& options);

  /// What the leader tells those that are to build their model (DoorOptions::terms).
  const std::vector<int64_t>& terms() const { return terms_; }

  /// Where the leader has said that another rank would open its door, were it lost: "host:port", in
  /// the order of the ranks.
  const std::vector<std::string>& doors() const { return doors_; }

  /// What the leader calls for.
  struct Call {
    int number = 0;  ///< of this process, among the ranks and those that are called with it
    std::vector<std::string> texts;
  };
  struct Outcome {
    std::optional<Call> call;
    JoinEnd end = JoinEnd::kFailed;  ///< without a call: how the job has ended
  };
  /// How many ranks there are, and may be.
  using OnWait = std::function<void(int64_t ranks, int64_t most)>;
  /// A part of what this process is given while it waits (Door::give); the next comes once this
  /// has returned.
  using OnGiven = std::function<void(const std::string& part)>;
  /// Says that it is ready, and waits until it is called or the job ends. `place` is for the ranks.
  /// Calls `on_wait` at first and when what it tells has changed. Throws PeerLostError once the
  /// leader is lost, or has said nothing for `silence`; the errors of a refusal and of `on_given`,
  /// which may be empty.
  Outcome wait(const std::string& place, const std::vector<JoinFact>& facts, const OnWait& on_wait,
               const OnGiven& on_given = {},
               std::chrono::milliseconds silence = std::chrono::seconds(30));

 private:
  /// The next message within `silence`. Throws PeerLostError, and the errors of a refusal.
  StoreMessage receive(std::chrono::milliseconds silence);
  /// Knocks at every address once; whether there was a leader.
  bool knock(const NewcomerOptions& options, std::chrono::steady_clock::time_point until);
  bool knock_at(const std::string& address, const NewcomerOptions& options,
                std::chrono::steady_clock::time_point until);

  std::string address_;  ///< of the leader
  std::function<bool()> goes_on_;
  std::string last_;  ///< why the last knock was in vain
  std::optional<Connection> connection_;
  std::vector<int64_t> terms_;
  std::vector<std::string> doors_;
};

}  // namespace lockstep::dist

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dist/rendezvous/join_message.h"
#include "dist/rendezvous/open_port.h"

namespace lockstep::dist {

struct DoorOptions {
  /// "host:port" at which the ranks of the job met at first. The door listens at that port of this
  /// host, on loopback alone if the host is.
  std::string address = {};
  std::string job = {};     ///< processes of other jobs are refused
  std::string secret = {};  ///< and those who do not know it
  /// Compared with those of a process before it builds its model, and afterwards: one that differs
  /// is refused.
  std::vector<JoinFact> early = {};
  std::vector<JoinFact> late = {};
  std::vector<int64_t> terms = {};  ///< for processes whose early facts are alike
};

/// Where processes knock that want to join a job that trains. Its leader has one.
///
/// A process is admitted by the checks of a job's start, and then waits here until it is called:
/// between two steps, when there is room for it. The door has a thread of its own, so that a
/// refusal does not wait for the end of a step, and a process that waits knows that the leader
/// lives. While another program listens at the port, the door tries again.
///
/// Those that wait can be given what the job's ranks have, while these go on, so that they have it
/// when they are called. Thread-safe.
class Door {
 public:
  explicit Door(DoorOptions options);
  /// A door at a port that is open already; `options.address` is of no use.
  Door(DoorOptions options, OpenPort port);
  /// Tells those that wait how the job has ended: kFailed, unless `close` was called.
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// Tells those that wait how many ranks there are, and may be, and where ("host:port") a rank
  /// opens its door that takes the leader's place.
  void tell(int ranks, int most, std::vector<std::string> doors = {});
  /// Number of processes that can be called: they are ready, and have answered in the last seconds.
  /// Without those that are given something.
  int ready() const;

  /// What processes are given.
  struct Given {
    int processes = 0;  ///< that are given something, and still there
    int answering = 0;  ///< of them, those that have answered in the last seconds
    size_t left = 0;    ///< bytes that one of them has not taken yet; the most of any
  };
  /// From now on gives the same to up to `count` of those that are ready, in the order in which
  /// they came; returns how many they are. Only while nobody is given anything.
  int begin_giving(int count);
  /// Gives them these bytes: each of `parts`, of at most 16 MiB, arrives as a whole, in this order
  /// (Newcomer::wait). Returns at once. One that takes nothing for half a minute is given no more,
  /// and waits like the others.
  void give(std::vector<std::string> parts);
  /// Gives the first of them, in the order in which they came, the first of `parts`, the next one
  /// the second, and so on.
  void give_each(std::vector<std::string> parts);
  Given given() const;
  /// They wait like the others from now on. What they have been given in part is of no use.
  void end_giving();

  /// Calls up to `count` of those that are ready, in the order in which they came: their numbers
  /// are `first` and those that follow, and each gets `texts` and then the places of all that are
  /// called. Returns the places. While some are given something it calls these alone, and each is
  /// called once it has taken all of that.
  std::vector<std::string> call(int count, int first, const std::vector<std::string>& texts);
  /// Waits until so many wait here, for processes that are known to be on their way. Returns after
  /// `limit` without them.
  void await(int count, std::chrono::milliseconds limit) const;
  /// Nobody can join from now on.
  void close(JoinEnd end);
  /// Whether it listens now.
  bool is_open() const;
  /// Whether it has told all how the job has ended: then its destructor waits for nothing.
  bool has_ended() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist

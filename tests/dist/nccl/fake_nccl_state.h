#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dist/collectives/reduction.h"
#include "tests/dist/nccl/fake_nccl.h"

namespace lockstep::dist {
namespace fake {

enum class Kind { kAllReduce, kReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

struct Member;

/// An operation, as one rank asked for it.
struct Task {
  Kind kind;
  const void* in;
  void* out;
  size_t count;
  nccl::DataType type;
  Reduction reduction;
  int root;  ///< or peer
  uint64_t number;

  size_t bytes() const;
};

/// One collective, as its ranks come to it.
struct Meeting {
  std::vector<const Task*> tasks;
  int came = 0;
  int left = 0;
  bool done = false;
  bool broken = false;  ///< a rank was aborted in it, or the calls do not fit: it hangs
};
struct Letter {
  const void* data;
  size_t bytes;
  bool taken = false;
};

/// A communicator, as all ranks see it.
struct World {
  int size = 0;
  int joined = 0;
  int finalized = 0;
  std::map<uint64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> letters;
  struct Wish {
    int color;
    int key;
    std::shared_ptr<Member> member;  ///< of the new one
  };
  std::map<int, std::map<int, Wish>> splits;  ///< by number and rank
  std::map<std::vector<int>, std::map<int, std::shared_ptr<Member>>> shrinks;

  bool is_split(int number) const {
    const auto found = splits.find(number);
    return found != splits.end() && static_cast<int>(found->second.size()) == size;
  }
};

/// One rank of it.
struct Member {
  std::shared_ptr<World> world;  ///< null until all ranks of a split have come
  int rank = 0;
  bool aborted = false;
  bool finalized = false;
  int running = 0;  ///< tasks
  int polls = 0;
  int splits = 0;
  uint64_t next = 0;
  std::map<int, double> factors;  ///< of premultiplied sums
};

}  // namespace fake

struct nccl::Comm {
  std::shared_ptr<fake::Member> member;
};

/// The books of a fake NCCL, and the work of its ranks. The members are `mutex`'s; the functions
/// take it themselves unless they say otherwise.
struct FakeNccl::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  int version = 0;
  int polls = 0;
  bool start_held = false;
  bool operations_held = false;
  std::map<std::string, nccl::Result> failures;
  std::map<int, nccl::Result> reports;
  std::vector<Call> calls;
  std::map<std::string, int> counts;
  int alive = 0;
  int buffers = 0;
  uint64_t groups = 0;
  uint64_t ids = 0;
  int next_op = 5;
  std::map<std::string, std::shared_ptr<fake::World>> worlds;  ///< by id
  nccl::Config config;
  std::string net_name;

  /// Notes a call; what it shall fail with. The caller has the mutex.
  nccl::Result called(const std::string& name);
  /// A new communicator of `member`. The caller has the mutex.
  nccl::Comm* add(std::shared_ptr<fake::Member> member);
  /// Aborts and deletes one, after its work has ended.
  void end(nccl::Comm* comm);

  nccl::Result group_start();
  /// Puts what the thread's group gathered into its streams.
  nccl::Result group_end();
  /// An operation of the thread's group, or by itself where there is none.
  nccl::Result queue(const char* name, fake::Kind kind, const void* in, void* out, size_t count,
                     nccl::DataType type, nccl::RedOp op, int root, nccl::Comm* comm, void* stream);

 private:
  void flush();
  void run(const std::shared_ptr<fake::Member>& member, std::vector<fake::Task> tasks);
  void meet(std::unique_lock<std::mutex>& lock, fake::Member& member, const fake::Task& task);
};

}  // namespace lockstep::dist

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
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

/// Where memory lies in the windows of a communicator.
struct WindowPlace {
  int number = -1;  ///< of the window, counted from the communicator's first; -1: in none
  size_t offset = 0;

  bool operator==(const WindowPlace&) const = default;
};

/// An operation as called by one rank.
struct Task {
  Kind kind;
  const void* in;
  void* out;
  size_t count;
  nccl::DataType type;
  Reduction reduction;
  int root;  ///< root, or the peer of a send or receive
  uint64_t number;
  WindowPlace in_window;
  WindowPlace out_window;

  size_t bytes() const;
};

/// One collective, with the ranks that have called it.
struct Meeting {
  std::vector<const Task*> tasks;
  int came = 0;
  int left = 0;
  bool done = false;
  bool broken = false;  ///< hangs: a rank was aborted in it, or the calls differ
};
struct Letter {
  const void* data;
  size_t bytes;
  bool taken = false;
};

/// A communicator as shared by all ranks.
struct World {
  int size = 0;
  int joined = 0;
  int finalized = 0;
  std::map<uint64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> letters;
  struct Wish {
    int color;
    int key;
    std::shared_ptr<Member> member;  ///< the rank in the new communicator
  };
  std::map<int, std::map<int, Wish>> splits;  ///< by number of the split, then by rank
  std::map<std::vector<int>, std::map<int, std::shared_ptr<Member>>> shrinks;

  bool is_split(int number) const {
    const auto found = splits.find(number);
    return found != splits.end() && static_cast<int>(found->second.size()) == size;
  }
};

/// One rank of a World.
struct Member {
  std::shared_ptr<World> world;  ///< null until all ranks have called the split
  int rank = 0;
  bool aborted = false;
  bool finalized = false;
  int running = 0;  ///< number of running tasks
  int polls = 0;
  int splits = 0;
  uint64_t next = 0;
  int windows = 0;                              ///< number of windows registered so far
  std::vector<std::function<void()>> launches;  ///< held, to be queued on streams
  std::map<int, double> factors;                ///< factors of premultiplied sums, by operator
};

}  // namespace fake

struct nccl::Comm {
  std::shared_ptr<fake::Member> member;
};
struct nccl::Window {
  Comm* comm = nullptr;
  void* data = nullptr;
  size_t bytes = 0;
  int number = 0;  ///< counted from the communicator's first
};

/// State and operations of a fake NCCL. `mutex` guards the members; the functions lock it unless
/// stated otherwise.
struct FakeNccl::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  int version = 0;
  int polls = 0;
  bool start_held = false;
  bool operations_held = false;
  bool launches_held = false;
  std::map<std::string, nccl::Result> failures;
  std::map<int, nccl::Result> reports;
  std::vector<Call> calls;
  std::map<std::string, int> counts;
  int alive = 0;
  int buffers = 0;
  std::map<void*, size_t> memory;  ///< of ncclMemAlloc
  std::vector<std::unique_ptr<nccl::Window>> windows;
  uint64_t groups = 0;
  uint64_t ids = 0;
  int next_op = 5;
  std::map<std::string, std::shared_ptr<fake::World>> worlds;  ///< by unique id
  nccl::Config config;
  std::string net_name;

  /// Records a call, and returns the error it must fail with. Requires the mutex.
  nccl::Result called(const std::string& name);
  /// Makes a communicator of `member`. Requires the mutex.
  nccl::Comm* add(std::shared_ptr<fake::Member> member);
  /// Aborts a communicator, waits for its tasks, and deletes it.
  void end(nccl::Comm* comm);

  nccl::Result group_start();
  /// Ends the thread's group: queues its operations on their streams.
  nccl::Result group_end();
  /// Queues an operation in the thread's group, or on its own outside a group.
  nccl::Result queue(const char* name, fake::Kind kind, const void* in, void* out, size_t count,
                     nccl::DataType type, nccl::RedOp op, int root, nccl::Comm* comm, void* stream);

 private:
  fake::WindowPlace find(const nccl::Comm* comm, const void* data) const;
  void flush();
  void run(const std::shared_ptr<fake::Member>& member, std::vector<fake::Task> tasks);
  void meet(std::unique_lock<std::mutex>& lock, fake::Member& member, const fake::Task& task);
};

}  // namespace lockstep::dist

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

/// A fake NCCL whose ranks are threads of this process, on streams of the host device. Collectives
/// reduce in rank order, hang like NCCL's when a rank is missing, and are recorded. Only one
/// instance may exist at a time.
class FakeNccl {
 public:
  FakeNccl();
  /// Expects that every communicator was destroyed or aborted.
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  /// Address of a function, like dlsym.
  void* find(const std::string& name) const;
  std::shared_ptr<const NcclLibrary> library() const;

  // Set these before the library is loaded.
  int version = 22809;
  std::set<std::string> missing;  ///< functions that the library lacks

  /// Number of times that a communicator reports "in progress" after each call.
  void set_polls(int polls);
  /// While true, no communicator becomes ready.
  void hold_start(bool hold);
  /// While true, operations are not queued on their streams after ncclGroupEnd, as when another
  /// rank has yet to connect: the communicator is in progress, and an abort drops them.
  void hold_launches(bool hold);
  /// While true, queued operations do not begin; an abort still ends them.
  void hold_operations(bool hold);
  /// Makes the next call of the function return `result`.
  void fail_next(const std::string& function, nccl::Result result);
  /// Makes every communicator of that rank report `result` from now on.
  void report(int rank, nccl::Result result);

  /// One call by one rank of a communicator.
  struct Call {
    std::string name;
    int rank = 0;
    int size = 0;  ///< of the communicator
    size_t count = 0;
    uint64_t group = 0;  ///< number of the enclosing ncclGroupStart, 0 for none
    nccl::RedOp op = nccl::RedOp::kSum;
    int priority = 0;         ///< of its stream
    bool in_windows = false;  ///< what it reads and writes lies in the communicator's windows
  };
  std::vector<Call> calls() const;
  /// Number of calls of a function such as "ncclCommAbort".
  int count(const std::string& function) const;
  /// Number of communicators that have been neither destroyed nor aborted.
  int alive() const;
  int buffers() const;  ///< number of registered buffers
  int windows() const;  ///< number of registered windows
  int blocks() const;   ///< number of blocks of ncclMemAlloc that were not freed
  /// Config of the last ncclCommInitRankConfig.
  nccl::Config last_config() const;
  std::string last_net_name() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

/// An NCCL whose ranks are threads of this process, on streams of the host device. It does what
/// NCCL's functions do (collectives in the order of ranks), waits as they do where ranks do not
/// come, and keeps books. One at a time.
class FakeNccl {
 public:
  FakeNccl();
  /// Expects that every communicator was destroyed or aborted.
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  /// Address of a function, as dlsym gives it.
  void* find(const std::string& name) const;
  std::shared_ptr<const NcclLibrary> library() const;

  // Before the library is asked for.
  int version = 22809;
  std::set<std::string> missing;  ///< functions that it has not

  /// How often it answers "in progress" after whatever it was asked for.
  void set_polls(int polls);
  /// No communicator gets ready until this is taken back.
  void hold_start(bool hold);
  /// What is in streams does not begin until this is taken back; aborting ends it.
  void hold_operations(bool hold);
  /// The function gives this the next time somebody calls it.
  void fail_next(const std::string& function, nccl::Result result);
  /// Every communicator of that rank reports this from now on.
  void report(int rank, nccl::Result result);

  /// One call, by a rank of a communicator.
  struct Call {
    std::string name;
    int rank = 0;
    int size = 0;  ///< of the communicator
    size_t count = 0;
    uint64_t group = 0;  ///< number of the ncclGroupStart around it; 0 for none
    nccl::RedOp op = nccl::RedOp::kSum;
    int priority = 0;  ///< of its stream
  };
  std::vector<Call> calls() const;
  /// How often a function was called: "ncclCommAbort".
  int count(const std::string& function) const;
  /// Communicators that have neither been destroyed nor aborted.
  int alive() const;
  int buffers() const;  ///< registered
  /// As given to the last ncclCommInitRankConfig.
  nccl::Config last_config() const;
  std::string last_net_name() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::dist

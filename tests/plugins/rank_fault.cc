// A plug-in with which one rank of a job goes wrong in the middle of forward: a kernel of its own
// for relu, right but for one call.
//
//   RANK_FAULT=RANK:CALL:WHAT   the rank, by OMPI_COMM_WORLD_RANK; the call, from 1 on; and
//     segv                      SIGSEGV
//     exit                      the program ends as if all were well, by exit(0)
//     throw                     an exception

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "core/plugin_wrapper.h"

namespace {

using namespace lockstep::plugin;

struct Fault {
  int call = 0;  ///< 0: none
  std::string what;
};

Fault fault_of_this_rank() {
  const char* const wanted = std::getenv("RANK_FAULT");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  int whose = -1;
  int call = 0;
  char what[16] = {};
  if (wanted == nullptr || rank == nullptr) return {};
  if (std::sscanf(wanted, "%d:%d:%15s", &whose, &call, what) != 3 || call < 1) {
    throw std::invalid_argument("RANK_FAULT is not RANK:CALL:WHAT");
  }
  return whose == std::atoi(rank) ? Fault{call, what} : Fault{};
}

void relu(Result out, View self) {
  static const Fault fault = fault_of_this_rank();
  static std::atomic<int> calls = 0;
  if (++calls == fault.call) {
    if (fault.what == "segv") (void)std::raise(SIGSEGV);
    if (fault.what == "exit") std::exit(0);
    throw std::runtime_error("the fault that was asked for");
  }
  const float* const from = self.data<float>();
  std::transform(from, from + self.numel(), out.data<float>(),
                 [](float value) { return value > 0 ? value : 0; });
}

}  // namespace

LS_PLUGIN(library) { library.override_kernel("relu", &relu); }

// A plug-in that makes ranks fail in the middle of a step: its kernels replace one operator of
// forward, one of backward and one that follows the all-reduce, and are correct except for one
// call, or late.
//
//   RANK_FAULT=RANK[@START]:OPERATOR:CALL:WHAT[:MILLISECONDS][,...]
//
// RANK is compared with OMPI_COMM_WORLD_RANK, START with LOCKSTEP_RESTART_COUNT (without it the
// fault comes in every start of the job); OPERATOR is relu, threshold_backward, _block_square_sums,
// load, which is called once, before the ranks meet, or join, the same in a process that joins
// them; CALL counts from 1; and WHAT is
//
//   segv    SIGSEGV
//   kill    SIGKILL, after MILLISECONDS if given: the rank continues meanwhile
//   stop    SIGSTOP
//   exit    the program ends by exit(0), as if it had succeeded
//   throw   an exception
//   sleep   for MILLISECONDS
//   slow    sleeps for MILLISECONDS in this call and all later ones

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/plugin/plugin_wrapper.h"

namespace {

using namespace lockstep::plugin;

struct Fault {
  int call = 0;  ///< 0: none
  std::string what;
  std::chrono::milliseconds time{0};
};

/// The fault of this rank in this operator; at most one.
Fault fault_in(const std::string& op) {
  const char* const wanted = std::getenv("RANK_FAULT");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (wanted == nullptr || rank == nullptr) return {};
  std::istringstream faults(wanted);
  for (std::string each; std::getline(faults, each, ',');) {
    int whose = -1;
    int start = -1;
    if (const size_t at = each.find('@'); at != each.npos) {
      start = std::atoi(each.c_str() + at + 1);
      each.erase(at, each.find(':', at) - at);
    }
    char where[32] = {};
    int call = 0;
    char what[16] = {};
    int milliseconds = 0;
    if (std::sscanf(each.c_str(), "%d:%31[^:]:%d:%15[^:]:%d", &whose, where, &call, what,
                    &milliseconds) < 4 ||
        call < 1) {
      throw std::invalid_argument(
          "RANK_FAULT is not RANK[@START]:OPERATOR:CALL:WHAT[:MILLISECONDS],...");
    }
    const char* const starts = std::getenv("LOCKSTEP_RESTART_COUNT");
    const bool now = start < 0 || start == (starts == nullptr ? 0 : std::atoi(starts));
    if (whose == std::atoi(rank) && now && where == op) {
      return {call, what, std::chrono::milliseconds(milliseconds)};
    }
  }
  return {};
}

/// Whether this process was started with --join.
bool joins() {
  std::ifstream arguments("/proc/self/cmdline");
  for (std::string each; std::getline(arguments, each, '\0');) {
    if (each == "--join") return true;
  }
  return false;
}

/// Counts the calls of one operator, and causes the fault at its call.
class Calls {
 public:
  explicit Calls(const std::string& op) : fault_(fault_in(op)) {}

  void count() {
    const int call = ++calls_;
    if (fault_.what == "slow" && fault_.call > 0 && call >= fault_.call) {
      std::this_thread::sleep_for(fault_.time);
    }
    if (call != fault_.call) return;
    if (fault_.what == "segv") (void)std::raise(SIGSEGV);
    if (fault_.what == "stop") (void)std::raise(SIGSTOP);
    if (fault_.what == "exit") std::exit(0);
    if (fault_.what == "throw") throw std::runtime_error("the fault that was asked for");
    if (fault_.what == "sleep") std::this_thread::sleep_for(fault_.time);
    if (fault_.what == "kill" && fault_.time.count() == 0) (void)std::raise(SIGKILL);
    if (fault_.what == "kill") {
      std::thread([time = fault_.time] {
        std::this_thread::sleep_for(time);
        (void)std::raise(SIGKILL);
      }).detach();
    }
  }

 private:
  Fault fault_;
  std::atomic<int> calls_ = 0;
};

void relu(Result out, View self) {
  static Calls calls("relu");
  calls.count();
  const float* const from = self.data<float>();
  std::transform(from, from + self.numel(), out.data<float>(),
                 [](float value) { return value > 0 ? value : 0; });
}

void threshold_backward(Result out, View gradient, View self, Number threshold) {
  static Calls calls("threshold_backward");
  calls.count();
  const float* const from = gradient.data<float>();
  std::transform(from, from + gradient.numel(), self.data<float>(), out.data<float>(),
                 [limit = threshold.to_double()](float value, float input) {
                   return static_cast<double>(input) > limit ? value : 0;
                 });
}

void block_square_sums(Result out, const std::vector<View>& self) {
  static Calls calls("_block_square_sums");
  calls.count();
  constexpr int64_t kBlock = 4096;
  auto* sum = out.data<double>();
  for (const View& each : self) {
    for (int64_t first = 0; first < each.numel(); first += kBlock, ++sum) {
      *sum = 0;
      for (int64_t i = first; i < std::min(each.numel(), first + kBlock); ++i) {
        const double value = each.data<float>()[i];
        *sum += value * value;
      }
    }
  }
}

}  // namespace

LS_PLUGIN(library) {
  Calls("load").count();
  if (joins()) Calls("join").count();
  library.override_kernel("relu", &relu);
  library.override_kernel("threshold_backward", &threshold_backward);
  library.override_kernel("_block_square_sums", &block_square_sums);
}

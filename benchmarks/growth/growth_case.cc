#include "benchmarks/growth/growth_case.h"

#include <time.h>

#include <fstream>

#include "benchmarks/process_memory.h"

namespace lockstep::growth {

namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

void Meter::start() {
  std::ofstream("/proc/self/clear_refs") << "5";  // the most so far is what there is now
  resident_ = status_bytes("VmRSS:");
  begun_ = processor_seconds();
}

void Meter::stop() {
  if (stopped_) return;
  stopped_ = true;
  cost_.seconds = processor_seconds() - begun_;
  if (!counted_) cost_.bytes = status_bytes("VmHWM:") - resident_;
}

void Meter::count_bytes(double bytes) {
  counted_ = true;
  cost_.bytes = bytes;
}

}  // namespace lockstep::growth

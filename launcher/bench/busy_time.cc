#include "launcher/bench/busy_time.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>

#include "core/base/check.h"

namespace lockstep::launcher {

double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  // user, nice, system, idle, iowait, irq, softirq.
  std::array<double, 7> ticks{};
  file >> word;
  for (double& each : ticks) file >> each;
  LS_CHECK(file.good() && word == "cpu", InternalError,
           "[bench] /proc/stat does not begin with the times of all cores.");
  const double idle = ticks[3] + ticks[4];
  return (std::accumulate(ticks.begin(), ticks.end(), 0.0) - idle) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

int64_t kernel_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  LS_CHECK(std::getline(file, id), InternalError, "[bench] the kernel does not tell its boot_id.");
  return static_cast<int64_t>(std::hash<std::string>()(id));
}

}  // namespace lockstep::launcher

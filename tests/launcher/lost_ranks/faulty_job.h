#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/launch/child_process.h"
#include "tests/launcher/launch/launched.h"

namespace lockstep::launcher {

/// An environment variable of a process, as set at its start; "" if unset or if the process has
/// ended.
inline std::string variable_of(pid_t process, const std::string& name) {
  std::istringstream variables(file_content(fmt::format("/proc/{}/environ", process)));
  for (std::string each; std::getline(variables, each, '\0');) {
    if (each.starts_with(name + "=")) return each.substr(name.size() + 1);
  }
  return "";
}

/// Expects the job to end within `limit`, which is far more than it should need.
inline Result end_within(Launched& launched, std::chrono::seconds limit) {
  const auto start = std::chrono::steady_clock::now();
  Result result = launched.end();
  EXPECT_LT(std::chrono::steady_clock::now() - start, limit);
  return result;
}

/// Training runs with faults under `lockstep launch`. At the end of each test, no rank may be alive
/// and no file of theirs left in /dev/shm or the temporary folder.
class FaultyJob : public Program {
 protected:
  void SetUp() override {
    if (const std::string why = no_mpirun(); !why.empty()) GTEST_SKIP() << why;
    std::filesystem::create_directory(folder_ / "tmp");
  }
  void TearDown() override {
    EXPECT_TRUE(comes_true([&] { return !any_runs(ranks_); })) << "a rank is left";
    for (const std::string& segment : segments_) {
      EXPECT_TRUE(comes_true([&] { return !is_in_shared_memory(segment); })) << segment;
    }
    if (!std::filesystem::exists(folder_ / "tmp")) return;
    EXPECT_TRUE(comes_true([&] { return std::filesystem::is_empty(folder_ / "tmp"); }));
  }

  /// Writes the config `name`: a small model on random data that trains until it is stopped.
  void put_job(const std::string& name, const std::string& more = "") const {
    put_file(folder_ / name,
             "model { mlp { inputs: 8 hidden_widths: [32] classes: 4 activation: RELU } }\n"
             "data { random {} }\n"
             "train { steps: 100000000 batch_size: 4 log_every: 100000000 }\n"
             "checkpoint { every_steps: 0 }\n" +
                 more);
  }

  /// Starts two ranks, even on a machine with fewer cores.
  Launched start(const std::string& line, std::map<std::string, std::string> variables = {}) const {
    variables["TMPDIR"] = (folder_ / "tmp").string();
    return Launched("-np 2 --oversubscribe " + line, folder_.path(), variables);
  }
  /// A command that runs the shell line `line` on each rank, $R, then `lockstep train run.txtpb`.
  std::string each_rank(const std::string& line, const std::string& more = "") const {
    put_file(folder_ / "rank.sh",
             fmt::format("R=$OMPI_COMM_WORLD_RANK\n{}\nexec '{}/lockstep' train run.txtpb "
                         "--run-dir run {}\n",
                         line, LOCKSTEP_BIN_DIR, more));
    return "sh ./rank.sh";
  }

  /// Waits for all ranks to start, and returns their processes. They must end before the test does.
  std::vector<pid_t> wait_for_ranks(const Launched& launched, size_t count = 2) {
    std::map<int, pid_t> found;
    EXPECT_TRUE(comes_true([&] {
      found.clear();
      for (const pid_t pid : descendants(launched.pid())) {
        const std::string rank = variable_of(pid, "OMPI_COMM_WORLD_RANK");
        if (!rank.empty()) found.try_emplace(std::atoi(rank.c_str()), pid);
      }
      return found.size() == count;
    })) << "not all ranks have come";
    std::vector<pid_t> pids;
    for (const auto& [rank, pid] : found) pids.push_back(pid);
    ranks_.insert(ranks_.end(), pids.begin(), pids.end());
    // Open MPI's files have the job's number in their names.
    if (!pids.empty()) {
      const std::string job = variable_of(pids[0], "PMIX_NAMESPACE");
      segments_.push_back(fmt::format("{:x}.", std::strtoul(job.c_str(), nullptr, 10)));
    }
    return pids;
  }
  /// Waits until the run in folder "run" has made a step, then returns the ranks' processes.
  std::vector<pid_t> wait_for_a_step(const Launched& launched) {
    EXPECT_TRUE(comes_true([&] { return !file_content(folder_ / "run/metrics.jsonl").empty(); }))
        << "no step";
    return wait_for_ranks(launched);
  }

 private:
  static bool is_in_shared_memory(const std::string& part) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
      if (entry.path().filename().string().find(part) != std::string::npos) return true;
    }
    return false;
  }

  std::vector<pid_t> ranks_;
  std::vector<std::string> segments_;
};

}  // namespace lockstep::launcher

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::launcher {

using train::file_content;
using train::put_file;
using train::says;

/// Exit status and output of a command.
struct Result {
  int status = -1;
  std::string output;  ///< standard output
  std::string errors;  ///< standard error
};

/// Runs the program, or any shell command, in the test's own folder.
class Program : public testing::Test {
 protected:
  /// `variables` in shell syntax: "COLUMNS=50 NAME=value".
  Result run(const std::string& arguments, const std::string& variables = "") const {
    return shell(fmt::format("{} '{}/lockstep' {}", variables, LOCKSTEP_BIN_DIR, arguments));
  }
  Result shell(const std::string& command) const {
    const std::string out = (folder_ / ".out").string();
    const std::string err = (folder_ / ".err").string();
    const int raw = std::system(fmt::format("cd '{}' && {{ {}\n}} > '{}' 2> '{}'",
                                            folder_.path().string(), command, out, err)
                                    .c_str());
    return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, file_content(out), file_content(err)};
  }

  /// Why mpirun cannot start ranks here. Empty if it can.
  std::string no_mpirun() const {
    if (shell("command -v mpirun").status != 0) return "no mpirun";
    return says(run("--version --json").output, "\"mpi\": null") ? "built without MPI" : "";
  }

  /// Writes a complete config to the file `name`.
  void put_config(const std::string& name, const std::string& more = "") const {
    put_file(folder_ / name,
             "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 8 } }\n"
             "data { random {} }\n"
             "train { steps: 6 batch_size: 2 }\n" +
                 more);
  }
  /// Makes a run directory that contains only metrics.
  void put_run(const std::string& name, int64_t steps, double shift = 0) const {
    std::filesystem::create_directories(folder_ / name);
    std::string text;
    for (int64_t step = 1; step <= steps; ++step) {
      text += fmt::format("{{\"step\":{},\"loss\":{},\"grad_norm\":1}}\n", step,
                          2 + 3.0 / static_cast<double>(step) + (step > 3 ? shift : 0));
    }
    put_file(folder_ / (name + "/metrics.jsonl"), text);
  }

  /// The loss of each step that the run in `folder` has recorded.
  std::vector<double> losses(const std::string& folder) const {
    const std::string text = file_content(folder_ / (folder + "/metrics.jsonl"));
    const std::regex number("\"loss\":([-0-9.e+]+)");
    std::vector<double> result;
    for (std::sregex_iterator match(text.begin(), text.end(), number), end; match != end; ++match) {
      result.push_back(std::stod((*match)[1]));
    }
    return result;
  }

  train::TemporaryDirectory folder_;
};

}  // namespace lockstep::launcher

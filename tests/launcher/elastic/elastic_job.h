#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dist/rendezvous/socket.h"
#include "tests/launcher/launch/disturbed_run.h"

namespace lockstep::launcher {

/// A job with parallel.elastic that nobody launches: each process is started by itself.
class ElasticJob : public DisturbedRun {
 protected:
  /// Without what is done every few steps.
  static std::string steps_alone() {
    return "--set checkpoint.every_steps=0 --set train.eval_every=0 --set train.log_every=1000000 "
           "--set schedule.decay_steps=100000";
  }
  /// Runs until it is stopped.
  static std::string endless() { return "--steps 100000000 " + steps_alone(); }
  ElasticJob() {
    dist::Endpoint endpoint{"127.0.0.1", 0};
    (void)dist::listen_at(endpoint);
    address_ = dist::to_string(endpoint);
  }

  /// A process of the job. `most`: ranks that the run may have. `before`: a command that ends in an
  /// exec of the one behind it.
  Launched train(const std::string& options, int most = 3, const std::string& more = endless(),
                 const std::string& variables = "", const std::string& before = "") const {
    return Launched::of(
        {"/bin/sh", "-c",
         fmt::format("{} exec {} '{}/lockstep' train run.txtpb {} --rendezvous {} --set "
                     "parallel.elastic.max_ranks={} {} {}",
                     variables, before, LOCKSTEP_BIN_DIR, plugin(), address_, most, more, options)},
        folder_.path());
  }
  using Processes = std::vector<std::unique_ptr<Launched>>;
  Processes start(int ranks, int most, const std::string& more = endless()) const {
    Processes started;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string options =
          fmt::format("--ranks {} --rank {}{}", ranks, rank, rank == 0 ? " --run-dir run" : "");
      started.emplace_back(new Launched(train(options, most, more)));
    }
    EXPECT_TRUE(comes_true([&] { return steps() > 0; }));
    return started;
  }
  static void stop_and_expect_end(std::vector<Launched*> processes) {
    processes.front()->signal(SIGTERM);
    for (Launched* each : processes) {
      const Result result = each->end();
      EXPECT_EQ(result.status, 75) << result.errors;
    }
  }

  std::vector<nlohmann::json> lines_of(const char* name) const {
    std::ifstream file(folder_ / "run" / name);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) {
      // The last line may not be whole yet.
      nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
      if (!parsed.is_discarded()) lines.push_back(std::move(parsed));
    }
    return lines;
  }
  /// The last step that was recorded.
  int64_t steps() const {
    const std::vector<nlohmann::json> lines = lines_of("metrics.jsonl");
    return lines.empty() ? 0 : lines.back().value("step", int64_t{0});
  }
  bool goes_on() const {
    const int64_t before = steps();
    return comes_true([&] { return steps() > before + 2; });
  }
  /// Compares a stopped run with one of as many steps that was not disturbed.
  void expect_bits_of_undisturbed_run(const std::string& what) const {
    const int64_t count = steps();
    const std::string common =
        fmt::format("train run.txtpb {} {} --steps {}", plugin(), steps_alone(), count);
    // Writes the weights: all steps are done.
    ASSERT_EQ(run(common + " --run-dir run --set parallel.elastic.max_ranks=3").status, 0) << what;
    ASSERT_EQ(run(common + " --run-dir straight").status, 0) << what;
    EXPECT_TRUE(file_content(folder_ / "run/model.safetensors") ==
                file_content(folder_ / "straight/model.safetensors"))
        << what;
    const Result compared = run("compare run straight");
    EXPECT_EQ(compared.status, 0) << what << compared.output;
    std::vector<int64_t> recorded;
    for (const nlohmann::json& line : lines_of("metrics.jsonl")) {
      if (line.contains("step")) recorded.push_back(line["step"]);
    }
    for (size_t i = 0; i < recorded.size(); ++i) {
      ASSERT_EQ(recorded[i], static_cast<int64_t>(i) + 1) << what;
    }
    EXPECT_EQ(recorded.size(), static_cast<size_t>(count)) << what;
  }

  std::string address_;
};

}  // namespace lockstep::launcher

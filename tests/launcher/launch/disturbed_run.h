#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/launcher/launch/launched.h"
#include "tests/train/table_run.h"

namespace lockstep::launcher {

/// Runs of 20 steps in BITWISE with a checkpoint and an evaluation every 5. A rank of four does 2
/// micro-batches a step, so call 2 n + 1 of its relu begins step n + 1, until the first evaluation.
class DisturbedRun : public Program {
 protected:
  void SetUp() override {
    put_file(folder_ / "run.txtpb",
             "model { mlp { inputs: 16 hidden_widths: [32] classes: 4 activation: RELU } }\n" +
                 train::table_data(folder_) +
                 "train { steps: 20 batch_size: 8 micro_batch_size: 1 eval_every: 5 }\n"
                 "reproducibility: BITWISE checkpoint { every_steps: 5 }\n");
    const Result result = run("train run.txtpb --run-dir undisturbed " + plugin());
    ASSERT_EQ(result.status, 0) << result.errors;
  }

  static std::string plugin() {
#ifdef LOCKSTEP_TEST_PLUGINS
    return "--load '" LOCKSTEP_TEST_PLUGINS "/librank_fault.so'";
#else
    return "";
#endif
  }
  /// Starts four ranks in run/ with the faults of tests/plugins/rank_fault.cc.
  Launched start(const std::string& faults, const std::string& options,
                 const std::string& more = "") const {
    return Launched(fmt::format("--transport tcp --oversubscribe -np 4 {} -x RANK_FAULT={} "
                                "run.txtpb --run-dir run {} {}",
                                options, faults, plugin(), more),
                    folder_.path());
  }
  void expect_undisturbed_weights(const std::string& what) const {
    const std::string weights = file_content(folder_ / "run/model.safetensors");
    EXPECT_FALSE(weights.empty()) << what;
    EXPECT_TRUE(weights == file_content(folder_ / "undisturbed/model.safetensors")) << what;
  }
};

}  // namespace lockstep::launcher

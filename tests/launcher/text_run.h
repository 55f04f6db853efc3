#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/launcher/program.h"

namespace lockstep::launcher {

/// A config, run.txtpb, that trains a tiny GPT-2 on a text beside it, with a checkpoint every two
/// steps, of which all are kept.
class TextRun : public Program {
 protected:
  explicit TextRun(int steps) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += fmt::format("{} quick brown foxes. ", i % 37);
    put_file(folder_ / "text.txt", text);
    put_file(folder_ / "run.txtpb",
             fmt::format("model {{ gpt2 {{ context_length: 8 layers: 1 heads: 2 width: 8 }} }}\n"
                         "data {{ text {{ path: \"text.txt\" held_out_bytes: 200 }} }}\n"
                         "train {{ steps: {} batch_size: 2 sample_bytes: 0 }}\n"
                         "checkpoint {{ every_steps: 2 keep_last: 9 }}\n",
                         steps));
  }
  Result train(const std::string& directory, const std::string& more = "") const {
    return run(fmt::format("train run.txtpb --run-dir {} {}", directory, more));
  }
};

}  // namespace lockstep::launcher

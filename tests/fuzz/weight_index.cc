#include "train/weights/weight_index.h"

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {

Outcome fuzz_weight_index(Input input) {
  std::map<std::string, std::string> files;
  try {
    files = train::parse_weight_index(text_of(input), "fuzzed");
  } catch (const CheckpointError& error) {
    require(std::string(error.what()).starts_with("[weights] fuzzed: "),
            "an error names its source");
    return Outcome::kRefused;
  }
  for (const auto& [tensor, file] : files) {
    require(!file.empty() && file != "." && file != "..", "a file has a name");
    require(file.find('/') == std::string::npos, "a file lies beside the index");
  }
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz

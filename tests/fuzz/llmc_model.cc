#include "core/base/error.h"
#include "tests/fuzz/targets.h"
#include "train/weights/llmc_header.h"

namespace lockstep::fuzz {

Outcome fuzz_llmc_model(Input input) {
  train::LlmcHeader header;
  try {
    header = train::parse_llmc_header(std::as_bytes(input), "fuzzed");
  } catch (const CheckpointError& error) {
    require(std::string(error.what()).starts_with("[llmc] fuzzed: "), "an error names its source");
    return Outcome::kRefused;
  }
  require(header.file_bytes() == std::ssize(input), "the header fits the file");
  require(header.padding_bytes() >= 0 && header.padding_bytes() < std::ssize(input),
          "the padding lies within the file");
  require(header.width % header.heads == 0, "heads divide the width");
  const train::LlmcHeader again = train::parse_llmc_header(header.words(), "written");
  require(again.words() == header.words(), "a header written out reads back the same");
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz

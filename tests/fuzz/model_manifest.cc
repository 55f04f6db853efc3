#include <nlohmann/json.hpp>

#include "core/base/files/regular_file.h"
#include "tests/fuzz/targets.h"
#include "train/weights/manifest_text.h"
#include "train/weights/read_errors.h"

namespace lockstep::fuzz {
namespace {

Outcome parse(const std::string& text) {
  train::FileDigests files;
  try {
    train::FileDigests hashes;
    const nlohmann::ordered_json manifest =
        train::checked_manifest(text, "lockstep model", "fuzzed", &hashes);
    files = train::file_digests_of(manifest, "fuzzed", std::move(hashes));
  } catch (const CheckpointError& error) {
    require(std::string(error.what()).starts_with("[checkpoint] fuzzed: "),
            "an error names its source");
    return Outcome::kRefused;
  }
  for (const auto& [name, digest] : files) {
    require(is_file_name(name), "a file lies beside the manifest");
  }
  nlohmann::ordered_json written;
  written["files"] = train::json_of(files);
  require(train::file_digests_of(written, "written") == files,
          "digests written anew read back the same");
  return Outcome::kAccepted;
}

}  // namespace

Outcome fuzz_model_manifest(Input input) {
  const std::string text = text_of(input);
  const Outcome alone = parse(text);
  if (text.find('\n') == std::string::npos) return alone;
  const Outcome completed = parse(train::sealed(text));
  return alone == Outcome::kAccepted ? alone : completed;
}

}  // namespace lockstep::fuzz

#include "train/run/checkpoint_manifest.h"

#include "core/base/files/regular_file.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

/// Appends the correct hash to `body`.
std::string sealed(const std::string& body) {
  const std::string hash = ContentHasher().add(std::string_view(body)).result().hex();
  return body + ",\n \"hash\": \"" + hash + "\"\n}\n";
}

Outcome parse_manifest(const std::string& text) {
  train::CheckpointManifest manifest;
  try {
    manifest = train::parse_manifest(text, "fuzzed");
  } catch (const CheckpointError&) {
    return Outcome::kRefused;
  }
  for (const auto& [name, digest] : manifest.files) {
    require(is_file_name(name), "a file lies beside the manifest");
  }
  // The writer never writes a manifest without files, so these need not round-trip.
  if (manifest.files.empty()) return Outcome::kAccepted;
  const std::string written = train::format_manifest(manifest);
  require(train::format_manifest(train::parse_manifest(written, "written")) == written,
          "a manifest written anew reads back to the same text");
  return Outcome::kAccepted;
}

}  // namespace

Outcome fuzz_checkpoint_manifest(Input input) {
  const std::string text = text_of(input);
  const Outcome alone = parse_manifest(text);
  const Outcome completed = parse_manifest(sealed(text));
  return alone == Outcome::kAccepted ? alone : completed;
}

}  // namespace lockstep::fuzz

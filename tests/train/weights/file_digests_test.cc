#include "train/weights/file_digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::train {
namespace {

TEST(CheckFilesBesideWeights, NamesTheTokenizerFileThatIsNotWhatWasWritten) {
  const TemporaryDirectory folder;
  put_file(folder / "vocab.json", "{\"a\":0}");
  put_file(folder / "config.json", "{}");
  check_files_beside_weights(folder.path());  // no manifest, as in folders of other programs
  FileDigests files;
  for (const char* name : {"vocab.json", "config.json"}) {
    files[name] = digest_of_file(folder / name);
  }
  write_model_manifest(folder.path(), 1, files);
  check_files_beside_weights(folder.path());
  put_file(folder / "vocab.json", "{\"b\":0}");
  expect_error<CheckpointError>([&] { check_files_beside_weights(folder.path()); }, "vocab.json",
                                "damaged");
}

/// A manifest of one file with the tensors `a` to `c`, of which `b` has the hash `hash`.
std::string manifest_with(const std::string& hash) {
  const std::string good(32, '7');
  return sealed(R"({"format": "lockstep model", "files": {"w": {"bytes": 9, "header": ")" + good +
                R"(", "tensors": {"a": ")" + good + R"(", "b": ")" + hash + R"(", "c": ")" + good +
                "\"}}}\n}");
}

TEST(CheckedManifest, TheHashesThatItTakesOutAreThoseThatItOtherwiseKeeps) {
  const std::string text = manifest_with("0123456789abcdef0123456789abcdef");
  const nlohmann::ordered_json whole = checked_manifest(text, "lockstep model", "m");
  FileDigests hashes;
  const nlohmann::ordered_json rest = checked_manifest(text, "lockstep model", "m", &hashes);
  EXPECT_EQ(whole["files"]["w"]["tensors"].size(), 3u);
  EXPECT_EQ(rest["files"]["w"]["tensors"].size(), 0u);
  const FileDigests found = file_digests_of(rest, "m", std::move(hashes));
  EXPECT_EQ(found, file_digests_of(whole, "m"));
  EXPECT_EQ(found.at("w").tensors.at("b").high, 0x0123456789abcdefu);
}

TEST(CheckedManifest, TextThatIsNoHashIsRefusedByItsReader) {
  FileDigests hashes;
  const nlohmann::ordered_json rest =
      checked_manifest(manifest_with("no hash"), "lockstep model", "m", &hashes);
  expect_error<CheckpointError>([&] { (void)file_digests_of(rest, "m", std::move(hashes)); },
                                "a hash of 32 hexadecimal digits expected, got \"no hash\"");
}

}  // namespace
}  // namespace lockstep::train

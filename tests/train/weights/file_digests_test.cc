#include "train/weights/file_digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep::train

// Text that becomes tokens when a run starts.

#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "benchmarks/growth/growth_case.h"
#include "benchmarks/scratch_folder.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "train/build.h"

namespace lockstep::growth {

namespace {

constexpr int64_t kFileBytes = 10'000;

void write_text(const std::filesystem::path& path, int64_t bytes) {
  constexpr std::string_view kLine =
      "In the beginning there was a line of text, and it recurred.\n";
  std::string text;
  while (std::ssize(text) < bytes) text += kLine;
  text.resize(static_cast<size_t>(bytes));
  std::ofstream(path, std::ios::binary) << text;
}

void read_text(const std::filesystem::path& path, Meter& meter) {
  const config::RunConfig config = config::load_text(fmt::format(
      R"(model {{ gpt2 {{ context_length: 16 layers: 1 heads: 1 width: 16 }} }}
         train {{ steps: 1 batch_size: 1 }}
         data {{ text {{ path: "{}" cache_dir: "" }} order: SHUFFLED }})",
      path.string()));
  meter.start();
  const std::unique_ptr<train::TokenSource> source = train::build_source(config);
  meter.stop();
}

void read_files(int64_t files, Meter& meter) {
  const ScratchFolder folder;
  for (int64_t i = 0; i < files; ++i) write_text(folder / fmt::format("{:06}", i), kFileBytes);
  read_text(folder.path(), meter);
}

void read_file(int64_t mebibytes, Meter& meter) {
  const ScratchFolder folder;
  write_text(folder / "text", mebibytes << 20);
  read_text(folder / "text", meter);
}

}  // namespace

std::vector<GrowthCase> data_cases() {
  return {{"files", "files of 10 KB", 1000, true, read_files},
          {"text", "MiB of bytes, shuffled", 16, true, read_file}};
}

}  // namespace lockstep::growth

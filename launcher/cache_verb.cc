#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "compile/native/library_cache.h"
#include "core/base/check.h"
#include "launcher/command_line.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

namespace {

using compiler::LibraryCache;
using Entries = std::vector<LibraryCache::Entry>;

constexpr int64_t kSecondsPerDay = 24 * 60 * 60;

struct Options {
  std::string folder;
  int64_t days = 30;
  bool json = false;
};

LibraryCache cache_of(const Options& options) {
  if (!options.folder.empty()) return LibraryCache(options.folder);
  const auto usual = LibraryCache::usual_folder();
  LS_CHECK(usual, ConfigError,
           "[cache] there is no folder: expected HOME or LOCKSTEP_CACHE_DIR to be set. Name one "
           "with --folder.");
  return LibraryCache(*usual);
}

void print(const LibraryCache& cache, const Entries& entries, const Options& options,
           std::string_view what) {
  uint64_t bytes = 0;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LibraryCache::Entry& entry : entries) {
    bytes += entry.bytes;
    list.push_back({{"file", entry.file.filename().string()},
                    {"bytes", entry.bytes},
                    {"unused_seconds", entry.age.count()},
                    {"what", entry.what}});
  }
  if (options.json) {
    const nlohmann::ordered_json object = {
        {"folder", cache.folder().string()}, {"bytes", bytes}, {"libraries", list}};
    return fmt::print("{}\n", object.dump(2));
  }
  for (const LibraryCache::Entry& entry : entries) {
    fmt::print("{}  {:>5} KiB  {:>4} days  {}\n", entry.file.stem().string(),
               (entry.bytes + 1023) / 1024, entry.age.count() / kSecondsPerDay, entry.what);
  }
  fmt::print("{}: {} {}, {:.1f} MiB\n", cache.folder().string(), entries.size(), what,
             static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

void add_cache(const Verb& app) {
  auto options = std::make_shared<Options>();
  const Verb verb = app.verb("cache", "List or remove what was compiled while programs ran");
  verb.requires_verb();
  const Verb list =
      verb.verb("ls", "List the libraries: bytes, days since their last use, what they hold");
  const Verb prune = verb.verb("prune", "Remove libraries that were not used for some days");
  for (const Verb& each : {list, prune}) {
    each.option("--folder", options->folder, "The cache (default: the user's)").existing_folder();
    each.flag("--json", options->json, "Print an object instead of lines");
  }
  prune.option("--days", options->days, "Those that were not used for so long; 0: all")
      .not_negative()
      .shows_default();
  list.runs([options] {
    const LibraryCache cache = cache_of(*options);
    print(cache, cache.list(), *options, "libraries");
  });
  prune.runs([options] {
    const LibraryCache cache = cache_of(*options);
    print(cache, cache.prune(std::chrono::seconds(options->days * kSecondsPerDay)), *options,
          "removed");
  });
}

}  // namespace lockstep::launcher
